"""Merkle paths as placements: the octrees C and R_last over Poseidon, tree D over SHA-256.

The private form: the place of a node among its siblings is witness, and the whole index becomes a public input.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.gadgets import (
    index_level,
    pack_node,
    path_end,
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
