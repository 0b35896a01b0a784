"""A key on the device that proves, and the CPU behind it.

What a device refuses or gets wrong is done again: a wrong proof once more on the device, then on the CPU.
A device that fails (no memory, a failed kernel) is an error where it was asked for by name; with "auto" the
CPU takes over, for this proof where memory was short, for good where the device itself failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cuzk.backends import Backend
from cuzk.errors import BackendError, CuzkError, OutOfMemory
from cuzk.groth16 import ProvingKey
from cuzk.prover.checks import check_same_circuit
from cuzk.prover.devices import open_device
from cuzk.prover.resident import ResidentKey, reside, workload
from cuzk.r1cs import Matrices

T = TypeVar("T")
DOUBTED = "proofs of the chosen device failed their verification"
TRIES = 2  # of a device, before the CPU


@dataclass(frozen=True)
class Placed:
    """A key on a backend, why it is there, and what was planned of the device's own memory."""

    resident: ResidentKey
    backend: Backend
    reason: str
    planned_bytes: int = 0

    @property
    def is_cpu(self) -> bool:
        """Nothing is behind this one."""
        return self.backend.name == "cpu"


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """A result that passed, and what made it after how many tries that did not."""

    value: T
    device: Placed
    reason: str
    retries: int


class Lane:
    """One key, one device."""

    def __init__(
        self,
        device: str | Backend,
        key: ProvingKey,
        matrices: Matrices,
        threads: int,
        *,
        repeated: bool,
    ) -> None:
        self._may_leave = device == "auto"
        self._repeated = repeated
        self._key, self._matrices, self._threads = key, matrices, threads
        self._cpu: Placed | None = None
        self._first = self._place(device)
        self.check(check_same_circuit)

    @property
    def resident(self) -> ResidentKey:
        """The key where it is used first."""
        return self._first.resident

    def check(self, test: Callable[[ResidentKey, Backend], None]) -> None:
        """Run a test on the device; what fails there is refused only if it fails on the CPU, too."""
        first = self._first
        try:
            return test(first.resident, first.backend)
        except CuzkError as error:
            if first.is_cpu:
                raise
            if isinstance(error, BackendError) and self._may_leave:
                self._leave(error)
        cpu = self._on_cpu(self._first.reason)
        return test(cpu.resident, cpu.backend)

    def run(self, work: Callable[[ResidentKey, Backend], T | None]) -> Outcome[T] | None:
        """The first result that is not None; None where every try gave that."""
        tries, reason = 0, DOUBTED
        for _ in range(TRIES):
            first = self._first
            try:
                value = work(first.resident, first.backend)
            except BackendError as error:
                reason = self._leave(error)
                tries += 1
                break
            if value is not None:
                return Outcome(value, first, first.reason, tries)
            tries += 1
        if first.is_cpu:
            return None
        cpu = self._on_cpu(reason)
        value = work(cpu.resident, cpu.backend)
        return None if value is None else Outcome(value, cpu, reason, tries)

    def _place(self, device: str | Backend) -> Placed:
        work = workload(self._key, self._matrices, repeated=self._repeated)
        backend, reason = open_device(device, self._key.curve, self._threads, work)
        try:
            planned = backend.plan(work)
            resident = reside(self._key, self._matrices, backend)
            return Placed(resident, backend, reason, planned)
        except BackendError as error:
            if backend.name == "cpu" or not self._may_leave:
                raise
            return self._on_cpu(f"{backend.name} cannot hold the key: {error}")

    def _on_cpu(self, reason: str) -> Placed:
        if self._cpu is None:
            backend, _ = open_device("cpu", self._key.curve, self._threads)
            self._cpu = Placed(reside(self._key, self._matrices, backend), backend, reason)
        return self._cpu

    def _leave(self, error: BackendError) -> str:
        """Why the CPU does this instead; raises where the caller wants this device or nothing."""
        if self._first.is_cpu or not self._may_leave:
            raise error
        reason = f"{self._first.backend.name} failed: {error}"
        if not isinstance(error, OutOfMemory):  # then memory may be free again next time
            self._cpu = None
            self._first = self._on_cpu(reason)
        return reason
