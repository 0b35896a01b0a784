"""A loaded key and a device, kept for many proofs; every proof is verified before it is handed out."""

from __future__ import annotations

import operator
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Self

from cuzk import _core
from cuzk.backends import Backend
from cuzk.errors import CuzkError, FormatError, OutOfMemory, ProofError
from cuzk.formats.source import Readable
from cuzk.groth16 import Proof, ProvingKey
from cuzk.load import load_circuit, load_key, load_witness, name_of, refuse_insecure
from cuzk.prover import ResidentKey, prove, reside
from cuzk.prover.checks import check_same_circuit, check_satisfied, check_witness, circuit_of
from cuzk.prover.devices import open_device, thread_count
from cuzk.prover.plan import installed_bytes, plan_bytes, vector_bytes
from cuzk.prover.report import Report, Stopwatch, peak_bytes, versions
from cuzk.r1cs import Matrices
from cuzk.vectors import Scalars
from cuzk.verifier import Verifier

DOUBTED = "proofs of the chosen device failed their verification"


@dataclass(frozen=True)
class Result:
    """A verified proof, its public signals (wires 1..public), and how it came about."""

    proof: Proof
    public: list[int]
    report: Report


class Prover:
    """Proves with one key on one device.

    ``key`` is a ProvingKey or what :func:`cuzk.load_key` takes; ``circuit`` Matrices or what
    :func:`cuzk.load_circuit` takes: needed for bellman's keys, and for any key it makes a witness that
    does not satisfy the circuit fail at once with the constraint's number (UnsatisfiedError).
    ``key_digest`` is what the key file's digest must be (:func:`cuzk.load_key`).
    ``memory`` is a limit in bytes (OutOfMemory before any work), ``threads`` defaults to the CPUs this
    process may use. A Prover may be used from several threads and serves one proof at a time;
    others wait. ``close`` (or leaving the ``with`` block) lets go of the key; no thread outlives a call.
    """

    def __init__(
        self,
        key: ProvingKey | Readable,
        *,
        circuit: Matrices | Readable | None = None,
        device: str = "auto",
        threads: int | None = None,
        memory: int | None = None,
        key_digest: str | None = None,
        insecure_key: bool = False,
        on_phase: Callable[[str], None] | None = None,
    ) -> None:
        start = perf_counter()
        self._threads = thread_count(threads)
        self._key_checked = key_digest is not None
        self._on_phase = on_phase
        if circuit is not None and not isinstance(circuit, Matrices):
            circuit = load_circuit(circuit)
        if not isinstance(key, ProvingKey):
            key = load_key(
                key,
                circuit,
                digest=key_digest,
                insecure_key=insecure_key,
                threads=self._threads,
            )
        elif key_digest is not None:
            raise FormatError(
                "key_digest: expected a key file to check, found a key that is loaded: give it to load_key"
            )
        elif not insecure_key:
            refuse_insecure(key.vk, key.source)
        matrices = circuit_of(key, circuit)
        self._planned_bytes = plan_bytes(key, matrices)
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
        self._verifier = Verifier(key.vk, insecure_key=True, threads=self._threads)
        self._backend, self._reason = open_device(device, key.curve, self._threads)
        self._resident: ResidentKey | None = reside(key, matrices, self._backend)
        check_same_circuit(self._resident, self._backend)
        self._load_ms = 1000 * (perf_counter() - start)
        self._lock = threading.RLock()  # on_phase may prove, too

    @property
    def key(self) -> ProvingKey:
        """The key; CuzkError after ``close``."""
        return self._open().key

    def prove(self, witness: Scalars | Readable) -> Result:
        """A proof blinded by the operating system's randomness, verified.

        ``witness`` is Scalars or what :func:`cuzk.load_witness` takes. FormatError or CircuitError where
        it does not belong to the key, UnsatisfiedError where it breaks the circuit, ProofError where
        the proof failed its verification and so was withheld.
        """
        r = self._open().key.curve.r
        return self.prove_insecure(witness, secrets.randbelow(r), secrets.randbelow(r))

    def prove_insecure(self, witness: Scalars | Readable, r: int, s: int) -> Result:
        """As :meth:`prove` with blinding that the caller knows: such a proof is not zero-knowledge."""
        with self._lock:
            return self._prove(witness, operator.index(r), operator.index(s))

    def close(self) -> None:
        """Let go of key and device."""
        self._resident = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> ResidentKey:
        if self._resident is None:
            raise CuzkError("Prover: expected an open one, found it closed")
        return self._resident

    def _prove(self, what: Scalars | Readable, r: int, s: int) -> Result:
        resident = self._open()
        resident.expect_there()
        watch = Stopwatch(self._on_phase)
        with watch("total"):
            with watch("check"):
                name = name_of(what, "witness")
                if not isinstance(what, Scalars):
                    what = load_witness(what, threads=self._threads)
                witness = check_witness(what, resident.key, resident.matrices, name)
                check_satisfied(resident, witness, self._backend, name)
            public = witness[1 : resident.matrices.public + 1].ints()
            proof, device, retries = self._verified(resident, witness, public, r, s, watch)
        return Result(proof, public, self._report(resident, watch, device, retries))

    def _verified(
        self,
        resident: ResidentKey,
        witness: Scalars,
        public: list[int],
        r: int,
        s: int,
        watch: Stopwatch,
    ) -> tuple[Proof, str, int]:
        """The first proof that passes and what made it: twice on this device, then once on the CPU if that is another."""
        devices: list[Callable[[], tuple[ResidentKey, Backend]]] = [
            lambda: (resident, self._backend)
        ] * 2
        if self._backend.name != "cpu":
            devices.append(lambda: self._on_cpu(resident))
        for retries, device in enumerate(devices):
            on_device, backend = device()
            proof = prove(on_device, witness, backend, r, s, watch)
            with watch("verify"):
                if self._verifier.verify(public, proof):
                    return proof, backend.name, retries
        raise ProofError(
            f"{resident.key.source}: {len(devices)} proofs failed their own verification and were withheld: the "
            "witness does not satisfy the circuit (give the circuit to learn which constraint) or "
            "the key is damaged (cuzk inspect --full)"
        )

    def _on_cpu(self, resident: ResidentKey) -> tuple[ResidentKey, Backend]:
        backend, _ = open_device("cpu", resident.key.curve, self._threads)
        return reside(resident.key, resident.matrices, backend), backend

    def _report(self, resident: ResidentKey, watch: Stopwatch, device: str, retries: int) -> Report:
        key, matrices = resident.key, resident.matrices
        return Report(
            device=device,
            reason=self._reason if device == self._backend.name else DOUBTED,
            arithmetic=_core.path(),
            threads=self._threads,
            milliseconds={"load": self._load_ms, **watch.milliseconds},
            retries=retries,
            planned_bytes=self._planned_bytes,
            peak_bytes=peak_bytes(),
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
