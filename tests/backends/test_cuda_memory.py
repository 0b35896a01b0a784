"""The plan of device memory: everything stays, sums are cut, points stay out, nothing is possible."""

from __future__ import annotations

import pytest

from cuzk.backends import Workload
from cuzk.backends.cuda.memory import SHORTEST, SPARED, MemoryPlan, share
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import OutOfMemory

H200 = 139 << 30


def sums(group: str, points: int, _windows: WindowPlan | None = None) -> int:
    """Something of the right shape: 12 entries of 24 bytes a point, buckets, G2 twice."""
    return (1 if group == "g1" else 2) * 300 * points + (1 << 20)


def extra(group: str, points: int, _windows: WindowPlan | None = None) -> int:  # noqa: ARG001
    """More than is left where anything is cut."""
    return 200 * points


def workload(log_n: int) -> Workload:
    n = 1 << log_n
    queries = (("g1", n), ("g1", n), ("g2", n), ("g1", n), ("g1", n))
    return Workload(log_n, n, ((n, 3 * n, 2), (n, 3 * n, 2)), queries)


def points_bytes(curve: Curve, work: Workload) -> int:
    return sum(
        n * (1 if group == "g1" else 2) * 2 * 8 * curve.fp_words for group, n in work.queries
    )


def plan(curve: Curve, log_n: int, free: int, longest: int | None = None) -> MemoryPlan:
    found = share(curve, workload(log_n), free, sums, extra, longest)
    assert found.total <= free - free // SPARED
    return found


@pytest.mark.parametrize("log_n", [0, 10, 20, 24])
def test_what_fits_stays_whole(curve: Curve, log_n: int) -> None:
    found = plan(curve, log_n, H200)
    assert (found.points, found.chunk) == (points_bytes(curve, workload(log_n)), 1 << log_n)


def test_sums_are_cut_before_points_stay_out() -> None:
    everything = plan(BN254, 24, H200)
    tight = plan(BN254, 24, everything.total - extra("g1", 2 << 24))
    assert tight.points == everything.points
    assert SHORTEST <= tight.chunk < 1 << 24
    assert plan(BN254, 24, H200, longest=1 << 21).chunk == 1 << 21


def test_points_stay_out_last() -> None:
    work = workload(24)
    found = plan(BLS12_381, 24, points_bytes(BLS12_381, work))
    assert found.chunk == SHORTEST
    assert 0 < found.points < points_bytes(BLS12_381, work)


def test_the_largest_domain(curve: Curve) -> None:
    found = plan(curve, 27, H200)
    assert found.chunk >= SHORTEST
    assert found.chunk < 1 << 27
    less = plan(curve, 27, 64 << 30)
    assert (less.chunk, less.points > 0) == (SHORTEST, True)
    assert less.points < points_bytes(curve, workload(27))
    with pytest.raises(OutOfMemory, match=r"2\^28 rows and 268435456 wires needs [0-9]+ bytes"):
        plan(curve, 28, 1 << 34)


def test_no_room_for_vectors() -> None:
    with pytest.raises(OutOfMemory, match=f"{(1 << 20) - (1 << 20) // SPARED} can be had"):
        plan(BN254, 16, 1 << 20)
    small = Workload(0, 1, (), ())
    assert share(BN254, small, 1 << 20, sums, extra) == MemoryPlan(
        0, 1, share(BN254, small, 1 << 30, sums, extra).total
    )


def test_tables_take_what_is_left() -> None:
    """All windows over one set of buckets if there is room, else over more; none where sums are cut."""
    work = workload(20)
    points = points_bytes(BLS12_381, work)
    plans = [WindowPlan.of(BLS12_381, 20, sets=sets) for sets in (1, 3)]
    assert [p.tables for p in plans] == [13, 5]
    alone = share(BLS12_381, work, H200, sums, extra)
    for free, chosen in ((H200, 0), (9 * points, 1), (3 * points, None)):
        found = share(BLS12_381, work, free, sums, extra, None, plans)
        if chosen is None:
            assert (found.windows, found.points) == (None, alone.points)
            continue
        assert found.windows == plans[chosen]
        assert found.points == plans[chosen].tables * points
        assert alone.total < found.total <= free
    assert share(BLS12_381, work, H200, sums, extra, 1 << 19, plans).windows is None
