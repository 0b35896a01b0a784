"""The C1 of a sector of any size without the sector: of its trees only what the C1 opens is made.

    a node = the hash of its children where a leaf under it is opened, else an element drawn from
             (seed, tree, level, index)
    tree D leaves       drawn, or zeros
    columns             drawn for parents; a challenged node's labels follow from its parents', layer by layer
    tree C leaves       hashes of columns
    tree R_last leaves  last label + data

It passes every check, and its circuits are those of real sectors, with as dense a witness. What it is not: the
replica id, which would follow from comm_d and thus from the challenges that follow from it, is drawn as well, so
nobody may check it against a prover id; and only interactive challenges do not depend on the trees. With an
*owner* the sector is without data, as committed capacity is: all of tree D is known, and the replica id follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.errors import FormatError
from cuzk.filecoin import node_arithmetic as nodes
from cuzk.filecoin import poseidon
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.challenges import porep_challenges
from cuzk.filecoin.derive import prover_id
from cuzk.filecoin.derive import replica_id as replica_id_of
from cuzk.filecoin.openings import Openings
from cuzk.filecoin.parents import Nodes, parents
from cuzk.filecoin.registered import SEAL, Challenges, RegisteredProof
from cuzk.filecoin.shapes import DRG_DEGREE, LABEL_PARENTS, PARENTS
from cuzk.vectors import Words

Places = NDArray[np.int64]
"""In an array of nodes."""

Hash = Callable[[Words, int], Words]
"""f(children (n, arity, 4), arity) -> (n, 4)."""

Unknown = Callable[[str, Nodes], Words]
"""f("D 3", indices (...)) -> (..., 4): nodes of a level that nothing was opened under."""


@dataclass(frozen=True)
class Draw:
    """Pseudo-random elements of 31 bytes, by a name and a number."""

    seed: int

    def __call__(self, name: str, numbers: Nodes) -> Words:
        """(..., 4) of (...); the mixing is that of splitmix64."""
        digest = blake2b(f"{self.seed} {name}".encode(), digest_size=8).digest()
        step = np.uint64(0x9E3779B97F4A7C15)
        counts = np.multiply.outer(numbers, np.full(4, 4, dtype=np.uint64))
        counts += np.arange(1, 5, dtype=np.uint64)
        z: Words = counts * step
        z += np.uint64(int.from_bytes(digest, "little"))
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        z[..., 3] >>= np.uint64(8)
        return z

    def node(self, name: str) -> bytes:
        """One of them, as bytes."""
        return self(name, np.zeros(1, dtype=np.uint64)).tobytes()


@dataclass(frozen=True)
class NoData:
    """Tree D of a sector of zeros: one value a level, (levels + 1, 4)."""

    values: Words

    @classmethod
    def of(cls, levels: int) -> NoData:
        """For so many levels above the leaves."""
        values = [np.zeros((1, 4), dtype=np.uint64)]
        for _ in range(levels):
            values.append(_sha256(np.stack([values[-1], values[-1]], axis=1), 2))
        return cls(np.concatenate(values))

    def __call__(self, name: str, numbers: Nodes) -> Words:
        """``name`` ends in the level."""
        value = self.values[int(name.rpartition(" ")[2])]
        return np.broadcast_to(value, (*numbers.shape, 4)).copy()


@dataclass(frozen=True)
class SparseTree:
    """A tree of which the ancestors of some leaves are known; ``levels``: their indices, ascending, and values."""

    name: str
    arities: tuple[int, ...]
    draw: Unknown
    levels: list[tuple[Nodes, Words]]

    @classmethod
    def of(
        cls, name: str, arities: tuple[int, ...], draw: Unknown, leaves: tuple[Nodes, Words], hashed: Hash
    ) -> SparseTree:  # fmt: skip
        """``leaves``: (n,) indices, ascending and distinct, and (n, 4)."""
        tree = cls(name, arities, draw, [leaves])
        for level, arity in enumerate(arities):
            above = np.unique(tree.levels[level][0] // np.uint64(arity))
            places = np.arange(arity, dtype=np.uint64)
            below: Nodes = np.add.outer(above * np.uint64(arity), places)
            tree.levels.append((above, hashed(tree.values(level, below), arity)))
        return tree

    def values(self, level: int, wanted: Nodes) -> Words:
        """(..., 4) of any nodes of a level."""
        known, values = self.levels[level]
        found = self.draw(f"{self.name} {level}", wanted)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        there = known[place] == wanted
        found[there] = values[place[there]]
        return found

    @property
    def root(self) -> bytes:
        """32 of them."""
        return self.levels[-1][1].tobytes()

    def open(self, indices: Nodes) -> Openings:
        """Of leaves that were given; indices of any shape."""
        siblings, index = [], indices
        for level, arity in enumerate(self.arities):
            place = index % np.uint64(arity)
            others = np.arange(arity - 1, dtype=np.uint64)
            others = others + (others >= place[..., None])
            siblings.append(self.values(level, (index - place)[..., None] + others))
            index = index // np.uint64(arity)
        root = np.broadcast_to(self.levels[-1][1], (*indices.shape, 4))
        rows = np.concatenate(siblings, axis=-2)
        return Openings(self.arities, self.values(0, indices), rows, indices, root)


@dataclass(frozen=True)
class Owner:
    """A storage provider's number, and its sector's."""

    miner: int
    sector: int


def sparse_c1(
    proof: RegisteredProof, *, seed: int = 1, owner: Owner | None = None, threads: int = 1
) -> C1:
    """The same for the same seed and owner. FormatError where the challenges are not interactive."""
    if proof.challenges is not Challenges.INTERACTIVE:
        raise FormatError(
            f"{proof.name}: expected interactive challenges, found {proof.challenges.value} ones, which "
            "follow from the trees"
        )
    draw, shape = Draw(seed), proof.shape
    ticket, randomness = draw.node("ticket"), draw.node("seed")
    above: Unknown = draw if owner is None else NoData.of(shape.log2_nodes)
    replica_id = draw.node("replica id")
    if owner is not None:
        comm_d = above(f"D {shape.log2_nodes}", np.zeros(1, dtype=np.uint64)).tobytes()
        prover = prover_id(owner.miner)
        replica_id = replica_id_of(prover, owner.sector, ticket, comm_d, proof.porep_id())
    asked = np.stack(
        [
            porep_challenges(proof, replica_id, bytes(32), randomness, k)
            for k in range(proof.partitions)
        ]
    )
    graph = parents(asked.ravel(), shape.nodes, proof.porep_id(), proof.api)
    opened = np.concatenate([asked[..., None], graph.reshape(*asked.shape, PARENTS)], axis=-1)
    known, columns = _columns(draw, shape.layers, replica_id, asked, opened, threads)

    def octree(name: str, leaves: tuple[Nodes, Words]) -> SparseTree:
        def hashed(children: Words, arity: int) -> Words:
            return poseidon.digests(children, arity, threads=threads)

        return SparseTree.of(name, shape.arities, draw, leaves, hashed)

    challenged = np.unique(asked)
    data = above("D 0", challenged)
    tree_d = SparseTree.of("D", (2,) * shape.log2_nodes, above, (challenged, data), _sha256)
    tree_c = octree("C", (known, poseidon.digests(columns, shape.layers, threads=threads)))
    last = columns[np.searchsorted(known, challenged), -1]
    tree_r = octree("R_last", (challenged, nodes.add(last, data)))
    found = columns[np.searchsorted(known, opened)]  # (P, C, 15, layers, 4)
    return C1(
        name=f"sparse {shape.name} sector",
        proof=proof,
        sector_number=owner.sector if owner else None,
        comm_r=nodes.comm_r(tree_c.root, tree_r.root),
        comm_d=tree_d.root,
        replica_id=replica_id,
        seed=randomness,
        ticket=ticket,
        comm_c=tree_c.root,
        comm_r_last=tree_r.root,
        nodes=asked,
        data=tree_d.open(asked),
        replica=tree_r.open(asked),
        columns=found,
        column_openings=tree_c.open(opened),
        label_parents=_label_parents(found),
    )


def seal_of(size: str) -> RegisteredProof:
    """The interactive seal proof of API version 1.1 of a published sector size, "32GiB"."""
    for proof in SEAL[5:10]:
        if proof.shape.name == size:
            return proof
    sizes = ", ".join(proof.shape.name for proof in SEAL[5:10])
    raise FormatError(f"sector size: expected one of {sizes}, found {size!r}")


def _sha256(children: Words, arity: int) -> Words:
    out = np.empty((len(children), arity * 2), dtype=np.uint64)
    _core.tree_d_nodes(children.reshape(-1, 8), out, 1)
    return out


def _columns(
    draw: Draw, layers: int, replica_id: bytes, asked: Nodes, opened: Nodes, threads: int
) -> tuple[Nodes, Words]:
    """The opened nodes, ascending, and their columns (n, layers, 4)."""
    known = np.unique(opened)
    every = np.arange(layers, dtype=np.uint64)
    numbers: Nodes = np.add.outer(known * np.uint64(layers), every)
    columns = draw("label", numbers)
    challenged, first = np.unique(asked, return_index=True)
    of_parents = np.searchsorted(known, opened.reshape(-1, 1 + PARENTS)[first, 1:])
    rows = np.searchsorted(known, challenged)
    identity = np.frombuffer(replica_id, "<u8").reshape(1, 4)
    waves = _waves(rows, of_parents)
    for layer in range(layers):
        for wave in waves:
            parts = columns[of_parents[wave], layer]
            parts[:, DRG_DEGREE:] = (
                columns[of_parents[wave, DRG_DEGREE:], layer - 1] if layer else 0
            )
            out = np.empty((len(wave), 4), dtype=np.uint64)
            number = np.full(len(wave), layer + 1, dtype=np.uint32)
            flat = parts.reshape(len(wave), -1)
            _core.sdr_labels(identity, number, challenged[wave], flat, out, threads)
            columns[rows[wave], layer] = out
    return known, columns


def _waves(rows: Places, of_parents: Places) -> list[Places]:
    """Challenged nodes (their numbers, from the first) so that a DRG parent that is one is in an earlier wave."""
    depths: dict[int, int] = {}
    for row, above in zip(rows.tolist(), of_parents[:, :DRG_DEGREE].tolist(), strict=True):
        depths[row] = 1 + max(depths.get(parent, 0) for parent in above)
    depth = np.array(list(depths.values()))
    return [np.flatnonzero(depth == d) for d in range(1, int(depth.max()) + 1)]


def _label_parents(columns: Words) -> Words:
    """(P, C, L, 37, 4): the parents' labels as they are hashed."""
    by_layer = columns.swapaxes(2, 3)  # (P, C, layers, 15, 4)
    slots = np.arange(LABEL_PARENTS)
    first = by_layer[:, :, :1, 1 + slots % DRG_DEGREE]
    here, before = by_layer[:, :, 1:, 1 : 1 + DRG_DEGREE], by_layer[:, :, :-1, 1 + DRG_DEGREE :]
    rest = np.concatenate([here, before], axis=3)[:, :, :, slots % PARENTS]
    return np.ascontiguousarray(np.concatenate([first, rest], axis=2))
