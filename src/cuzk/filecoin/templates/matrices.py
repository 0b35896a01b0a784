"""The rows of a circuit, or of one of its parts, written out.

A part's rows are over the part's own slots: a 32 GiB challenge takes 0.3 GiB, six bytes a term and twelve a row. A
whole circuit has the form of :class:`cuzk.r1cs.Matrices`, for circuits that fit: 8 bytes a term and 24 a row, so
190 MB for a 2 KiB PoRep.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import BLS12_381
from cuzk.filecoin.templates.assembly import Assembly
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.store import digest
from cuzk.filecoin.templates.template import Rows
from cuzk.r1cs import PLUS_ONE, Matrices, SparseMatrix


def written_out(shape: CircuitShape, part: Assembly) -> tuple[Rows, Rows, Rows]:
    """A, B, C of the header or of a unit."""
    placed = [shape.templates[number] for number in part.templates.tolist()]
    found = [
        Rows(
            np.zeros(part.size["rows"] + 1, dtype=np.uint32),
            np.empty(sum(t.matrices[i].terms for t in placed), dtype=np.uint32),
            np.empty(sum(t.matrices[i].terms for t in placed), dtype=np.uint16),
        )
        for i in range(3)
    ]
    at = [0, 0, 0]
    for number, template in enumerate(placed):
        slots, row = part.slots_of(number, template), int(part.rows[number])
        for i, (rows, out) in enumerate(zip(template.matrices, found, strict=True)):
            terms = slice(at[i], at[i] + rows.terms)
            out.columns[terms] = slots[rows.columns]
            out.coefficients[terms] = rows.coefficients
            out.starts[row + 1 : row + 1 + template.rows] = rows.starts[1:] + np.uint32(at[i])
            at[i] += rows.terms
    a, b, c = found
    return a, b, c


def matrices(shape: CircuitShape) -> Matrices:
    """The whole circuit, the rows of public inputs included."""
    a, b, c = (matrix(shape, i) for i in range(3))
    return Matrices(
        curve=BLS12_381,
        wires=shape.inputs + shape.aux,
        public=shape.inputs - 1,
        constraints=shape.constraints,
        a=a,
        b=b,
        c=c,
        digest=digest(shape),
    )


def matrix(shape: CircuitShape, which: int) -> SparseMatrix:
    """A, B or C of the whole circuit, in A a row for every public input that holds it alone."""
    header, unit = (written_out(shape, part)[which] for part in (shape.header, shape.unit))
    more, terms = shape.inputs if which == 0 else 0, shape.terms[which]
    row_ptr = np.zeros(shape.constraints + more + 1, dtype=np.uint64)
    wires = np.empty(terms + more, dtype=np.uint32)
    coefficients = np.empty(terms + more, dtype=np.uint32)
    at = 0
    for frame in shape.frames():
        rows = header if frame.part is shape.header else unit
        span = slice(at, at + rows.terms)
        wires[span] = frame.wires[rows.columns]
        coefficients[span] = rows.coefficients
        _continue(row_ptr[frame.row + 1 :], rows.starts[1:], at)
        at += rows.terms
    if more:
        wires[at:] = np.arange(more, dtype=np.uint32)
        coefficients[at:] = PLUS_ONE
        _continue(row_ptr[shape.constraints + 1 :], np.arange(1, more + 1, dtype=np.uint32), at)
    return SparseMatrix(row_ptr, wires, coefficients, shape.coefficients)


def _continue(row_ptr: NDArray[np.uint64], ends: NDArray[np.uint32], at: int) -> None:
    row_ptr[: len(ends)] = ends
    row_ptr[: len(ends)] += np.uint64(at)
