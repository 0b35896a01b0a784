"""Lanes of an emulated GPU whose streams run ahead of each other at random: a missing guard between them shows.

A wrong proof would be made again and so hidden: no proof here may have been.
"""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from given import circuit_of, evaluations, key_of
from streaming import Proving

from circuits import chain
from cuzk import Evaluations
from cuzk.backends.cuda import CudaBackend, device
from cuzk.backends.cuda.machine import Machine
from cuzk.backends.cuda.memory import MemoryPlan, share
from cuzk.backends.cuda.transfers import Transfers
from cuzk.curves import BN254
from cuzk.errors import CuzkError
from cuzk.prover.session import Prover, Result
from cuzk.setup import Secrets, insecure_setup
from cuzk.vectors import Scalars
from cuzk.verifier import verify
from emulator.driver import FakeDriver, install
from null_backend import TIMEOUT
from until import until


@cache
def cases() -> list[tuple[Scalars, Evaluations | None]]:
    """The witness alone, and with what follows from it in either form."""
    witness = circuit_of(BN254).witness()
    return [(witness, None), (witness, evaluations(BN254)), (witness, evaluations(BN254, "ab", ""))]


def outcomes_of(prover: Prover) -> list[Result | BaseException]:
    """Of all cases, on a thread each."""
    found: list[Result | BaseException] = []

    def work(case: tuple[Scalars, Evaluations | None]) -> None:
        try:
            found.append(prover.prove(*case))
        except BaseException as error:
            found.append(error.with_traceback(None))

    threads = [threading.Thread(target=work, args=(c,), daemon=True) for c in cases()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    return found


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("vectors", "eager"),
    [("ahead", 3)]
    + [pytest.param("ahead", seed, marks=SLOW) for seed in (0, 11, 12)]
    + [pytest.param("inside", seed, marks=SLOW) for seed in (0, 3, 11)],
)
def test_no_guard_is_missing(vectors: str, eager: int, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(FakeDriver(eager=eager), monkeypatch)
    key = key_of(BN254)
    backend = CudaBackend(
        BN254, device.open_machine(0, BN254), transfers=Transfers(vectors=vectors)
    )
    with Prover(key, device=backend, insecure_key=True, lanes=2) as prover:
        results = outcomes_of(prover) + outcomes_of(prover)
    for result in results:
        assert isinstance(result, Result), result
        assert verify(key.vk, result.public, result.proof, insecure_key=True)
        assert (result.report.retries, result.report.lanes) == (0, 2)
    del backend, prover
    gc.collect()
    assert set(driver.alive.values()) == {0}
    assert driver.violations == []


@pytest.mark.parametrize("eager", [3, pytest.param(0, marks=SLOW), pytest.param(11, marks=SLOW)])
def test_a_witness_that_waits(eager: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the vectors of the proof before it: two lanes, of which one computes."""

    def narrow(*arguments: Any, **options: Any) -> MemoryPlan:
        return replace(share(*arguments, **options), lanes=1, waiting=1)

    install(FakeDriver(eager=eager), monkeypatch)
    monkeypatch.setattr("cuzk.backends.cuda.share", narrow)
    key, met = key_of(BN254), threading.Event()

    def meet(name: str) -> None:
        """The first proof that has its turn goes on when another one has the place of one that waits."""
        if name == "commit" and not met.is_set():
            met.set()
            assert prover._placement
            order = prover._placement.first.order
            until(lambda: len(order._working) == 2)

    with Prover(key, device="cuda", insecure_key=True, on_phase=meet) as prover:
        results = outcomes_of(prover) + outcomes_of(prover)
        tracks = {span.track for span in prover.timeline.spans()}
        assert prover.standing.lanes == 1
    assert {"cuda:0 compute", "cuda:0 compute 2"} <= tracks
    for result in results:
        assert isinstance(result, Result), result
        assert verify(key.vk, result.public, result.proof, insecure_key=True)
        assert (result.report.retries, result.report.lanes) == (0, 1)


@pytest.mark.parametrize("verb", ["cuMemcpyHtoDAsync", *(pytest.param(verb, marks=SLOW) for verb in ("cuMemHostRegister", "cuMemAllocFromPoolAsync", "cuLaunchKernel", "cuEventSynchronize"))])  # fmt: skip
@pytest.mark.parametrize("code", ["OUT_OF_MEMORY", "LAUNCH_FAILED"])
def test_a_fault_of_the_driver(verb: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each proof is valid or an error; nothing hangs, nothing stays pinned."""
    driver = install(FakeDriver(eager=5), monkeypatch)
    backend = CudaBackend(
        BN254, device.open_machine(0, BN254), transfers=Transfers(pinning="always")
    )
    with Prover(key_of(BN254), device=backend, insecure_key=True, lanes=2) as prover:
        prover.prove(*cases()[0])
        driver.fail[verb] = code
        outcomes = outcomes_of(prover)
    assert all(isinstance(outcome, Result | CuzkError) for outcome in outcomes), outcomes
    if code == "OUT_OF_MEMORY":
        assert sum(isinstance(outcome, Result) for outcome in outcomes) >= 2
    del backend, prover, outcomes
    gc.collect()
    if driver.sticky is None:
        assert not driver.registered
        assert not driver.used


@pytest.mark.parametrize("points", ["host", "auto"])
def test_nothing_of_the_whole_device(points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No synchronisation but with events, no trim, no memory but from the pool, no new stream, no page unlocked."""
    proving = Proving(monkeypatch, points=points, pinning="auto")
    known = {
        "cuCtxSetCurrent", "cuEventElapsedTime", "cuEventQuery", "cuEventRecord", "cuEventSynchronize",
        "cuLaunchKernel", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemcpyDtoHAsync",
        "cuMemcpyHtoDAsync", "cuMemsetD8Async", "cuStreamWaitEvent",
    }  # fmt: skip
    assert set(proving.calls()) <= known
    proving.close()


@pytest.mark.gpu
@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_on_a_gpu(lanes: int, gpu_machine: Machine) -> None:
    """Thirty proofs of given evaluations and thirty of a longer witness, in as many threads as there are at once."""
    card = gpu_machine.card  # type: ignore[attr-defined]
    backend = CudaBackend(BN254, gpu_machine)
    with Prover(key_of(BN254), device=backend, insecure_key=True, lanes=lanes) as prover:
        results = [outcome for _ in range(10) for outcome in outcomes_of(prover)]
    circuit = chain(BN254, 20000)
    key = insecure_setup(circuit.matrices(), Secrets.drawn(BN254))
    with (
        Prover(key, device=backend, lanes=lanes) as prover,
        ThreadPoolExecutor(lanes + 2) as threads,
    ):
        results += threads.map(prover.prove, [circuit.witness()] * 30)
    assert len(results) == 60
    for result in results:
        assert isinstance(result, Result), result
        assert (result.report.device, result.report.retries) == ("cuda:0", 0)
        assert result.report.lanes == lanes
    assert card.pins.nbytes == 0
