"""Proofs over a stand-in for the driver, their key's points copied from host memory in batches; what they leave behind."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from functools import cache
from typing import Any

import pytest
from given import SECRETS
from proofs import expect_nothing_held

from circuits import chain
from cuzk import Evaluations
from cuzk.backends.cuda import CudaBackend, clock, device
from cuzk.backends.cuda.batches import Sizes
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.staging import Staging
from cuzk.backends.cuda.streamed import Streaming
from cuzk.backends.cuda.transfers import Transfers
from cuzk.curves import BN254
from cuzk.groth16 import ProvingKey
from cuzk.prover.session import Prover, Result
from cuzk.r1cs import SparseMatrix
from cuzk.setup import insecure_setup
from cuzk.vectors import Scalars
from cuzk.verifier import verify
from emulator.driver import FakeDriver, install
from null_backend import TIMEOUT

CIRCUIT = chain(BN254, 250)
ROWS = 1 << 8  # 8 KiB of a vector: whole pages, wherever it begins
BATCH = 42  # points: some six batches a sum
WITNESS = CIRCUIT.witness()
REGISTERED_AT_MOST = 3 * 16384 + 2 * 16384 + 4096  # bytes of the queries' points
LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Condition)


@cache
def key() -> ProvingKey:
    return insecure_setup(CIRCUIT.matrices(), SECRETS)


@cache
def evaluations() -> Evaluations:
    """A w, B w and C w by Python integers, with zeros up to the domain."""
    matrices, w = CIRCUIT.matrices(), WITNESS.ints()
    assert matrices.c is not None

    def scalars(matrix: SparseMatrix, wires: list[int]) -> Scalars:
        rows = [matrix.row(i) for i in range(matrices.constraints)]
        values = [sum(c * w[wire] for c, wire in row) % BN254.r for row in rows] + wires
        return Scalars.from_ints(BN254, values + [0] * (ROWS - len(values)), montgomery=True)

    inputs = w[: matrices.public + 1]
    return Evaluations(
        scalars(matrices.a, inputs), scalars(matrices.b, []), scalars(matrices.c, [])
    )


def backend(points: str = "host", pinning: str = "always", form: str = "kept") -> CudaBackend:
    return CudaBackend(
        BN254,
        device.open_machine(0, BN254),
        transfers=Transfers(points=points, pinning=pinning),
        streaming=Streaming(form=form, sizes=Sizes(least=BATCH)),
    )


def held_locks() -> list[str]:
    """Those of all objects of the project that another thread cannot take now."""
    found: list[tuple[str, Any]] = []
    for each in gc.get_objects():
        if str(type(each).__module__).startswith("cuzk") and hasattr(each, "__dict__"):
            names = [(f"{type(each).__name__}.{n}", lock) for n, lock in vars(each).items()]
            found += [pair for pair in names if isinstance(pair[1], LOCKS)]
    held: list[str] = []

    def look() -> None:
        for name, lock in found:
            if lock.acquire(blocking=False):
                lock.release()
            else:
                held.append(name)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found
    return [name for name in held if name != "Ticket.bell"]  # rung when it is to be heard


def threads_beside(others: set[threading.Thread]) -> list[threading.Thread]:
    """What goes on; a thread that stages ends by itself when it has nothing to do, or has failed."""
    found = set(threading.enumerate()) - others
    for thread in found:
        if thread.name.startswith("staging"):
            thread.join(TIMEOUT)
    return [thread for thread in found if thread.is_alive()]


class Proving:
    """A Prover on a new driver, and its books after two proofs: the slots for batches have their length then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, eager: int = 3, lanes: int | None = None, **how: str) -> None:  # fmt: skip
        self.others = set(threading.enumerate())  # of the process, which end when they like
        monkeypatch.setattr(clock, "RENEWED", 1e9)  # an origin more while marks name the one before
        self.driver = install(FakeDriver(eager=eager), monkeypatch)
        self.backend: CudaBackend | None = backend(**how)
        self.prover: Prover | None = Prover(
            key(), device=self.backend, insecure_key=True, lanes=lanes
        )
        for _ in range(2):
            self.expect_valid()
        self.base = self.books()

    def prove(self) -> Result:
        assert self.prover
        return self.prover.prove(WITNESS, evaluations())

    def expect_valid(self) -> Result:
        result = self.prove()
        assert verify(key().vk, result.public, result.proof, insecure_key=True)
        assert (result.report.retries, result.report.device) == (0, "cuda:0")
        return result

    def calls(self) -> Counter[str]:
        """Of one proof, by function."""
        self.driver.calls.clear()
        self.expect_valid()
        return Counter(self.driver.calls)

    def books(self) -> dict[str, int]:
        """What is alive and in use, threads included."""
        assert self.backend
        assert isinstance(self.backend.machine, CudaMachine)
        if not self.driver.sticky:
            gc.collect()
            self.backend.machine.card.queues.finish()
            self.backend.timeline.collect(wait=True)
        gc.collect()
        stagings = [each for each in gc.get_objects() if type(each) is Staging]
        alive, queues = self.driver.alive, self.backend.machine.card.queues
        return {
            "device": alive["device"],
            "registered": alive["registered"],
            "streams": alive["streams"],
            "events": alive["events"] - sum(map(len, queues.events._idle.values())),
            "fetches": sum(len(each._small) - len(each._idle) for each in stagings),
            "locked": self.backend._residence.pinning.locked_bytes,
            "threads": len(threads_beside(self.others)),
        }

    def expect_nothing_left(self) -> None:
        """After a proof, whatever came of it: no more than before, and nobody holds or waits for anything."""
        assert self.prover
        expect_nothing_held(self.prover)
        assert held_locks() == []
        books = self.books()
        # what a slot for batches has been freed of comes back with the next proofs
        growing = {name: (self.base[name], n) for name, n in books.items() if n > self.base[name]}
        assert not growing, growing
        assert books["registered"] == self.base["registered"]
        assert self.driver.violations == []

    def close(self) -> None:
        """And look: nothing is alive."""
        assert self.prover
        self.prover.close()
        self.prover = self.backend = None
        gc.collect()
        alive = {name: n for name, n in self.driver.alive.items() if n}
        assert not alive, alive
        assert self.driver.violations == []
