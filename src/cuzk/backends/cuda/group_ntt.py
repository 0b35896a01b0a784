"""Transforms over points and sparse combinations of points on a device (``native/gpu/group_ntt.cu``).

A transform of n points takes n/2 log n + 1 scalings of about 1,670 products; a combination one for each
coefficient other than +-1, then an addition (10 products) for each term: its rows are runs of a list sorted
by row, summed as buckets are (``sums.py``), so that a row of any length is as quick as many short ones.
Points must have order r: the scalings use the endomorphism.

Device memory, in points (96 bytes in G1 of BLS12-381): a transform about 4 n, a combination those it is of, and
what a chunk of CHUNK rows or scaled terms needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.backends.cuda.endomorphism import beta_words, endomorphism_of
from cuzk.backends.cuda.machine import Machine, Memory, Unit, ceil, grid, uploaded
from cuzk.backends.cuda.sparse import check_matrix
from cuzk.backends.cuda.sums import THREADS, Group, fill_keys
from cuzk.backends.cuda.terms import Terms
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Points, Scalars, Words

CHUNK = 1 << 22  # rows, or scaled terms, of which sums are made at once
MULTIPLES = 8  # of a point, in the table of the thread that scales it
SPLIT_THREADS = 256
SPLIT_BLOCKS = 8  # on a processor
MOST_ROWS = 1 << 31  # of the points that signed entries can name


class DevicePoints:
    """Work on points of one curve, in either group, on one machine; calls wait for their results.

    ``threads`` host threads make the twiddles.
    """

    def __init__(self, machine: Machine, curve: Curve, threads: int = 1) -> None:
        self._machine = machine
        self._curve = curve
        self._threads = threads
        self._lattice = self._upload(endomorphism_of(curve).words(curve.r))
        self._betas = {group: self._upload(beta_words(curve, group)) for group in ("g1", "g2")}

    def transform(self, points: Points, factors: Scalars, root: int) -> Points:
        """out_j = sum_i root^(ij) factors_i points_i; ``factors`` (Montgomery) are one for all or one each.

        ``root`` is a primitive n-th root of unity for n points, n = 2^k.
        """
        n, sums = len(points), Group(self._machine, self._curve, points.group)
        self._expect_transform(n, len(factors), root)
        work = sums.alloc(n)
        self._gather(sums, self._upload(points.words), None, work, n, n.bit_length())
        each = len(factors) > 1
        halves = self._halves(factors, n.bit_length() if each else 0)
        self._scale(sums, work, n, halves, step=int(each))
        self._layers(sums, work, n, root)
        out = self._machine.alloc(points.words.nbytes)
        self._to_affine(sums, work, out, n)
        return self._got(points.group, out, n)

    def combine(self, matrix: SparseMatrix, points: Points, more: Points) -> Points:
        """matrix * points, and ``more`` added to as many rows at the end."""
        check_matrix(self._curve, matrix)
        group, rows, first = points.group, matrix.rows, matrix.rows - len(more)
        terms = Terms(matrix, len(points), len(points) + len(more))
        chunks = list(terms.chunks(CHUNK))
        scaled = max((stop - start for *_, (start, stop) in chunks), default=0)
        if first < 0 or terms.fixed + scaled >= MOST_ROWS:
            raise KernelError(
                f"{self._machine.name}: combine: expected less than {MOST_ROWS} points and at most {rows} to "
                f"add, found {terms.fixed + scaled} and {len(more)}"
            )
        sums = Group(self._machine, self._curve, group)
        row_bytes = points.words.itemsize * points.words.shape[1]
        table = self._machine.alloc((terms.fixed + scaled) * row_bytes)
        for offset, part in ((0, points.words), (points.words.nbytes, more.words)):
            if part.nbytes:
                self._machine.upload(table.part(offset, part.nbytes), np.ascontiguousarray(part))
        heavy = table.part(terms.fixed * row_bytes, scaled * row_bytes)
        halves = self._halves(matrix.values)
        found = [np.empty((0, points.words.shape[1]), np.uint64)]
        for begin, end, (start, stop) in chunks:
            self._scale_terms(sums, table, terms, halves, start, stop, heavy)
            found.append(self._rows(sums, table, terms, begin, end, start, first).words)
        return Points(self._curve, group, np.concatenate(found))

    def _scale_terms(
        self,
        sums: Group,
        table: Memory,
        terms: Terms,
        halves: Memory,
        start: int,
        stop: int,
        out: Memory,
    ) -> None:
        """Scaled terms [start, stop), affine; equal coefficients are neighbours there."""
        n = stop - start
        if not n:
            return
        work = sums.alloc(n)
        point_of, scalar_of = (
            self._upload(np.ascontiguousarray(part[start:stop]))
            for part in (terms.scaled_points, terms.scaled_values)
        )
        self._gather(sums, table, point_of, work, n, 0)
        self._scale(sums, work, n, halves, scalar_of)
        self._to_affine(sums, work, out, n)

    def _rows(
        self,
        sums: Group,
        table: Memory,
        terms: Terms,
        begin: int,
        end: int,
        start: int,
        first: int,
    ) -> Points:
        """Rows [begin, end) of the result."""
        keys, entries = terms.entries(begin, end, start, first)
        rows, n = end - begin, len(keys)
        buckets = fill_keys(
            sums, table, self._upload(keys), self._upload(entries),
            self._upload(np.array([n], np.uint64)), n, rows,
        )  # fmt: skip
        out = self._machine.alloc(rows * sums.sum_bytes // 2)
        self._to_affine(sums, buckets, out, rows)
        return self._got(sums.name, out, rows)

    def _layers(self, sums: Group, work: Memory, n: int, root: int) -> None:
        """All butterflies, on bit-reversed sums."""
        if n < 2:
            return
        powers = np.empty((n // 2, self._curve.fr_words), np.uint64)
        one, base = (Scalars.from_ints(self._curve, [x], montgomery=True).words for x in (1, root))
        _core.powers(self._curve.name, base, one, powers, self._threads)
        twiddles = self._halves(Scalars(self._curve, powers, montgomery=True))
        half = 1
        while half < n:
            if half > 1:
                self._scale(sums, work, n, twiddles, step=n // (2 * half), half=half)
            sums.launch("group_ntt.cu", "add_layer", ceil(n, THREADS), THREADS, work, n, half)
            half *= 2

    def _gather(
        self,
        sums: Group,
        points: Memory,
        point_of: Memory | None,
        out: Memory,
        n: int,
        log_place: int,
    ) -> None:
        """Extended forms; ``log_place`` as ``place`` of native/gpu/place.hpp."""
        blocks = grid(self._machine, n, SPLIT_THREADS, SPLIT_BLOCKS)
        sums.launch(
            "group_ntt.cu", "gather_points", blocks, SPLIT_THREADS,
            points, point_of or 0, out, n, log_place,
        )  # fmt: skip

    def _scale(
        self,
        sums: Group,
        work: Memory,
        n: int,
        halves: Memory,
        scalar_of: Memory | None = None,
        *,
        step: int = 0,
        half: int = 0,
    ) -> None:
        """In place: a layer's butterflies, or all sums. A table of eight multiples for each thread."""
        items = n // 2 - n // (2 * half) if half else n
        blocks = min(ceil(items, THREADS), sums.resident_threads // THREADS)
        tables = self._machine.alloc(blocks * THREADS * MULTIPLES * sums.sum_bytes * 3 // 4)
        sums.launch(
            "group_ntt.cu", "scale_sums", blocks, THREADS,
            work, halves, scalar_of or 0, step, self._betas[sums.name], tables, n, half,
        )  # fmt: skip

    def _to_affine(self, sums: Group, extended: Memory, out: Memory, n: int) -> None:
        blocks = min(ceil(n, THREADS), sums.resident_threads // THREADS)
        products = self._machine.alloc(max(n, 1) * sums.sum_bytes // 4)
        sums.launch("group_ntt.cu", "to_affine", blocks, THREADS, extended, out, products, n)

    def _halves(self, scalars: Scalars, log_place: int = 0) -> Memory:
        """Of scalars in Montgomery form."""
        if not scalars.montgomery:
            raise KernelError(f"{self._machine.name}: expected scalars in Montgomery form")
        n, words = len(scalars), self._upload(scalars.words)
        out = self._machine.alloc(max(n, 1) * 32)
        unit = Unit("group_ntt.cu", self._curve, "g1")
        blocks = grid(self._machine, n, SPLIT_THREADS, SPLIT_BLOCKS)
        self._machine.launch(
            unit, "split_scalars", blocks, SPLIT_THREADS, words, self._lattice, out, n, log_place
        )
        return out

    def _upload(self, array: NDArray[Any]) -> Memory:
        return uploaded(self._machine, array)

    def _got(self, group: str, memory: Memory, n: int) -> Points:
        words: Words = np.empty((n, self._curve.point_words(group)), np.uint64)
        self._machine.download(memory, words)
        return Points(self._curve, group, words)

    def _expect_transform(self, n: int, factors: int, root: int) -> None:
        r = self._curve.r
        if n.bit_count() != 1 or factors not in (1, n):
            raise KernelError(
                f"{self._machine.name}: transform of points: expected 2^k of them and 1 or 2^k factors, "
                f"found {n} and {factors}"
            )
        if pow(root, n, r) != 1 or (n > 1 and pow(root, n // 2, r) != r - 1):
            raise KernelError(
                f"{self._machine.name}: transform of points: expected a primitive root of order {n}"
            )
