"""MSM where its parts meet: every window width, full buckets that vanish, edges of slices, scalars next to
powers of two and to r / 2, repeated indices; against known discrete logarithms.
"""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from cuzk.curves import BN254, Curve
from cuzk.vectors import Points
from test_msm import expected, msm, pool, repeated

pytestmark = pytest.mark.usefixtures("arithmetic")
GROUPS = pytest.mark.parametrize("group", ["g1", "g2"])
SLICE_BYTES = 3 << 17  # sorted_sums.hpp


def near_edges(curve: Curve) -> list[int]:
    """Word and window boundaries, and where a scalar changes its sign."""
    r = curve.r
    powers = [1 << bit for bit in (63, 64, 65, 127, 128, 191, 192, 252, 253, 254)]
    middles = [*powers, r // 2, r - 1, r // 3, 1]
    return [(m + d) % r for m in middles for d in (-2, -1, 0, 1, 2)]


def negated(points: Points) -> Points:
    """The same points with y -> p - y; none of them infinity."""
    flat = [points.affine(i) for i in range(len(points))]
    rows = []
    for row in flat:
        assert row is not None
        half = len(row) // 2
        rows.append((*row[:half], *(points.curve.p - y for y in row[half:])))
    return Points.from_affine(points.curve, points.group, rows)


@GROUPS
@pytest.mark.parametrize("seed", range(4))
def test_scalars_near_edges(curve: Curve, group: str, seed: int) -> None:
    points, logs = pool(curve.name, group)
    rng = random.Random(seed)
    scalars = near_edges(curve) + [rng.randrange(curve.r) for _ in range(30)]
    for n in (rng.randrange(1, 33), rng.randrange(33, 200)):
        rows = [rng.randrange(40) for _ in range(n)]  # points repeat
        index = [rng.randrange(len(scalars)) for _ in range(n)]  # scalars too
        width, threads = rng.choice([0, 0, *range(2, 11)]), rng.randrange(1, 6)
        found = msm(repeated(points, rows), scalars, index=index, width=width, threads=threads)
        want = expected(curve, group, [logs[i] for i in rows], [scalars[i] for i in index])
        assert found == want, (rows, index, width, threads)


@GROUPS
@pytest.mark.parametrize("width", [2, 4, 5, 6, 9, 10, 11, 12])
def test_widths(curve: Curve, group: str, width: int) -> None:
    points, logs = pool(curve.name, group)
    scalars = near_edges(curve)
    n = len(scalars)
    assert msm(points[:n], scalars, width=width, threads=2) == expected(
        curve, group, logs[:n], scalars
    )


@pytest.mark.slow
@pytest.mark.parametrize("width", range(13, 23))
def test_wide_windows(width: int) -> None:
    points, logs = pool("bn254", "g1")
    scalars = near_edges(BN254)
    n = len(scalars)
    assert msm(points[:n], scalars, width=width, threads=2) == expected(
        BN254, "g1", logs[:n], scalars
    )


def alternating(points: Points, n: int) -> Points:
    """P, -P, P, ...: every sum of neighbours vanishes."""
    pair = Points.concatenate([points[:1], negated(points[:1])])
    return Points(points.curve, points.group, np.ascontiguousarray(np.resize(pair.words, (n, pair.words.shape[1]))))  # fmt: skip


@GROUPS
@pytest.mark.parametrize("threads", [1, 3])
def test_buckets_that_vanish_around_slice_edges(curve: Curve, group: str, threads: int) -> None:
    """All entries of a window fall into one bucket, which goes over two slices and one entry more or less."""
    points, logs = pool(curve.name, group)
    size = SLICE_BYTES // (8 * curve.point_words(group))
    for n in (2 * size - 1, 2 * size, 2 * size + 1):
        rows = alternating(points, n)
        for scalar in (1, (curve.r + 1) // 2):
            want = expected(curve, group, logs[:1], [scalar]) if n % 2 else None
            assert msm(rows, [scalar], index=[0] * n, threads=threads) == want


@GROUPS
def test_opposite_scalars_of_one_point(curve: Curve, group: str) -> None:
    points, logs = pool(curve.name, group)

    def check(scalars: Sequence[int], index: list[int]) -> None:
        n = len(index)
        found = msm(repeated(points, [0] * n), scalars, index=index, threads=2)
        assert found == expected(curve, group, [logs[0]] * n, [scalars[i] for i in index])

    for scalar in (1, 2**64, (curve.r - 1) // 2, 987654321):
        check([scalar, curve.r - scalar], [0, 1] * 300)
        check([scalar, curve.r - scalar], [0, 1] * 300 + [1])
