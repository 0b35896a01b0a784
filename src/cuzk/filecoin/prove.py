"""Whole Filecoin proofs: for each partition a witness and a proof, then all of them verified from public data.

    vanilla proofs --check--> Task --programs--> witness --Prover--> 192 bytes, for one partition after the other

A partition's witness is made when the one before it was proved: one of them is in memory at a time. The key stays
with the Prover, over partitions and over tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from cuzk.backends import Backend
from cuzk.errors import CircuitError, ProofError
from cuzk.filecoin.key_sizes import expect_points, expect_proving
from cuzk.filecoin.proof_bytes import write_proofs
from cuzk.filecoin.task import Task
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.matrices import matrices
from cuzk.filecoin.verify import check_proof
from cuzk.filecoin.witness.assign import assign
from cuzk.formats.source import Readable, Source
from cuzk.groth16 import ProvingKey
from cuzk.prover.devices import thread_count
from cuzk.prover.forget import Forgetting
from cuzk.prover.report import Report, Stopwatch
from cuzk.prover.session import Prover, Result
from cuzk.timeline import Timeline
from cuzk.vectors import Scalars
from cuzk.verifier import Verifier


@dataclass(frozen=True)
class WholeProof:
    """Verified bytes, and how they came about: ``milliseconds`` of "witness", "prove", "verify" and "total"."""

    data: bytes
    reports: tuple[Report, ...]
    """Of each partition."""
    milliseconds: dict[str, float]


class CircuitProver:
    """Proves with one circuit's key on one device; parameters as :class:`cuzk.prover.session.Prover` has them.

    ``on_partition`` is called with the number of each partition as it begins. OutOfMemory, before any work, where the
    key, the rows and a witness do not fit in this machine's memory or in the limit.
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
        expect_proving(circuit, memory)
        if not isinstance(key, ProvingKey):
            key = Source.open(key, "a .params file")
            expect_points(circuit, key)
        self._circuit = circuit
        self._threads = thread_count(threads)
        self._on_phase, self._on_partition = on_phase, on_partition
        self._prover = Prover(
            key,
            circuit=matrices(circuit),
            device=device,
            threads=threads,
            memory=memory,
            key_digest=key_digest,
            insecure_key=insecure_key,
            repeated=repeated,
            lanes=lanes,
            on_phase=on_phase,
        )
        self._verifier = Verifier(self._prover.key.vk, insecure_key=True, threads=self._threads)

    @property
    def timeline(self) -> Timeline:
        """The Prover's, with the spans of witnesses and of the last verification as well."""
        return self._prover.timeline

    def prove(self, task: Task) -> WholeProof:
        """The proof of all partitions. ProofError where one failed its verification and was withheld."""
        proof = task.proof
        if proof.circuit != self._circuit.name:
            raise CircuitError(
                f"{proof.name}: expected its circuit {proof.circuit}, found {self._circuit.name}"
            )
        watch = Stopwatch(self.timeline, self._on_phase)
        with Forgetting(), watch("total"):
            results = [self._partition(task, k, watch) for k in range(proof.partitions)]
            data = write_proofs([result.proof for result in results], proof)
            with watch("verify"):
                reason = check_proof(self._verifier, task.statement, data)
        if reason:
            raise ProofError(
                f"{proof.name}: the proof failed its verification from public data and was withheld: {reason}"
            )
        return WholeProof(data, tuple(result.report for result in results), watch.milliseconds)

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

    def _partition(self, task: Task, partition: int, watch: Stopwatch) -> Result:
        """A call of its own, so that its witness is gone before the next one is made."""
        if self._on_partition:
            self._on_partition(partition)
        with self.timeline.about(partition=partition):
            with watch("witness"):
                witness = self._witness(task, partition)
            with watch("prove"):
                return self._prover.prove(witness)

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


def prove(
    circuit: CircuitShape, task: Task, key: ProvingKey | Readable, *, insecure_key: bool = False
) -> WholeProof:
    """One proof on whatever device is there; who makes more keeps a :class:`CircuitProver`."""
    with CircuitProver(circuit, key, insecure_key=insecure_key) as prover:
        return prover.prove(task)
