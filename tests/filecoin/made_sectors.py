"""Sectors of small shapes made here, whole: labels, trees, openings. With a mistake where a test wants one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.filecoin import poseidon
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.challenges import porep_challenges, update_challenges
from cuzk.filecoin.derive import prover_id, replica_id
from cuzk.filecoin.node_arithmetic import comm_r
from cuzk.filecoin.openings import Openings
from cuzk.filecoin.parents import parents
from cuzk.filecoin.registered import RegisteredProof
from cuzk.filecoin.vanilla import UpdatePartitions
from cuzk.vectors import Words, pack, unpack

R = BLS12_381.r
PROVER = prover_id(1000)
SECTOR = 7
TICKET, SEED = b"\x05" * 32, b"\x06" * 32


def random_nodes(seed: int, n: int) -> Words:
    rng = np.random.default_rng(seed)
    return pack([int.from_bytes(rng.bytes(31), "little") for _ in range(n)], 4)


@dataclass(frozen=True)
class Tree:
    arities: tuple[int, ...]
    levels: list[Words]

    @classmethod
    def binary(cls, leaves: Words) -> Tree:
        levels = [leaves]
        while len(levels[-1]) > 1:
            out = np.empty((len(levels[-1]) // 2, 4), dtype=np.uint64)
            _core.tree_d_nodes(levels[-1].reshape(-1, 8), out, 1)
            levels.append(out)
        return cls((2,) * (len(levels) - 1), levels)

    @classmethod
    def of_poseidon(cls, leaves: Words, arities: tuple[int, ...]) -> Tree:
        levels = [leaves]
        for arity in arities:
            levels.append(poseidon.digests(levels[-1], arity))
        return cls(arities, levels)

    @property
    def root(self) -> bytes:
        return self.levels[-1].tobytes()

    def open(self, indices: Words) -> Openings:
        siblings = []
        for leaf in indices.ravel().tolist():
            index, path = leaf, []
            for arity, level in zip(self.arities, self.levels, strict=False):
                first = index - index % arity
                path.append(np.delete(level[first : first + arity], index % arity, axis=0))
                index //= arity
            siblings.append(np.concatenate(path))
        rows = np.array(siblings).reshape(*indices.shape, -1, 4)
        root = np.broadcast_to(self.levels[-1][0], (*indices.shape, 4))
        return Openings(self.arities, self.levels[0][indices], rows, indices, root)


# PoRep


def add_one(node: Words) -> Words:
    return pack([(unpack(node)[0] + 1) % R], 4)


def make_labels(
    proof: RegisteredProof, replica: bytes, wrong: tuple[int, int] | None
) -> tuple[Words, Words]:
    """(layers, nodes, 4) and the graph, (nodes, 14)."""
    nodes, layers = proof.shape.nodes, proof.shape.layers
    every = np.arange(nodes, dtype=np.uint64)
    graph = parents(every, nodes, proof.porep_id(), proof.api)
    labels = np.zeros((layers, nodes, 4), dtype=np.uint64)
    identity = np.frombuffer(replica, "<u8").reshape(1, 4)
    for layer in range(layers):
        for node in range(nodes):  # the label of node 0 is never asked for: it may be anything
            row = labels[layer, graph[node]]
            row[6:] = labels[layer - 1, graph[node, 6:]] if layer else 0
            number = np.array([layer + 1], dtype=np.uint32)
            out = labels[layer, node : node + 1]
            _core.sdr_labels(identity, number, every[node : node + 1], row.reshape(1, 56), out, 1)
            if wrong == (layer, node):
                out[:] = add_one(out)
    return labels, graph


def sealed(
    proof: RegisteredProof,
    *,
    wrong_label: tuple[int, int] | None = None,
    wrong_replica: bool = False,
) -> C1:
    """The C1 of a sector of random data. ``wrong_label``: (layer from 0, node); the layers above follow it."""
    shape = proof.shape
    data = random_nodes(shape.log2_nodes, shape.nodes)
    tree_d = Tree.binary(data)
    replica = replica_id(PROVER, SECTOR, TICKET, tree_d.root, proof.porep_id())
    labels, graph = make_labels(proof, replica, wrong_label)
    columns = labels.swapaxes(0, 1)  # (nodes, layers, 4)
    tree_c = Tree.of_poseidon(poseidon.digests(columns, shape.layers), shape.arities)
    off = int(wrong_replica)
    pairs = zip(unpack(labels[-1]), unpack(data), strict=True)
    encoded = pack([(label + value + off) % R for label, value in pairs], 4)
    tree_r = Tree.of_poseidon(encoded, shape.arities)
    root = comm_r(tree_c.root, tree_r.root)
    partitions = range(proof.partitions)
    asked = np.stack([porep_challenges(proof, replica, root, SEED, k) for k in partitions])
    opened = np.concatenate([asked[..., None], graph[asked]], axis=-1)
    found = columns[opened]  # (partitions, challenges, 15, layers, 4)
    slots = np.arange(37)
    preimages = np.stack(
        [
            found[:, :, 1 + slots % 6, 0],
            *(
                np.concatenate([found[:, :, 1:7, layer], found[:, :, 7:, layer - 1]], axis=2)[
                    :, :, slots % 14
                ]
                for layer in range(1, shape.layers)
            ),
        ],
        axis=2,
    )
    return C1(
        name="made.c1",
        proof=proof,
        sector_number=SECTOR,
        comm_r=root,
        comm_d=tree_d.root,
        replica_id=replica,
        seed=SEED,
        ticket=TICKET,
        comm_c=tree_c.root,
        comm_r_last=tree_r.root,
        nodes=asked,
        data=tree_d.open(asked),
        replica=tree_r.open(asked),
        columns=np.ascontiguousarray(found),
        column_openings=tree_c.open(opened),
        label_parents=preimages,
    )


# SnapDeals

Commitments = tuple[bytes, bytes, bytes]


def updated(
    proof: RegisteredProof, h: int, *, wrong_by: int = 0
) -> tuple[UpdatePartitions, Commitments]:
    """A replica of random nodes that is updated with random data; ``wrong_by`` is added to its new nodes."""
    shape = proof.shape
    old, data = random_nodes(1, shape.nodes), random_nodes(2, shape.nodes)
    comm_c = random_nodes(3, 1).tobytes()
    old_tree, tree_d = Tree.of_poseidon(old, shape.arities), Tree.binary(data)
    comm_r_old = comm_r(comm_c, old_tree.root)
    tag = poseidon.RANDOMNESS_TAG
    phi = poseidon.digests(np.frombuffer(tree_d.root + comm_r_old, "<u8"), 2, tag=tag)
    rho = [
        unpack(poseidon.digests(np.concatenate([phi, pack([high], 4)]), 2, tag=tag))[0]
        for high in range(1 << h)
    ]
    new = [
        (a + b * rho[i >> (shape.log2_nodes - h)] + wrong_by) % R
        for i, (a, b) in enumerate(zip(unpack(old), unpack(data), strict=True))
    ]
    new_tree = Tree.of_poseidon(pack(new, 4), shape.arities)
    comm_r_new = comm_r(comm_c, new_tree.root)
    partitions = range(shape.update_partitions)
    asked = np.stack([update_challenges(shape, comm_r_new, k) for k in partitions])
    apex = shape.update_partitions * shape.update_apex_leaves
    level = tree_d.levels[shape.log2_nodes - (apex.bit_length() - 1)]
    update = UpdatePartitions(
        proof=proof,
        comm_c=comm_c,
        comm_r_last_old=old_tree.root,
        comm_r_last_new=new_tree.root,
        comm_d_new=tree_d.root,
        apex_leaves=level.reshape(len(partitions), -1, 4),
        replica_old=old_tree.open(asked),
        data_new=tree_d.open(asked),
        replica_new=new_tree.open(asked),
    )
    return update, (comm_r_old, tree_d.root, comm_r_new)
