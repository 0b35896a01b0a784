"""Sparse matrices on the device and their products with a witness (kernels in ``native/gpu/sparse.cu``).

Rows without terms are left out, rows of up to SHORT terms are ordered by length, longer ones are cut
into segments of SEGMENT terms. Per term 8 bytes stay on the device, per row 12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.backends.cuda.machine import Machine, Memory, Unit, ceil, uploaded
from cuzk.backends.cuda.ready import Ready
from cuzk.constants import to_montgomery, words
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.r1cs import MINUS_ONE, PLUS_ONE, SparseMatrix

SHORT = 32  # terms that one thread adds: a warp's gathers are as many either way
SEGMENT = 1024  # terms that one warp adds
THREADS = 256
WARPS = THREADS // 32


@dataclass(frozen=True)
class LongRows:
    """Rows ``order[i]`` of the segments [firsts[i], firsts[i + 1]), which begin and end at these terms."""

    rows: int
    segments: int
    order: Memory  # u32
    firsts: Memory  # u64[rows + 1]
    begins: Memory  # u64[segments]
    ends: Memory


@dataclass(frozen=True, eq=False)
class DeviceMatrix:
    """One matrix; ``least_wires`` is how long a witness must be."""

    rows: int
    least_wires: int
    filled: int  # rows that have terms
    row_ptr: Memory  # u64[rows + 1]
    wires: Memory  # u32[terms]
    coefficients: Memory  # u32[terms]
    values: Memory  # Montgomery
    short_rows: int
    order: Memory  # u32[short_rows]
    long: LongRows | None
    ready: Ready

    @property
    def nbytes(self) -> int:
        """Device memory that stays taken."""
        parts = [self.row_ptr, self.wires, self.coefficients, self.values, self.order]
        if self.long:
            parts += [self.long.order, self.long.firsts, self.long.begins, self.long.ends]
        return sum(part.nbytes for part in parts)


def put_matrix(machine: Machine, curve: Curve, matrix: SparseMatrix) -> DeviceMatrix:
    """Check every index of the matrix and copy it; KernelError names what does not fit."""
    row_ptr = np.ascontiguousarray(matrix.row_ptr, np.uint64)
    wires = np.ascontiguousarray(matrix.wires, np.uint32)
    coefficients = np.ascontiguousarray(matrix.coefficients, np.uint32)
    check_matrix(curve, matrix)
    lengths = np.diff(row_ptr)
    capped = np.minimum(lengths, SHORT + 1).astype(np.uint8)
    order = np.argsort(capped, kind="stable").astype(np.uint32)
    empty, short = np.searchsorted(capped[order], [1, SHORT + 1])
    return DeviceMatrix(
        rows=matrix.rows,
        least_wires=int(wires.max()) + 1 if len(wires) else 0,
        filled=len(order) - int(empty),
        row_ptr=uploaded(machine, row_ptr),
        wires=uploaded(machine, wires),
        coefficients=uploaded(machine, coefficients),
        values=uploaded(machine, np.ascontiguousarray(matrix.values.words)),
        short_rows=int(short - empty),
        order=uploaded(machine, order[empty:short][::-1]),  # longest first
        long=_put_long(machine, row_ptr, lengths, order[short:]) if short < len(order) else None,
        ready=Ready(machine),
    )


def product(
    machine: Machine,
    curve: Curve,
    matrix: DeviceMatrix,
    witness: Memory,
    wires: int,
    size: int,
) -> Memory:
    """matrix * witness (plain) in Montgomery form, ``size`` rows, bit-reversed if that is a power of two."""
    if matrix.rows > size:
        raise KernelError(
            f"cuda: product: expected room for {matrix.rows} rows, found a size of {size}"
        )
    if matrix.least_wires > wires:
        raise KernelError(
            f"cuda: product: expected a witness of at least {matrix.least_wires} wires, found {wires}"
        )
    matrix.ready.before(machine)
    unit = Unit("sparse.cu", curve)
    out = machine.alloc(8 * curve.fr_words * size)
    if matrix.filled < size:
        machine.fill(out, 0)
    log_n = size.bit_length() if size.bit_count() == 1 else 0  # log2 + 1
    terms = (matrix.wires, matrix.coefficients, matrix.values, witness)
    blocks = ceil(matrix.short_rows, THREADS)
    machine.launch(
        unit, "sparse_rows", blocks, THREADS,
        matrix.row_ptr, matrix.order, matrix.short_rows, *terms, out, log_n,
    )  # fmt: skip
    if long := matrix.long:
        sums = machine.alloc(8 * curve.fr_words * long.segments)
        blocks = ceil(long.segments, WARPS)
        machine.launch(
            unit, "sparse_segments", blocks, THREADS,
            long.begins, long.ends, long.segments, *terms, sums,
        )  # fmt: skip
        blocks = ceil(long.rows, WARPS)
        machine.launch(
            unit, "sparse_join", blocks, THREADS,
            long.firsts, long.order, long.rows, sums, out, log_n,
        )  # fmt: skip
    return out


def matrix_bytes(rows: int, terms: int, values: int, words_each: int) -> int:
    """Device memory of a matrix; what long rows take besides is below one byte a term."""
    return 12 * rows + 9 * terms + 8 * words_each * values + 8


def check_matrix(curve: Curve, matrix: SparseMatrix) -> None:
    """KernelError for rows or coefficients that are not there, and where values 0 and 1 are not +-1."""
    row_ptr, coefficients = matrix.row_ptr, matrix.coefficients
    terms, known = len(coefficients), len(matrix.values)
    if int(row_ptr[0]) != 0 or int(row_ptr[-1]) != terms or (row_ptr[1:] < row_ptr[:-1]).any():
        raise KernelError(f"cuda: matrix: expected row_ptr to rise from 0 to {terms} terms")
    if not terms:
        return
    if (largest := int(coefficients.max())) >= known:
        raise KernelError(
            f"cuda: matrix: expected numbers of coefficients below {known}, found {largest}"
        )
    for number, value in ((PLUS_ONE, 1), (MINUS_ONE, curve.r - 1)):
        given = matrix.values.words[number : number + 1].tolist()
        if given != [words(to_montgomery(value, curve.r, curve.fr_words), curve.fr_words)]:
            raise KernelError(
                "cuda: matrix: expected values 0 and 1 to be 1 and -1 in Montgomery form"
            )


def _put_long(
    machine: Machine,
    row_ptr: NDArray[np.uint64],
    lengths: NDArray[np.uint64],
    order: NDArray[np.uint32],
) -> LongRows:
    counts = -(-lengths[order].astype(np.int64) // SEGMENT)
    firsts = np.concatenate(([0], np.cumsum(counts)))
    segments = int(firsts[-1])
    within = np.arange(segments) - np.repeat(firsts[:-1], counts)
    row = np.repeat(order, counts)
    begins = row_ptr[row] + within.astype(np.uint64) * np.uint64(SEGMENT)
    ends = np.minimum(begins + np.uint64(SEGMENT), row_ptr[row + 1])
    return LongRows(
        rows=len(order),
        segments=segments,
        order=uploaded(machine, order),
        firsts=uploaded(machine, firsts.astype(np.uint64)),
        begins=uploaded(machine, begins),
        ends=uploaded(machine, ends),
    )
