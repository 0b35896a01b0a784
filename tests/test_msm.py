"""Multi-scalar multiplication: against known discrete logarithms (multiplied out by py_ecc), against
py_arkworks_bls12381 on points nobody knows the logarithm of, and against chord and tangent on integers.
"""

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import py_arkworks_bls12381 as arkworks
import pytest
from py_ecc import optimized_bls12_381, optimized_bn128

from cuzk import _core
from cuzk.curves import BLS12_381, CURVES, Curve
from cuzk.vectors import Affine, Points, pack
from reference import Group, Point

pytestmark = pytest.mark.usefixtures("arithmetic")
LIBRARY = {"bn254": optimized_bn128, "bls12_381": optimized_bls12_381}
POOL = 4097
DISTINCT = 17 * 17


@pytest.fixture(params=["g1", "g2"])
def group(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def msm(
    points: Points,
    scalars: Sequence[int],
    *,
    index: Sequence[int] | None = None,
    threads: int = 1,
    width: int = 0,
) -> Affine:
    out = np.zeros((1, points.curve.point_words(points.group)), dtype=np.uint64)
    rows = None if index is None else np.array(index, dtype=np.uint32)
    words = pack(scalars, 4)
    _core.msm(points.curve.name, points.group, points.words, words, rows, out, threads, width)
    return Points(points.curve, points.group, out).affine()


@cache
def pool(curve_name: str, group: str) -> tuple[Points, list[int]]:
    """POOL points k G with known k: DISTINCT ones by chord and tangent, over and over; row 7 is infinity."""
    curve = CURVES[curve_name]
    law, rng = Group(curve.p), random.Random(f"{curve_name} {group}")
    flat = curve.g1 if group == "g1" else curve.g2
    generator: Point = ((flat[0], 0), (flat[1], 0))
    if group == "g2":
        generator = ((flat[0], flat[1]), (flat[2], flat[3]))

    def table() -> list[tuple[int, Point]]:
        logs = [rng.randrange(1, curve.r) for _ in range(17)]
        return [(k, law.sum([generator], [k])) for k in logs]

    left, right = table(), table()
    chosen = [(a, b) for a in left for b in right]
    logs = [(a[0] + b[0]) % curve.r for a, b in chosen]
    sums = [law.add(a[1], b[1]) for a, b in chosen]
    logs[7], sums[7] = 0, None
    rows: list[Affine] = [
        None if p is None else ((p[0][0], p[1][0]) if group == "g1" else (*p[0], *p[1]))
        for p in sums
    ]
    tile = [i % DISTINCT for i in range(POOL)]
    return repeated(Points.from_affine(curve, group, rows), tile), [logs[i] for i in tile]


@cache
def multiple(curve_name: str, group: str, k: int) -> Affine:
    """k G by py_ecc; k below r."""
    library = LIBRARY[curve_name]
    base = library.G1 if group == "g1" else library.G2
    point = library.multiply(base, k)
    if library.is_inf(point):
        return None
    x, y = library.normalize(point)
    return (x.n, y.n) if group == "g1" else (*map(int, x.coeffs), *map(int, y.coeffs))


def expected(curve: Curve, group: str, logs: Sequence[int], scalars: Sequence[int]) -> Affine:
    total = sum(k * s for k, s in zip(logs, scalars, strict=True))
    return multiple(curve.name, group, total % curve.r)


def random_scalars(curve: Curve, n: int, seed: int = 0) -> list[int]:
    rng = random.Random(f"{curve.name} {n} {seed}")
    return [rng.randrange(curve.r) for _ in range(n)]


def repeated(points: Points, rows: Sequence[int]) -> Points:
    return Points(points.curve, points.group, np.ascontiguousarray(points.words[list(rows)]))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 128, 129, 1000, 4097])
def test_sizes(curve: Curve, group: str, n: int) -> None:
    points, logs = pool(curve.name, group)
    scalars = random_scalars(curve, n)
    assert msm(points[:n], scalars) == expected(curve, group, logs[:n], scalars)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [40, 4097])
def test_threads(curve: Curve, group: str, threads: int, n: int) -> None:
    points, logs = pool(curve.name, group)
    scalars = random_scalars(curve, n, seed=threads)
    found = msm(points[:n], scalars, threads=threads)
    assert found == expected(curve, group, logs[:n], scalars)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 13, 15, 16])
def test_window_widths(curve: Curve, group: str, width: int) -> None:
    """16 divides 256 and 15 leaves a top digit of 2^14 (254-bit scalars); small widths have one row or column."""
    points, logs = pool(curve.name, group)
    scalars = random_scalars(curve, 60, seed=width)
    scalars[:4] = [(curve.r - 1) // 2, (curve.r + 1) // 2, curve.r - 1, 1]
    assert msm(points[:60], scalars, width=width) == expected(curve, group, logs[:60], scalars)


def special_scalars(curve: Curve) -> list[int]:
    r = curve.r
    values = [
        0,
        1,
        2,
        3,
        r - 1,
        r - 2,
        (r - 1) // 2,
        (r + 1) // 2,
        2**253,
        2**252,
        2**128,
        2**64,
        2**64 - 1,
    ]
    for c in (4, 5, 8, 13, 15, 16):  # every digit 2^(c-1), -2^(c-1), 2^(c-1) - 1
        ones = sum(1 << (c * w) for w in range(252 // c))
        values += [
            2 ** (c - 1) * ones % r,
            -(2 ** (c - 1)) * ones % r,
            (2 ** (c - 1) - 1) * ones % r,
        ]
    return values


@pytest.mark.parametrize("width", [0, 4, 8, 15])
def test_special_scalars(curve: Curve, group: str, width: int) -> None:
    points, logs = pool(curve.name, group)
    for k, s in enumerate(special_scalars(curve)):
        if width in (0, 4):
            assert msm(points[k : k + 1], [s], width=width) == expected(
                curve, group, [logs[k]], [s]
            )
    scalars = special_scalars(curve) * 5
    n = len(scalars)
    assert msm(points[:n], scalars, width=width) == expected(curve, group, logs[:n], scalars)


@pytest.mark.parametrize("width", [0, 1, 5])
def test_equal_opposite_and_infinite_points_in_one_bucket(
    curve: Curve, group: str, width: int
) -> None:
    points, logs = pool(curve.name, group)
    r = curve.r
    for rows in (
        [3, 3],
        [3, 3, 3, 3],
        [3, 3, 5, 5],
        [3, 7],
        [7, 3, 3],
        [7, 7, 7],
        [3, 3, 3, 3, 3, 5, 3, 3],
    ):
        chosen, known = repeated(points, rows), [logs[i] for i in rows]
        for s in (1, 19, r - 1, (r - 1) // 2):
            scalars = [s] * len(rows)
            assert msm(chosen, scalars, width=width) == expected(curve, group, known, scalars)
            scalars = [s if i % 2 == 0 else r - s for i in range(len(rows))]
            assert msm(chosen, scalars, width=width) == expected(curve, group, known, scalars)


@pytest.mark.parametrize("threads", [1, 5])
def test_all_points_equal(curve: Curve, group: str, threads: int) -> None:
    """Every addition is a doubling, or meets its opposite."""
    points, logs = pool(curve.name, group)
    chosen = repeated(points, [11] * 3000)
    for scalars in (
        [1] * 3000,
        [curve.r - 2] * 2999 + [5],
        [1, curve.r - 1] * 1500,
        random_scalars(curve, 3000),
    ):
        assert msm(chosen, scalars, threads=threads) == expected(
            curve, group, [logs[11]], [sum(scalars)]
        )


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_all_scalars_equal(curve: Curve, group: str, threads: int) -> None:
    """One bucket a window, longer than a slice: only partial sums."""
    points, logs = pool(curve.name, group)
    for s in (1, random_scalars(curve, 1)[0]):
        found = msm(points, [s] * POOL, threads=threads)
        assert found == expected(curve, group, logs, [s] * POOL)


@pytest.mark.parametrize("threads", [1, 2])
def test_skewed_witness(curve: Curve, group: str, threads: int) -> None:
    points, logs = pool(curve.name, group)
    rng = random.Random(97)
    scalars = [
        rng.randrange(curve.r) if rng.random() < 0.03 else rng.randrange(2) for _ in range(POOL)
    ]
    assert msm(points, scalars, threads=threads) == expected(curve, group, logs, scalars)
    short = [rng.randrange(256) for _ in range(POOL)]
    assert msm(points, short, threads=threads) == expected(curve, group, logs, short)


def test_sum_that_vanishes(curve: Curve, group: str) -> None:
    points, logs = pool(curve.name, group)
    for n in (2, 500):
        scalars = random_scalars(curve, n)
        rest = sum(k * s for k, s in zip(logs[1:n], scalars[1:], strict=True))
        scalars[0] = -rest * pow(logs[0], -1, curve.r) % curve.r
        assert msm(points[:n], scalars) is None


def test_index_maps(curve: Curve, group: str) -> None:
    """bases[k] takes scalars[index[k]]: reversed, with repetitions, and a few out of many."""
    points, logs = pool(curve.name, group)
    scalars = random_scalars(curve, 900)
    rng = random.Random(2)
    for n in (5, 700):
        for index in (
            list(range(900))[::-1][:n],
            [rng.randrange(900) for _ in range(n)],
            [899] * n,
        ):
            found = msm(points[:n], scalars, index=index, threads=2)
            assert found == expected(curve, group, logs[:n], [scalars[i] for i in index])


@pytest.mark.parametrize("n", [33, 300, 1200])
def test_points_of_unknown_logarithm(group: str, n: int) -> None:
    kind: Any = arkworks.G1Point if group == "g1" else arkworks.G2Point
    theirs = [kind.hash_to_curve(i.to_bytes(4, "big"), b"cuzk") for i in range(150)]
    theirs = [theirs[i % 150] for i in range(n)]
    scalars = random_scalars(BLS12_381, n, seed=9)

    def coordinates(point: Any) -> Affine:
        data = point.to_xy_bytes_be()
        return tuple(int.from_bytes(data[i : i + 48], "big") for i in range(0, len(data), 48))

    points = Points.from_affine(BLS12_381, group, [coordinates(p) for p in theirs])
    sum_there = kind.multiexp_unchecked(
        theirs, [arkworks.Scalar.from_le_bytes(s.to_bytes(32, "little")) for s in scalars]
    )
    assert msm(points, scalars, threads=2) == coordinates(sum_there)


@pytest.mark.parametrize("n", [20, 4097])
def test_scalar_not_below_r(curve: Curve, n: int) -> None:
    points, _ = pool(curve.name, "g1")
    scalars = random_scalars(curve, n)
    scalars[n - 3] = curve.r
    with pytest.raises(ValueError, match=rf"scalars\[{n - 3}\]: expected below r"):
        msm(points[:n], scalars, threads=2)


def test_shapes_are_checked(curve: Curve) -> None:
    points, _ = pool(curve.name, "g1")
    with pytest.raises(ValueError, match="scalars: expected 3 rows, one a base, found 2"):
        msm(points[:3], [1, 2])
    with pytest.raises(ValueError, match="index: expected 3 rows, one a base, found 2"):
        msm(points[:3], [1, 2, 3], index=[0, 1])
    with pytest.raises(ValueError, match=r"index\[1\]: expected below 3, found 3"):
        msm(points[:3], [1, 2, 3], index=[0, 3, 1])
    with pytest.raises(ValueError, match="bases: expected shape"):
        msm(Points(points.curve, "g2", points.words), [1, 2, 3])
    with pytest.raises(ValueError, match="width: expected 0"):
        msm(points[:1], [1], width=23)
