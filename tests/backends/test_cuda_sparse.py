"""The device's sparse product against Python integers, on the emulator."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from cuzk.backends.cuda.sparse import SEGMENT, SHORT, matrix_bytes, product, put_matrix
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Scalars
from emulator import EmulatedMachine

Rows = Sequence[Sequence[tuple[int, int]]]  # (coefficient number, wire)


def matrix(curve: Curve, rows: Rows, values: list[int]) -> SparseMatrix:
    terms = [term for row in rows for term in row]
    return SparseMatrix(
        np.cumsum([0] + [len(row) for row in rows]).astype(np.uint64),
        np.array([wire for _, wire in terms], np.uint32),
        np.array([c for c, _ in terms], np.uint32),
        Scalars.from_ints(curve, values, montgomery=True),
    )


def values_and_witness(curve: Curve, values: int, wires: int) -> tuple[list[int], list[int]]:
    rng = random.Random(5)
    table = [1, curve.r - 1, *(rng.randrange(curve.r) for _ in range(values))]
    return table, [rng.randrange(curve.r) for _ in range(wires - 1)] + [curve.r - 1]


def check(curve: Curve, rows: Rows, table: list[int], w: list[int], size: int) -> None:
    machine = EmulatedMachine()
    words = Scalars.from_ints(curve, w).words
    witness = machine.alloc(words.nbytes)
    machine.upload(witness, words)
    given = put_matrix(machine, curve, matrix(curve, rows, table))
    assert given.nbytes + witness.nbytes == machine.used
    bound = matrix_bytes(len(rows), sum(map(len, rows)), len(table), curve.fr_words)
    assert given.nbytes <= bound
    memory = product(machine, curve, given, witness, len(w), size)
    out = np.empty((size, curve.fr_words), np.uint64)
    machine.download(memory, out)
    if size.bit_count() == 1:
        bits = size.bit_length() - 1
        out = out[[int(f"{i:0{bits}b}"[::-1], 2) if bits else 0 for i in range(size)]]
    sums = [sum(table[c] * w[wire] for c, wire in row) % curve.r for row in rows]
    assert Scalars(curve, out, montgomery=True).ints() == sums + [0] * (size - len(rows))


@pytest.mark.parametrize(
    ("count", "size"), [(0, 1), (0, 4), (1, 1), (5, 8), (600, 1024), (64, 64), (90, 90), (90, 100)]
)
def test_rows_of_all_lengths(curve: Curve, count: int, size: int) -> None:
    rng = random.Random(count)
    table, w = values_and_witness(curve, 6, 50)
    lengths = [0, 1, 2, 3, 9, SHORT, SHORT + 1, 70]
    weights = [4, 4, 4, 4, 4, 1, 1, 1]
    rows = [
        [(rng.randrange(8), rng.randrange(50)) for _ in range(rng.choices(lengths, weights)[0])]
        for _ in range(count)
    ]
    check(curve, rows, table, w, size)


def test_one_long_row_among_empty_ones(curve: Curve) -> None:
    rng = random.Random(1)
    table, w = values_and_witness(curve, 2, 300)
    long = [(rng.randrange(4), rng.randrange(300)) for _ in range(100_000)]
    check(curve, [[], [(2, 299)], long, [], [(0, 0)] * SEGMENT, [(1, 1)] * (SEGMENT + 1), []], table, w, 16)  # fmt: skip


def test_only_plus_and_minus_one(curve: Curve) -> None:
    table, w = values_and_witness(curve, 0, 4)
    check(curve, [[(0, 3)], [(1, 3), (0, 3)], [(1, 0)] * 40], table, w, 4)


def test_no_terms_need_no_values(curve: Curve) -> None:
    check(curve, [[], []], [], [1], 2)


def test_what_does_not_fit_is_refused(curve: Curve) -> None:
    machine = EmulatedMachine()
    table, w = values_and_witness(curve, 1, 4)
    good = matrix(curve, [[(0, 3)], [(2, 1), (1, 0)]], table)
    with pytest.raises(KernelError, match="coefficients below 3, found 3"):
        put_matrix(machine, curve, matrix(curve, [[(3, 0)]], table))
    with pytest.raises(KernelError, match="values 0 and 1 to be 1 and -1"):
        put_matrix(machine, curve, matrix(curve, [[(0, 0)]], [1, 1]))
    for row_ptr in ([0, 2, 1], [0, 1, 2], [1, 2, 3]):
        changed = SparseMatrix(np.array(row_ptr, np.uint64), good.wires, good.coefficients, good.values)  # fmt: skip
        with pytest.raises(KernelError, match="row_ptr to rise from 0 to 3"):
            put_matrix(machine, curve, changed)
    put = put_matrix(machine, curve, good)
    witness = machine.alloc(32 * len(w))
    with pytest.raises(KernelError, match="at least 4 wires, found 3"):
        product(machine, curve, put, witness, 3, 2)
    with pytest.raises(KernelError, match="room for 2 rows, found a size of 1"):
        product(machine, curve, put, witness, 4, 1)
