"""Spans of a real machine's streams: one clock, copies with their bytes, waits as long as they last."""

from __future__ import annotations

import gc
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench import spans
from cuzk.backends.cuda import clock
from cuzk.backends.cuda.arrivals import Feeder
from cuzk.backends.cuda.cache import Cache
from cuzk.backends.cuda.card import Card
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.timeline import Span, Timeline
from emulator.driver import FakeDriver


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver(memory=1 << 24)


@pytest.fixture
def machine(driver: FakeDriver, tmp_path: Path) -> CudaMachine:
    return CudaMachine(Card(driver, 0, Cache(tmp_path)))


def one(machine: CudaMachine, track: str, name: str) -> Span:
    (span,) = [s for s in machine.timeline.spans() if (s.track, s.name) == (track, name)]
    return span


def test_marks_of_all_streams_are_on_the_hosts_clock(machine: CudaMachine) -> None:
    copies = machine.beside("copy")
    memory = machine.alloc(1 << 20)
    begun = time.perf_counter()
    origin = machine.card.clock.origin()
    error = origin.error
    assert 0 < error < (time.perf_counter() - begun) / 2
    marks, between = [], []
    for stream in (machine, copies, machine, copies):
        stream.fill(memory, 1)
        marks.append(stream.mark())
        before = time.perf_counter()
        stream.wait(marks[-1])
        between.append((before, time.perf_counter()))
    assert machine.card.clock.origin() is origin
    for mark, (before, after) in zip(marks, between, strict=True):
        moment = machine.moment(mark)
        assert before - error - 1e-6 <= moment <= after + error + 1e-6


def test_the_closest_of_a_few_tries_is_the_clocks_origin(
    machine: CudaMachine, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, now = iter([0.3, 0.1, 0.2]), [1000.0]
    synchronize = driver._cuEventSynchronize

    def late(event: object) -> object:
        answer = synchronize(event)  # type: ignore[arg-type]
        now[0] += next(slow)
        return answer

    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])
    monkeypatch.setattr(driver, "_cuEventSynchronize", late)
    there = len(driver.events), len(driver.streams)
    origin = machine.card.clock.origin()
    assert next(slow, None) is None  # none was close: all tries were made
    assert origin.error == pytest.approx(0.05)
    assert origin.then == pytest.approx(1000.35)  # in the middle of the second
    gc.collect()
    assert (len(driver.events) - 1, len(driver.streams)) == there
    del origin
    gc.collect()
    assert (len(driver.events), len(driver.streams)) == there


def test_marks_from_before_the_clock_was_renewed(
    machine: CudaMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = machine.alloc(100)
    machine.fill(memory, 1)
    before = machine.mark()
    machine.wait(before)
    old = machine.card.clock.origin()
    monkeypatch.setattr(clock, "RENEWED", 0.0)
    time.sleep(0.002)
    machine.fill(memory, 2)
    after = machine.mark()
    machine.wait(after)
    now = time.perf_counter()
    monkeypatch.setattr(clock, "RENEWED", 60.0)
    new = machine.card.clock.origin()
    assert new is not old
    assert machine.moment(after) - machine.moment(before) >= 0.002 - old.error - new.error
    assert machine.moment(after) <= now + new.error
    machine.record("over the change", before, after)
    seconds = one(machine, "cuda:0 compute", "over the change").seconds
    assert seconds >= 0.002 - old.error - new.error


def test_the_clock_holds_nothing_when_nobody_needs_it(driver: FakeDriver, tmp_path: Path) -> None:
    machine = CudaMachine(Card(driver, 0, Cache(tmp_path)))
    mark, card, timeline = machine.mark(), machine.card, machine.timeline
    gc.collect()
    assert len(driver.events) == 2
    machine.record("x", mark, mark)
    timeline.close()
    del machine, mark
    gc.collect()
    assert driver.events == set()
    assert driver.streams == []
    assert [span.name for span in timeline.spans()] == ["x"]
    assert card.clock.origin().error > 0


def test_copies_tell_their_bytes_and_how(machine: CudaMachine) -> None:
    array = np.arange(3 * 4096, dtype=np.uint8)
    memory = machine.alloc(array.nbytes)
    pin = machine.pin(array)
    machine.send(memory, array[:5000])
    machine.upload(memory, array)
    machine.upload_plain(memory, np.ones(4000, np.uint8))
    machine.download(memory, np.empty(600, np.uint8))
    machine.fetch(memory, np.empty(70, np.uint8))()
    machine.finish()
    pin.release()
    found = [s for s in machine.timeline.spans() if s.track == "cuda:0 compute"]
    assert [(s.name, s.facts["how"], s.facts["bytes"]) for s in found] == [
        ("copy to device", "pinned", 5000),
        ("copy to device", "staged", 12288),
        ("copy to device", "pageable", 4000),
        ("copy to host", "staged", 600),
        ("copy to host", "pinned", 70),
    ]
    assert all(a.end <= b.start for a, b in pairwise(found))
    host = [s.name for s in machine.timeline.spans() if s.device == ""]
    assert host == [
        "stage", "wait for a copy", "wait for a copy", "wait for a result",
        "wait for cuda:0 compute",
    ]  # fmt: skip


def test_a_streams_wait_is_as_long_as_what_it_waits_for(machine: CudaMachine) -> None:
    copies = machine.beside("copy")
    memory = copies.alloc(1 << 22)
    for byte in range(20):
        copies.fill(memory, byte)
    mark = copies.mark()
    start = copies.mark()
    machine.after(mark)
    machine.fill(machine.alloc(8), 0)
    machine.finish()
    copies.record("after it", start, copies.mark())
    wait = one(machine, "cuda:0 compute", "wait for cuda:0 copy")
    assert wait.seconds > 0
    assert wait.end >= copies.moment(mark) - 1e-5


def test_a_copying_threads_spans_are_about_the_proof_that_asked(machine: CudaMachine) -> None:
    array = np.ones(50_000, np.uint8)
    with Feeder(machine) as feeder:
        for proof in (1, 2):
            with machine.timeline.about(proof=proof) as found:
                memory = feeder.alloc(array.nbytes)
                arrival = feeder.send(memory, array)
                arrival.before(machine)
                arrival.done()
                machine.finish()
            kinds = {(s.track, s.name) for s in found}
            assert ("staging for cuda:0", "stage") in kinds
            assert ("cuda:0 copy", "copy to device") in kinds
            assert ("cuda:0 compute", "wait for cuda:0 copy") in kinds
            assert {s.facts["proof"] for s in found} == {proof}


def test_a_timeline_is_replaced_for_all_streams(machine: CudaMachine) -> None:
    copies, old, new = machine.beside("copy"), machine.timeline, Timeline()
    copies.timeline = new
    memory = machine.alloc(8)
    machine.upload(memory, np.zeros(8, np.uint8))
    copies.upload(memory, np.zeros(8, np.uint8))
    assert {s.track for s in new.spans() if s.device} == {"cuda:0 compute", "cuda:0 copy"}
    assert old.spans() == []


def test_what_spans_cost_is_measured(machine: CudaMachine, driver: FakeDriver) -> None:
    driver.calls.clear()
    times = spans.device(machine, count=20)
    assert set(times) == {"record", "read", "stream"}
    assert all(us > 0 for us in times.values())
    assert spans.host(count=20) > 0
    calls = [name for name in driver.calls if name in ("cuEventQuery", "cuEventElapsedTime")]
    assert len(calls) == spans.ROUNDS * (20 * 3 + 1)
