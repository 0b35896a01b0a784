"""A loaded key and a device, kept for many proofs; every proof is verified before it is handed out."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from time import perf_counter
from types import TracebackType
from typing import Self

from cuzk import _core
from cuzk.backends import Backend
from cuzk.errors import CuzkError, FormatError, OutOfMemory, ProofError
from cuzk.formats.source import Readable
from cuzk.groth16 import Proof, ProvingKey
from cuzk.load import load_circuit, load_key, load_witness, name_of, refuse_insecure
from cuzk.prover.attempt import Statement
from cuzk.prover.checks import check_witness, circuit_of
from cuzk.prover.devices import thread_count
from cuzk.prover.evaluations import Evaluations, check_evaluations
from cuzk.prover.forget import Forgetting
from cuzk.prover.placement import CLOSED, Outcome, Placement, expect_lanes
from cuzk.prover.plan import installed_bytes, plan_bytes, vector_bytes
from cuzk.prover.ready import Ready, expect_ready_for
from cuzk.prover.report import Report, Stopwatch, peak_bytes, versions
from cuzk.prover.standing import Standing, standing_of
from cuzk.r1cs import ConstraintSystem
from cuzk.timeline import Span, Timeline, ordered
from cuzk.vectors import Scalars
from cuzk.verifier import Verifier


@dataclass(frozen=True)
class Result:
    """A verified proof, its public signals (wires 1..public), how it came about, and what happened when.

    ``spans`` are in the order of their starts; :func:`cuzk.trace.chrome_trace` makes a file of them.
    """

    proof: Proof
    public: list[int]
    report: Report
    spans: list[Span] = field(default_factory=list, repr=False)


class Prover:
    """Proves with one key on one device.

    ``key`` is a ProvingKey or what :func:`cuzk.load_key` takes; ``circuit`` ConstraintSystem or what
    :func:`cuzk.load_circuit` takes: needed for bellman's keys, and for any key it makes a witness that
    does not satisfy the circuit fail at once with the constraint's number (UnsatisfiedError).
    ``key_digest`` is what the key file's digest must be (:func:`cuzk.load_key`).
    ``memory`` is a limit in bytes of the host's memory (OutOfMemory before any work), ``threads`` defaults to
    the CPUs this process may use. ``device`` is "auto" (the first GPU where one can be used and the proof is
    worth opening it, else the CPU), "cpu", "cuda", "cuda:N", "cuda:GPU-UUID" (DeviceUnavailable, with the
    reason, where that one cannot be used; OutOfMemory where it lacks the memory) or an open backend.
    ``repeated`` says that many proofs are to come: a GPU then first makes tables of the key's points as
    its memory allows (seconds for the largest keys, a seventh less time for every sum). ``on_phase`` is
    called with the name of each phase as it begins. A Prover may be used from several threads: up to ``lanes``
    proofs (1 to 4, else FormatError) are in work at once, of which one computes while others' vectors are
    copied and their proofs are finished; further ones wait in order of arrival. That is by default two on a GPU
    whose memory holds the vectors of both, one on a CPU. ``close`` (or leaving the ``with`` block) waits for
    the proofs in work, refuses those that still wait, and lets go of the key; no thread works on after a call.
    ``timeline`` has the spans of the last proofs, those that failed included, and of loading the key.
    """

    def __init__(
        self,
        key: ProvingKey | Readable,
        *,
        circuit: ConstraintSystem | Readable | None = None,
        device: str | Backend = "auto",
        threads: int | None = None,
        memory: int | None = None,
        key_digest: str | None = None,
        insecure_key: bool = False,
        repeated: bool = False,
        lanes: int | None = None,
        on_phase: Callable[[str], None] | None = None,
    ) -> None:
        start = perf_counter()
        self._threads = thread_count(threads)
        self._key_checked = key_digest is not None
        self._on_phase = on_phase
        self.timeline = Timeline()
        self._numbers = count(1)  # of proofs
        expect_lanes(lanes)
        if circuit is not None and not isinstance(circuit, ConstraintSystem):
            circuit = load_circuit(circuit)
        if not isinstance(key, ProvingKey):
            key = load_key(
                key, circuit, digest=key_digest, insecure_key=insecure_key, threads=self._threads
            )
        else:
            _expect_checked(key, key_digest, insecure_key=insecure_key)
        matrices = circuit_of(key, circuit)
        self._planned_bytes = plan_bytes(key, matrices, lanes or 1)
        self._expect_memory(key, matrices, memory)
        self._verifier = Verifier(key.vk, insecure_key=True, threads=self._threads)
        with Forgetting():
            self._placement: Placement | None = Placement(
                device,
                key,
                matrices,
                self._threads,
                timeline=self.timeline,
                repeated=repeated,
                lanes=lanes,
            )
        end = perf_counter()
        self.timeline.over("load", start, end)
        self._load_ms = 1000 * (end - start)

    @property
    def key(self) -> ProvingKey:
        """The key; CuzkError after ``close``."""
        return self._open().resident.key

    @property
    def standing(self) -> Standing:
        """On which device the key is, and what it takes; CuzkError after ``close``."""
        return standing_of(self._open().first)

    def ready(self, witness: Scalars | Readable, evaluations: Evaluations | None = None) -> Ready:
        """All of a proof that needs neither the device nor a turn, from any thread, while others prove.

        FormatError or CircuitError as :meth:`prove` has them, which does nothing of it again; so does the Prover of
        the same key and circuit on another device.
        """
        with Forgetting():
            return self._ready(witness, evaluations, Stopwatch(self.timeline))

    def prove(
        self, witness: Scalars | Readable | Ready, evaluations: Evaluations | None = None
    ) -> Result:
        """A proof blinded by the operating system's randomness, verified.

        ``witness`` is Scalars, what :func:`cuzk.load_witness` takes, or what :meth:`ready` gave, ``evaluations`` A w,
        B w and C w where the caller has them: they are not made again then. FormatError or CircuitError where these do not belong
        to the key, UnsatisfiedError where they break the circuit, ProofError where the proof failed its
        verification and so was withheld, BackendError where a device fails that was asked for by name,
        CuzkError after ``close``.
        """
        r = self.key.curve.r
        return self.prove_insecure(witness, secrets.randbelow(r), secrets.randbelow(r), evaluations)

    def prove_insecure(
        self,
        witness: Scalars | Readable | Ready,
        r: int,
        s: int,
        evaluations: Evaluations | None = None,
    ) -> Result:
        """As :meth:`prove` with blinding that the caller knows: such a proof is not zero-knowledge."""
        with Forgetting(), self.timeline.about(proof=next(self._numbers)) as spans:
            result = self._prove(witness, evaluations, operator.index(r), operator.index(s))
        return replace(result, spans=ordered(spans))

    def close(self) -> None:
        """Wait for the proofs in work (but for one whose hook calls this), then let go of key and device."""
        placement, self._placement = self._placement, None
        if placement:
            placement.close()
        self.timeline.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _expect_memory(
        self, key: ProvingKey, matrices: ConstraintSystem, memory: int | None
    ) -> None:
        if memory is not None and memory < self._planned_bytes:
            raise OutOfMemory(
                f"{key.source}: a proof needs {self._planned_bytes} bytes of memory, "
                f"the limit is {memory}; raise it"
            )
        if (vectors := vector_bytes(key, matrices)) > (installed := installed_bytes()):
            raise OutOfMemory(
                f"{key.source}: a proof needs {vectors} bytes for vectors over its domain of "
                f"2^{key.log_domain} alone, this machine has {installed}"
            )

    def _open(self) -> Placement:
        if self._placement is None:
            raise CuzkError(CLOSED)
        return self._placement

    def _ready(
        self, what: Scalars | Readable, evaluations: Evaluations | None, watch: Stopwatch
    ) -> Ready:
        resident = self._open().resident
        key, matrices = resident.key, resident.matrices
        with watch("check"):
            name = name_of(what, "witness")
            if not isinstance(what, Scalars):
                what = load_witness(what, threads=self._threads)
            witness = check_witness(what, key, matrices, name, self._threads)
            if evaluations is not None:
                evaluations = check_evaluations(evaluations, key, matrices)
            public = witness[1 : matrices.public + 1].ints()
        spent, of = watch.milliseconds["check"], (key.digest, matrices.digest)
        return Ready(name, of, witness, public, evaluations, spent)

    def _prove(
        self, what: Scalars | Readable | Ready, evaluations: Evaluations | None, r: int, s: int
    ) -> Result:
        placement = self._open()
        key, matrices = placement.resident.key, placement.resident.matrices
        placement.resident.expect_there()
        watch = Stopwatch(self.timeline, self._on_phase)
        with watch("total"):
            if isinstance(what, Ready):
                ready = _expect_ready(what, evaluations, key, matrices)
                watch.add("check", ready.milliseconds)
            else:
                ready = self._ready(what, evaluations, watch)
            public = ready.public

            def verify(proof: Proof) -> bool:
                return self._verifier.verify(public, proof)

            statement = Statement(ready, r, s, verify, watch, self._threads)
            outcome = placement.run(statement)
        if outcome is None:
            raise ProofError(
                f"{key.source}: all proofs failed their own verification and were withheld: the "
                "witness does not satisfy the circuit (give the circuit to learn which constraint), "
                f"{'the evaluations are not those of the witness, ' if ready.evaluations else ''}or "
                "the key is damaged (cuzk inspect --full)"
            )
        return Result(outcome.proof, public, self._report(key, matrices, statement, outcome))

    def _report(
        self, key: ProvingKey, matrices: ConstraintSystem, statement: Statement, outcome: Outcome
    ) -> Report:
        backend = outcome.device.backend
        return Report(
            device=backend.name,
            device_title=backend.title,
            reason=outcome.reason,
            arithmetic=_core.path(),
            threads=self._threads,
            milliseconds={"load": self._load_ms, **statement.watch.milliseconds},
            device_milliseconds=statement.device_milliseconds,
            lanes=outcome.device.order.at_once,
            transfers=list(dict.fromkeys([*outcome.device.notes, *statement.notes])),
            retries=outcome.retries,
            planned_bytes=self._planned_bytes,
            peak_bytes=peak_bytes(),
            device_planned_bytes=outcome.device.planned_bytes,
            device_resident_bytes=backend.resident_bytes(),
            key=key.source,
            key_digest=key.digest,
            key_bytes=key.file_bytes,
            key_checked=self._key_checked,
            circuit_digest=matrices.digest,
            curve=key.curve.name,
            recipe=key.recipe,
            constraints=matrices.constraints,
            wires=matrices.wires,
            public=matrices.public,
            domain=1 << key.log_domain,
            versions=versions(),
        )


def _expect_ready(
    ready: Ready, more: Evaluations | None, key: ProvingKey, matrices: ConstraintSystem
) -> Ready:
    """FormatError where evaluations come with it, which were not checked; CircuitError where it is another key's."""
    if more is not None:
        raise FormatError(
            "evaluations: expected them with the witness when it was made ready, found them afterwards"
        )
    expect_ready_for(ready, key, matrices)
    return ready


def _expect_checked(key: ProvingKey, digest: str | None, *, insecure_key: bool) -> None:
    """Of a key that is loaded: FormatError where a file's digest is asked for, InsecureKeyError as for a file."""
    if digest is not None:
        raise FormatError(
            "key_digest: expected a key file to check, found a key that is loaded: give it to load_key"
        )
    if not insecure_key:
        refuse_insecure(key.vk, key.source)
