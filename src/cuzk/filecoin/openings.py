"""Merkle proofs as storage-proofs-core serializes them, and as dense arrays.

    MerkleProof { data: Single { root, leaf, path }
                      | Sub    { base_proof, sub_proof, root, leaf }
                      | Top    { base_proof, sub_proof, top_proof, root, leaf } }
    path = { path: [ { hashes: [arity - 1 siblings], index } ] },  leaf level first

``index`` is where the running hash goes among its siblings. All arities are powers of two, so the index of
the leaf is the indices of the levels, packed little-endian: that is all that is kept of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.filecoin.serde import ELEMENT, Array, List, Number, Struct, Variant, struct
from cuzk.filecoin.shapes import OCTREE, Shape
from cuzk.vectors import Words

Segment = tuple[str, int, int]
"""Name of a path inside the proof, arity and number of its levels."""


@dataclass(frozen=True)
class Openings:
    """Paths of one tree, in an array of any shape ``(...)``: plain scalars, four words each."""

    arities: tuple[int, ...]
    leaf: Words
    """(..., 4)"""
    siblings: Words
    """(..., sum(arity - 1), 4): all levels, leaf level first, siblings in order."""
    index: NDArray[np.uint64]
    """(...): the leaf's index."""
    root: Words
    """(..., 4)"""


def binary_segments(depth: int) -> tuple[Segment, ...]:
    """Tree D."""
    return (("path", 2, depth),)


def octree_segments(shape: Shape) -> tuple[Segment, ...]:
    """The trees C and R_last: base, sub, top."""
    if not shape.sub:
        return (("path", OCTREE, shape.base_levels),)
    segments = [("base_proof", OCTREE, shape.base_levels), ("sub_proof", shape.sub, 1)]
    if shape.top:
        segments.append(("top_proof", shape.top, 1))
    return tuple(segments)


def merkle_proof(segments: tuple[Segment, ...]) -> Struct:
    """The type of a proof with these paths."""
    paths = tuple((name, _path(arity, levels)) for name, arity, levels in segments)
    ends = (("root", ELEMENT), ("leaf", ELEMENT))
    name = ("Single", "Sub", "Top")[len(segments) - 1]
    content = Struct((*ends, *paths) if len(segments) == 1 else (*paths, *ends))
    return struct(data=Variant(name, len(segments) - 1, content))


def _path(arity: int, levels: int) -> Struct:
    element = struct(hashes=List(ELEMENT, arity - 1), index=Number(8, below=arity))
    return struct(path=List(element, levels))


def openings(proofs: Array, segments: tuple[Segment, ...]) -> Openings:
    """All of an array of proofs of that type, copied into arrays of their own."""
    content = proofs["data"]["content"]
    index = np.zeros(proofs.shape, dtype=np.uint64)
    siblings, arities, shift = [], [], 0
    for name, arity, levels in segments:
        elements = content[name]["path"]["items"]
        siblings.append(elements["hashes"]["items"].reshape(*proofs.shape, levels * (arity - 1), 4))
        for level in range(levels):
            index |= elements["index"][..., level] << np.uint64(shift)
            shift += arity.bit_length() - 1
        arities += [arity] * levels
    return Openings(
        arities=tuple(arities),
        leaf=np.array(content["leaf"], dtype=np.uint64),
        siblings=np.ascontiguousarray(np.concatenate(siblings, axis=-2), dtype=np.uint64),
        index=index,
        root=np.array(content["root"], dtype=np.uint64),
    )
