"""Several proofs at a time on one device: what overlaps, and in which order."""

from __future__ import annotations

import gc
import threading
from itertools import pairwise
from typing import Any

import pytest
from proofs import Proofs, expect_nothing_held, key

from circuits import cubic
from cuzk.curves import BN254
from cuzk.errors import CuzkError, FormatError, KernelError, OutOfMemory
from cuzk.prover.evaluate import Evaluated
from cuzk.prover.session import Prover, Result
from cuzk.verifier import verify
from null_backend import TIMEOUT, Event, NullDevice, install
from until import until


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> NullDevice:
    return install(monkeypatch)


def test_vectors_of_the_next_proof_come_while_one_computes(device: NullDevice) -> None:
    """And its kernels are queued before the first one's sums are there."""

    def script(event: Event) -> None:
        if (event.verb, event.thread) == ("collect", "p0"):
            device.await_event("stage", "p1")
            device.await_event("collect", "p1")

    with Prover(key(), threads=1) as prover:
        device.script = script
        proofs = Proofs(prover)
        proofs.start(0)
        device.await_event("start_msm", "p0")
        proofs.start(1)
        proofs.expect_valid(0, 1)
        expect_nothing_held(prover, device)
    lanes = {event.thread: event.lane for event in device.events if event.verb == "collect"}
    assert lanes == {"p0": 0, "p1": 1}


def test_a_witness_comes_while_another_proof_has_all_the_room(device: NullDevice) -> None:
    """No kernel of its proof is queued before that one has left; it is one lane still, as it was planned."""

    def script(event: Event) -> None:
        if (event.verb, event.thread) == ("collect", "p0"):
            device.await_event("stage", "p1")

    device.room, device.waiting = 1, 1
    with Prover(key(), threads=1) as prover:
        device.script = script
        proofs = Proofs(prover)
        proofs.start(0)
        device.await_event("start_msm", "p0")
        proofs.start(1)
        device.await_event("stage", "p1")  # it has the place of one that waits
        for x in range(2, 6):
            proofs.start(x)
        proofs.expect_valid(*range(6))
        expect_nothing_held(prover, device)
        assert prover.standing.lanes == 1
    assert {result.report.lanes for result in proofs.found.values()} == {1}  # type: ignore[union-attr]
    kernels = [e for e in device.events if e.verb in ("product", "ntt", "start_msm", "collect")]
    changes = [two.thread for one, two in pairwise(kernels) if one.thread != two.thread]
    assert changes == ["p1", *changes[1:]]
    assert len(set(changes)) == len(changes) == 5
    assert {event.lane for event in kernels} == {0, 1}


@pytest.mark.parametrize("error", [OutOfMemory("full"), KernelError("lost"), KeyboardInterrupt()])
@pytest.mark.parametrize("verb", ["stage", "product", "start_msm", "collect"])
@pytest.mark.parametrize("failing", [0, 1])
def test_faults_beside_a_witness_that_waits(
    device: NullDevice, error: BaseException, verb: str, failing: int
) -> None:
    """Of the one in work or of the one that waits: the other's proof is valid; memory that was short is had alone."""

    def script(event: Event) -> None:
        if event.verb == verb and event.thread == f"p{failing}" and not failed.is_set():
            if failing == 0 and verb != "stage":
                device.await_event("stage", "p1")
            failed.set()
            raise error

    device.room, device.waiting = 1, 1
    failed = threading.Event()
    with Prover(key(), device="cuda", threads=1) as prover:
        device.script = script
        proofs = Proofs(prover)
        proofs.start(0)
        device.await_event("stage", "p0")
        proofs.start(1)
        proofs.expect_valid(1 - failing)
        if isinstance(error, OutOfMemory):
            proofs.expect_valid(failing)
        else:
            assert proofs.found[failing] is error
        error.__traceback__ = None
        expect_nothing_held(prover, device)
    assert failed.is_set()


def test_rows_that_were_checked_are_not_evaluated_again(device: NullDevice) -> None:
    """A, B and C once, for the check; none is held when the sums are given."""

    def script(event: Event) -> None:
        if event.verb == "collect":
            gc.collect()
            held.append(sum(isinstance(each, Evaluated) and bool(each._vectors) for each in gc.get_objects()))  # fmt: skip

    held: list[int] = []
    with Prover(key(), circuit=cubic(BN254).matrices(), threads=1) as prover:
        device.events.clear()  # of the comparison of the key's circuit with this one
        device.script = script
        result = prover.prove(cubic(BN254).witness())
    assert verify(key().vk, result.public, result.proof)
    assert [event.verb for event in device.events].count("product") == 3
    assert held == [0] * 5


@pytest.mark.parametrize("error", [KernelError("planted"), KeyboardInterrupt()])
def test_who_gets_an_error_may_change_the_vectors(device: NullDevice, error: BaseException) -> None:
    """Copies that are under way were waited for: nothing reads the caller's arrays any more."""

    def script(event: Event) -> None:
        if event.verb == "start_msm":
            raise error

    with Prover(key(), device="cuda", threads=1) as prover:
        device.script = script
        with pytest.raises(type(error)):
            prover.prove(cubic(BN254).witness())
        device.script = lambda _: None
    verbs = [
        event.verb for event in device.events if event.verb in ("stage", "start_msm", "settle")
    ]
    assert verbs == ["stage", "start_msm", "settle"]


def test_kernels_are_queued_in_the_order_of_places(device: NullDevice) -> None:
    """The second's vectors are there first; it waits for the first one's to be queued."""

    def script(event: Event) -> None:
        if (event.verb, event.thread) == ("stage", "p0"):
            device.await_event("stage", "p1")

    with Prover(key(), threads=1) as prover:
        device.script = script
        proofs = Proofs(prover)
        proofs.start(0)
        device.await_event("stage", "p0")
        proofs.start(1)
        proofs.expect_valid(0, 1)
    order = [event.thread for event in device.events if event.verb in ("product", "start_msm")]
    assert order == ["p0"] * 7 + ["p1"] * 7


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, None])
def test_many_threads(device: NullDevice, lanes: int | None) -> None:
    """All get their own valid proof, no more than ``lanes`` are in work, each lane has one at a time."""
    count = lanes or 2
    working: dict[int, str] = {}
    most, lock = [0], threading.Lock()
    with Prover(key(), threads=1, lanes=lanes) as prover:

        def script(event: Event) -> None:
            with lock:
                if event.verb == "stage":
                    assert event.lane not in working
                    working[event.lane] = event.thread
                    most[0] = max(most[0], len(working))
                assert working.get(event.lane, event.thread) == event.thread
                if (
                    event.verb == "settle"
                ):  # in work until the end, but nothing is called after the sums
                    del working[event.lane]

        device.script = script
        device.events.clear()
        proofs = Proofs(prover)
        for x in range(50):
            proofs.start(x)
        proofs.expect_valid(*range(50))
        expect_nothing_held(prover, device)
        report = prover.prove(cubic(BN254).witness()).report
    assert report.lanes == count == device.lanes
    assert report.device_planned_bytes == 1000 * count
    assert 1 <= most[0] <= count
    queued = [event.thread for event in device.events if event.verb == "start_msm"]
    assert all(len(set(queued[i : i + 5])) == 1 for i in range(0, 250, 5))  # never interleaved


def test_many_threads_on_the_cpu() -> None:
    for lanes in (None, 3):
        with Prover(key(), device="cpu", threads=1, lanes=lanes) as prover:
            proofs = Proofs(prover)
            for x in range(50):
                proofs.start(x)
            proofs.expect_valid(*range(50))
            expect_nothing_held(prover)
            assert prover.prove(cubic(BN254).witness()).report.lanes == (lanes or 1)


def test_lanes_as_the_plan_has_room(device: NullDevice) -> None:
    device.room = 1
    for lanes in (None, 4):
        with Prover(key(), threads=1, lanes=lanes) as prover:
            assert prover.prove(cubic(BN254).witness()).report.lanes == 1


@pytest.mark.parametrize("lanes", [0, 5, -1, True, 1.5, "2"])
def test_lanes_out_of_range(lanes: Any) -> None:
    with pytest.raises(FormatError, match=r"^lanes: expected 1 to 4, found "):
        Prover(key(), lanes=lanes)


@pytest.mark.usefixtures("device")
def test_notes_are_in_the_report() -> None:
    with Prover(key(), threads=1) as prover:
        report = prover.prove(cubic(BN254).witness()).report
    assert report.transfers == ["lane 0: noted"]  # of the key and of the proof, said once


def test_waiting_is_measured(device: NullDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second proof on one lane waits for all of the first, by a clock that stands still but for that."""

    def script(event: Event) -> None:
        if (event.verb, event.thread) == ("collect", "p0"):
            assert go.wait(TIMEOUT)

    go, now = threading.Event(), [100.0]
    monkeypatch.setattr("cuzk.prover.report.perf_counter", lambda: now[0])
    with Prover(key(), threads=1, lanes=1) as prover:
        device.script = script
        proofs = Proofs(prover)
        proofs.start(0)
        device.await_event("collect", "p0")
        proofs.start(1)
        assert prover._placement
        order = prover._placement._first.order
        until(lambda: order._waiting)
        now[0] += 7.0
        go.set()
        proofs.expect_valid(0, 1)
    waited = [proofs.found[x].report.milliseconds["wait"] for x in (0, 1)]  # type: ignore[union-attr]
    assert waited == [0.0, 7000.0]


def test_close_waits_for_proofs_in_work(device: NullDevice) -> None:
    """Those that have no place yet are refused."""
    closing = threading.Event()

    def script(event: Event) -> None:
        if event.verb == "collect":
            assert closing.wait(TIMEOUT)

    prover = Prover(key(), threads=1, lanes=1)
    device.script = script
    proofs = Proofs(prover)
    proofs.start(0)
    device.await_event("collect", "p0")
    placed = prover._placement
    assert placed is not None
    order = placed._first.order
    proofs.start(1)
    until(lambda: order._waiting)
    closer = threading.Thread(target=prover.close, daemon=True)
    closer.start()
    until(lambda: order._watching)
    proofs.threads[1].join(TIMEOUT)
    assert set(proofs.found) == {1}  # p0 is in work
    closer.join(0.05)
    assert closer.is_alive()
    closing.set()
    closer.join(TIMEOUT)
    assert not closer.is_alive()
    proofs.expect_valid(0)
    assert isinstance(proofs.found[1], CuzkError)
    assert "found it closed" in str(proofs.found[1])


def test_close_in_a_hook_of_a_proof() -> None:
    """It does not wait for the proof that it is called in; that one still comes out."""
    prover = Prover(key(), device="cpu", threads=1, on_phase=lambda name: prover.close() if name == "commit" else None)  # fmt: skip
    result = prover.prove(cubic(BN254).witness())
    assert verify(key().vk, result.public, result.proof)
    with pytest.raises(CuzkError, match="found it closed"):
        prover.prove(cubic(BN254).witness())


@pytest.mark.parametrize("phase", ["check", "evaluate", "commit", "commit.h", "assemble", "verify"])
def test_a_phase_that_proves_while_others_wait(device: NullDevice, phase: str) -> None:
    """The hook's proof shares the place of the proof that it is called in."""
    inner: list[Result] = []
    busy = threading.local()

    def on_phase(name: str) -> None:
        if name == phase and not getattr(busy, "inner", False):
            busy.inner = True
            inner.append(prover.prove(cubic(BN254, 2).witness()))
            busy.inner = False

    with Prover(key(), threads=1, lanes=1, on_phase=on_phase) as prover:
        proofs = Proofs(prover)
        for x in range(4):
            proofs.start(x)
        proofs.expect_valid(*range(4))
        expect_nothing_held(prover, device)
    assert [result.public for result in inner] == [[15]] * 4
