"""Circuits of circom: a key from the configuration, a .wtns in each request, proof.json and public.json in return."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from cuzk.catalogue.circuits import source_of
from cuzk.catalogue.key_facts import KeyFacts, KeyOnDisk
from cuzk.catalogue.needs import measured, tier
from cuzk.catalogue.spans import on_epoch
from cuzk.config import CircuitSettings
from cuzk.engine.catalogue import CircuitEntry, Needs, PartProof, WholeProof
from cuzk.engine.request import Request
from cuzk.errors import CuzkError, FormatError, ProofError
from cuzk.formats.snarkjs_json import proof_json, public_json
from cuzk.formats.source import Source
from cuzk.load import load_proof, load_public, load_witness
from cuzk.prover.checks import WitnessOf, check_values
from cuzk.prover.session import Prover
from cuzk.vectors import Scalars
from cuzk.verifier import Verifier

KIND = "circuit"
SMALL = 16  # log2 of rows
WITNESS = "witness"


@dataclass(frozen=True)
class CircomCircuit:
    """One circuit."""

    settings: CircuitSettings
    key: KeyOnDisk

    @classmethod
    def of(cls, settings: CircuitSettings) -> CircomCircuit:
        """Nothing is looked at."""
        key, insecure = settings.key or Path(), settings.insecure_key
        return cls(settings, KeyOnDisk.at(key, settings.circuit, insecure=insecure))

    @property
    def kind(self) -> str:
        """ "circuit" """
        return KIND

    @property
    def aliases(self) -> tuple[str, ...]:
        """None."""
        return ()

    def facts(self) -> KeyFacts:
        """As the loader would say."""
        return self.key.facts()

    def blank(self) -> CircuitEntry:
        """From the settings alone."""
        settings = self.settings
        return CircuitEntry(settings.id, KIND, str(settings.key), preload=settings.preload)

    def entry(self) -> CircuitEntry:
        """With the loader's text where the key is missing, cut, another file or an insecure key."""
        entry = self.blank()
        try:
            return replace(entry, key_bytes=self.facts().file_bytes)
        except CuzkError as error:
            return replace(entry, fault=str(error))

    def partitions(self, request: Request) -> int:
        """One, of one witness."""
        if len(request.payload) != 1:
            raise FormatError(f"{WITNESS}: expected one, found {len(request.payload) or 'none'}")
        return 1

    def check(self, request: Request) -> None:
        """The checks of a Prover that has loaded the key, in their order and words."""
        facts = self.facts()
        of = WitnessOf(facts.curve, facts.name, facts.wires, self.key.digests)
        check_values(_witness(request), of, WITNESS)

    def open(self, device: str, threads: int | None, lanes: int | None) -> OpenCircom:
        """FormatError for another digest than the configuration has, and whatever the loader refuses.

        On a CPU two proofs of a small circuit are in work where none is asked for: what one of them does with a single
        thread leaves the others to the second. BN254, 2^12 rows, 2 threads on 2 cores: 61.4 ms a proof instead of 67.6,
        BLS12-381 113 instead of 119; a proof alone takes as long as before (x86-64, 2026-11-30).
        """
        settings = self.settings
        if lanes is None and device == "cpu" and self.facts().log_domain <= SMALL:
            lanes = 2
        prover = Prover(
            self.key.path,
            circuit=settings.circuit,
            device=device,
            threads=threads,
            key_digest=settings.key_digest,
            insecure_key=settings.insecure_key,
            lanes=lanes,
        )
        return OpenCircom(prover)


def _witness(request: Request, threads: int = 1) -> Scalars:
    return load_witness(source_of(request.payload[0], WITNESS, "a .wtns file"), threads=threads)


@dataclass
class Prepared:
    """A witness; ``verified`` has the proof that was made of it here."""

    witness: Scalars = field(repr=False)
    verified: tuple[bytes, bytes] | None = None

    @property
    def nbytes(self) -> int:
        """Mapped, or in memory."""
        return self.witness.words.nbytes


class OpenCircom:
    """A key on a device."""

    def __init__(self, prover: Prover) -> None:
        self._prover = prover

    def needs(self) -> Needs:
        """Of the loaded key."""
        return measured(self._prover.standing)

    def tier(self) -> str:
        """ "hot" or "warm"."""
        return tier(self._prover.standing)

    def slots(self) -> int:
        """The Prover's lanes."""
        return self._prover.standing.lanes

    def prepare(self, request: Request) -> Prepared:
        """The witness, where it lies."""
        return Prepared(_witness(request))

    def prove(self, prepared: Prepared, partition: int) -> PartProof:
        """UnsatisfiedError, ProofError and BackendError as the Prover has them."""
        if partition:
            raise FormatError(f"partition: expected 0, found {partition}")
        result = self._prover.prove(prepared.witness)
        proof, public = proof_json(result.proof), public_json(result.public)
        prepared.verified = proof, public
        report = result.report
        return PartProof(proof, report.milliseconds, report.device, on_epoch(result.spans), public)

    def finish(self, prepared: Prepared, parts: list[PartProof]) -> WholeProof:
        """The one proof. It was verified when it was made; one that comes back from a journal is, here."""
        if len(parts) != 1:
            raise FormatError(f"{KIND}: expected the proof of one partition, found {len(parts)}")
        proof, public = parts[0].proof, parts[0].public
        if prepared.verified != (proof, public):
            self._expect_valid(proof, public)
        return WholeProof(proof, public)

    def close(self) -> None:
        """Waits for proofs in work."""
        self._prover.close()

    def _expect_valid(self, proof: bytes, public: bytes) -> None:
        vk = self._prover.key.vk
        signals = load_public(_named("public signals", public), vk.curve)
        reason = Verifier(vk, insecure_key=True).check(
            signals, load_proof(_named("proof", proof), vk.curve)
        )
        if reason:
            raise ProofError(
                f"{self._prover.key.source}: a stored proof failed its verification and was withheld: {reason}"
            )


def _named(name: str, data: bytes) -> Source:
    return Source(name, Source.open(data).data)
