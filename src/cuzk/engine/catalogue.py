"""What can be proved: the engine knows circuits by their ids, and nothing of keys, witnesses and Filecoin.

A catalogue is handed to the engine by whoever starts it, and a copy of it to every worker's process (so it must be
picklable): ``route`` is asked in the daemon and is quick, ``open`` and ``check`` in a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from cuzk.engine.request import Request

OTHERS = "other programs"
"""Those that share a device with this service."""


@dataclass(frozen=True)
class Route:
    """Where a request goes."""

    circuit: str
    partitions: int


@dataclass(frozen=True)
class Needs:
    """Bytes of each memory ("host", "pinned", "cuda:0"): of a key as long as it is loaded, of a partition in work; and of
    a partition that is staged, which are among those that it has in work. None: this circuit stages nothing."""

    key: Mapping[str, int] = field(default_factory=dict)
    partition: Mapping[str, int] = field(default_factory=dict)
    ahead: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CircuitEntry:
    """One circuit of the configuration. ``fault`` says why it cannot be proved: it is NOT READY then."""

    id: str
    kind: str
    """The request kinds that use it: "circuit", "porep-c2", ..."""
    key: str
    """Its key's file."""
    key_bytes: int = 0
    fault: str = ""
    preload: bool = False
    aliases: tuple[str, ...] = ()
    """Other names for PreloadSRS and EvictSRS: "porep-32g"."""
    silent: bool = False
    """Its fault is that its files do not answer: whoever reads them hangs until they do."""


@dataclass(frozen=True)
class PartProof:
    """A partition's verified proof. ``spans`` are (track, name, start, end), seconds of the epoch."""

    proof: bytes
    milliseconds: dict[str, float]
    device: str
    spans: tuple[tuple[str, str, float, float], ...] = ()
    public: bytes = b""


@dataclass(frozen=True)
class WholeProof:
    """All partitions' proofs as one, verified from public data."""

    proof: bytes
    public: bytes = b""


@dataclass(frozen=True)
class Device:
    """What a worker works on, as it is now. ``title``: "AMD EPYC ..., 2 threads" or "NVIDIA H200"."""

    title: str
    total: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the memories that only this device has: {"cuda:0": ...}."""
    free: Mapping[str, int] = field(default_factory=dict)
    overhead: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Bytes of each memory that are taken whatever is proved, by what: {"cuda:0": {"context": ..., OTHERS: ...}};
    where a driver cannot tell others from something, "... and other programs" are both."""


class OpenCircuit(Protocol):
    """A circuit with its key on a device: in a worker, used from several threads."""

    def needs(self) -> Needs:
        """Real bytes, now that it is open."""

    def tier(self) -> str:
        """ "hot": on the device; "warm": partly streamed from the host's memory."""

    def slots(self) -> int:
        """Partitions at a time that the device has room for."""

    def prepare(self, request: Request) -> Any:
        """Read and check the request's payload, once a job; CuzkError where it cannot be proved. What it gives is kept
        until the job ends; its ``nbytes`` are counted, or where it has none the request's."""

    def prove(self, prepared: Any, partition: int) -> PartProof:
        """One partition, verified."""

    def finish(self, prepared: Any, parts: list[PartProof]) -> WholeProof:
        """All of them in order, as one proof, verified from public data; ProofError where it is not valid."""

    def close(self) -> None:
        """Let go of the key and the device's memory."""


@runtime_checkable
class Staging(OpenCircuit, Protocol):
    """One whose partitions have a part that needs no device: made while the device works on the partition before."""

    def stage(self, prepared: Any, partition: int) -> Any:
        """That part, whatever else runs; errors as ``prove`` has them. Its ``nbytes`` of the host's memory are counted."""

    def prove_staged(self, prepared: Any, partition: int, staged: Any) -> PartProof:
        """As ``prove``, with what ``stage`` gave for this partition of the same job."""


class Catalogue(Protocol):
    """All circuits of one configuration."""

    def entries(self) -> list[CircuitEntry]:
        """In the configuration's order, looked at again: a key that was missing may be there now."""

    def named(self, name: str) -> str:
        """A circuit's id from its id or an alias; NotReady, with the known ones, for another."""

    def route(self, request: Request) -> Route:
        """FormatError where fields are missing or wrong, NotReady where the circuit has a fault. No payload is read."""

    def needs(self, circuit: str, device: str) -> Needs:
        """An estimate from sizes alone, for a worker's device ("cpu", "cuda:0"): never much too small."""

    def check(self, request: Request) -> None:
        """In a worker: whether the payload is well-formed and of this circuit: FormatError, CircuitError with the
        command line's text. Not whether it can be proved: that is for ``prepare`` and ``prove``."""

    def device(self, device: str) -> Device:
        """In a worker: DeviceUnavailable where it cannot be used. Asked first of all, then every second while there
        is work and now and then, from a thread of its own: quick, whatever else runs. A worker that does not answer for
        ``devices.patience`` is killed."""

    def open(
        self, circuit: str, device: str, threads: int | None, lanes: int | None
    ) -> OpenCircuit:
        """In a worker: load the key, check its digest, put it on the device."""
