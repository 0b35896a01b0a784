"""A key on the device that proves, and the CPU behind it.

What a device refuses or gets wrong is done again: a wrong proof once more on the device, then on the CPU.
Where memory is short while other proofs are in work, a proof is made once more alone. A device that fails by
itself (no memory, a failed kernel) is an error where it was asked for by name; with "auto" the CPU takes over,
for this proof where memory was short, for good where the device itself failed: then proofs that wait for the
device go to the CPU, which makes one at a time, and those in work there find out themselves.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from cuzk.backends import Backend
from cuzk.errors import BackendError, CuzkError, FormatError, OutOfMemory
from cuzk.groth16 import Proof, ProvingKey
from cuzk.prover.attempt import Attempt, Refused, Statement
from cuzk.prover.checks import check_same_circuit
from cuzk.prover.devices import open_device
from cuzk.prover.order import Order, Retired
from cuzk.prover.resident import ResidentKey, reside, workload
from cuzk.r1cs import ConstraintSystem
from cuzk.timeline import Timeline

DOUBTED = "proofs of the chosen device failed their verification"
CLOSED = "Prover: expected an open one, found it closed"
TRIES = 2  # of a device, before the CPU
LANES = 2  # proofs at a time where a device has room: one computes, the other's vectors come or its proof is verified
MOST_LANES = 4


@dataclass(frozen=True)
class Placed:
    """A key on a backend, why it is there, what was planned of the device's own memory, and whose turn it is.

    ``notes`` are on how the key got there.
    """

    resident: ResidentKey
    backend: Backend
    reason: str
    order: Order[Backend]
    planned_bytes: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_cpu(self) -> bool:
        """Nothing is behind this one."""
        return self.backend.name == "cpu"


@dataclass(frozen=True)
class Outcome:
    """A proof that passed, and what made it after how many tries that did not."""

    proof: Proof
    device: Placed
    reason: str
    retries: int


@dataclass(frozen=True)
class Try:
    """A proof that passed, or what to do next; nothing of that: the proof was wrong."""

    proof: Proof | None = None
    again: bool = False
    refused: bool = False  # the device says that the statement is wrong: to be asked of the CPU
    left: str = ""  # why the CPU makes the proof


def expect_lanes(lanes: int | None) -> None:
    """FormatError for a number that cannot be."""
    if lanes is not None and not (type(lanes) is int and 1 <= lanes <= MOST_LANES):
        raise FormatError(f"lanes: expected 1 to {MOST_LANES}, found {lanes!r}")


class Placement:
    """One key, one device."""

    def __init__(
        self,
        device: str | Backend,
        key: ProvingKey,
        matrices: ConstraintSystem,
        threads: int,
        *,
        timeline: Timeline,
        repeated: bool,
        lanes: int | None = None,
    ) -> None:
        self._timeline = timeline
        self._may_leave = device == "auto"
        self._repeated = repeated
        self._lanes = lanes
        self._key, self._matrices, self._threads = key, matrices, threads
        self._cpu: Placed | None = None
        self._closed = False
        self._lock = threading.RLock()  # of the choice of a device, not held while a proof is made
        self._first = self._place(device)
        self._check_circuit()

    @property
    def first(self) -> Placed:
        """Where the key is used first."""
        return self._first

    @property
    def resident(self) -> ResidentKey:
        """The key there."""
        return self._first.resident

    def run(self, statement: Statement) -> Outcome | None:
        """The first proof that passed its verification; None where every try gave one that did not."""
        tries = 0
        while tries < TRIES:
            first = self._first
            # in a call of its own: no error that it met holds device memory any more
            found = self._tried(first, statement)
            if found.proof is not None:
                return Outcome(found.proof, first, first.reason, tries)
            if found.left:
                return self._made_on_cpu(statement, found.left, tries + 1)
            if found.refused:
                self._check_on_cpu(statement)
            tries += not (found.again or found.refused)
        return None if first.is_cpu else self._made_on_cpu(statement, DOUBTED, tries)

    def close(self) -> None:
        """Proofs in work are finished and waited for (but for the calling thread's own), others get CuzkError."""
        self._closed = True
        with self._lock:
            known = [placed for placed in (self._first, self._cpu) if placed]
        for placed in known:
            placed.order.retire()
        for placed in known:
            placed.order.await_others()

    def _tried(self, placed: Placed, statement: Statement) -> Try:
        """One try, and what follows from its failure."""
        try:
            return Try(self._attempt(placed, statement))
        except Retired:  # the device was lost meanwhile
            return Try(again=True)
        except Refused as refused:
            if placed.is_cpu:
                raise refused.error from None
            if self._is_had_alone(placed, refused.error, statement):
                return Try(again=True)
            if isinstance(refused.error, BackendError) and self._may_leave:
                return Try(left=self._leave(placed, refused.error))
            return Try(refused=True)
        except BackendError as failure:
            if self._is_had_alone(placed, failure, statement):
                return Try(again=True)
            return Try(left=self._leave(placed, failure))

    def _is_had_alone(self, placed: Placed, error: CuzkError, statement: Statement) -> bool:
        """Whether a try with nobody else in work may have the memory that this one had not."""
        if not isinstance(error, OutOfMemory) or statement.alone or placed.order.places == 1:
            return False
        statement.alone = True
        statement.notes.append(f"made with no other proof in work: {error}")
        return True

    def _attempt(self, placed: Placed, statement: Statement, *, prove: bool = True) -> Proof | None:
        """One try, in the order of the device."""
        order, watch = placed.order, statement.watch
        ticket = order.ticket(alone=statement.alone)
        with ticket, ticket:  # twice: if an interrupt cuts one exit short, there is another
            if self._closed:
                raise CuzkError(CLOSED)
            try:
                with watch.adding("wait"):
                    backend = order.enter(ticket)
                    backend.timeline = self._timeline  # another Prover may share the backend
            except Retired:
                if self._closed:
                    raise CuzkError(CLOSED) from None
                raise
            attempt = Attempt(statement, placed.resident, backend)
            with attempt, attempt:
                attempt.stage()
                with watch.adding("wait"):
                    order.await_turn(ticket)
                if not statement.checked:
                    attempt.check()
                if prove:
                    attempt.start()
                order.end_turn(ticket)
                return attempt.finish()

    def _made_on_cpu(self, statement: Statement, reason: str, tries: int) -> Outcome | None:
        cpu = self._on_cpu(reason)
        try:
            proof = self._attempt(cpu, statement)
        except Refused as refused:
            raise refused.error from None
        return None if proof is None else Outcome(proof, cpu, reason, tries)

    def _check_on_cpu(self, statement: Statement) -> None:
        """Nobody is told that a witness is wrong because a device says so."""
        try:
            self._attempt(self._on_cpu(self._first.reason), statement, prove=False)
        except Refused as refused:
            raise refused.error from None
        statement.checked = True

    def _check_circuit(self) -> None:
        first = self._first
        try:
            return check_same_circuit(first.resident, first.backend)
        except CuzkError as error:
            if first.is_cpu:
                raise
            if isinstance(error, BackendError) and self._may_leave:
                self._leave(first, error)
        cpu = self._on_cpu(self._first.reason)
        return check_same_circuit(cpu.resident, cpu.backend)

    def _place(self, device: str | Backend) -> Placed:
        work = workload(
            self._key, self._matrices, repeated=self._repeated, lanes=self._lanes or LANES
        )
        backend, reason = open_device(device, self._key.curve, self._threads, work)
        backend.timeline = self._timeline
        try:
            planned = backend.plan(work)
            resident = reside(self._key, self._matrices, backend)
            lanes = self._beside(backend)
            order = Order(lanes, min(backend.lanes, len(lanes)))
            return Placed(resident, backend, reason, order, planned, tuple(backend.notes()))
        except BackendError as error:
            if backend.name == "cpu" or not self._may_leave:
                raise
            return self._on_cpu(f"{backend.name} cannot hold the key: {error}")

    def _beside(self, backend: Backend) -> list[Backend]:
        """As many as the plan has room for, and for those that wait; one where a second would be the same and nobody
        asked for it.
        """
        more = backend.lanes + backend.waiting - 1
        lanes = [backend, *(backend.beside() for _ in range(more))]
        return lanes[:1] if self._lanes is None and lanes[-1] is backend else lanes

    def _on_cpu(self, reason: str) -> Placed:
        with self._lock:
            if self._cpu is None:
                backend, _ = open_device("cpu", self._key.curve, self._threads)
                resident = reside(self._key, self._matrices, backend)
                self._cpu = Placed(resident, backend, reason, Order([backend]))
            return replace(self._cpu, reason=reason)

    def _leave(self, placed: Placed, error: BackendError) -> str:
        """Why the CPU does this instead; raises where the caller wants this device or nothing."""
        if placed.is_cpu or not self._may_leave:
            raise error
        reason = f"{placed.backend.name} failed: {error}"
        if not isinstance(error, OutOfMemory):  # then memory may be free again next time
            with self._lock:
                if self._first is placed:  # the first of its proofs that finds out
                    self._first = self._on_cpu(reason)
            placed.order.retire()
        return reason
