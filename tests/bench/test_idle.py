"""Idle time, copies and batches from tables of spans made by hand, and what must hold of any spans at all."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.bench.idle import batches, computing, copies, sums, uses
from cuzk.bench.intervals import common, length, union, without
from cuzk.timeline import Span

COMPUTE, COPY = "cuda:0 compute", "cuda:0 copy"


def span(track: str, name: str, start: float, end: float, **facts: str | int | float) -> Span:
    return Span(track, name, start, end, facts)


PROOF = [  # seconds
    span(COPY, "points", 0, 4, bytes=200, how="pinned"),
    span(COPY, "points", 4, 8, bytes=200, how="pinned"),
    span(COPY, "witness", 10, 12, bytes=30, how="staged"),
    span(COMPUTE, "commit", 1, 11),
    span(COMPUTE, "wait for points", 1, 4),
    span(COMPUTE, "sum", 4, 6, batch=0),
    span(COMPUTE, "sum", 9, 11, batch=1),
    span(COMPUTE, "quotient", 15, 21),
    span("MainThread", "assemble", 20, 23),
]


def test_uses_of_a_table() -> None:
    """The wait inside a phase is no work; between phases there is nothing."""
    host, compute, copy = sorted(uses(PROOF), key=lambda use: use.track)
    assert (host.track, host.work, host.nothing) == ("MainThread", 3, 0)
    assert (compute.track, compute.start, compute.end) == (COMPUTE, 1, 21)
    assert (compute.work, compute.waiting, compute.nothing) == (13, 3, 4)
    assert compute.idle == pytest.approx(7 / 20)
    assert (copy.work, copy.waiting, copy.nothing) == (10, 0, 2)
    assert copy.as_dict() == {
        "track": COPY, "ms": 12e3, "work_ms": 10e3, "waiting_ms": 0, "nothing_ms": 2e3,
        "idle_percent": pytest.approx(100 / 6, abs=1e-3),
    }  # fmt: skip


def test_uses_within_a_window() -> None:
    """Spans are cut at its ends, and a track is idle where it has none."""
    copy = {use.track: use for use in uses(PROOF, (2, 30))}[COPY]
    assert (copy.work, copy.nothing) == (8, 20)
    outside = {use.track: use for use in uses(PROOF, (40, 50))}[COPY]
    assert (outside.work, outside.waiting, outside.nothing, outside.idle) == (0, 0, 10, 1)


def test_copies_of_a_table() -> None:
    """Hidden: while another stream of the device computes; its own phases and the host's do not count."""
    points, witness = copies(PROOF)
    assert (points.name, points.how, points.count, points.nbytes) == ("points", "pinned", 2, 400)
    assert (points.seconds, points.gigabytes_per_second) == (8, 50e-9)
    assert points.hidden == 7  # the phase "commit" is open from 1 on
    assert (witness.how, witness.seconds, witness.hidden) == ("staged", 2, 1)
    assert witness.as_dict()["bytes"] == 30
    other = copies([*PROOF[:1], span("cuda:1 compute", "commit", 0, 9)])
    assert other[0].hidden == 0


def test_batches_of_a_table() -> None:
    """From the first batch to the last of a sum; a number that starts again is another sum."""
    (only,) = batches(PROOF)
    assert (only.count, only.seconds, only.between) == (2, 7, 3)
    assert only.as_dict()["between_percent"] == pytest.approx(300 / 7, abs=1e-3)
    alternating = [
        span("cuda:0 compute", "sum", 0, 3, batch=0),
        span("cuda:0 compute 2", "sum", 2, 5, batch=1),
        span("cuda:0 compute", "sum", 6, 7, batch=2),
        span("cuda:0 compute", "sum", 9, 10, batch=0),
    ]
    waits = [
        span("cuda:0 compute", "wait for cuda:0 copy", 0, 1),
        span("cuda:0 compute 2", "wait for cuda:0 copy", 2, 2.5),  # while the other computes
    ]
    assert batches([*alternating, *waits])[0].between == 2
    first, second = batches(alternating)
    assert (first.count, first.seconds, first.between) == (3, 7, 1)
    assert (second.count, second.seconds, second.between) == (1, 1, 0)


def test_batches_are_of_one_sum_whatever_is_done_for_them() -> None:
    """The digits of the second batch are sorted before the first is added up; the lines come once."""
    kinds = [("digits", 0, 0, 2), ("digits", 1, 2, 3), ("batch", 0, 4, 6), ("batch", 1, 6, 8), ("lines", 2, 8, 9)]  # fmt: skip
    one = [span(COMPUTE, name, start, end, batch=i) for name, i, start, end in kinds]
    again = [span(COMPUTE, s.name, s.start + 10, s.end + 10, **s.facts) for s in one]
    found = batches([*again, *one])
    resident = [span(COMPUTE, "sum g2", 5, 5.5), span("MainThread", "sum g1", 0, 9)]
    assert sums([*again, *resident, *one]) == [9, 0.5, 9]
    assert [(b.device, b.count, b.seconds, b.between) for b in found] == [("cuda:0", 2, 9, 1)] * 2


def test_nothing() -> None:
    assert not uses([])
    assert not copies([])
    assert not batches([])
    instant = [span(COPY, "points", 1, 1, bytes=5)]
    (use,) = uses(instant)
    assert (use.seconds, use.idle) == (0, 0)
    assert copies(instant)[0].gigabytes_per_second == 0


def test_proofs_at_a_time() -> None:
    """Batches of two proofs in turn are those of two sums where they tell which proof."""
    found = [
        span(COMPUTE, "sum", 2 * i + p, 2 * i + p + 1, batch=i, proof=p)
        for i in range(3)
        for p in range(2)
    ]
    assert [(b.count, b.seconds, b.between) for b in batches(found)] == [(3, 5, 2), (3, 5, 2)]


def test_computing() -> None:
    """Neither while it waits nor while it copies in its own order; a second stream of the device counts."""
    assert computing(PROOF, (0, 30)) == [(4, 11), (15, 21)]
    inside = [*PROOF, span(COMPUTE, "copy to device", 16, 18, bytes=9)]
    assert computing(inside, (5, 20)) == [(5, 11), (15, 16), (18, 20)]
    second = [*inside, span("cuda:0 compute 2", "quotient", 10, 17)]
    assert length(computing(second, (5, 20))) == 14


# Times are small integers: sums of them are exact.
moments = st.integers(0, 60)
intervals = st.lists(st.tuples(moments, moments).map(lambda p: (min(p), max(p))), max_size=12)
spans = st.lists(
    st.builds(
        lambda track, name, pair, facts: Span(track, name, min(pair), max(pair), facts),
        st.sampled_from([COMPUTE, COPY, "cuda:1 compute", "MainThread"]),
        st.sampled_from(["sum", "wait", "wait for points", "waiting room"]),
        st.tuples(moments, moments),
        st.one_of(
            st.just({}),
            st.builds(lambda n: {"bytes": n, "how": "pinned"}, st.integers(0, 99)),
            st.builds(lambda n: {"batch": n}, st.integers(0, 4)),
        ),
    ),
    max_size=14,
)


def ticks(pairs: list[tuple[int, int]]) -> set[int]:
    """Whole seconds that a list of intervals covers, one by one."""
    return {second for start, end in pairs for second in range(start, end)}


@settings(max_examples=60, deadline=None)
@given(intervals, intervals)
def test_intervals_against_single_seconds(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:  # fmt: skip
    one, other = union(left), union(right)
    assert length(one) == len(ticks(left))
    assert all(a[1] < b[0] for a, b in itertools.pairwise(one))
    assert length(common(one, other)) == len(ticks(left) & ticks(right))
    assert length(without(one, other)) == len(ticks(left) - ticks(right))


@settings(max_examples=60, deadline=None)
@given(spans, st.randoms())
def test_any_spans(found: list[Span], rng: random.Random) -> None:
    """Parts sum to the whole, second by second; neither order nor spans within spans change anything."""
    for use in uses(found):
        own = [s for s in found if s.track == use.track]
        waits = {t for s in own if s.name.split()[0] == "wait" for t in ticks([(s.start, s.end)])}  # type: ignore[list-item]
        work = {t for s in own if s.name.split()[0] != "wait" for t in ticks([(s.start, s.end)])}  # type: ignore[list-item]
        assert use.waiting == len(waits)
        assert use.work == len(work - waits)
        assert use.nothing == use.seconds - len(work | waits) >= 0
    total = sum(int(s.facts["bytes"]) for s in found if "bytes" in s.facts)
    assert sum(c.nbytes for c in copies(found)) == total
    assert all(0 <= c.hidden <= c.seconds for c in copies(found))
    assert all(0 <= b.between <= b.seconds for b in batches(found))
    inner = [
        Span(s.track, s.name, s.start, (s.start + s.end) / 2)
        for s in found
        if not s.facts and s.end - s.start > 1
    ]
    mixed = [*found, *inner]
    rng.shuffle(mixed)
    assert uses(mixed) == uses(found)
    assert copies(mixed) == copies(found)
    assert computing(mixed, (5, 50)) == computing(found, (5, 50))
