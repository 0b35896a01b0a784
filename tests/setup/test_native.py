"""fixed_base, scale_points, product_points and group_ntt against py_ecc's affine formulas."""

import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from py_ecc import bls12_381, bn128

from cuzk import _core
from cuzk.curves import BN254, Curve
from cuzk.vectors import Affine, Points, Scalars

ORACLES = {"bn254": bn128, "bls12_381": bls12_381}
GROUPS = ("g1", "g2")


@pytest.fixture(params=GROUPS)
def group(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@cache
def multiple(group: "Group", k: int) -> Affine:
    return group.compute(k)


@dataclass(frozen=True)
class Group:
    """Integers in, affine coordinates out, by py_ecc: point k stands for k times the generator."""

    curve: Curve
    group: str

    def affine(self, k: int) -> Affine:
        return multiple(self, k % self.curve.r)

    def compute(self, k: int) -> Affine:
        module = ORACLES[self.curve.name]
        point = module.multiply(getattr(module, self.group.upper()), k)
        if point is None:
            return None
        if self.group == "g1":
            return tuple(int(c) for c in point)
        return tuple(int(c) for coordinate in point for c in coordinate.coeffs)

    def points(self, ks: list[int]) -> Points:
        return Points.from_affine(self.curve, self.group, [self.affine(k) for k in ks])


def new(points: Points, rows: int | None = None) -> np.ndarray:
    shape = (len(points) if rows is None else rows, points.words.shape[1])
    return np.full(shape, 0xA5A5A5A5, dtype=np.uint64)


def edge_scalars(r: int) -> list[int]:
    rng = random.Random(7)
    powers = [1 << k for k in (13, 64, 65, 127, 128, 252, 253)]
    return [
        0,
        1,
        2,
        3,
        r - 1,
        r - 2,
        (r - 1) // 2,
        (r + 1) // 2,
        *powers,
        *(2**k - 1 for k in (12, 13, 253)),
    ] + [rng.randrange(r) for _ in range(4)]


@pytest.mark.usefixtures("arithmetic")
def test_fixed_base(curve: Curve, group: str, threads: int) -> None:
    oracle = Group(curve, group)
    scalars = [s for s in edge_scalars(curve.r) if s < curve.r] + [5, 5]
    base = oracle.points([3])
    out = new(base, len(scalars))
    _core.fixed_base(
        curve.name, group, base.words, Scalars.from_ints(curve, scalars).words, out, threads
    )
    expected = oracle.points([3 * s for s in scalars])
    assert np.array_equal(out, expected.words)


def test_fixed_base_has_no_points_to_make(curve: Curve) -> None:
    base = Group(curve, "g1").points([1])
    out = new(base, 0)
    _core.fixed_base(curve.name, "g1", base.words, np.zeros((0, 4), np.uint64), out, 1)
    infinity = new(base, 2)
    scalars = Scalars.from_ints(curve, [0, 9]).words
    _core.fixed_base(curve.name, "g1", np.zeros_like(base.words), scalars, infinity, 1)
    assert not infinity.any()


@pytest.mark.parametrize("n", [1023, 1024, 1025, 3000])
def test_fixed_base_over_blocks_and_window_widths(n: int) -> None:
    # Consecutive multiples: each must be its neighbour plus the base, so one py_ecc addition a step
    # would do; a sum of all of them is one number and is enough.
    curve = BN254
    base = Group(curve, "g1").points([1])
    out = new(base, n)
    scalars = [(k * k * 0x9E3779B97F4A7C15 << 130) % curve.r for k in range(n)]
    _core.fixed_base("bn254", "g1", base.words, Scalars.from_ints(curve, scalars).words, out, 2)
    weights = SparseRow(curve, [(1, k) for k in range(n)])
    assert weights.times(Points(curve, "g1", out)) == Group(curve, "g1").affine(sum(scalars))


class SparseRow:
    """One row of (coefficient, wire) terms."""

    def __init__(self, curve: Curve, *rows: list[tuple[int, int]]) -> None:
        self.curve = curve
        flat = [term for row in rows for term in row]
        values = sorted({c % curve.r for c, _ in flat} | {1})
        self.values = Scalars.from_ints(curve, values, montgomery=True).words
        self.coefficients = np.array([values.index(c % curve.r) for c, _ in flat], dtype=np.uint32)
        self.wires = np.array([wire for _, wire in flat], dtype=np.uint32)
        self.row_ptr = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(
            np.uint64
        )

    def product(self, points: Points, threads: int = 1) -> Points:
        out = new(points, len(self.row_ptr) - 1)
        _core.product_points(
            self.curve.name,
            points.group,
            self.row_ptr,
            self.wires,
            self.coefficients,
            self.values,
            points.words,
            out,
            threads,
        )
        return Points(self.curve, points.group, out)

    def times(self, points: Points) -> Affine:
        return self.product(points).affine()


@pytest.mark.usefixtures("arithmetic")
def test_scale_points(curve: Curve, group: str, threads: int) -> None:
    oracle = Group(curve, group)
    ks = [0, 1, 2, 2, curve.r - 1, 12345]
    points = oracle.points(ks)
    scalars = edge_scalars(curve.r) if (group, threads) == ("g1", 1) else [0, 1, 7, curve.r - 1]
    for scalar in scalars:
        out = new(points)
        word = Scalars.from_ints(curve, [scalar])
        _core.scale_points(curve.name, group, points.words, word.words, out, threads)
        assert np.array_equal(out, oracle.points([k * scalar for k in ks]).words), scalar


def test_scale_points_in_place_over_blocks(curve: Curve) -> None:
    oracle = Group(curve, "g1")
    n = 1200
    words = np.tile(oracle.points([5, 0, 7]).words, (n // 3, 1))
    scalar = 0x1234567890ABCDEF << 100
    _core.scale_points(curve.name, "g1", words, Scalars.from_ints(curve, [scalar]).words, words, 2)
    expected = oracle.points([5 * scalar, 0, 7 * scalar]).words
    assert np.array_equal(words, np.tile(expected, (n // 3, 1)))


@pytest.mark.usefixtures("arithmetic")
def test_product_points(curve: Curve, group: str, threads: int) -> None:
    oracle = Group(curve, group)
    ks = [1, 2, 0, 5, curve.r - 5, 77]
    r = curve.r
    rng = random.Random(3)
    rows = [
        [],
        [(1, 0)],
        [(r - 1, 1)],
        [(0, 3), (1, 5)],
        [(1, 2), (12345, 2)],  # infinity
        [(1, 3), (1, 4)],  # a sum that is infinity
        [(1, 3), (1, 3), (1, 3)],  # a wire that comes three times
        [(8, 3), (r - 8, 3)],
        [(8, 3), (r - 4, 1), (2**20, 5), (2**21 - 1, 0)],
        [((r - 1) // 2, 1), ((r + 1) // 2, 5), (2**128, 3)],
        [(rng.randrange(r), rng.randrange(6)) for _ in range(70)],  # more than share doublings
        [(1 - 2 * (k % 2), k % 6) for k in range(40)],
    ]
    found = SparseRow(curve, *rows).product(oracle.points(ks), threads)
    expected = [sum(c * ks[wire] for c, wire in row) for row in rows]
    assert np.array_equal(found.words, oracle.points(expected).words)


def test_product_points_with_rows_that_are_cut(curve: Curve) -> None:
    oracle = Group(curve, "g1")
    ks = list(range(1, 12))
    rows = [[(3, 0)], [(1 + k % 5, k % 11) for k in range(9000)], [(1, 1)], [(-1, 0)] * 4097]
    found = SparseRow(curve, *rows).product(oracle.points(ks), 2)
    expected = [sum(c * ks[wire] for c, wire in row) for row in rows]
    assert np.array_equal(found.words, oracle.points(expected).words)


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("log_n", [0, 1, 2, 3])
@pytest.mark.parametrize("inverse", [False, True])
def test_group_ntt(curve: Curve, group: str, log_n: int, inverse: bool, threads: int) -> None:
    oracle = Group(curve, group)
    n, r, root = 1 << log_n, curve.r, curve.root_of_unity(log_n)
    ks = [(11 * k * k + 3 * k) % r for k in range(n)]  # starts with infinity
    points = oracle.points(ks)
    words = points.words.copy()
    word = Scalars.from_ints(curve, [root], montgomery=True).words
    _core.group_ntt(curve.name, group, words, word, inverse, threads)
    used, scale = (pow(root, -1, r), pow(n, -1, r)) if inverse else (root, 1)
    expected = [scale * sum(pow(used, i * j, r) * ks[j] for j in range(n)) for i in range(n)]
    assert np.array_equal(words, oracle.points(expected).words)


def test_group_ntt_and_back() -> None:
    curve, n = BN254, 2048  # several blocks of butterflies
    base = Group(curve, "g1").points([1])
    words = new(base, n)
    scalars = Scalars.from_ints(curve, [3**k for k in range(n)])
    _core.fixed_base(curve.name, "g1", base.words, scalars.words, words, 2)
    before = words.copy()
    root = Scalars.from_ints(curve, [curve.root_of_unity(11)], montgomery=True).words
    _core.group_ntt(curve.name, "g1", words, root, False, 2)
    total = Group(curve, "g1").affine(sum(3**k for k in range(n)))
    assert Points(curve, "g1", words).affine(0) == total
    _core.group_ntt(curve.name, "g1", words, root, True, 2)
    assert np.array_equal(words, before)


def test_what_does_not_fit_is_refused() -> None:
    curve = BN254
    points = Group(curve, "g1").points([1, 2])
    row = SparseRow(curve, [(1, 0), (1, 2)])
    with pytest.raises(ValueError, match="term 1 names wire 2 of 2"):
        row.product(points)
    row = SparseRow(curve, [(1, 0), (1, 1)])
    row.coefficients[1] = 9
    with pytest.raises(ValueError, match="term 1 names value 9 of 1"):
        row.product(points)
    row.row_ptr[1] = 3
    with pytest.raises(ValueError, match="row_ptr"):
        row.product(points)
    too_large = np.full((1, 4), 2**64 - 1, dtype=np.uint64)
    with pytest.raises(ValueError, match="entry 0 is not below r"):
        _core.fixed_base("bn254", "g1", points.words[:1], too_large, new(points, 1), 1)
    with pytest.raises(ValueError, match="not below r"):
        _core.scale_points("bn254", "g1", points.words, too_large, new(points), 1)
    three = Group(curve, "g1").points([1, 2, 3]).words.copy()
    with pytest.raises(ValueError, match="power of two, found 3"):
        _core.group_ntt("bn254", "g1", three, too_large, False, 1)
    with pytest.raises(ValueError, match="out: expected 2 rows"):
        _core.scale_points(
            "bn254", "g1", points.words, Scalars.from_ints(curve, [1]).words, new(points, 1), 1
        )
