"""The values of a circuit's rows for given wires, straight from its templates: A w, B w, C w, and what does not hold.

Nothing is taken from the programs that made the wires: rows say what they say, whoever made the witness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.errors import CircuitError
from cuzk.filecoin.node_arithmetic import ONE
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.template import Rows, Template
from cuzk.filecoin.witness.schedule import Group, Numbers, waves
from cuzk.vectors import Scalars, Words

Places = tuple[int, Numbers, Numbers, Numbers, Numbers]
PlacedRows = tuple[Numbers, Numbers, NDArray[np.uint16], NDArray[np.uint8], NDArray[np.uint8], int]


@dataclass(frozen=True)
class PlacedMatrices:
    """A, B and C of a circuit, which its templates hold."""

    shape: CircuitShape
    places: list[Places]

    @classmethod
    def of(cls, shape: CircuitShape) -> PlacedMatrices:
        """The same places serve all witnesses of a circuit."""
        return cls(shape, [_places(group) for wave in waves(shape) for group in wave])

    def products(
        self,
        wires: Scalars,
        size: int,
        *,
        which: Sequence[int] = (0, 1, 2),
        bit_reversed: bool = False,
        threads: int = 1,
    ) -> list[Scalars]:
        """A w, B w, C w or some of them: each (size,) Montgomery.

        The constraints' rows, in A those of the public inputs after them, then zeros.
        """
        shape, count = self.shape, self.shape.inputs + self.shape.aux
        if wires.montgomery or len(wires) != count:
            raise CircuitError(
                f"{shape.name}: expected {count} wires in plain form, found {len(wires)}"
            )
        bad = _core.first_not_canonical(BLS12_381.name, "fr", wires.words, threads)
        if bad >= 0:
            raise CircuitError(f"{shape.name}: wire {bad}: expected a value below r")
        if size < (rows := shape.constraints + shape.inputs):
            raise CircuitError(f"{shape.name}: expected room for {rows} rows, found {size}")
        found = []
        for matrix in which:
            out = np.empty((size, 4), dtype=np.uint64)
            self.product(matrix, wires.words, out, bit_reversed=bit_reversed, threads=threads)
            found.append(Scalars(BLS12_381, out, montgomery=True))
        return found

    def broken(self, wires: Scalars, *, threads: int = 1) -> NDArray[np.int64]:
        """The constraints that the wires do not satisfy."""
        rows = self.shape.constraints + self.shape.inputs
        a, b, c = (values.words for values in self.products(wires, rows, threads=threads))
        _core.pointwise(BLS12_381.name, a, b, c, ONE, a, threads)
        return np.flatnonzero(a.any(axis=1))

    def product(
        self, matrix: int, wires: Words, out: Words, *, bit_reversed: bool, threads: int
    ) -> None:
        """One of them into memory that is there, of wires that are plain, below r and not too few."""
        shape = self.shape
        _core.placed_product(
            [_rows(t, t.matrices[matrix]) for t in shape.templates],
            shape.coefficients.words,
            self.places,
            shape.constraints,
            shape.inputs if matrix == 0 else 0,
            wires,
            out,
            bit_reversed,
            threads,
        )

    @property
    def nbytes(self) -> int:
        """Of the places."""
        return sum(numbers.nbytes for _, *arrays in self.places for numbers in arrays)


def where(shape: CircuitShape, row: int) -> str:
    """Which part, unit and template a constraint belongs to: for messages."""
    in_units = row - shape.header.size["rows"]
    part, name = shape.header, "header"
    if in_units >= 0:
        unit, row = divmod(in_units, shape.unit.size["rows"])
        part, name = shape.unit, f"unit {unit}"
    place = int(np.searchsorted(part.rows, row, side="right")) - 1
    template = shape.templates[int(part.templates[place])].name
    return f"{name}: placement {place} ({template}): row {row - int(part.rows[place])}"


def _places(group: Group) -> Places:
    return group.template, group.ports, group.aux, group.inputs, group.rows


def _rows(template: Template, rows: Rows) -> PlacedRows:
    port_bits, aux_bits = (
        flags.view(np.uint8) for flags in (template.port_bits, template.aux_bits)
    )
    return rows.starts, rows.columns, rows.coefficients, port_bits, aux_bits, template.inputs
