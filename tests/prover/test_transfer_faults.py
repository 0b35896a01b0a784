"""Faults at any call of the driver while points and vectors are on their way: an error or a valid proof, the next
one valid, and nothing left behind.

A fault is a status (of a device that goes on, or of one that is lost) or a KeyboardInterrupt, before a call or behind
it. Counted calls make each of them hit: the k-th of a function, for every function that a proof calls.
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from contextlib import suppress
from random import Random

import pytest
from proofs import expect_nothing_held
from streaming import WITNESS, Proving, backend, evaluations, held_locks, key, threads_beside

from cuzk.backends.cuda import clock
from cuzk.errors import CuzkError, KernelError, OutOfMemory
from cuzk.prover import devices
from cuzk.prover.session import Prover, Result
from cuzk.verifier import verify
from emulator.driver import FakeDriver, install
from null_backend import TIMEOUT
from until import until

SLOW = pytest.mark.slow
FUNCTIONS = [
    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemHostRegister",
    "cuMemHostUnregister", "cuStreamWaitEvent", "cuEventRecord", "cuEventSynchronize", "cuEventQuery",
    "cuEventElapsedTime", "cuLaunchKernel", "cuMemsetD8Async", "cuCtxSetCurrent",
]  # fmt: skip
OPENING = [
    "cuMemAllocHost", "cuEventCreate", "cuStreamCreate", "cuStreamSynchronize", "cuMemHostRegister",
    "cuMemAllocFromPoolAsync", "cuMemcpyHtoDAsync", "cuEventRecord", "cuLaunchKernel", "cuStreamWaitEvent",
]  # fmt: skip
INTERRUPTS = [(KeyboardInterrupt, False), (KeyboardInterrupt, True)]
STATUSES = [("OUT_OF_MEMORY", False), ("INVALID_VALUE", False)]


def places(count: int, function: str, some: int = 2) -> list[int]:
    """The first of so many calls, the last and a few between."""
    rng = Random(function)
    return sorted({1, count, *(rng.randint(1, count) for _ in range(some))})


KEPT: list[BaseException] = []  # as a Future or a log keeps errors: they hold nothing


def failed(proving: Proving, function: str, k: int, what: object, *, after: bool) -> str:
    """What the k-th call of a proof made of it; nothing is left, and the next proof is valid."""
    proving.driver.fault(function, k, what, after=after)  # type: ignore[arg-type]
    outcome = outcome_of(proving)
    if isinstance(outcome, Result):
        assert verify(key().vk, outcome.public, outcome.proof, insecure_key=True)
        assert (outcome.report.device, outcome.report.retries) == ("cuda:0", 0)
        # an interrupt has come to where none can be raised, and waits
        assert bool(proving.driver._faults) == (what is KeyboardInterrupt)
        said = " ".join(["proof", *outcome.report.transfers])
    else:
        KEPT.append(outcome)
        said = f"{type(outcome).__name__} {outcome}"
        expected = "KeyboardInterrupt " if what is KeyboardInterrupt else f"KernelError cuda:0: {function}: {what}"  # fmt: skip
        assert said.startswith(expected)
        assert "\n" not in said
    proving.driver._faults.clear()
    if function not in (
        "cuMemHostUnregister",
        "cuMemFreeAsync",
        "cuStreamWaitEvent",
        "cuEventRecord",
    ):
        proving.expect_nothing_left()  # with those, what was owed is made up for by the next
    proving.expect_valid()
    proving.expect_nothing_left()
    return said


def outcome_of(proving: Proving) -> Result | BaseException:
    try:
        return proving.prove()
    except (KeyboardInterrupt, CuzkError) as error:
        return error


def run(proving: Proving, function: str, k: int, kinds: list[tuple[object, bool]]) -> list[str]:
    return [failed(proving, function, k, what, after=after) for what, after in kinds]


def test_a_few_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each kind that has something of its own to give back."""
    proving = Proving(monkeypatch)
    count = proving.calls()
    assert count["cuMemcpyHtoDAsync"] > 20  # of the vectors, and of several batches of five sums
    assert count["cuMemHostRegister"] == count["cuMemHostUnregister"] == 3
    for function, k, what, after in [
        ("cuMemHostRegister", 2, KeyboardInterrupt, True),
        ("cuMemAllocFromPoolAsync", 7, KeyboardInterrupt, True),
        ("cuMemcpyHtoDAsync", count["cuMemcpyHtoDAsync"] // 2, KeyboardInterrupt, True),
        ("cuLaunchKernel", count["cuLaunchKernel"] // 2, "INVALID_VALUE", False),
    ]:
        outcome = failed(proving, function, k, what, after=after)
        assert outcome.split()[0] in ("KeyboardInterrupt", "KernelError"), (function, outcome)
    outcome = failed(proving, "cuStreamWaitEvent", count["cuStreamWaitEvent"], "OUT_OF_MEMORY", after=False)  # fmt: skip
    assert outcome == "proof"  # it was a free's
    proving.close()


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("eager", [0, 3])
def test_a_fault_at_any_call(function: str, eager: int, monkeypatch: pytest.MonkeyPatch) -> None:
    proving = Proving(monkeypatch, eager=eager)
    count, outcomes = proving.calls()[function], list[str]()
    if function == "cuMemHostUnregister":
        count -= 1  # of the last it is the next proof that says so
    for k in places(count, function):
        outcomes += run(proving, function, k, [*STATUSES, *INTERRUPTS])
    assert len(outcomes) >= 8
    assert {outcome.split()[0] for outcome in outcomes} - {"proof"} == {"KeyboardInterrupt"} or any(
        outcome.startswith("KernelError") for outcome in outcomes
    )
    for _ in range(2):
        proving.expect_valid()
    assert proving.books()["device"] == proving.base["device"]
    proving.close()


@SLOW
@pytest.mark.parametrize("function", OPENING)
def test_a_fault_while_a_prover_opens(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And makes its first proof: buffers, streams and events are made there. With its end nothing is alive, though
    somebody keeps the error: the Prover opens the device, and what it raises holds nothing."""
    monkeypatch.setattr(devices, "_open_gpu", lambda *_: backend())
    others, proving = set(threading.enumerate()), Proving(monkeypatch)
    proving.close()
    driver = proving.driver
    driver.calls.clear()
    first_proof()
    count = Counter(driver.calls)[function]
    for k in places(count, function):
        for what, after in [*STATUSES, *INTERRUPTS]:
            driver.fault(function, k, what, after=after)  # type: ignore[arg-type]
            try:
                first_proof()
            except (KeyboardInterrupt, CuzkError) as error:
                KEPT.append(error)
            driver._faults.clear()
            gc.collect()
            assert driver.alive == dict.fromkeys(driver.alive, 0), (k, what, after)
            assert held_locks() == []
            assert threads_beside(others) == []
    first_proof()
    assert driver.violations == []


def first_proof() -> None:
    with Prover(key(), device="cuda", insecure_key=True) as prover:
        result = prover.prove(WITNESS, evaluations())
    assert verify(key().vk, result.public, result.proof, insecure_key=True)


@pytest.fixture
def streamed_by_auto(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """ "auto" and "cuda" open a GPU whose points stay in host memory."""
    monkeypatch.setattr(devices, "_open_gpu", lambda *_: backend())
    return install(FakeDriver(eager=3), monkeypatch)


@pytest.mark.parametrize("function", ["cuMemcpyHtoDAsync", *(pytest.param(f, marks=SLOW) for f in FUNCTIONS[1:])])  # fmt: skip
@pytest.mark.parametrize("named", [True, False])
def test_a_lost_device(named: bool, function: str, streamed_by_auto: FakeDriver) -> None:
    """Asked for by name: an error, then another one that says so. With auto the CPU makes both proofs."""
    driver = streamed_by_auto
    chosen, others = "cuda" if named else "auto", set(threading.enumerate())
    with Prover(key(), device=chosen, insecure_key=True, repeated=True) as prover:
        driver.calls.clear()
        prover.prove(WITNESS, evaluations())
        middle = max(1, Counter(driver.calls)[function] // 2)
        driver.fault(function, middle, "ILLEGAL_ADDRESS")
        for turn in range(2):
            if (
                turn == 0 and function == "cuEventQuery"
            ):  # asked when spans are read: the proof was made
                result = prover.prove(WITNESS, evaluations())
                assert verify(key().vk, result.public, result.proof, insecure_key=True)
            elif named:
                with pytest.raises(KernelError, match=r"ILLEGAL_ADDRESS.*the device is lost"):
                    prover.prove(WITNESS, evaluations())
            else:
                result = prover.prove(WITNESS, evaluations())
                assert verify(key().vk, result.public, result.proof, insecure_key=True)
                assert result.report.device == "cpu"
                assert "ILLEGAL_ADDRESS" in result.report.reason
            expect_nothing_held(prover)
            assert held_locks() == []
            assert threads_beside(others) == []


def test_others_take_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, in the middle of a proof: an error or a proof in shorter batches; then it comes back."""
    proving = Proving(monkeypatch)
    driver = proving.driver

    def taken() -> None:
        driver.others = driver.memory - driver._held

    kinds = set()
    for k in (1, 60):
        driver.fault("cuMemAllocFromPoolAsync", k, taken)
        outcome = outcome_of(proving)
        driver.others = 0
        kinds.add(type(outcome))
        if isinstance(outcome, OutOfMemory):
            assert "cuda:0: asked for" in str(outcome)
        if isinstance(outcome, BaseException):
            KEPT.append(outcome)
        proving.expect_nothing_left()
        proving.expect_valid()
    assert OutOfMemory in kinds
    assert kinds <= {OutOfMemory, Result}
    proving.close()


@pytest.mark.parametrize("function", ["cuMemcpyHtoDAsync", *(pytest.param(f, marks=SLOW) for f in ("cuLaunchKernel", "cuMemAllocFromPoolAsync", "cuEventRecord", "cuMemcpyDtoHAsync"))])  # fmt: skip
@pytest.mark.parametrize("pinning", ["always", pytest.param("never", marks=SLOW)])
def test_a_lane_that_dies(function: str, pinning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread ends in the middle of a batch while another proof is in work: that one ends valid."""
    proving = Proving(monkeypatch, lanes=2, pinning=pinning)
    result = beside_one_that_dies(proving, function, proving.calls()[function] // 2)
    assert verify(key().vk, result.public, result.proof, insecure_key=True)
    assert (result.report.device, result.report.retries) == ("cuda:0", 0)
    assert proving.prover
    expect_nothing_held(proving.prover)
    assert held_locks() == []
    proving.expect_valid()
    proving.close()


def beside_one_that_dies(proving: Proving, function: str, k: int) -> Result:
    """What a thread makes that comes when another one is at its k-th call, and sees that one end there."""
    assert proving.prover
    assert proving.prover._placement
    order, found = proving.prover._placement._first.order, list[Result]()

    def dies() -> None:
        if threading.current_thread().name != "first":
            proving.driver.fault(function, 1, dies)
            return
        second.start()
        until(lambda: len(order._working) == 2)
        raise SystemExit

    def first_lane() -> None:
        with suppress(SystemExit):
            proving.prove()
            found.clear()  # it was to die

    first = threading.Thread(target=first_lane, name="first", daemon=True)
    second = threading.Thread(target=lambda: found.append(proving.prove()), daemon=True)
    proving.driver.fault(function, k, dies)
    first.start()
    for thread in (first, second):
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    (result,) = found
    return result


def test_the_staging_thread_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for its copies is told, and the next proof has another."""
    proving = Proving(monkeypatch, pinning="never")

    def dies() -> None:
        if threading.current_thread().name.startswith("staging"):
            raise SystemExit
        proving.driver.fault("cuMemcpyHtoDAsync", 1, dies)

    proving.driver.fault("cuMemcpyHtoDAsync", 2, dies)
    with pytest.raises(KernelError, match="cuda:0: send: the thread that stages was ended"):
        proving.prove()
    proving.expect_nothing_left()
    proving.expect_valid()
    proving.close()


@pytest.mark.parametrize("room", [0, 3 * 4096])
def test_registering_is_refused(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, or behind the first query: everything is copied all the same, and the report says why."""
    monkeypatch.setattr(clock, "RENEWED", 1e9)
    driver = install(FakeDriver(eager=3), monkeypatch)
    driver.pinnable = room
    with Prover(key(), device=backend(), insecure_key=True) as prover:
        for _ in range(2):
            result = prover.prove(WITNESS, evaluations())
            assert verify(key().vk, result.public, result.proof, insecure_key=True)
            assert (result.report.device, result.report.retries) == ("cuda:0", 0)
            notes = result.report.transfers
            refused = [note for note in notes if "copied through buffers" in note]
            assert all("cuMemHostRegister: OUT_OF_MEMORY" in note for note in refused)
            queries = [note for note in refused if note.startswith("points in host memory (")]
            assert len(queries) == len(set(queries))
            assert queries
            assert not any("\n" in note for note in notes)
            assert sum(driver.registered.values()) <= room
            copies = {s.facts["how"] for s in result.spans if s.name == "copy to device"}
            assert "staged" in copies
            assert ("pinned" in copies) == bool(room)
        assert bool(driver.registered) == bool(room)
    del prover
    gc.collect()
    assert driver.alive == dict.fromkeys(driver.alive, 0)
