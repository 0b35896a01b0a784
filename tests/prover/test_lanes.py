"""Several proofs at a time on one device: what overlaps, in which order, and what faults leave behind."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from dataclasses import replace
from functools import cache
from linecache import getline
from pathlib import Path
from random import Random
from time import sleep
from types import FrameType
from typing import Any

import pytest

from circuits import cubic
from cuzk.backends import Backend
from cuzk.backends.cpu import CpuBackend
from cuzk.curves import BN254, Curve
from cuzk.errors import CuzkError, FormatError, KernelError, OutOfMemory
from cuzk.groth16 import ProvingKey
from cuzk.prover import placement
from cuzk.prover.attempt import Attempt
from cuzk.prover.session import Prover, Result
from cuzk.verifier import verify
from null_backend import TIMEOUT, Event, NullBackend, NullDevice
from reference_setup import key_from


@cache
def key() -> ProvingKey:
    """As a .zkey has it: without C."""
    made = key_from(cubic(BN254).matrices())
    assert made.matrices is not None
    return replace(made, matrices=replace(made.matrices, c=None))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> NullDevice:
    """What "auto" opens."""
    shared = NullDevice()

    def open_device(
        device: str, curve: Curve, threads: int, _: object = None
    ) -> tuple[Backend, str]:
        if device == "cpu":
            return CpuBackend(curve, threads), "asked for"
        return NullBackend(curve, shared), "a GPU can be used"

    monkeypatch.setattr(placement, "open_device", open_device)
    return shared


class Proofs:
    """Each on a thread of its own, named p0, p1, ...; x is the number."""

    def __init__(self, prover: Prover) -> None:
        self.prover = prover
        self.threads: list[threading.Thread] = []
        self.found: dict[int, Result | BaseException] = {}

    def start(self, x: int) -> None:
        def work() -> None:
            try:
                self.found[x] = self.prover.prove(cubic(BN254, x).witness())
            except BaseException as error:
                self.found[x] = error

        thread = threading.Thread(target=work, name=f"p{x}", daemon=True)
        self.threads.append(thread)
        thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(TIMEOUT)
            assert not thread.is_alive(), f"{thread.name} hangs"

    def expect_valid(self, *numbers: int) -> None:
        self.join()
        for x in numbers:
            result = self.found[x]
            assert isinstance(result, Result), repr(result)
            assert result.public == [x**3 + x + 5]
            assert verify(key().vk, result.public, result.proof)


def expect_nothing_held(prover: Prover, device: NullDevice | None = None) -> None:
    """No ticket, no vector on its way."""
    placed = prover._placement
    assert placed is not None
    for order in [p.order for p in (placed._first, placed._cpu) if p]:
        assert order._waiting == order._working == order._watching == []
    assert device is None or device.pinned == set()


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


def test_waiting_is_measured(device: NullDevice) -> None:
    """The second proof on one lane waits for all of the first."""

    def script(event: Event) -> None:
        if (event.verb, event.thread) == ("collect", "p0"):
            second.wait(0.05)

    second = threading.Event()
    with Prover(key(), threads=1, lanes=1) as prover:
        device.script = script
        proofs = Proofs(prover)
        proofs.start(0)
        device.await_event("collect", "p0")
        proofs.start(1)
        proofs.expect_valid(0, 1)
    waited = [proofs.found[x].report.milliseconds["wait"] for x in (0, 1)]  # type: ignore[union-attr]
    assert waited[0] < 50 < waited[1]


ERRORS = [OutOfMemory("cuda:0: full"), KernelError("cuda:0: lost"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS, ids=["memory", "kernel", "interrupt"])
@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_a_fault_at_any_call(device: NullDevice, error: BaseException, name: str) -> None:
    """At the k-th call to the device, for every k: an error or a valid proof, and the next one is valid."""
    witness, matrices = cubic(BN254).witness(), cubic(BN254).matrices()
    with Prover(key(), device="cuda", circuit=matrices, threads=1) as prover:
        device.events.clear()
        prover.prove(witness)
        calls = len(device.events)
    assert calls > 20
    made_good = 0
    for k in range(calls):
        with Prover(key(), device=name, circuit=matrices, threads=1) as prover:
            left = [k]

            def script(_: Event, left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] == -1:
                    raise error

            device.script = script
            proofs = Proofs(prover)
            proofs.start(3)
            proofs.join()
            found = proofs.found.pop(3)
            if isinstance(error, OutOfMemory):  # once: made good by being alone
                assert isinstance(found, Result), (k, found)
                assert found.report.device == "cuda:0"
                assert f"made with no other proof in work: {error}" in found.report.transfers
            elif name == "auto" and not isinstance(error, KeyboardInterrupt):
                assert isinstance(found, Result), (k, found)
            made_good += isinstance(found, Result)
            if not isinstance(found, Result):
                assert found is error
            else:
                assert verify(key().vk, found.public, found.proof)
            del found
            error.__traceback__ = None
            expect_nothing_held(prover, device)
            device.script = lambda _: None
            proofs.start(4)
            proofs.expect_valid(4)
    if isinstance(error, KeyboardInterrupt):
        assert not made_good


@pytest.mark.parametrize("error", [OutOfMemory, KernelError])
@pytest.mark.parametrize("verb", ["first_nonzero", "extend", "start_msm", "collect"])
def test_a_failed_try_holds_no_memory(
    device: NullDevice, error: type[CuzkError], verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the next one begins, on the device alone or on the CPU; no garbage is collected for it."""
    held: list[tuple[str, int]] = []
    original = Attempt.stage

    def stage(attempt: Attempt) -> Any:
        held.append((attempt._backend.name, len(device.alive)))
        return original(attempt)

    def script(event: Event) -> None:
        if event.verb == verb:
            raise error(f"cuda:0: {verb}")

    monkeypatch.setattr(Attempt, "stage", stage)
    gc.disable()
    try:
        with Prover(key(), circuit=cubic(BN254).matrices(), threads=1) as prover:
            device.script = script
            report = prover.prove(cubic(BN254).witness()).report
    finally:
        gc.enable()
    assert report.device == "cpu"
    alone = [("cuda:0", 0)] if error is OutOfMemory else []
    assert held == [("cuda:0", 0), *alone, ("cpu", 0)]


def test_short_memory_is_had_alone(device: NullDevice) -> None:
    """Each lane's sums fail while another proof is in work; nothing goes to the CPU."""

    def script(event: Event) -> None:
        with lock:
            if event.verb == "stage":
                working.add(event.lane)
            if event.verb == "start_msm" and len(working) > 1:
                working.remove(event.lane)
                raise OutOfMemory("cuda:0: full")
            if event.verb == "collect":
                working.discard(event.lane)

    lock, working = threading.Lock(), set[int]()
    with Prover(key(), threads=1, lanes=3) as prover:
        device.script = script
        proofs = Proofs(prover)
        for x in range(30):
            proofs.start(x)
        proofs.expect_valid(*range(30))
        expect_nothing_held(prover, device)
    assert {r.report.device for r in proofs.found.values() if isinstance(r, Result)} == {"cuda:0"}


def test_a_lost_device_leaves_nobody_hanging(device: NullDevice) -> None:
    """Ten proofs, two in work when the device is lost: all are made on the CPU."""

    def script(event: Event) -> None:
        if event.verb == "collect":
            if not lost.is_set():
                device.await_event("collect", "p0")
                device.await_event("collect", "p1")
            lost.set()
        if lost.is_set():
            raise KernelError("cuda:0: lost")

    lost = threading.Event()
    with Prover(key(), threads=1) as prover:
        device.script = script
        proofs = Proofs(prover)
        for x in range(10):
            proofs.start(x)
            if x < 2:
                device.await_event("stage", f"p{x}")
        proofs.expect_valid(*range(10))
        expect_nothing_held(prover, device)
        reports = [proofs.found[x].report for x in range(10)]  # type: ignore[union-attr]
    assert {report.device for report in reports} == {"cpu"}
    assert {report.reason for report in reports} == {"cuda:0 failed: cuda:0: lost"}
    retries = [report.retries for report in reports]
    assert set(retries) <= {0, 1}
    assert retries.count(1) >= 2  # who had a place


TRACED = {"attempt.py", "arriving.py", "placement.py", "order.py", "commit.py", "session.py"}


class Interrupter:
    """KeyboardInterrupt at the k-th line that the calling thread runs in the prover.

    Not at a lock's ``with``: a trace function may raise between the block's end and the lock's release,
    where the interpreter looks for no signal.
    """

    def __init__(self, k: int) -> None:
        self.left = k

    def __call__(self, frame: FrameType, event: str, _: object) -> Interrupter | None:
        path = Path(frame.f_code.co_filename)
        if path.name not in TRACED or path.parent.name != "prover":
            return None
        if event == "line" and "with self._lock" not in getline(str(path), frame.f_lineno):
            self.left -= 1
            if self.left == -1:
                raise KeyboardInterrupt
        return self


def interrupted(prover: Prover, k: int) -> bool:
    """Prove; whether the interrupt came."""
    sys.settrace(Interrupter(k))
    try:
        prover.prove(cubic(BN254).witness())
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_an_interrupt_at_any_line(device: NullDevice) -> None:
    """Another thread's proof is valid afterwards."""
    with Prover(key(), threads=1, lanes=1) as prover:
        k = 0
        while interrupted(prover, k):
            expect_nothing_held(prover, device)
            k += 1
        proofs = Proofs(prover)
        proofs.start(1)
        proofs.expect_valid(1)
    assert k > 100


def test_interrupts_by_signals_while_others_prove() -> None:
    """One hundred, at random moments; two threads go on proving all the time."""
    rng, enough, errors = Random(4), threading.Event(), list[BaseException]()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def go_on() -> None:
        while not enough.is_set():
            try:
                result = prover.prove(cubic(BN254).witness())
                assert verify(key().vk, result.public, result.proof)
            except BaseException as error:
                errors.append(error)
                return

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Prover(key(), device="cpu", threads=1, lanes=2) as prover:
            others = [threading.Thread(target=go_on, daemon=True) for _ in range(2)]
            for thread in others:
                thread.start()
            came = 0
            for _ in range(100):
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 2e-2))
                    prover.prove(cubic(BN254).witness())
                    came -= 1  # it comes now, too late
                    sleep(0.1)
                except KeyboardInterrupt:
                    came += 1
            enough.set()
            for thread in others:
                thread.join(TIMEOUT)
                assert not thread.is_alive()
            expect_nothing_held(prover)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert errors == []
    assert came > 20


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
    proofs.start(1)
    while not placed._first.order._waiting:
        pass
    closer = threading.Thread(target=prover.close, daemon=True)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()  # p0 is in work
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
