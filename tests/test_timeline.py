"""Spans of threads and devices: what is kept, and what is read when."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest

from cuzk.errors import KernelError
from cuzk.timeline import Span, Timeline


class Device:
    """Resolves its spans once it is told that they are over."""

    def __init__(self) -> None:
        self.over = False
        self.asked: list[bool] = []

    def span(self, start: float, end: float) -> Any:
        def resolve(wait: bool) -> Span | None:
            self.asked.append(wait)
            return Span("cuda:0 compute", "sum", start, end) if wait or self.over else None

        return resolve


def names(spans: Iterable[Span]) -> list[str]:
    return [span.name for span in spans]


def test_host_spans_hold_what_happens_inside() -> None:
    timeline = Timeline()
    before = time.perf_counter()
    with timeline.span("commit", points=7), timeline.span("commit.a"):
        time.sleep(0.002)
    after = time.perf_counter()
    outer, inner = timeline.spans()
    assert names([outer, inner]) == ["commit", "commit.a"]
    assert before <= outer.start <= inner.start < inner.end <= outer.end <= after
    assert inner.seconds >= 0.002
    assert outer.facts == {"points": 7}
    assert (outer.track, outer.device) == (threading.current_thread().name, "")


def test_a_span_is_recorded_where_an_error_ends_it() -> None:
    timeline = Timeline()
    with pytest.raises(ZeroDivisionError), timeline.span("quotient"):
        print(1 // 0)
    assert names(timeline.spans()) == ["quotient"]


def test_a_devices_span_is_read_when_it_is_over_and_waited_for_by_who_asks_for_all() -> None:
    timeline, device = Timeline(), Device()
    timeline.later(device.span(1.0, 2.0))
    timeline.collect()
    assert device.asked == [False]
    device.over = True
    timeline.collect()
    timeline.collect()
    assert device.asked == [False, False]  # once read, never again
    assert timeline.spans() == [Span("cuda:0 compute", "sum", 1.0, 2.0)]
    device.over = False
    timeline.later(device.span(3.0, 4.0))
    assert [span.start for span in timeline.spans(since=2.0)] == [3.0]
    assert device.asked == [False, False, True]


def test_a_proof_has_its_own_spans_and_never_waits_for_them() -> None:
    timeline, device = Timeline(), Device()
    device.over = True
    with timeline.span("load"):
        pass
    with timeline.about(proof=3) as found, timeline.span("commit", points=5):
        timeline.later(device.span(1.0, 2.0))
    with timeline.span("between"):
        pass
    assert [(s.name, s.facts) for s in found] == [
        ("commit", {"proof": 3, "points": 5}), ("sum", {"proof": 3}),
    ]  # fmt: skip
    assert names(timeline.spans()) == ["sum", "load", "commit", "between"]
    assert True not in device.asked


def test_what_was_not_over_when_its_proof_ended_is_found_later() -> None:
    timeline, device = Timeline(), Device()
    with timeline.about(proof=1) as first:
        timeline.later(device.span(1.0, 2.0))
    assert list(first) == []
    device.over = True
    with timeline.about(proof=2) as second:
        pass
    assert list(second) == []
    assert timeline.spans() == [Span("cuda:0 compute", "sum", 1.0, 2.0, {"proof": 1})]


def test_proofs_of_two_threads_at_a_time() -> None:
    timeline, both = Timeline(), threading.Barrier(2)
    found: dict[int, list[Span]] = {}

    def prove(number: int) -> None:
        with timeline.about(proof=number) as spans:
            both.wait()
            with timeline.span(f"work {number}"):
                both.wait()
                for_it = contextvars.copy_context()
                helper = threading.Thread(target=for_it.run, args=(help_with, number))
                helper.start()
                helper.join()
        found[number] = list(spans)

    def help_with(number: int) -> None:
        with timeline.span(f"help {number}"):
            both.wait()

    threads = [threading.Thread(target=prove, args=(k,), name=f"prover {k}") for k in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in (1, 2):
        assert names(found[number]) == [f"help {number}", f"work {number}"]
        assert {span.facts["proof"] for span in found[number]} == {number}
    tracks = {span.track for span in timeline.spans() if span.name.startswith("work")}
    assert tracks == {"prover 1", "prover 2"}


def test_a_proof_within_a_proof_is_its_own() -> None:
    timeline, other = Timeline(), Timeline()
    with timeline.about(proof=1) as outer:
        with other.about(proof=7) as inner, other.span("inner"):
            pass
        with timeline.span("outer"):
            pass
    assert [(s.name, s.facts) for s in outer] == [("outer", {"proof": 1})]
    assert [(s.name, s.facts["proof"]) for s in inner] == [("inner", 7)]


def test_memory_is_bounded() -> None:
    timeline, device = Timeline(kept=50, pending=20), Device()
    for proof in range(1000):
        with timeline.about(proof=proof) as found:
            for _ in range(60):
                with timeline.span("x"):
                    pass
            timeline.later(device.span(1.0, 2.0))  # never over
        assert len(found) == 50
    device.asked.clear()
    assert len(timeline.spans()) == 50
    assert set(device.asked) == {True}
    assert 10 <= len(device.asked) <= 20
    assert timeline.dropped + len(device.asked) == 1000


def test_a_device_far_behind_is_not_asked_at_every_span() -> None:
    timeline, device = Timeline(pending=100), Device()
    for _ in range(1000):
        timeline.later(device.span(1.0, 2.0))
    assert len(device.asked) <= 5 * 1000


def test_closed_it_holds_nothing_of_a_device() -> None:
    timeline, device, over = Timeline(), Device(), Device()
    over.over = True
    timeline.later(device.span(1.0, 2.0))
    timeline.later(over.span(3.0, 4.0))
    timeline.close()
    assert timeline.dropped == 1
    assert [span.start for span in timeline.spans()] == [3.0]
    assert True not in device.asked + over.asked


def test_a_lost_device_takes_no_other_spans_with_it() -> None:
    def lost(wait: bool) -> Span | None:
        raise KernelError(f"cuda:0: lost ({wait})")

    timeline, device = Timeline(), Device()
    with timeline.span("host"):
        timeline.later(lost)
        timeline.later(device.span(1.0, 2.0))
    assert sorted(names(timeline.spans())) == ["host", "sum"]
    assert timeline.dropped == 1
