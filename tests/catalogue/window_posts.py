"""A catalogue with a WindowPoSt of 2 KiB under a key made here, and requests for it."""

from __future__ import annotations

from typing import Any

from made_posts import RANDOMNESS, MadeSector
from own_files import own_files
from served import catalogue_of, filecoin, request

from cuzk.engine.request import Field, Request
from cuzk.filecoin.registered import registered

WINDOW = registered("post", "StackedDrgWindow2KiBV1")
CIRCUIT = "window-2KiB"


def served(**more: Any) -> Any:
    given = {"insecure_key": True, **more}
    return catalogue_of(filecoin("w", proof=CIRCUIT, **given), parameters=own_files(CIRCUIT))


def window_fields(*made: MadeSector) -> dict[str, Any]:
    return {
        "registered_post_proof": WINDOW.name,
        "randomness": RANDOMNESS.hex(),
        "sectors": [{"sector": s.number, "comm_r": s.comm_r.hex()} for s in made],
    }


def window_request(*blobs: bytes, **more: Field) -> Request:
    fields = {"registered_proof": 5, "randomness": RANDOMNESS, "sector_size": 2048, **more}
    return request("window-post", fields, *blobs)
