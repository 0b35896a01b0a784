"""Merkle paths as placements: the octrees C and R_last over Poseidon, tree D over SHA-256.

PoRep and PoSt: the place of a node among its siblings is data, and the whole index becomes a public input. SnapDeals:
the bits of the index and the siblings are variables that exist already ("placed").
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.gadgets import (
    index_level,
    pack_node,
    path_end,
    placed_children,
    placed_level,
    tree_d_children,
)
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.sha256 import (
    FIELD_BITS,
    byte_order,
    digest_bits,
    sha256_padding_block,
    tree_d_block,
)

NOTHING = 0
"""Stands for a constant bit, which no port is bound to."""


def octree_path(
    part: Assembling, library: Library, arities: Sequence[int], leaf: int, root: int
) -> None:
    """Data: for each level the place (log2 of the arity bits), then the siblings."""
    node, index = leaf, []
    for arity in arities:
        node, *bits = part.place(library(index_level, arity), [node])
        index += bits
    part.place(library(path_end, len(index)), [node, root, *index])


def tree_d_path(part: Assembling, library: Library, levels: int, leaf: int, root: int) -> None:
    """Data: for each level the place (a bit), then the sibling."""
    node, index = leaf, []
    for _ in range(levels):
        *bits, place = part.place(library(tree_d_children), [node])
        node = tree_d_node(part, library, bits)
        index.append(place)
    part.place(library(path_end, levels), [node, root, *index])


def placed_octree_path(
    part: Assembling,
    library: Library,
    arities: Sequence[int],
    leaf: int,
    index: Sequence[int],
    siblings: Sequence[int],
) -> int:
    """The root's slot."""
    node, bits, others = leaf, iter(index), iter(siblings)
    for arity in arities:
        around = [next(others) for _ in range(arity - 1)]
        place = [next(bits) for _ in range(arity.bit_length() - 1)]
        (node,) = part.place(library(placed_level, arity), [node, *around, *place])
    return node


def placed_tree_d_path(
    part: Assembling, library: Library, leaf: int, index: Sequence[int], siblings: Sequence[int]
) -> int:
    """The root's slot."""
    node = leaf
    for bit, sibling in zip(index, siblings, strict=True):
        node = tree_d_node(
            part, library, part.place(library(placed_children), [node, sibling, bit])
        )
    return node


def tree_d_node(part: Assembling, library: Library, bits: Sequence[int]) -> int:
    """The hash of two children of 255 bits each."""
    message = [v for i in (0, FIELD_BITS) for v in node_message(bits[i : i + FIELD_BITS])]
    words = part.place(library(tree_d_block), message)
    words = part.place(library(sha256_padding_block), words)
    (node,) = part.place(library(pack_node), digest_bits(words))
    return node


def node_message(bits: Sequence[int]) -> list[int]:
    """255 bits of a number as SHA-256's ports take them: in byte order, without the constant one."""
    return [v for v in byte_order(bits, NOTHING) if v != NOTHING]
