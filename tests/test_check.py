"""Range, curve and subgroup checks on points that were made to fail each of them."""

from math import gcd

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.vectors import Affine, Points, pack
from outside import cofactor, on_curve, trace, twist_order
from reference import sum_points

pytestmark = pytest.mark.usefixtures("arithmetic")


def fault(points: Points, *, subgroup: bool = True, threads: int = 1) -> tuple[int, str]:
    return _core.first_bad_point(points.curve.name, points.group, points.words, subgroup, threads)


def one(curve: Curve, group: str, point: Affine) -> Points:
    return Points.from_affine(curve, group, [point])


def test_the_tests_are_sound() -> None:
    """check.hpp: what annihilates a point that passes has only r in common with the curve's order."""
    for curve in (BN254, BLS12_381):
        p, r, x, t = curve.p, curve.r, curve.x, trace(curve)
        order = twist_order(curve)
        assert order % r == 0
        assert order // r % r != 0
        if curve is BN254:
            # (x + 1) + x psi + x psi^2 - 2x psi^3 modulo psi^2 = t psi - p
            a = (x + 1) - x * p + 2 * x * t * p
            b = x + x * t - 2 * x * (t * t - p)
        else:
            a, b = -x, 1
        assert gcd(a * a + a * b * t + b * b * p, order) == r
    x = BLS12_381.x
    assert x**4 - x**2 + 1 == BLS12_381.r
    assert cofactor(BN254, "g1") == 1
    assert cofactor(BN254, "g2") == 2 * BN254.p - BN254.r
    assert cofactor(BLS12_381, "g1") == (x - 1) ** 2 // 3


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_good_points(curve: Curve, group: str) -> None:
    base = curve.g1 if group == "g1" else curve.g2
    ks = (1, 2, 3, curve.r - 1, abs(curve.x), 0xFEDCBA << 200)
    good = [sum_points(curve, group, [base], [k]) for k in ks]
    points = Points.from_affine(curve, group, [None, *good, None])
    assert fault(points) == (-1, "")
    assert fault(Points.empty(curve, group)) == (-1, "")


@pytest.mark.parametrize(
    ("name", "group"), [("bn254", "g2"), ("bls12_381", "g1"), ("bls12_381", "g2")]
)
def test_outside_the_subgroup(name: str, group: str) -> None:
    curve = BN254 if name == "bn254" else BLS12_381
    base = curve.g1 if group == "g1" else curve.g2
    h = cofactor(curve, group)
    for seed in range(3):
        point = on_curve(curve, group, seed)
        cleared = sum_points(curve, group, [point], [h])
        torsion = sum_points(curve, group, [point], [curve.r])
        mixed = sum_points(curve, group, [torsion, base], [1, 1])
        assert cleared is not None
        assert torsion is not None
        assert sum_points(curve, group, [torsion], [h]) is None
        assert fault(one(curve, group, cleared)) == (-1, "")
        for outside in (point, torsion, mixed):
            assert fault(one(curve, group, outside)) == (0, "subgroup")
            assert fault(one(curve, group, outside), subgroup=False) == (-1, "")


def test_small_torsion() -> None:
    three = (0, 2)  # a point of order 3 on y^2 = x^3 + 4
    assert sum_points(BLS12_381, "g1", [three], [3]) is None
    assert fault(one(BLS12_381, "g1", three)) == (0, "subgroup")
    mixed = sum_points(BLS12_381, "g1", [three, BLS12_381.g1], [1, 1])
    assert fault(one(BLS12_381, "g1", mixed)) == (0, "subgroup")
    for curve, factor in ((BN254, 10069), (BN254, 5864401), (BLS12_381, 2713), (BLS12_381, 11953)):
        order = twist_order(curve)
        assert order % factor == 0  # a prime factor of the cofactor
        tries = (
            sum_points(curve, "g2", [on_curve(curve, "g2", seed)], [order // factor])
            for seed in range(9)
        )
        small = next(point for point in tries if point is not None)
        assert sum_points(curve, "g2", [small], [factor]) is None
        assert fault(one(curve, "g2", small)) == (0, "subgroup")


def test_bn254_g1_has_no_other_points() -> None:
    for seed in range(3):
        point = on_curve(BN254, "g1", seed)
        assert sum_points(BN254, "g1", [point], [BN254.r]) is None
        assert fault(one(BN254, "g1", point)) == (-1, "")


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_off_the_curve(curve: Curve, group: str) -> None:
    base = curve.g1 if group == "g1" else curve.g2
    for i in range(len(base)):
        off = tuple(c + 1 if k == i else c for k, c in enumerate(base))
        assert fault(one(curve, group, off)) == (0, "curve")
    half = len(base) // 2
    assert fault(one(curve, group, (*base[:half], *[0] * half))) == (0, "curve")
    assert fault(one(curve, group, (*[0] * half, *base[half:])))[1] in ("curve", "subgroup")
    if group == "g2":
        swapped = (base[1], base[0], base[3], base[2])
        assert fault(one(curve, group, swapped)) == (0, "curve")


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_range(curve: Curve, group: str) -> None:
    base = curve.g1 if group == "g1" else curve.g2
    good = one(curve, group, base).words
    n = curve.fp_words
    modulus = pack([curve.p], n)[0]
    for i in range(len(base)):
        for value in (modulus, np.full(n, 2**64 - 1, np.uint64)):
            words = good.copy()
            words[0, i * n : (i + 1) * n] = value
            assert fault(Points(curve, group, words)) == (0, "range")
    # the coordinate plus p: the same value, a second encoding
    for i, value in enumerate(base):
        words = good.copy()
        held = value * 2 ** (64 * n) % curve.p
        if held + curve.p < 2 ** (64 * n):
            words[0, i * n : (i + 1) * n] = pack([held + curve.p], n)[0]
            assert fault(Points(curve, group, words)) == (0, "range")
    # infinity has one encoding: all zero, not all p
    words = np.tile(modulus, len(base))[None, :]
    assert fault(Points(curve, group, words)) == (0, "range")


@pytest.mark.parametrize("threads", [1, 4])
def test_first_of_many(curve: Curve, threads: int) -> None:
    words = np.repeat(one(curve, "g1", curve.g1).words, 5000, axis=0)
    off = one(curve, "g1", (curve.g1[0], curve.g1[1] + 1)).words
    for bad in ([4999], [0, 9], [2500, 2501, 4000], [1023, 1024]):
        changed = words.copy()
        changed[bad] = off
        changed[bad[-1]] = np.uint64(2**64 - 1)
        reason = "range" if len(bad) == 1 else "curve"
        found = fault(Points(curve, "g1", changed), subgroup=False, threads=threads)
        assert found == (bad[0], reason)


def test_shapes() -> None:
    with pytest.raises(ValueError, match="points"):
        _core.first_bad_point("bn254", "g1", np.zeros((1, 12), np.uint64), True, 1)
    with pytest.raises(ValueError, match="group"):
        _core.first_bad_point("bn254", "g3", np.zeros((1, 8), np.uint64), True, 1)
