"""Tables of a query's rows against the points themselves, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.backends.cuda.rows import number_rows
from cuzk.curves import BN254, Curve
from cuzk.errors import KernelError
from cuzk.vectors import Points
from emulator import EmulatedMachine

NONE = 2**32 - 1
Index = range | NDArray[np.uint32]
WIRES = 700
INDEXES: list[Index] = [range(600), range(100, 700), range(699, 99, -1), range(1, 700, 7), np.arange(5, 605, 2, dtype=np.uint32), range(0)]  # fmt: skip


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_rows_of_wires(curve: Curve, group: str, index: Index) -> None:
    machine, n = EmulatedMachine(), len(index)
    words = np.random.default_rng(1).integers(0, 2, (n, curve.point_words(group)), np.uint64)
    words[3::5] = 0  # infinity
    words[4::50, : words.shape[1] // 2] = 0  # x = 0 is none as long as y is not
    words[4::50, -1] = 1
    infinite = Points(curve, group, words).is_infinity()
    points = machine.alloc(words.nbytes + 8)
    machine.upload(points, words)
    rows = number_rows(machine, curve, group, points, n, index, WIRES)
    row_of, count = np.empty(WIRES, np.uint32), np.empty(1, np.uint64)
    machine.download(rows.row_of, row_of)
    machine.download(rows.infinite, count)
    expected = np.full(WIRES, NONE, np.uint32)
    for k, wire in enumerate(index):
        if not infinite[k]:
            expected[wire] = k
    assert (row_of == expected).all()
    assert int(count[0]) == infinite.sum()
    assert n == 0 or 0 < infinite.sum() < n


def test_refusals() -> None:
    machine = EmulatedMachine()
    points = machine.alloc(64 * 3)
    refused: list[tuple[Index, str]] = [
        (range(2), "expected 3 wires, one per base, found 2"),
        (range(8, 11), r"expected wires below 10, found range\(8, 11\)"),
        (range(1, -2, -1), r"expected wires below 10, found range\(1, -2, -1\)"),
        (np.array([1, 5, 10], np.uint32), "expected wires below 10, found 10"),
        (np.array([1, 5, 5], np.uint32), "found 5 after 5 at 2"),
        (np.array([7, 5, 6], np.uint32), "found 5 after 7 at 1"),
    ]
    for index, message in refused:
        with pytest.raises(KernelError, match=message):
            number_rows(machine, BN254, "g1", points, 3, index, 10)
