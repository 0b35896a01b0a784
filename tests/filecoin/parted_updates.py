"""A catalogue of a world in which a 2 KiB update has two partitions, as does every process that is sent it.

No registered proof of several partitions has a small circuit: the smallest, 8 MiB updates, has four of 10 million rows.
So the table of shapes is changed before anything is made of it. The circuit is an update's all the same, with the
partition's number among its inputs, and the two proofs are one. Partition 1 says by ``place``/second that it was begun, and
waits until ``place``/go is there. Not for a process that tests other things; circuits are
kept by their names, so it wants a home of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cuzk.filecoin.shapes as shapes

if "cuzk.filecoin.registered" in sys.modules:
    raise ImportError("expected the first import of anything of Filecoin's")
shapes.SHAPES["2KiB"] = replace(shapes.SHAPES["2KiB"], update_partitions=2)

from cuzk.catalogue import Catalogue  # noqa: E402
from cuzk.config import CircuitSettings, FilecoinSettings  # noqa: E402
from cuzk.engine.catalogue import OpenCircuit, PartProof  # noqa: E402

PATIENCE = 900.0  # seconds


class PartedCatalogue(Catalogue):
    """Unpickling it imports this module first."""

    def __init__(
        self, place: Path, circuits: Sequence[CircuitSettings], filecoin: FilecoinSettings
    ) -> None:
        super().__init__(circuits, filecoin)
        self._place = place

    def open(self, circuit: str, device: str, threads: int | None, lanes: int | None) -> Gated:
        """Its second partition behind the gate."""
        return Gated(super().open(circuit, device, threads, lanes), self._place)


class Gated:
    """An open circuit; what is not here is its own."""

    def __init__(self, opened: OpenCircuit, place: Path) -> None:
        self._opened, self._place = opened, place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)

    def prove(self, prepared: Any, partition: int) -> PartProof:
        if partition == 1:
            (self._place / "second").touch()
            until = time.monotonic() + PATIENCE
            while not (self._place / "go").exists():
                if time.monotonic() > until:
                    raise TimeoutError(self._place)
                time.sleep(0.02)
        return self._opened.prove(prepared, partition)
