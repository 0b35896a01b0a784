"""sum 2^e_i P_i of points in extended form: against known discrete logarithms, multiplied out by py_ecc."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import Curve
from cuzk.vectors import Affine, Points, Words, pack
from test_msm import expected, pool

pytestmark = pytest.mark.usefixtures("arithmetic")


def extended(points: Points, seed: int = 0) -> Words:
    """X = x Z^2, Y = y Z^3, ZZ = Z^2, ZZZ = Z^3 with random Z, Montgomery; infinity has ZZ = 0, the rest rubbish."""
    curve, rng = points.curve, random.Random(seed)
    p, R = curve.p, 1 << 64 * curve.fp_words
    rows = []
    for i in range(len(points)):
        affine, z = points.affine(i), rng.randrange(1, p)
        half = curve.coordinates(points.group) // 2
        zz, zzz = z * z % p, z * z * z % p
        x, y = (affine[:half], affine[half:]) if affine else ((1, 2)[:half], (3, 4)[:half])
        row = [c * zz for c in x] + [c * zzz for c in y]
        for factor in (zz if affine else 0, zzz):
            row += [factor] + [0] * (half - 1)
        rows += [c * R % p for c in row]
    return pack(rows, curve.fp_words).reshape(len(points), 2 * curve.point_words(points.group))


def weighted_sum(points: Points, exponents: Sequence[int]) -> Affine:
    out = np.full((1, points.curve.point_words(points.group)), 7, np.uint64)
    weights = np.array(exponents, np.uint32)
    _core.weighted_sum(points.curve.name, points.group, extended(points), weights, out)
    return Points(points.curve, points.group, out).affine()


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", [0, 1, 2, 19])
def test_sums(curve: Curve, group: str, n: int) -> None:
    """In any order, exponents equal or apart, infinity among the points (row 7)."""
    points, logs = pool(curve.name, group)
    rng = random.Random(n)
    exponents = [rng.choice([0, 1, 5, 5, 64, 255, 700]) for _ in range(n)]
    weights = [pow(2, e, curve.r) for e in exponents]
    assert weighted_sum(points[:n], exponents) == expected(curve, group, logs[:n], weights)


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_equal_and_opposite_points(curve: Curve, group: str) -> None:
    points, logs = pool(curve.name, group)
    twice = Points.concatenate([points[3:4], points[3:4]])
    assert weighted_sum(twice, [4, 4]) == expected(curve, group, [logs[3]], [32])
    assert weighted_sum(twice, [9, 8]) == expected(curve, group, [logs[3]], [768])
    row = points.affine(3)
    assert row is not None
    half = len(row) // 2
    opposite = Points.from_affine(
        curve, group, [(*row[:half], *(-c % curve.p for c in row[half:]))]
    )
    assert weighted_sum(Points.concatenate([points[3:4], opposite]), [6, 6]) is None
    assert weighted_sum(Points.concatenate([points[3:4], opposite]), [6, 5]) == expected(
        curve, group, [logs[3]], [32]
    )


def test_exponents_have_a_limit(curve: Curve) -> None:
    points, _ = pool(curve.name, "g1")
    with pytest.raises(ValueError, match="exponents: expected at most 1023, found 1024 at 1"):
        weighted_sum(points[:2], [1, 1024])
    with pytest.raises(ValueError, match="exponents: expected 2, one a sum, found 1"):
        weighted_sum(points[:2], [1])
