"""Touches memory and gives it back, so that a virtual machine whose memory grows with its use has it, and says so.

Such a machine tells less than it may use (31 of 255 GiB, grown 8 GiB in 3 s), and who asks before the work whether
it fits is told that it does not.
"""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import OutOfMemory
from cuzk.prover.plan import installed_bytes

STEP = 1 << 30
PIECES = 16  # of a step
LEAST = PIECES << 20  # of a step
SPARE = 256 << 20  # of what is free: left to others
PATIENCE = 20.0  # seconds for the machine to grow
MEMORY = Path("/proc/meminfo")


def grow_memory(needed: int, threads: int, *, patience: float = PATIENCE) -> None:
    """The machine has ``needed`` bytes in all afterwards; OutOfMemory where it does not grow."""
    held = []
    with ThreadPoolExecutor(min(threads, PIECES)) as pool:
        while installed_bytes() < needed:
            held.append(np.empty(_room(needed, patience), dtype=np.uint8))
            list(pool.map(_touch, np.split(held[-1], PIECES)))


def _touch(piece: NDArray[np.uint8]) -> None:
    """Without the GIL."""
    ctypes.memset(piece.ctypes.data, 1, piece.nbytes)


def _room(needed: int, patience: float) -> int:
    """Bytes of the next step: less and less of what is free, where the machine grows under pressure only."""
    end = time.monotonic() + patience
    while (step := min(STEP, ((free := available_bytes()) - SPARE) // 2)) < LEAST:
        if time.monotonic() > end:
            raise OutOfMemory(
                f"memory: expected a machine that grows to {needed} bytes, found {installed_bytes()}, "
                f"{free} of them free, for {patience:.0f} s"
            )
        time.sleep(0.05)  # the host's turn
    return step // LEAST * LEAST


def available_bytes() -> int:
    """What programs can still have without others losing pages."""
    for line in MEMORY.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) << 10
    raise OutOfMemory(f"{MEMORY}: expected MemAvailable, found none")
