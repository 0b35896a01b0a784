"""Whole Filecoin proofs: for each partition a witness and a proof, then all of them verified from public data.

    vanilla proofs --check--> Task --programs--> witness --Prover--> 192 bytes, for one partition after the other

A partition's witness is made while a GPU proves the one before it, where memory has room for two of them; else, and
on a CPU, whose cores and memory both would share, when that one was proved. The key stays with the Prover, over
partitions and over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np

from cuzk.backends import Backend
from cuzk.errors import CircuitError, CuzkError, FormatError, ProofError
from cuzk.filecoin.key_sizes import expect_points, expect_proving, one_at_a_time, witness_bytes
from cuzk.filecoin.overlap import BESIDE, Overlap, Phases
from cuzk.filecoin.proof_bytes import write_proofs
from cuzk.filecoin.staged import StagedPartition, expect_staged_for
from cuzk.filecoin.statement import Statement
from cuzk.filecoin.task import Task
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.verify import check_proof
from cuzk.filecoin.witness.assign import assign
from cuzk.filecoin.witness.system import constraint_system
from cuzk.formats.bellman import write_proof_bytes
from cuzk.formats.source import Readable, Source
from cuzk.groth16 import Proof, ProvingKey
from cuzk.prover.devices import thread_count
from cuzk.prover.forget import Forgetting
from cuzk.prover.report import Report, Stopwatch
from cuzk.prover.session import Prover
from cuzk.timeline import Span, Timeline, ordered
from cuzk.vectors import Scalars
from cuzk.verifier import Verifier


@dataclass(frozen=True)
class WholeProof:
    """Verified bytes, and how they came about: ``milliseconds`` of "witness", "prove", "verify" and "total".

    The first two are sums over partitions, waiting for a turn included: more than the total where partitions overlap.
    """

    data: bytes
    reports: tuple[Report, ...]
    """Of each partition."""
    milliseconds: dict[str, float]


@dataclass(frozen=True)
class PartitionProof:
    """One partition's, verified: ``milliseconds`` of "witness" and "prove", which ``report`` splits."""

    proof: Proof
    report: Report
    milliseconds: dict[str, float]
    spans: list[Span] = field(default_factory=list, repr=False)

    @property
    def data(self) -> bytes:
        """192 of them."""
        return write_proof_bytes(self.proof)


class CircuitProver:
    """Proves with one circuit's key on one device; parameters as :class:`cuzk.prover.session.Prover` has them.

    ``prove`` makes a whole proof; ``partition`` and ``whole`` its parts, from several threads, in any order.
    ``on_partition`` is called with the number of each partition as it begins, ``on_phase`` hears of the one that began
    last, both from one thread at a time. OutOfMemory, before any work, where the
    key and a proof's vectors do not fit in this machine's memory or in the limit.
    """

    def __init__(
        self,
        circuit: CircuitShape,
        key: ProvingKey | Readable,
        *,
        device: str | Backend = "auto",
        threads: int | None = None,
        memory: int | None = None,
        key_digest: str | None = None,
        insecure_key: bool = False,
        repeated: bool = False,
        lanes: int | None = None,
        on_phase: Callable[[str], None] | None = None,
        on_partition: Callable[[int], None] | None = None,
    ) -> None:
        expect_proving(circuit, memory, device=device if isinstance(device, str) else device.name)
        if not isinstance(key, ProvingKey):
            key = Source.open(key, "a .params file")
            expect_points(circuit, key)
        self._circuit = circuit
        self._threads, self._memory = thread_count(threads), memory
        self._phases, self._on_partition = Phases(on_phase), on_partition
        self._prover = Prover(
            key,
            circuit=constraint_system(circuit),
            device=device,
            threads=threads,
            memory=memory,
            key_digest=key_digest,
            insecure_key=insecure_key,
            repeated=repeated,
            lanes=lanes,
            on_phase=self._phases,
        )
        self._verifier = Verifier(self._prover.key.vk, insecure_key=True, threads=self._threads)

    @property
    def timeline(self) -> Timeline:
        """The Prover's, with the spans of witnesses and of the last verification as well."""
        return self._prover.timeline

    @property
    def prover(self) -> Prover:
        """What makes the proofs of witnesses."""
        return self._prover

    def prove(self, task: Task) -> WholeProof:
        """The proof of all partitions. ProofError where one failed its verification and was withheld."""
        self._expect_circuit(task)
        watch = Stopwatch(self.timeline, self._phases)
        with Forgetting(), watch("total"):
            parts = self._proofs(task, range(task.proof.partitions))
            for part in parts:
                for name, spent in part.milliseconds.items():
                    watch.add(name, spent)
            data = write_proofs([part.proof for part in parts], task.proof)
            with watch("verify"):
                self._expect_valid(task.statement, data)
        return WholeProof(data, tuple(part.report for part in parts), watch.milliseconds)

    def partitions(self, task: Task, numbers: Sequence[int]) -> list[PartitionProof]:
        """Of these partitions the proofs, in this order; as :meth:`prove`, each is verified by itself alone."""
        for number in numbers:
            self._expect_partition(task, number)
        with Forgetting():
            return self._proofs(task, numbers)

    def stage(self, task: Task, number: int) -> StagedPartition:
        """A partition's witness, made, compared with the statement and checked: all that needs no device.

        From any thread, while others prove; ``on_phase`` hears nothing of it. It holds a witness of memory
        (``nbytes``) that no plan counts.
        """
        self._expect_partition(task, number)
        with Forgetting():
            return self._staged(task, number, heard=False)

    def partition(
        self, task: Task, number: int, staged: StagedPartition | None = None
    ) -> PartitionProof:
        """One partition's proof, verified with the inputs of its witness, which are the statement's.

        Of what was ``staged`` nothing is done again, though ``milliseconds`` and ``spans`` still tell of it.
        CircuitError where that is another partition's or another task's.
        """
        self._expect_partition(task, number)
        if staged is not None:
            expect_staged_for(staged, task, number)
        with Forgetting():
            self._begins(number)
            return self._proved(staged or self._staged(task, number))

    def whole(self, task: Task, parts: Sequence[bytes]) -> bytes:
        """The partitions' proofs, 192 bytes each, as one, verified from public data by the CPU.

        FormatError where these are not all of them, ProofError where the whole is not valid.
        """
        self._expect_circuit(task)
        data = b"".join(parts)
        with self.timeline.span("verify all"):
            self._expect_valid(task.statement, data)
        return data

    def close(self) -> None:
        """Let go of key and device."""
        self._prover.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _expect_circuit(self, task: Task) -> None:
        if task.proof.circuit != self._circuit.name:
            raise CircuitError(
                f"{task.proof.name}: expected its circuit {task.proof.circuit}, found {self._circuit.name}"
            )

    def _expect_partition(self, task: Task, number: int) -> None:
        self._expect_circuit(task)
        if not 0 <= number < task.proof.partitions:
            raise FormatError(
                f"{task.proof.name}: partition: expected 0 to {task.proof.partitions - 1}, found {number}"
            )

    def _expect_valid(self, statement: Statement, data: bytes) -> None:
        if reason := check_proof(self._verifier, statement, data):
            raise ProofError(
                f"{statement.proof.name}: the proof failed its verification from public data and was withheld: "
                f"{reason}"
            )

    def _proofs(self, task: Task, numbers: Sequence[int]) -> list[PartitionProof]:
        if len(numbers) == 1 or not self._on_device():
            return [self._partition(task, number) for number in numbers]
        more = witness_bytes(self._circuit)
        if note := one_at_a_time(self._circuit, self._memory):
            return [_noted(self._partition(task, number), note) for number in numbers]
        return [_planned(part, more) for part in self._overlapped(task, numbers)]

    def _overlapped(self, task: Task, numbers: Iterable[int]) -> list[PartitionProof]:
        """Each proof on a thread, while this one makes the next witness."""
        overlap, found = Overlap[PartitionProof](self._phases, self._on_partition), []
        with overlap, overlap:  # twice: if an interrupt cuts one exit short, there is another
            for number in numbers:
                while len(overlap) >= (BESIDE if self._on_device() else 1):
                    found.append(overlap.take())
                if not overlap:
                    self._begins(number)
                try:
                    overlap.begin(number, self._making(task, number, heard=not overlap))
                except CuzkError:
                    while overlap:  # an error of a partition before this one comes first
                        overlap.take()
                    raise
            while overlap:
                found.append(overlap.take())
        return found

    def _making(self, task: Task, number: int, *, heard: bool) -> Callable[[], PartitionProof]:
        """The proof of a witness that is there, which nothing else holds."""
        return partial(self._proved, self._staged(task, number, heard=heard))

    def _partition(self, task: Task, number: int) -> PartitionProof:
        """A call of its own, so that its witness is gone before the next one is made."""
        self._begins(number)
        return self._proved(self._staged(task, number))

    def _staged(self, task: Task, number: int, *, heard: bool = True) -> StagedPartition:
        watch = Stopwatch(self.timeline, self._phases if heard else None)
        with self.timeline.about(partition=number) as spans:
            with watch("witness"):
                witness = self._witness(task, number)
            ready = self._prover.ready(witness)
        return StagedPartition(task, number, ready, watch.milliseconds["witness"], tuple(spans))

    def _proved(self, staged: StagedPartition) -> PartitionProof:
        """With all spans of the partition."""
        watch = Stopwatch(self.timeline, self._phases)
        watch.add("witness", staged.milliseconds)
        with self.timeline.about(partition=staged.number) as spans, watch("prove"):
            result = self._prover.prove(staged.ready)
        found = ordered([*staged.spans, *spans, *result.spans])
        return PartitionProof(result.proof, result.report, watch.milliseconds, found)

    def _begins(self, number: int) -> None:
        if self._on_partition:
            self._on_partition(number)

    def _on_device(self) -> bool:
        """Whether the host is free while a proof is computed."""
        return self._prover.standing.device != "cpu"

    def _witness(self, task: Task, partition: int) -> Scalars:
        """All wires; the public ones must be those that a verifier derives."""
        wires = assign(self._circuit, task.data(partition), threads=self._threads)
        derived = task.statement.inputs(partition).words
        different = (wires.words[1 : self._circuit.inputs] != derived).any(axis=1)
        if different.any():
            raise CircuitError(
                f"partition {partition}: public input {1 + int(np.argmax(different))}: expected the one that "
                f"follows from the statement, found another in the witness"
            )
        return wires


def _noted(part: PartitionProof, note: str) -> PartitionProof:
    transfers = [*part.report.transfers, note]
    return replace(part, report=replace(part.report, transfers=transfers))


def _planned(part: PartitionProof, more: int) -> PartitionProof:
    """Its plan counts the witness of the next one."""
    return replace(
        part, report=replace(part.report, planned_bytes=part.report.planned_bytes + more)
    )


def prove(
    circuit: CircuitShape, task: Task, key: ProvingKey | Readable, *, insecure_key: bool = False
) -> WholeProof:
    """One proof on whatever device is there; who makes more keeps a :class:`CircuitProver`."""
    with CircuitProver(circuit, key, insecure_key=insecure_key) as prover:
        return prover.prove(task)
