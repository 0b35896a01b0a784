"""What is computed of nodes in arrays of any shape (..., 4): roots of paths, sums and products in the field."""

from __future__ import annotations

import numpy as np

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.filecoin import poseidon
from cuzk.filecoin.openings import Openings
from cuzk.vectors import Scalars, Words

ONE = Scalars.from_ints(BLS12_381, [1], montgomery=True).words


def octree_roots(paths: Openings, *, threads: int = 1) -> Words:
    """(..., 4): where the paths of a tree over Poseidon lead to."""
    rows = paths.leaf.reshape(-1, 4)
    found = poseidon.roots(
        paths.arities, rows, paths.siblings, paths.index.reshape(-1), threads=threads
    )
    return found.reshape(paths.leaf.shape)


def binary_roots(paths: Openings, levels: int | None = None, *, threads: int = 1) -> Words:
    """(..., 4): where the paths of tree D lead to, or their first ``levels``."""
    siblings = np.ascontiguousarray(paths.siblings[..., :levels, :])
    rows = paths.leaf.reshape(-1, 4)
    out = np.empty_like(rows)
    flat = siblings.reshape(len(rows), -1)
    _core.tree_d_roots(rows, flat, paths.index.reshape(-1), out, threads)
    return out.reshape(paths.leaf.shape)


def comm_r(comm_c: bytes, comm_r_last: bytes) -> bytes:
    """The commitment to a replica: of the roots of its trees C and R_last."""
    inputs = np.frombuffer(comm_c + comm_r_last, dtype="<u8")
    return poseidon.digests(inputs, 2).tobytes()


def add(a: Words, b: Words) -> Words:
    """a + b modulo r, plain."""
    left, right = (np.ascontiguousarray(x).reshape(-1, 4) for x in (a, b))
    out = np.empty_like(left)
    _core.combine(BLS12_381.name, [left, right], np.concatenate([ONE, ONE]), out, 1)
    return out.reshape(a.shape)


def multiply(a: Words, b: Words) -> Words:
    """a * b modulo r, plain."""
    left, right = (np.ascontiguousarray(x).reshape(-1, 4) for x in (a, b))
    factors, out = np.empty_like(right), np.empty_like(left)
    _core.to_montgomery(BLS12_381.name, "fr", right, factors, 1)
    _core.pointwise(BLS12_381.name, left, factors, None, ONE, out, 1)
    return out.reshape(a.shape)
