"""A circuit's constraint system for a Prover: evaluated from its templates, its rows written out nowhere.

A device that holds the rows itself asks for one matrix after the other, written out, and has them alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.filecoin.node_arithmetic import ONE
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.columns import transposed_product
from cuzk.filecoin.templates.matrices import matrix
from cuzk.filecoin.templates.store import digest
from cuzk.filecoin.templates.template import Flags
from cuzk.filecoin.witness.rows import PlacedMatrices
from cuzk.r1cs import ConstraintSystem, EvaluatedMatrix, SparseMatrix
from cuzk.vectors import Scalars, Words


def constraint_system(shape: CircuitShape) -> ConstraintSystem:
    """The same as :func:`cuzk.filecoin.templates.matrices.matrices`, in a thousandth of its memory."""
    placed = PlacedMatrices.of(shape)
    a, b, c = (PlacedMatrix(placed, which) for which in range(3))
    return ConstraintSystem(
        curve=BLS12_381,
        wires=shape.inputs + shape.aux,
        public=shape.inputs - 1,
        constraints=shape.constraints,
        a=a,
        b=b,
        c=c,
        digest=digest(shape),
    )


@dataclass(frozen=True)
class PlacedMatrix(EvaluatedMatrix):
    """A, B or C (0, 1, 2); A with the rows of the public inputs."""

    placed: PlacedMatrices
    which: int

    @property
    def values(self) -> Scalars:
        """The circuit's."""
        return self.placed.shape.coefficients

    @property
    def rows(self) -> int:
        """Those of the public inputs come last."""
        return self.placed.shape.constraints + self._public_rows

    @property
    def terms(self) -> int:
        """As if they were written out."""
        return self.placed.shape.terms[self.which] + self._public_rows

    @property
    def nbytes(self) -> int:
        """The places, which all three share, are counted with A."""
        return 0 if self.which else self.placed.nbytes

    @property
    def _public_rows(self) -> int:
        return 0 if self.which else self.placed.shape.inputs

    def row(self, index: int) -> list[tuple[int, int]]:
        """Looked for from the first placement on: seconds in the largest circuits."""
        shape = self.placed.shape
        for placement in shape.placements():
            rows, local = placement.template.matrices[self.which], index - placement.row
            if local < placement.template.rows:
                span = slice(int(rows.starts[local]), int(rows.starts[local + 1]))
                wires = placement.wires[rows.columns[span]].tolist()
                numbers = rows.coefficients[span].astype(np.int64)
                values = Scalars(self.values.curve, self.values.words[numbers], montgomery=True)
                return list(zip(values.ints(), wires, strict=True))
        return [(1, index - shape.constraints)]

    def used(self, wires: int) -> Flags:
        """Every public input has a row in A."""
        flags, found = np.zeros(wires, dtype=np.bool_), self.placed.shape.used(self.which)
        flags[: len(found)] = found
        flags[: self._public_rows] = True
        return flags

    def product(self, witness: Words, out: Words, *, bit_reversed: bool, threads: int) -> None:
        """Natively."""
        self.placed.product(self.which, witness, out, bit_reversed=bit_reversed, threads=threads)

    def transposed_product(self, vector: Scalars, *, threads: int) -> Scalars:
        """Unit by unit."""
        shape = self.placed.shape
        found = transposed_product(shape, self.which, vector, threads=threads)
        if more := self._public_rows:
            last = vector.words[shape.constraints : shape.constraints + more]
            shares = np.empty_like(last)
            _core.to_montgomery(BLS12_381.name, "fr", np.ascontiguousarray(last), shares, threads)
            first = found.words[:more]
            ones = np.concatenate([ONE, ONE])
            _core.combine(BLS12_381.name, [first, shares], ones, first, threads)
        return found

    def written_out(self) -> SparseMatrix:
        """Eight bytes a term and eight a row: 3.5 GB for A of a 32 GiB PoRep."""
        return matrix(self.placed.shape, self.which)
