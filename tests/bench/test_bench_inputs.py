"""Inputs of the benchmarks: scalars of their range and mixture, points of known logarithms, sums known without an MSM."""

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.bench.inputs import (
    KINDS,
    known_points,
    not_below,
    scalars,
    uniform,
    uniform_below,
)
from cuzk.bench.logarithms import dot, evaluation, interpolation
from cuzk.curves import Curve
from cuzk.vectors import Scalars, pack, unpack
from reference import sum_points


@pytest.mark.parametrize("bound", [1, 2, 2**64, 2**64 + 1, 2**128 - 1, 3 << 190, 2**255 - 19])
def test_not_below(bound: int) -> None:
    rng = random.Random(bound)
    words = -(-bound.bit_length() // 64)
    values = [v for v in (0, bound - 1, bound, bound + 1) if v < 2 ** (64 * words)]
    values += [rng.randrange(2 ** (64 * words)) for _ in range(50)]
    assert not_below(pack(values, words), bound).tolist() == [v >= bound for v in values]


def test_uniform_scalars(curve: Curve) -> None:
    """Below r, over the whole range, and the same whatever the threads."""
    n = 5000
    values = unpack(uniform(curve, n, 7, 1).words)
    assert max(values) < curve.r
    quarters: NDArray[np.int64] = np.bincount([4 * v // curve.r for v in values], minlength=4)
    assert (abs(quarters - n / 4) < 6 * (n * 3 / 16) ** 0.5).all()
    assert len(set(values)) == n
    many = 3 << 17  # more than one block
    np.testing.assert_array_equal(
        uniform_below(curve.r, many, 7, 1), uniform_below(curve.r, many, 7, 4)
    )


def test_kinds_of_scalars(curve: Curve) -> None:
    n = 8000
    assert set(unpack(scalars(curve, "ones", 5, 1, 1).words)) == {1}
    values = unpack(scalars(curve, "witness", n, 1, 1).words)
    counts = [
        sum(v == 0 for v in values),
        sum(v == 1 for v in values),
        sum(1 < v < 2**16 for v in values),
        sum(v >= 2**200 for v in values),
    ]
    for count, part in zip(counts, (n / 2, n / 4, n / 8, n / 8), strict=True):
        assert abs(count - part) < 6 * part**0.5
    assert KINDS == ("random", "witness", "ones")


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_points_are_known_multiples(curve: Curve, group: str) -> None:
    known = known_points(curve, group, 3, 1)
    points = known.repeated(8, 2)
    for i in range(8):
        k = known.logarithms.ints()[i % 3]
        assert points.affine(i) == sum_points(curve, group, [getattr(curve, group)], [k])


@pytest.mark.parametrize(
    ("n", "m", "first"), [(0, 4, 0), (3, 4, 0), (10, 4, 0), (12, 4, 3), (5, 1, 7)]
)
def test_dot(curve: Curve, n: int, m: int, first: int) -> None:
    rng = random.Random(n)
    s, k = ([rng.randrange(curve.r) for _ in range(count)] for count in (n, m))
    found = dot(Scalars.from_ints(curve, s), Scalars.from_ints(curve, k, montgomery=True), first, 2)
    assert found == sum(v * k[(first + i) % m] for i, v in enumerate(s)) % curve.r


@pytest.mark.parametrize("log_n", [0, 1, 5])
def test_a_polynomial_from_both_sides(curve: Curve, log_n: int) -> None:
    n, r, rng = 1 << log_n, curve.r, random.Random(log_n)
    x, z, g = [rng.randrange(r) for _ in range(n)], rng.randrange(r), 7
    root = curve.root_of_unity(log_n)

    def at(t: int) -> int:
        return sum(v * pow(t, i, r) for i, v in enumerate(x)) % r

    assert evaluation(Scalars.from_ints(curve, x, montgomery=True), z, 2) == at(z)
    values = [at(g * pow(root, j, r) % r) for j in range(n)]
    given = Scalars.from_ints(curve, values, montgomery=True)
    assert interpolation(given, root, g, z, 2) == at(z)
    values[-1] += 1
    given = Scalars.from_ints(curve, values, montgomery=True)
    assert interpolation(given, root, g, z, 2) != at(z)


def test_a_polynomial_of_several_blocks(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuzk.bench.logarithms.DISTINCT", 8)
    x = [pow(3, i * i, curve.r) for i in range(32)]
    z = 2**200 + 1
    expected = sum(v * pow(z, i, curve.r) for i, v in enumerate(x)) % curve.r
    assert evaluation(Scalars.from_ints(curve, x, montgomery=True), z, 1) == expected
