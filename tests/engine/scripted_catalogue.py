"""Circuits that a script describes: their sizes, their times, their faults."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace

from cuzk.engine.catalogue import (
    CircuitEntry,
    Device,
    Needs,
    OpenCircuit,
    Route,
)
from cuzk.engine.fit import added
from cuzk.engine.request import Request
from cuzk.errors import FormatError, NotReady

GIB = 1 << 30


@dataclass
class Circuit:
    """What the script says of a circuit. Times in seconds, sizes in GiB of memory."""

    partitions: int = 1
    load: float = 10.0
    prepare: float = 1.0
    prove: float = 10.0
    finish: float = 1.0
    key: dict[str, int] = field(default_factory=lambda: {"host": 4})
    partition: dict[str, int] = field(default_factory=lambda: {"host": 1})
    estimate: int = 0
    """GiB of host that the key's estimate is above its real size."""
    slots: int = 1
    ahead: int = 0
    """GiB of host, among a partition's, that one takes which is staged; 0: none is."""
    stage: float = 0.0
    """How much of ``prove`` that saves, and takes before."""
    fault: str = ""
    silent: bool = False
    """Whether the fault is that its files do not answer."""
    preload: bool = False

    def needs(self) -> Needs:
        ahead = gib({"host": self.ahead}) if self.ahead else {}
        return Needs(gib(self.key), gib(self.partition), ahead)


def gib(sizes: dict[str, int]) -> dict[str, int]:
    return {name: size * GIB for name, size in sizes.items()}


class ScriptedCatalogue:
    """Circuits by id; a request names its own by the field circuit_id. What a test changes in them is its own."""

    def __init__(self, circuits: dict[str, Circuit]) -> None:
        self.circuits = deepcopy(circuits)
        self.gone = False

    def entries(self) -> list[CircuitEntry]:
        return [
            CircuitEntry(name, "circuit", f"{name}.zkey", 7, self.fault(name), spec.preload, (f"{name}-alias",), spec.silent)
            for name, spec in self.circuits.items()
        ]  # fmt: skip

    def fault(self, name: str) -> str:
        return f"{name}.zkey: no such file" if self.gone else self.circuits[name].fault

    def named(self, name: str) -> str:
        circuit = name.removesuffix("-alias")
        if circuit not in self.circuits:
            raise NotReady(f"{name}: unknown, known are {', '.join(self.circuits)}")
        return circuit

    def route(self, request: Request) -> Route:
        name = request.fields.get("circuit_id")
        if not isinstance(name, str) or not name:
            raise FormatError("request: circuit_id: expected a circuit's id, found none")
        if (fault := self.fault(self.named(name))) != "":
            raise NotReady(f"{name}: {fault}")
        return Route(name, self.circuits[name].partitions)

    def needs(self, circuit: str, device: str) -> Needs:  # noqa: ARG002
        spec = self.circuits[circuit]
        if (fault := self.fault(circuit)) != "":
            raise NotReady(f"{circuit}: {fault}")
        real = spec.needs()
        return replace(real, key=added(real.key, {"host": spec.estimate * GIB}))

    def check(self, request: Request) -> None:
        if bytes(request.payload[0].view()).startswith(b"bad"):
            raise FormatError("x.wtns: not a witness file")

    def device(self, device: str) -> Device:
        raise NotImplementedError

    def open(
        self, circuit: str, device: str, threads: int | None, lanes: int | None
    ) -> OpenCircuit:
        raise NotImplementedError
