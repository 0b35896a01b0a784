"""The plan of device memory: everything stays, sums are cut, points stay out, nothing is possible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuzk.backends import Workload
from cuzk.backends.cuda.memory import (
    SHORTEST,
    SPARED,
    UNCUT,
    MemoryPlan,
    StreamedBytes,
    share,
    untroubled,
)
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
    assert UNCUT <= tight.chunk < 1 << 24
    assert plan(BN254, 24, H200, longest=1 << 21).chunk == 1 << 21


def test_points_leave_in_order() -> None:
    """Sums are cut in half before any points leave; then h's, those in G2, and the others from the end."""
    work, seen = workload(24), []
    for part in range(64, 15, -1):
        free = part * points_bytes(BLS12_381, work) // 16
        found = plan(BLS12_381, 24, free)
        staying = [
            8 * BLS12_381.point_words(group) * n
            for (group, n), stays in zip(work.queries, found.stay, strict=True)
            if stays
        ]
        assert found.points == sum(staying)
        if any(found.stay):
            assert UNCUT <= found.chunk <= 1 << 24
        state = "".join("ab2lh"[i] for i, stays in enumerate(found.stay) if stays)
        if state not in seen:
            seen.append(state)
    order = ["ab2lh", "ab2l", "abl", "ab", "a", ""]
    assert seen == [state for state in order if state in seen]
    assert len(seen) > 3


def test_batches_get_shorter_last() -> None:
    found = plan(BLS12_381, 24, 6 << 30)
    assert (found.stay, found.points) == ((False,) * 5, 0)
    assert SHORTEST <= found.chunk < UNCUT


def test_everything_streamed() -> None:
    found = share(BLS12_381, workload(20), H200, sums, extra, streamed=True)
    assert (found.stay, found.points, found.chunk) == ((False,) * 5, 0, 1 << 20)
    assert found.total < plan(BLS12_381, 20, H200).total


def test_streamed_sums_have_the_room_they_ask_for() -> None:
    """And slots that stay while vectors are transformed."""
    work, asked = workload(20), set()

    def streamed(group: str, n: int, batch: int) -> int:
        asked.add((group, n, batch))
        return 5 << 30

    def slots(group: str, n: int, batch: int) -> int:
        assert (group, n, batch) in asked
        return 1 << 30

    def total(streamed: StreamedBytes, ring: StreamedBytes) -> int:
        return share(
            BN254,
            work,
            1 << 34,
            sums,
            extra,
            streamed=True,
            streamed_bytes=streamed,
            ring_bytes=ring,
        ).total

    both = total(streamed, slots)
    assert both - total(streamed, lambda *_: 0) == 1 << 30
    assert both > 6 << 30
    assert asked == {("g1", 1 << 20, 1 << 20), ("g2", 1 << 20, 1 << 20)}
    none = total(lambda *_: 0, lambda *_: 0)
    assert total(lambda *_: 0, lambda *_: 77) == none + 77


@pytest.mark.parametrize("log_n", [10, 20, 22])
def test_lanes_where_nothing_gives_way(curve: Curve, log_n: int) -> None:
    """As many as have all that one has, sums and vectors each, points and matrices once."""
    one = plan(curve, log_n, H200)
    asked = replace(workload(log_n), lanes=3)
    assert one.lanes == 1
    found = share(curve, asked, H200, sums, extra)
    assert found.lanes == 3
    assert (found.points, found.chunk, found.stay) == (one.points, one.chunk, one.stay)
    assert one.total < found.total < 3 * one.total
    lane = (found.total - one.total) // 2
    assert (found.once, found.lane) == (one.once, one.lane)
    assert found.once > found.points
    optional = max(extra(group, one.chunk, None) for group in ("g1", "g2"))
    assert found.total == found.once + 3 * (found.lane + optional)
    assert untroubled(curve, asked, sums) == (one.once, one.lane)
    for usable, lanes in ((found.total, 3), (found.total - 1, 2), (one.total + lane - 1, 1)):
        free = -(-usable * SPARED // (SPARED - 1))
        while free - free // SPARED > usable:
            free -= 1
        less = share(curve, asked, free, sums, extra)
        assert (less.lanes, less.points, less.chunk) == (lanes, one.points, one.chunk)


@pytest.mark.parametrize("log_n", [10, 22])
def test_a_witness_waits_where_no_second_lane_fits(curve: Curve, log_n: int) -> None:
    """With all that one proof has whole, and counted; not where one proof is all that was asked for."""
    one, asked = plan(curve, log_n, H200), replace(workload(log_n), lanes=2)
    witness = 8 * curve.fr_words << log_n
    for usable, waiting in (
        (one.once + one.lane + witness, 1),
        (one.once + one.lane + witness - 1, 0),
    ):
        free = -(-usable * SPARED // (SPARED - 1))
        while free - free // SPARED > usable:
            free -= 1
        found = share(curve, asked, free, sums, extra)
        assert (found.lanes, found.waiting) == (1, waiting)
        assert (found.points, found.chunk, found.stay) == (one.points, one.chunk, one.stay)
        assert (found.once, found.lane) == (one.once, one.lane + waiting * witness)
        assert found.once + found.lane <= found.total <= usable
        assert share(curve, workload(log_n), free, sums, extra).waiting == 0
    assert share(curve, asked, H200, sums, extra).waiting == 0  # two lanes


def test_the_largest_domain(curve: Curve) -> None:
    found = plan(curve, 27, H200)
    assert UNCUT <= found.chunk < 1 << 27
    less = plan(curve, 27, 64 << 30)
    assert less.points < points_bytes(curve, workload(27))
    assert not less.stay[-1]
    with pytest.raises(OutOfMemory, match=r"2\^28 rows and 268435456 wires needs [0-9]+ bytes"):
        plan(curve, 28, 1 << 34)


def test_no_room_for_vectors() -> None:
    with pytest.raises(OutOfMemory, match=f"{(1 << 20) - (1 << 20) // SPARED} can be had"):
        plan(BN254, 16, 1 << 20)
    small = Workload(0, 1, (), ())
    roomy = share(BN254, small, 1 << 30, sums, extra)
    assert share(BN254, small, 1 << 20, sums, extra) == roomy
    assert roomy == MemoryPlan(0, 1, roomy.total, None, (), 1, roomy.once, roomy.lane)


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
