"""What depends on the sector size: trees, layers, challenges, partitions.

A sector of 32 * N bytes has N nodes of 32 bytes. Tree D is binary over SHA-256; the trees C and R_last are
octrees over Poseidon whose roots, where N is no power of 8, are joined by a sub tree and a top tree of one
node each ("base-sub-top", 0 where there is none):

    2 KiB   8-0-0    32 GiB   8-8-0    64 GiB   8-8-2

Definitions: rust-fil-proofs filecoin-proofs::constants (layers, minimum challenges, partitions, sectors of a
WindowPoSt partition), storage-proofs-update::constants (SnapDeals).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cuzk.errors import FormatError

NODE_BYTES = 32
OCTREE = 8

DRG_DEGREE = 6
EXPANDER_DEGREE = 8
PARENTS = DRG_DEGREE + EXPANDER_DEGREE
LABEL_PARENTS = 37
"""Parent slots in the preimage of a label: the parents are repeated until they fill them."""

WINNING_CHALLENGES = 66
"""WinningPoSt: challenges of the one sector; its circuit takes them as so many sectors of one challenge each."""
WINDOW_CHALLENGES = 10
"""WindowPoSt: challenges of a sector."""

UPDATE_H_SELECTS = 6
"""SnapDeals: the number of high bits h is one of six."""


@dataclass(frozen=True)
class Shape:
    """One sector size, with the fields in the order of the table below."""

    name: str
    log2_nodes: int
    base_levels: int
    sub: int
    top: int
    layers: int
    challenges: int
    """PoRep challenges of one partition."""
    partitions: int
    """PoRep partitions (interactive and synthetic challenges)."""
    ni_partitions: int
    """PoRep partitions with non-interactive challenges, as many of them in each."""
    ni_challenges: int
    """Non-interactive challenges in all that are asked for at least."""
    window_sectors: int
    """Sectors of one WindowPoSt partition."""
    update_partitions: int
    update_challenges: int
    """SnapDeals challenges of one partition."""
    update_apex_leaves: int
    """SnapDeals: leaves of the apex tree of one partition."""

    @property
    def nodes(self) -> int:
        """Nodes of the sector, and leaves of each tree."""
        return 1 << self.log2_nodes

    @property
    def sector_bytes(self) -> int:
        """The sector size."""
        return NODE_BYTES << self.log2_nodes

    @cached_property
    def arities(self) -> tuple[int, ...]:
        """Arities on the path from a leaf to the root of the trees C and R_last."""
        joins = tuple(arity for arity in (self.sub, self.top) if arity)
        return (OCTREE,) * self.base_levels + joins

    @cached_property
    def siblings(self) -> int:
        """Sibling nodes of one such path."""
        return sum(arity - 1 for arity in self.arities)

    @property
    def tree(self) -> str:
        """As in the names of parameters: "8-8-2"."""
        return f"{OCTREE}-{self.sub}-{self.top}"

    @property
    def update_partition_bits(self) -> int:
        """log2 of the partitions of a SnapDeals proof."""
        return self.update_partitions.bit_length() - 1

    @property
    def update_h_values(self) -> tuple[int, ...]:
        """The six numbers of high bits that h_select chooses from."""
        return (1,) * UPDATE_H_SELECTS if self.log2_nodes <= 10 else tuple(range(7, 13))


SHAPES = {
    shape.name: shape
    for shape in (
        #               tree           PoRep               window  SnapDeals
        Shape("2KiB",    6, 2, 0, 0,   2,  2,  1,  13,   26,    2,  1, 10,   8),
        Shape("4KiB",    7, 2, 2, 0,   2,  2,  1,  13,   26,    2,  1, 10,   8),
        Shape("16KiB",   9, 2, 8, 0,   2,  2,  1,  13,   26,    2,  2, 10, 128),
        Shape("8MiB",   18, 6, 0, 0,   2,  2,  1,  13,   26,    2,  4, 10, 128),
        Shape("512MiB", 24, 8, 0, 0,   2,  2,  1,  13,   26,    2, 16, 86, 128),
        Shape("32GiB",  30, 9, 8, 0,  11, 18, 10, 126, 2253, 2349, 16, 86, 128),
        Shape("64GiB",  31, 9, 8, 2,  11, 18, 10, 126, 2253, 2300, 16, 86, 128),
    )
}  # fmt: skip

PUBLISHED = ("2KiB", "8MiB", "512MiB", "32GiB", "64GiB")
"""Sizes with registered proofs, in the order of the proof numbers."""


def shape_of_bytes(sector_bytes: int, where: str = "sector size") -> Shape:
    """The shape with this sector size."""
    for shape in SHAPES.values():
        if shape.sector_bytes == sector_bytes:
            return shape
    sizes = ", ".join(f"{shape.sector_bytes} ({name})" for name, shape in SHAPES.items())
    raise FormatError(f"{where}: expected one of {sizes}, found {sector_bytes}")
