"""Which base of a query belongs to a wire, as a table on the device: ``native/gpu/rows.cu``.

Made once per query. Digits that are renumbered by it cost nothing for infinite bases and for wires that the
query does not have. Reads a query's x coordinates and writes 4 bytes per wire.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.backends.cuda.digits import ROWS
from cuzk.backends.cuda.machine import Machine, Memory, Unit, grid, uploaded
from cuzk.curves import Curve
from cuzk.errors import KernelError

THREADS = 256
BLOCKS = 8  # per processor


@dataclass(frozen=True)
class Rows:
    """``row_of[wire]`` for ``wires`` wires; ``infinite``, a u64 on the device, counts infinite bases.

    Where the query is wire k's base at k for all wires, and no base is infinite, the table is the identity.
    """

    row_of: Memory  # u32[wires], 2^32 - 1 where there is no base to multiply
    infinite: Memory
    wires: int


def number_rows(
    machine: Machine,
    curve: Curve,
    group: str,
    points: Memory,
    n: int,
    index: range | NDArray[np.uint32],
    wires: int,
) -> Rows:
    """The table of ``n`` affine bases, base k being that of wire index[k]; all different, below ``wires``."""
    if wires > ROWS:
        raise KernelError(f"cuda: rows: expected less than 2^31 wires, found {wires}")
    if len(index) != n:
        raise KernelError(f"cuda: rows: expected {n} wires, one per base, found {len(index)}")
    if n and isinstance(index, range):
        if not 0 <= min(index[0], index[-1]) <= max(index[0], index[-1]) < wires:
            raise KernelError(f"cuda: rows: expected wires below {wires}, found {index}")
    elif n:
        _expect_increasing(np.asarray(index), wires)
    row_of, infinite = machine.alloc(4 * max(wires, 1)), machine.alloc(8)
    machine.fill(row_of, 0xFF)
    machine.fill(infinite, 0)
    table, first, step = _wires(machine, index)
    unit, blocks = Unit("rows.cu", curve, group), grid(machine, n, THREADS, BLOCKS)
    args = (points, n, table, first, step, row_of, infinite)
    machine.launch(unit, "number_rows", blocks, THREADS, *args)
    return Rows(row_of, infinite, wires)


def _wires(machine: Machine, index: range | NDArray[np.uint32]) -> tuple[Memory | int, int, int]:
    """Table of wires or null, first wire, step (mod 2^64)."""
    if isinstance(index, range):
        return 0, index.start if len(index) else 0, index.step % 2**64
    return uploaded(machine, np.asarray(index, np.uint32)), 0, 0


def _expect_increasing(index: NDArray[np.uint32], wires: int) -> None:
    """Two bases of one wire would overwrite each other's row."""
    if int(index[-1]) >= wires:
        raise KernelError(f"cuda: rows: expected wires below {wires}, found {index[-1]}")
    falls = np.flatnonzero(index[1:] <= index[:-1])
    if falls.size:
        k = int(falls[0]) + 1
        raise KernelError(
            f"cuda: rows: expected wires in increasing order, found {index[k]} after {index[k - 1]} at {k}"
        )
