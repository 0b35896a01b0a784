"""Poseidon as Filecoin hashes with it: tree nodes, columns, comm_r, and the randomness of SnapDeals.

The state is a tag and the inputs, the digest is element 1 of the last state. The form is neptune's optimised one,
because its matrices are the circuits' coefficients. A key k that is added before round r's S-boxes, behind a matrix
M, is k M^-1 added before M. In the partial rounds only element 0 has an S-box: what is pushed back to the other
elements goes on through it, so that one key a round is left. And M = (1 + M^) S, where S has entries only in its
first row, its first column and on its diagonal; (1 + M^) leaves element 0 alone and so goes back through the round,
where M (1 + M^) is cut in two again. What reaches the last full round before is ``pre_sparse``.

Reference: the paper, appendix B; neptune's documentation of its static mode, mds and preprocessing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.filecoin.poseidon_constants import (
    Matrix,
    R,
    Row,
    inverse,
    mds_matrix,
    round_constants,
    round_numbers,
    solve,
    times,
)
from cuzk.vectors import Scalars, Words, pack

ARITIES = (2, 4, 8, 11)
RANDOMNESS_TAG = 1 << 40
"""Of the hashes that make randomness (phi, rho and the challenges of SnapDeals), arity 2."""


def merkle_tag(arity: int) -> int:
    """A bit for every child: the tag of a tree's node, and of a column (2047) and comm_r (3) as well."""
    return (1 << arity) - 1


@dataclass(frozen=True)
class Sparse:
    """A matrix that is the identity but for its first column and its first row."""

    column: Row  # whole
    row: Row  # without the element that it shares with the column


@dataclass(frozen=True)
class Poseidon:
    """All that depends on the arity. ``keys``: width a full round, one a partial round, in their order."""

    arity: int
    full_rounds: int
    partial_rounds: int
    keys: Row
    mds: Matrix
    pre_sparse: Matrix
    sparse: tuple[Sparse, ...]
    table: Words
    """keys, mds, pre_sparse, sparse as (n, 4) words, Montgomery, as the native code reads them."""

    @property
    def width(self) -> int:
        """Elements of the state."""
        return self.arity + 1


@cache
def poseidon(arity: int) -> Poseidon:
    """The hash of that many inputs; 0.2 s for arity 11, once a process."""
    width = arity + 1
    full, partial = round_numbers(width)
    mds = mds_matrix(width)
    keys = _compressed_keys(round_constants(width, full, partial), mds, full)
    pre_sparse, sparse = _sparse_matrices(mds, partial)
    values = [*keys]
    for matrix in (mds, pre_sparse, *((s.column, s.row) for s in sparse)):
        for row in matrix:
            values += row
    table = Scalars.from_ints(BLS12_381, values, montgomery=True).words
    return Poseidon(arity, full, partial, keys, mds, pre_sparse, sparse, table)


def _compressed_keys(constants: list[Row], mds: Matrix, full: int) -> Row:
    """width * full + partial of them."""
    half, back = full // 2, inverse(mds)
    before = [constants[0], *(times(row, back) for row in constants[1:half])]
    after = [times(row, back) for row in constants[-half + 1 :]]
    carried, single = constants[-half], []
    for row in reversed(constants[half:-half]):
        first, *rest = times(carried, back)
        single.append(first)
        carried = (row[0], *((a + b) % R for a, b in zip(row[1:], rest, strict=True)))
    rows = (*before, times(carried, back), tuple(reversed(single)), *after)
    return tuple(key for row in rows for key in row)


def _sparse_matrices(mds: Matrix, partial: int) -> tuple[Matrix, tuple[Sparse, ...]]:
    """What stands before the partial rounds, and a matrix for each of them."""
    current, found = mds, []
    for _ in range(partial):
        minor = tuple(row[1:] for row in current[1:])
        below = solve(minor, tuple((row[0],) for row in current[1:]))
        column = (current[0][0], *(value for (value,) in below))
        found.append(Sparse(column, current[0][1:]))
        # mds times a matrix that is 1 and the minor on its diagonal
        current = tuple((row[0], *times(row[1:], minor)) for row in mds)
    return current, tuple(reversed(found))


def digests(inputs: Words, arity: int, *, tag: int | None = None, threads: int = 1) -> Words:
    """The hashes (n, 4) of n times ``arity`` nodes, (n, 4 * arity) or as many words in any shape; plain."""
    inputs = np.ascontiguousarray(inputs).reshape(-1, 4 * arity)
    out = np.empty((len(inputs), 4), dtype=np.uint64)
    first = pack([merkle_tag(arity) if tag is None else tag], 4)
    _core.poseidon(arity, poseidon(arity).table, first, inputs, out, threads)
    return out


def roots(
    arities: Sequence[int], leaves: Words, siblings: Words, indices: Words, *, threads: int = 1
) -> Words:
    """The roots (n, 4) that n paths lead to, in trees whose levels have these arities, leaves first.

    ``leaves`` (n, 4); ``siblings`` (n, k, 4) or (n, 4 k): the other children, level after level; ``indices``
    (n,): of the leaves.
    """
    out = np.empty((len(leaves), 4), dtype=np.uint64)
    tables = [poseidon(arity).table for arity in arities]
    flat = np.ascontiguousarray(siblings).reshape(len(leaves), -1)
    _core.poseidon_roots(list(arities), tables, leaves, flat, indices, out, threads)
    return out
