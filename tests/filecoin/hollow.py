"""Parameter files of any size that are all holes behind their counts: whoever reads sizes alone sees the real one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cuzk.filecoin.parameters import parameters_named
from cuzk.formats.bellman import HEAD_BYTES, POINT_BYTES, VECTORS

POREP_32GIB = {
    "ic": 328,
    "h": (1 << 27) - 1,
    "l": 130_169_893,
    "a": 328 + 129_753_292,
    "b_g1": 1 + 33_112_281,
    "b_g2": 1 + 33_112_281,
}
"""Points of the published key."""


def hollow(name: str, counts: Mapping[str, int], folder: Path) -> Path:
    """The .params file of a circuit, with no point in it; it takes no room on the disk."""
    path = folder / f"{parameters_named(name).stem}.params"
    at = HEAD_BYTES
    with path.open("wb") as file:
        for vector, group in {"ic": "g1", **VECTORS}.items():
            file.seek(at)
            file.write(counts[vector].to_bytes(4, "big"))
            at += 4 + counts[vector] * POINT_BYTES[group]
        file.truncate(at)
    return path
