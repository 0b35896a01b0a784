"""Filecoin's circuits: keys by their names, trusted by their digests; vanilla proofs in, 192 bytes a partition out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from cuzk.catalogue.filecoin_requests import (
    REQUEST_KIND,
    expect_fields,
    held_bytes,
    read_vanilla,
    registered_of,
    task_of,
)
from cuzk.catalogue.key_facts import KeyFacts, Remembered, of_params
from cuzk.catalogue.needs import ahead, measured, tier
from cuzk.catalogue.spans import on_epoch
from cuzk.config import CircuitSettings, FilecoinSettings
from cuzk.engine.catalogue import CircuitEntry, Needs, PartProof, WholeProof
from cuzk.engine.request import Request
from cuzk.errors import CuzkError, FormatError
from cuzk.filecoin import digests
from cuzk.filecoin.digests import DigestCache
from cuzk.filecoin.key_sizes import expect_points, proving_layout
from cuzk.filecoin.parameters import Parameters
from cuzk.filecoin.prove import CircuitProver, PartitionProof
from cuzk.filecoin.registered import Kind
from cuzk.filecoin.shapes import SHAPES
from cuzk.filecoin.staged import StagedPartition
from cuzk.filecoin.task import Task
from cuzk.filecoin.templates import store
from cuzk.filecoin.templates.catalogue import circuit_of
from cuzk.filecoin.trust import expect_trusted
from cuzk.formats.bellman import read_vk
from cuzk.formats.on_demand import on_demand
from cuzk.load import key_kind, refuse_insecure
from cuzk.prover.devices import thread_count

ALIASES = {
    "porep-32GiB": "porep-32g",
    "porep-64GiB": "porep-64g",
    "window-32GiB": "wpost-32g",
    "winning-32GiB": "winning-32g",
    "update-32GiB": "snap-32g",
    "update-64GiB": "snap-64g",
}
"""What sealing software calls them."""

TERMS_PER_WIRE = {Kind.POREP: 5.6, Kind.UPDATE: 5.6, Kind.WINDOW: 9.1, Kind.WINNING: 9.1}
"""Of A, B and C, at most: counted in the circuits of all sizes (5.46 to 5.60, 9.01 to 9.04), whose recording takes
seconds that an estimate has not."""


@dataclass(frozen=True)
class FilecoinCircuit:
    """One circuit, which all proof types of a size share."""

    settings: CircuitSettings
    files: Parameters
    folder: Path
    insecure: bool
    memory: Remembered

    @classmethod
    def of(cls, settings: CircuitSettings, filecoin: FilecoinSettings) -> FilecoinCircuit:
        """FormatError where its proof is none of Filecoin's; no file is looked at."""
        kind, _, size = settings.proves.partition("-")
        if kind not in {k.value for k in Kind} or size not in SHAPES:
            kinds, sizes = ", ".join(k.value for k in Kind), ", ".join(SHAPES)
            raise FormatError(
                f"circuit {settings.id}: proof: expected one like porep-32GiB ({kinds}; {sizes}), "
                f"found {settings.proves!r}"
            )
        files, folder = Parameters(Kind(kind), SHAPES[size]), filecoin.parameters
        path = settings.key or folder / f"{files.stem}.params"
        insecure = settings.insecure_key or filecoin.insecure_keys
        return cls(settings, files, folder, insecure, Remembered((path,)))

    @property
    def kind(self) -> str:
        """ "porep-c2" and so on."""
        return REQUEST_KIND[self.files.kind]

    @property
    def aliases(self) -> tuple[str, ...]:
        """ "porep-32g" """
        alias = ALIASES.get(self.files.circuit)
        return () if alias is None else (alias,)

    @property
    def path(self) -> Path:
        """Of the key, which may not be there."""
        return self.memory.paths[0]

    def facts(self) -> KeyFacts:
        """FormatError names a missing file and the way to get it, a cut one, one of another kind."""
        return self.memory.get("facts", self._read)

    def _read(self) -> KeyFacts:
        if self.settings.key is None:
            self.files.find(self.folder, "params")
        with on_demand(self.path, "a .params file") as source:
            if key_kind(source):
                raise FormatError(f"{source.name}: expected a .params file, found a .zkey")
            facts = of_params(proving_layout(source))
            if not self.insecure:
                refuse_insecure(read_vk(source, check_ic=False), source.name)
        terms = int(TERMS_PER_WIRE[self.files.kind] * facts.wires) + 1
        return replace(facts, circuit_terms=terms, evaluated=True)

    def blank(self) -> CircuitEntry:
        """From the settings alone."""
        settings = self.settings
        return CircuitEntry(
            settings.id, self.kind, str(self.path), preload=settings.preload, aliases=self.aliases
        )

    def entry(self) -> CircuitEntry:
        """With the way to get the key where it is missing."""
        entry = self.blank()
        try:
            return replace(entry, key_bytes=self.facts().file_bytes)
        except CuzkError as error:
            return replace(entry, fault=str(error))

    def partitions(self, request: Request) -> int:
        """Of the registered proof."""
        proof = registered_of(request)
        expect_fields(request, proof)
        return proof.partitions

    def check(self, request: Request) -> None:
        """Reads the vanilla proofs: FormatError."""
        proof = registered_of(request)
        expect_fields(request, proof)
        read_vanilla(request, proof)

    def open(self, device: str, threads: int | None, lanes: int | None) -> OpenFilecoin:
        """FormatError where the key has not the published digest, nor the configuration's, nor may be insecure."""
        self.facts()
        circuit, digest = circuit_of(self.files, store.default_folder()), self.settings.key_digest
        expect_points(circuit, self.path)  # before its digest, which takes a minute for the largest
        if digest is not None or not self.insecure:
            cache = DigestCache(digests.default_folder())
            expect_trusted(self.files, self.path, "params", cache, digest=digest)
        prover = CircuitProver(
            circuit,
            self.path,
            device=device,
            threads=threads,
            insecure_key=self.insecure,
            lanes=lanes,
        )
        return OpenFilecoin(prover, thread_count(threads))


@dataclass(frozen=True)
class Prepared:
    """Vanilla proofs that hold, and what they are proofs of."""

    task: Task = field(repr=False)
    nbytes: int = 0


class OpenFilecoin:
    """A circuit with its key on a device."""

    def __init__(self, prover: CircuitProver, threads: int) -> None:
        self._prover, self._threads = prover, threads

    def needs(self) -> Needs:
        """Of the loaded key."""
        standing = self._prover.prover.standing
        return replace(measured(standing), ahead=ahead(standing))

    def tier(self) -> str:
        """ "hot" or "warm"."""
        return tier(self._prover.prover.standing)

    def slots(self) -> int:
        """The Prover's lanes."""
        return self._prover.prover.standing.lanes

    def prepare(self, request: Request) -> Prepared:
        """The vanilla check: UnsatisfiedError."""
        proof = registered_of(request)
        vanilla = read_vanilla(request, proof)
        return Prepared(task_of(request, proof, vanilla, self._threads), held_bytes(vanilla))

    def prove(self, prepared: Prepared, partition: int) -> PartProof:
        """One partition; errors as the Prover has them."""
        return _part(self._prover.partition(prepared.task, partition))

    def stage(self, prepared: Prepared, partition: int) -> StagedPartition:
        """Its witness, compared with the statement and checked."""
        return self._prover.stage(prepared.task, partition)

    def prove_staged(
        self, prepared: Prepared, partition: int, staged: StagedPartition
    ) -> PartProof:
        """With the witness that was made; what that took is among its times and spans."""
        return _part(self._prover.partition(prepared.task, partition, staged))

    def finish(self, prepared: Prepared, parts: list[PartProof]) -> WholeProof:
        """Verified from public data by the CPU."""
        return WholeProof(self._prover.whole(prepared.task, [part.proof for part in parts]))

    def close(self) -> None:
        """Waits for proofs in work."""
        self._prover.close()


def _part(made: PartitionProof) -> PartProof:
    spent = {**made.report.milliseconds, "witness": made.milliseconds["witness"]}
    spent["total"] = sum(made.milliseconds.values())
    return PartProof(made.data, spent, made.report.device, on_epoch(made.spans))
