"""Sparse matrix times witness against Python integers."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import Curve
from cuzk.vectors import Scalars, Words, pack

pytestmark = pytest.mark.usefixtures("arithmetic")

Rows = Sequence[Sequence[tuple[int, int]]]  # (coefficient number, wire)


def arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """row_ptr, wires, coefficient numbers."""
    row_ptr = np.cumsum([0] + [len(row) for row in rows]).astype(np.uint64)
    terms = [term for row in rows for term in row]
    return (
        row_ptr,
        np.array([wire for _, wire in terms], np.uint32),
        np.array([c for c, _ in terms], np.uint32),
    )


def table(curve: Curve, extra: int) -> list[int]:
    rng = random.Random(8)
    return [1, curve.r - 1] + [rng.randrange(curve.r) for _ in range(extra)]


def witness(curve: Curve, n: int) -> list[int]:
    rng = random.Random(9)
    return ([1, curve.r - 1, 0] + [rng.randrange(curve.r) for _ in range(n)])[:n]


def product(
    curve: Curve,
    rows: Rows,
    values: list[int],
    w: list[int],
    size: int,
    *,
    bit_reversed: bool = False,
    threads: int = 1,
) -> list[int]:
    out = np.full((size, 4), 2**64 - 1, np.uint64)
    montgomery = Scalars.from_ints(curve, values, montgomery=True).words
    _core.product(curve.name, *arrays(rows), montgomery, pack(w, 4), out, bit_reversed, threads)
    return Scalars(curve, out, montgomery=True).ints()


def expected(curve: Curve, rows: Rows, values: list[int], w: list[int], size: int) -> list[int]:
    sums = [sum(values[c] * w[wire] for c, wire in row) % curve.r for row in rows]
    return sums + [0] * (size - len(rows))


def some_rows(count: int, values: int, wires: int) -> Rows:
    """Empty rows, repeated wires, unsorted wires, all coefficient numbers."""
    rng = random.Random(count)
    return [
        [(rng.randrange(values), rng.randrange(wires)) for _ in range(rng.choice((0, 1, 2, 3, 9)))]
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 5, 64, 700])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows(curve: Curve, count: int, threads: int) -> None:
    values, w = table(curve, 6), witness(curve, 50)
    rows = some_rows(count, 8, 50)
    assert product(curve, rows, values, w, 1000, threads=threads) == expected(
        curve, rows, values, w, 1000
    )


def test_bit_reversed_order(curve: Curve) -> None:
    values, w, rows = table(curve, 6), witness(curve, 50), some_rows(100, 8, 50)
    found = product(curve, rows, values, w, 128, bit_reversed=True, threads=2)
    natural = expected(curve, rows, values, w, 128)
    assert found == [natural[int(f"{i:07b}"[::-1], 2)] for i in range(128)]
    for size in (1, 2):
        only = product(curve, rows[:1], values, w, size, bit_reversed=True)
        assert only == expected(curve, rows[:1], values, w, size)


@pytest.mark.parametrize("threads", [1, 3])
def test_one_long_row_among_short_ones(curve: Curve, threads: int) -> None:
    values, w = table(curve, 3), witness(curve, 300)
    rng = random.Random(3)
    long = [(rng.randrange(5), rng.randrange(300)) for _ in range(100_000)]
    rows = [*some_rows(40, 5, 300), long, *some_rows(40, 5, 300)]
    assert product(curve, rows, values, w, 81, threads=threads) == expected(
        curve, rows, values, w, 81
    )


def test_no_terms_need_no_values(curve: Curve) -> None:
    assert product(curve, [[], []], [], [], 4) == [0, 0, 0, 0]


@pytest.mark.parametrize("threads", [1, 2])
def test_indices_outside(curve: Curve, threads: int) -> None:
    values, w = table(curve, 0), witness(curve, 3)
    rows: list[list[tuple[int, int]]] = [[(0, 0)]] * 20
    for bad, message in (((0, 3), "row 17: wire 3 of 3"), ((2, 0), "row 17: coefficient 2 of 2")):
        broken = [*rows[:17], [bad], *rows[18:]]
        with pytest.raises(ValueError, match=message):
            product(curve, broken, values, w, 20, threads=threads)


def test_arrays_that_contradict_each_other(curve: Curve) -> None:
    values = Scalars.from_ints(curve, table(curve, 0), montgomery=True).words
    w, terms = pack([1, 2], 4), np.zeros(3, np.uint32)
    out = np.zeros((4, 4), np.uint64)

    def run(row_ptr: list[int], *, values: Words = values, bit_reversed: bool = False) -> None:
        _core.product(
            curve.name, np.array(row_ptr, np.uint64), terms, terms, values, w, out, bit_reversed, 2
        )

    run([0, 1, 3])
    for row_ptr in ([1, 2, 3], [0, 1, 2], [0, 1, 4]):
        with pytest.raises(ValueError, match="row_ptr: expected to run from 0 to 3"):
            run(row_ptr)
    for row_ptr in ([0, 2, 1, 3], [0, 2**64 - 1, 3]):
        with pytest.raises(ValueError, match="row_ptr: row"):
            run(row_ptr)
    with pytest.raises(ValueError, match="out: expected at least 5 rows, found 4"):
        run([0, 1, 2, 2, 2, 3])
    with pytest.raises(ValueError, match="row_ptr: expected rows"):
        run([])
    with pytest.raises(ValueError, match="values: expected entries 0 and 1"):
        run([0, 3], values=values[::-1].copy())
    with pytest.raises(ValueError, match="values: expected entries 0 and 1"):
        run([0, 3], values=values[:1])
    out = np.zeros((3, 4), np.uint64)
    with pytest.raises(ValueError, match="power of two"):
        run([0, 3], bit_reversed=True)
