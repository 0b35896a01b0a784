"""C1 outputs for tests: the stored ones, and records that can be changed."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from cuzk.curves import BLS12_381
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.serde import Type

R = BLS12_381.r.to_bytes(32, "little")
Change = Callable[[Any], object]


def c1_8mib(fixtures: Path) -> tuple[bytes, bytes, int]:
    """The real 8 MiB output in bincode, and the prover id and sector number stored around it."""
    packed = (fixtures / "filecoin" / "c1-8MiB.bincode.zst").read_bytes()
    data = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    assert data[:4] == bytes(4)
    return data[4:-40], data[-40:-8], int.from_bytes(data[-8:], "little")


def json_bytes(value: Any, **options: Any) -> bytes:
    options.setdefault("separators", (",", ":"))
    return json.dumps(value, **options).encode()


def record(layout: Type, data: bytes) -> NDArray[np.void]:
    """A value that can be changed, in memory of its own."""
    return np.frombuffer(bytearray(data), dtype=layout.dtype, count=1).reshape(())


def put(array: Any, *, at: Any, value: Any) -> None:
    array[at] = value


def altered(text: dict[str, Any], change: Change) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json_bytes(text))
    change(copy)
    return copy


def same(a: C1, b: C1) -> bool:
    def content(c1: C1) -> bytes:
        fields = {n: v for n, v in vars(c1).items() if n not in ("name", "sector_number")}
        return pickle.dumps(fields)

    return content(a) == content(b)
