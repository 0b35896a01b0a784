"""A catalogue whose WindowPoSt has two partitions: of all sectors, and of the last one alone.

No circuit of several partitions is small, so two statements are taken for one; each partition's proof is one of the
circuit. What a partition does first, a script says: one line for each partition begun goes to ``place``/begun, and
partition 1 waits until ``place``/go is there. They are staged, as on a GPU: one line for each goes to ``place``/staged.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuzk.catalogue import Catalogue
from cuzk.catalogue.filecoin import OpenFilecoin, Prepared
from cuzk.engine.catalogue import CircuitEntry, Device, Needs, PartProof, Route, WholeProof
from cuzk.engine.request import Request
from cuzk.filecoin.staged import StagedPartition

PATIENCE = 120.0


def begun(place: Path, what: str = "begun") -> list[tuple[int, int]]:
    """(partition, process) in order; ``what``: or "staged"."""
    if not (place / what).exists():
        return []
    lines = (place / what).read_text().splitlines()
    return [(int(a), int(b)) for a, b in (line.split() for line in lines)]


@dataclass(frozen=True)
class Twice:
    """Picklable."""

    catalogue: Catalogue
    folder: Path

    def entries(self) -> list[CircuitEntry]:
        return self.catalogue.entries()

    def blank(self) -> list[CircuitEntry]:
        return self.catalogue.blank()

    def entry(self, circuit: str) -> CircuitEntry:
        return self.catalogue.entry(circuit)

    def place(self, request: Request) -> Route:
        return Route(self.catalogue.place(request).circuit, 2)

    def named(self, name: str) -> str:
        return self.catalogue.named(name)

    def route(self, request: Request) -> Route:
        return Route(self.catalogue.route(request).circuit, 2)

    def needs(self, circuit: str, device: str) -> Needs:
        return self.catalogue.needs(circuit, device)

    def check(self, request: Request) -> None:
        self.catalogue.check(request)

    def device(self, device: str) -> Device:
        return self.catalogue.device(device)

    def open(self, circuit: str, device: str, threads: int | None, lanes: int | None) -> OpenTwice:
        opened = self.catalogue.open(circuit, device, threads, lanes)
        assert isinstance(opened, OpenFilecoin)
        return OpenTwice(opened, self.folder)


@dataclass(frozen=True)
class Both:
    """The parts of a request."""

    parts: tuple[Prepared, Prepared]
    nbytes: int = 0


class OpenTwice:
    def __init__(self, opened: OpenFilecoin, place: Path) -> None:
        self._opened, self._place = opened, place

    def needs(self) -> Needs:
        return replace(self._opened.needs(), ahead={"host": 1 << 20})

    def tier(self) -> str:
        return self._opened.tier()

    def slots(self) -> int:
        return self._opened.slots()

    def prepare(self, request: Request) -> Both:
        whole = self._opened.prepare(request)
        last = Request(
            id=request.id, kind=request.kind, priority=request.priority,
            fields={**request.fields}, payload=request.payload[-1:],
        )  # fmt: skip
        return Both((whole, self._opened.prepare(last)))

    def stage(self, prepared: Any, partition: int) -> StagedPartition:
        self._write("staged", partition)
        return self._opened.stage(prepared.parts[partition], 0)

    def prove(self, prepared: Any, partition: int) -> PartProof:
        self._wait(partition)
        return self._opened.prove(prepared.parts[partition], 0)

    def prove_staged(self, prepared: Any, partition: int, staged: StagedPartition) -> PartProof:
        self._wait(partition)
        return self._opened.prove_staged(prepared.parts[partition], 0, staged)

    def _write(self, what: str, partition: int) -> None:
        with (self._place / what).open("a") as file:
            file.write(f"{partition} {os.getpid()}\n")

    def _wait(self, partition: int) -> None:
        self._write("begun", partition)
        until = time.monotonic() + PATIENCE
        while partition == 1 and not (self._place / "go").exists():
            if time.monotonic() > until:
                raise TimeoutError(self._place)
            time.sleep(0.005)

    def finish(self, prepared: Any, parts: list[PartProof]) -> WholeProof:
        whole = [
            self._opened.finish(task, [part]).proof
            for task, part in zip(prepared.parts, parts, strict=True)
        ]
        return WholeProof(b"".join(whole))

    def close(self) -> None:
        self._opened.close()
