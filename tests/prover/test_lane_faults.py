"""Faults and interrupts while several proofs are in work: an error or a valid proof, and the next one is valid."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from linecache import getline
from pathlib import Path
from random import Random
from time import perf_counter
from types import FrameType
from typing import Any

import pytest
from proofs import Proofs, expect_nothing_held, key

from circuits import cubic
from cuzk.curves import BN254
from cuzk.errors import CuzkError, KernelError, OutOfMemory
from cuzk.prover.attempt import Attempt
from cuzk.prover.session import Prover, Result
from cuzk.verifier import verify
from null_backend import TIMEOUT, Event, NullDevice, install
from until import until


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> NullDevice:
    return install(monkeypatch)


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


def test_interrupts_by_signals_while_others_prove(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty, at random moments of as many proofs; two threads go on proving all the time.

    An exception raised in a callback of the garbage collector (Hypothesis has one) goes no further than to
    ``sys.unraisablehook``, whatever the interrupted code does: such an interrupt does not count.
    """
    rng, enough, errors = Random(4), threading.Event(), list[BaseException]()
    arrived: list[int] = []
    report = sys.unraisablehook

    def unraisable(lost: sys.UnraisableHookArgs) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            report(lost)

    monkeypatch.setattr(sys, "unraisablehook", unraisable)

    def interrupt(number: int, _: object) -> None:
        arrived.append(number)
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
            came, seconds = 0, 2e-2  # that the last proof took which came to its end
            while came < 50:
                arrived.clear()
                begun, proved = perf_counter(), False
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, seconds))
                    prover.prove(cubic(BN254).witness())
                    proved, seconds = True, max(1e-3, perf_counter() - begun)
                    until(lambda: arrived)  # too late
                except KeyboardInterrupt:
                    came += not proved
            enough.set()
            for thread in others:
                thread.join(TIMEOUT)
                assert not thread.is_alive()
            expect_nothing_held(prover)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert errors == []
