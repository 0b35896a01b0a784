"""C1 outputs for tests: the stored ones, and records that can be changed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.filecoin.serde import Type


def unpacked(path: Path) -> bytes:
    """The content of a .zst file: by Python 3.14 itself, by the program, or by the package zstandard."""
    try:
        from compression import zstd  # type: ignore[import-not-found]

        return bytes(zstd.decompress(path.read_bytes()))
    except ModuleNotFoundError:
        pass
    if program := shutil.which("zstd"):
        return subprocess.run([program, "-dc", path], capture_output=True, check=True).stdout
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())


def c1_8mib(fixtures: Path) -> tuple[bytes, bytes, int]:
    """The real 8 MiB output in bincode, and the prover id and sector number stored around it."""
    data = unpacked(fixtures / "filecoin" / "c1-8MiB.bincode.zst")
    assert data[:4] == bytes(4)
    return data[4:-40], data[-40:-8], int.from_bytes(data[-8:], "little")


def json_bytes(value: Any, **options: Any) -> bytes:
    options.setdefault("separators", (",", ":"))
    return json.dumps(value, **options).encode()


def record(layout: Type, data: bytes) -> NDArray[np.void]:
    """A value that can be changed, in memory of its own."""
    return np.frombuffer(bytearray(data), dtype=layout.dtype, count=1).reshape(())
