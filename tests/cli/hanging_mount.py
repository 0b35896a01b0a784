"""A catalogue whose circuits with "hangs" in their names lie on a mount: as long as ``place``/away is there, workers that
read their files hang, and as long as ``place``/silent is there the daemon that looks at them. A worker's load or check
writes a line to ``place``/hung before."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from cuzk.catalogue import Catalogue
from cuzk.config import CircuitSettings, FilecoinSettings
from cuzk.engine.catalogue import CircuitEntry, OpenCircuit
from cuzk.engine.request import Request

PATIENCE = 120.0  # seconds: an end for a process that would hang


def hung(place: Path) -> list[tuple[str, int]]:
    """(what, process) of those that hang, or did."""
    if not (place / "hung").exists():
        return []
    lines = (place / "hung").read_text().splitlines()
    return [(what, int(process)) for what, process in (line.split() for line in lines)]


class MountedCatalogue(Catalogue):
    """Picklable."""

    def __init__(
        self, place: Path, circuits: Sequence[CircuitSettings], filecoin: FilecoinSettings
    ) -> None:
        super().__init__(circuits, filecoin)
        self._place = place

    def entry(self, circuit: str) -> CircuitEntry:
        if "hangs" in circuit:
            self._wait("silent")
        return super().entry(circuit)

    def open(
        self, circuit: str, device: str, threads: int | None, lanes: int | None
    ) -> OpenCircuit:
        self._reach(circuit, "open")
        return super().open(circuit, device, threads, lanes)

    def check(self, request: Request) -> None:
        self._reach(str(request.fields["circuit_id"]), "check")
        super().check(request)

    def _reach(self, circuit: str, what: str) -> None:
        if "hangs" in circuit and (self._place / "away").exists():
            with (self._place / "hung").open("a") as file:
                file.write(f"{what} {os.getpid()}\n")
            self._wait("away")

    def _wait(self, gate: str) -> None:
        until = time.monotonic() + PATIENCE
        while (self._place / gate).exists():
            if time.monotonic() > until:
                raise TimeoutError(gate)
            time.sleep(0.01)
