"""All circuits of a configuration, as :class:`cuzk.engine.catalogue.Catalogue` asks for them. Picklable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuzk.catalogue.circom import KIND, CircomCircuit
from cuzk.catalogue.circuits import KnownCircuit
from cuzk.catalogue.devices import device_named
from cuzk.catalogue.filecoin import FilecoinCircuit
from cuzk.catalogue.filecoin_requests import KINDS, registered_of
from cuzk.catalogue.needs import estimate
from cuzk.config import CircuitSettings, FilecoinSettings
from cuzk.engine.catalogue import CircuitEntry, Device, Needs, OpenCircuit, Route
from cuzk.engine.request import Request
from cuzk.errors import CuzkError, FormatError, NotReady


class Catalogue:
    """FormatError for a circuit that cannot be: a Filecoin proof that there is not, a name that stands for two."""

    def __init__(
        self,
        circuits: Sequence[CircuitSettings],
        filecoin: FilecoinSettings,
        *,
        parameters: Path | None = None,
    ) -> None:
        """``parameters``: where Filecoin's parameter files are, if not where the settings say."""
        if parameters is not None:
            filecoin = filecoin.model_copy(update={"parameters": parameters})
        self._circuits: dict[str, KnownCircuit] = {}
        for settings in circuits:
            circuit: KnownCircuit
            if settings.kind == "circom":
                circuit = CircomCircuit.of(settings)
            else:
                circuit = FilecoinCircuit.of(settings, filecoin)
            self._circuits[settings.id] = circuit
        self._names = {name: name for name in self._circuits}
        self._by_proof = {}
        for name, circuit in self._circuits.items():
            for alias in circuit.aliases:
                self._names.setdefault(alias, name)
            if isinstance(circuit, FilecoinCircuit):
                self._by_proof[circuit.files.circuit] = name

    def entries(self) -> list[CircuitEntry]:
        """Looked at again: some file status for each."""
        return [circuit.entry() for circuit in self._circuits.values()]

    def blank(self) -> list[CircuitEntry]:
        """From the settings alone: no file is touched."""
        return [circuit.blank() for circuit in self._circuits.values()]

    def entry(self, circuit: str) -> CircuitEntry:
        """One of them, looked at again."""
        return self._circuits[circuit].entry()

    def named(self, name: str) -> str:
        """A circuit's id."""
        if name not in self._names:
            known = ", ".join(self._circuits) or "none"
            raise NotReady(
                f"circuit: expected one of the configuration's ({known}), found {ascii(name)[:120]}"
            )
        return self._names[name]

    def route(self, request: Request) -> Route:
        """By circuit_id, or by the registered proof."""
        route = self.place(request)
        if fault := self.entry(route.circuit).fault:
            raise NotReady(f"{route.circuit}: not ready: {fault}")
        return route

    def place(self, request: Request) -> Route:
        """``route`` from the settings alone: no file is touched."""
        circuit = self._of(request)
        return Route(circuit.settings.id, circuit.partitions(request))

    def needs(self, circuit: str, device: str) -> Needs:
        """NotReady where the key cannot be looked at."""
        try:
            return estimate(self._circuits[self.named(circuit)].facts(), device)
        except NotReady:
            raise
        except CuzkError as error:
            raise NotReady(f"{circuit}: not ready: {error}") from None

    def check(self, request: Request) -> None:
        """Reads the payload; of the key its beginning."""
        self._of(request).check(request)

    def device(self, device: str) -> Device:
        """DeviceUnavailable where it cannot be used."""
        return device_named(device)

    def open(
        self, circuit: str, device: str, threads: int | None, lanes: int | None
    ) -> OpenCircuit:
        """Minutes for the largest keys."""
        return self._circuits[self.named(circuit)].open(device, threads, lanes)

    def _of(self, request: Request) -> KnownCircuit:
        if request.kind == KIND:
            return self._by_id(request)
        if request.kind not in KINDS:
            known = ", ".join((KIND, *KINDS))
            raise FormatError(f"kind: expected one of {known}, found {ascii(request.kind)[:80]}")
        proof = registered_of(request)
        if proof.circuit not in self._by_proof:
            known = ", ".join(self._by_proof) or "none"
            raise NotReady(
                f"{proof.circuit}: expected it among the configuration's circuits ({known}), as {proof.name} "
                "needs it, found it missing: add it as a [[circuit]]"
            )
        return self._circuits[self._by_proof[proof.circuit]]

    def _by_id(self, request: Request) -> KnownCircuit:
        name = request.fields.get("circuit_id", "")
        if not name or not isinstance(name, str):
            raise FormatError("circuit_id: expected a circuit's id, found none")
        circuit = self._circuits[self.named(name)]
        if circuit.kind != KIND:
            raise FormatError(
                f"circuit_id: expected a circuit that takes witnesses, found {name}, which is for requests of kind "
                f"{circuit.kind}"
            )
        return circuit
