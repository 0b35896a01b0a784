"""The terms of a matrix over points, as a device takes them: scaled points, then signed entries by row.

A coefficient other than +-1 needs a scaling; what it gives stands behind the points themselves in a table, and every
term is an entry that names a row of that table. Entries have 8 bytes, of which rows of any length are runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import KernelError
from cuzk.r1cs import MINUS_ONE, PLUS_ONE, SparseMatrix

MINUS = np.uint32(1 << 31)  # of an entry: the point's negative


class Terms:
    """A matrix's terms: those that need a scaling in an order of their own, all in the order of rows."""

    def __init__(self, matrix: SparseMatrix, points: int, fixed: int) -> None:
        self.fixed = fixed  # points in the table before the scaled ones
        self._points = points
        self._row_ptr = matrix.row_ptr.astype(np.int64)
        self._wires, self._values = matrix.wires, matrix.coefficients
        if len(self._wires) and int(self._wires.max()) >= points:
            raise KernelError(
                f"cuda: combine: expected points below {points}, found {self._wires.max()}"
            )
        self._scaled = self._values > max(PLUS_ONE, MINUS_ONE)
        self._before = np.concatenate(([0], np.cumsum(self._scaled)))  # scaled terms before a term
        self.scaled_points = self._wires[self._scaled]
        self.scaled_values = self._values[self._scaled]
        self._place = np.arange(len(self.scaled_points))  # of a scaled term, once its chunk is made

    def chunks(self, most: int) -> Iterator[tuple[int, int, tuple[int, int]]]:
        """At most ``most`` rows [begin, end), of no more scaled terms [start, stop) but where a row has more.

        Equal coefficients become neighbours there.
        """
        ends = self._before[self._row_ptr]
        begin, rows = 0, len(self._row_ptr) - 1
        while begin < rows:
            limit = int(np.searchsorted(ends, ends[begin] + most, side="right")) - 1
            end = min(max(limit, begin + 1), begin + most, rows)
            start, stop = int(ends[begin]), int(ends[end])
            order = np.argsort(self.scaled_values[start:stop], kind="stable")
            self.scaled_points[start:stop] = self.scaled_points[start:stop][order]
            self.scaled_values[start:stop] = self.scaled_values[start:stop][order]
            self._place[start + order] = np.arange(start, stop)
            yield begin, end, (start, stop)
            begin = end

    def entries(
        self, begin: int, end: int, start: int, first: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Keys (rows from ``begin``) and signed rows of the table of points, sorted by key.

        Rows from ``first`` have one of the points to add, before their terms.
        """
        low, high = int(self._row_ptr[begin]), int(self._row_ptr[end])
        values, scaled = self._values[low:high], self._scaled[low:high]
        named = self._wires[low:high] | np.where(values == MINUS_ONE, MINUS, np.uint32(0))
        places = self._place[self._before[low] : self._before[high]]
        named[scaled] = (self.fixed + places - start).astype(np.uint32)
        keys = np.repeat(np.arange(end - begin), np.diff(self._row_ptr[begin : end + 1]))
        added = np.arange(max(begin, first), end)
        at = self._row_ptr[added] - low
        keys = np.insert(keys, at, added - begin)
        named = np.insert(named, at, (self._points + added - first).astype(np.uint32))
        return keys.astype(np.uint32), named.astype(np.uint32)
