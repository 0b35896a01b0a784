"""A circuit's matrices transposed, times a vector over their rows: what a key's points are multiples of.

Units are alike, so that the rows of one are written out and transposed, and multiplied once a unit: a 32 GiB PoRep has
18 of them, 350 million terms in A, of which 20 million are sorted. A unit's own wires are nobody else's; ONE and what
its ports are bound to get a share from each.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.filecoin.templates.assembly import Assembly
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.matrices import written_out
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Scalars, Words


def transposed_product(
    shape: CircuitShape, which: int, vector: Scalars, *, threads: int = 1
) -> Scalars:
    """(wires,) Montgomery: A, B or C (0, 1, 2) without the rows of public inputs, transposed, times ``vector``.

    ``vector`` (constraints or more,) plain, every value below r.
    """
    out = np.zeros((shape.inputs + shape.aux, 4), dtype=np.uint64)
    header, unit = (_columns(shape, part, which) for part in (shape.header, shape.unit))
    shared: Counter[int] = Counter()
    for frame in shape.frames():
        part, matrix = frame.part, header if frame.part is shape.header else unit
        rows = slice(frame.row, frame.row + part.size["rows"])
        found = _product(matrix, vector.words[rows], threads)
        own = 1 + part.ports
        inputs = own + part.size["aux"]
        for slots in (slice(own, inputs), slice(inputs, part.slots)):
            wires = frame.wires[slots]
            if len(wires):  # one after the other
                out[int(wires[0]) : int(wires[-1]) + 1] = found[slots]
        ports = Scalars(BLS12_381, found[:own], montgomery=True).ints()
        for wire, share in zip(frame.wires[:own].tolist(), ports, strict=True):
            shared[wire] += share
    _add(out, shared)
    return Scalars(BLS12_381, out, montgomery=True)


def _columns(shape: CircuitShape, part: Assembly, which: int) -> SparseMatrix:
    """Of a part: its slots are the rows, its rows the columns."""
    rows = written_out(shape, part)[which]
    starts, coefficients = rows.starts.astype(np.uint64), rows.coefficients.astype(np.uint32)
    matrix = SparseMatrix(starts, rows.columns, coefficients, shape.coefficients)
    return matrix.transposed(part.slots)


def _product(matrix: SparseMatrix, values: Words, threads: int) -> Words:
    out = np.empty((matrix.rows, 4), dtype=np.uint64)
    arrays = matrix.row_ptr, matrix.wires, matrix.coefficients, matrix.values.words
    _core.product(BLS12_381.name, *arrays, values, out, False, threads)
    return out


def _add(out: Words, shares: Counter[int]) -> None:
    wires = np.array(list(shares), dtype=np.int64)
    there = Scalars(BLS12_381, out[wires], montgomery=True).ints()
    sums = [a + b for a, b in zip(there, shares.values(), strict=True)]
    out[wires] = Scalars.from_ints(BLS12_381, sums, montgomery=True).words
