"""The circuit of a registered proof type."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from cuzk.filecoin.registered import Kind
from cuzk.filecoin.shapes import Shape
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.porep import porep
from cuzk.filecoin.templates.post import window, winning
from cuzk.filecoin.templates.store import kept
from cuzk.filecoin.templates.update import update

_MAKERS = {Kind.POREP: porep, Kind.WINNING: winning, Kind.WINDOW: window, Kind.UPDATE: update}


class Circuit(Protocol):
    """A registered proof type, or a circuit's parameter files: what says which circuit."""

    @property
    def kind(self) -> Kind:
        """Which gadgets."""
        ...

    @property
    def shape(self) -> Shape:
        """Which sizes."""
        ...


def circuit_of(proof: Circuit, folder: Path | None = None) -> CircuitShape:
    """One partition's circuit, the same in all versions of a proof; kept in ``folder`` if there is one."""
    make, name = _MAKERS[proof.kind], f"{proof.kind.value}-{proof.shape.name}"
    return kept(name, lambda: make(Library(), proof.shape), folder)
