"""Rank-1 constraint systems as sparse matrices.

A witness w (w[0] = 1) satisfies the system when (A w)_i * (B w)_i = (C w)_i for every row i. Wires
1..public are the public signals. The rows a prover works on are the constraints followed by
public + 1 rows that hold wire s in A and nothing else: they keep the public columns of A linearly
independent (Groth16's section on knowledge soundness; libsnark, bellman and snarkjs all add them).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import Curve
from cuzk.vectors import Scalars, Words

PLUS_ONE = 0
MINUS_ONE = 1


@dataclass(frozen=True)
class SparseMatrix:
    """Compressed rows with a coefficient dictionary.

    Row i has the terms row_ptr[i]..row_ptr[i+1]: values[coefficients[t]] * w[wires[t]]. ``values`` is in
    Montgomery form, shared by the matrices of a circuit; its entries 0 and 1 are always +1 and -1, so
    that those terms need no multiplication.
    """

    row_ptr: NDArray[np.uint64]  # (rows + 1,)
    wires: NDArray[np.uint32]  # (terms,)
    coefficients: NDArray[np.uint32]  # (terms,)
    values: Scalars

    @property
    def rows(self) -> int:
        """Rows, the public rows of A included where they are stored."""
        return len(self.row_ptr) - 1

    @property
    def terms(self) -> int:
        """Non-zero entries."""
        return len(self.wires)

    @property
    def nbytes(self) -> int:
        """Of the host's memory, without the dictionary."""
        return self.row_ptr.nbytes + self.wires.nbytes + self.coefficients.nbytes

    def row(self, index: int) -> list[tuple[int, int]]:
        """(coefficient, wire) of one row, plain integers."""
        span = slice(int(self.row_ptr[index]), int(self.row_ptr[index + 1]))
        numbers = self.coefficients[span]
        return [
            (self.values[int(c) : int(c) + 1].ints()[0], int(wire))
            for c, wire in zip(numbers, self.wires[span], strict=True)
        ]

    def used(self, wires: int) -> NDArray[np.bool_]:
        """(wires,) flags: which columns hold a term at all."""
        flags = np.zeros(wires, dtype=np.bool_)
        flags[self.wires] = True
        return flags

    def transposed(self, wires: int) -> SparseMatrix:
        """Columns become rows: ``wires`` of them."""
        order = np.argsort(self.wires, kind="stable")
        counts = np.bincount(self.wires, minlength=wires)
        row_ptr = np.concatenate(([0], np.cumsum(counts))).astype(np.uint64)
        rows = np.repeat(
            np.arange(self.rows, dtype=np.uint32), np.diff(self.row_ptr).astype(np.int64)
        )
        return SparseMatrix(row_ptr, rows[order], self.coefficients[order], self.values)

    def written_out(self) -> SparseMatrix:
        """Itself."""
        return self


class EvaluatedMatrix(ABC):
    """A matrix that knows how to find its rows, and holds none; its dictionary is that of a :class:`SparseMatrix`."""

    @property
    @abstractmethod
    def values(self) -> Scalars:
        """The dictionary, Montgomery form; +1 and -1 first."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows, the public rows of A included."""

    @property
    @abstractmethod
    def terms(self) -> int:
        """Non-zero entries."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Of the host's memory."""

    @abstractmethod
    def row(self, index: int) -> list[tuple[int, int]]:
        """(coefficient, wire) of one row, plain integers."""

    @abstractmethod
    def used(self, wires: int) -> NDArray[np.bool_]:
        """(wires,) flags: which columns hold a term at all."""

    @abstractmethod
    def product(self, witness: Words, out: Words, *, bit_reversed: bool, threads: int) -> None:
        """Fill ``out`` with matrix * witness (plain, every value below r), Montgomery form, zeros past the last row."""

    @abstractmethod
    def transposed_product(self, vector: Scalars, *, threads: int) -> Scalars:
        """(wires,) Montgomery: the transposed matrix times ``vector`` (rows or more; plain, every value below r)."""

    @abstractmethod
    def written_out(self) -> SparseMatrix:
        """All rows, for a device that holds them; who asks for them has them alone."""


Matrix = SparseMatrix | EvaluatedMatrix


@dataclass(frozen=True)
class ConstraintSystem:
    """A circuit: A, B and, where the source has it, C (a .zkey does not), however they are held.

    ``a`` has constraints + public + 1 rows (the public rows last); ``b`` and ``c`` have ``constraints``.
    """

    curve: Curve
    wires: int
    public: int  # outputs and public inputs; the constant wire 0 is not counted
    constraints: int
    a: Matrix
    b: Matrix
    c: Matrix | None
    digest: str  # hex BLAKE2b-256 of the circuit's own bytes (the section or file it came from)

    @cached_property
    def rows(self) -> int:
        """Constraints plus the public rows."""
        return self.constraints + self.public + 1

    @cached_property
    def log_domain(self) -> int:
        """log2 of the smallest power of two that holds the rows."""
        return (self.rows - 1).bit_length()


@dataclass(frozen=True)
class Matrices(ConstraintSystem):
    """One whose rows are in memory."""

    a: SparseMatrix
    b: SparseMatrix
    c: SparseMatrix | None
