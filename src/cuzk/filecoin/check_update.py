"""Are vanilla proofs of a SnapDeals update what its circuits can prove?

    comm_r_old = H(comm_c, root of R_last), comm_r_new = H(comm_c, root of the new R_last); challenges; paths
    in the old and new R_last and in the new tree D; new replica's node = old one + rho * data's node, with

    phi = H(comm_d_new, comm_r_old),  rho = H(phi, the h high bits of the node's index)   (H with tag 2^40)

and, of each partition, the apex leaves: nodes of the new tree D that its paths pass through, and whose tree is a
subtree of it.

Definitions: storage-proofs-update::vanilla (verify).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.errors import UnsatisfiedError
from cuzk.filecoin import node_arithmetic as nodes
from cuzk.filecoin import poseidon
from cuzk.filecoin.challenges import update_challenges
from cuzk.filecoin.derive import expect_bytes
from cuzk.filecoin.mismatch import expect_node, expect_nodes, expect_numbers
from cuzk.filecoin.public import production_h_select
from cuzk.filecoin.vanilla import UpdatePartitions
from cuzk.vectors import Words


def check_update(
    update: UpdatePartitions,
    comm_r_old: bytes,
    comm_d_new: bytes,
    comm_r_new: bytes,
    *,
    h_select: int | None = None,
    threads: int = 1,
) -> None:
    """UnsatisfiedError names the first item that is wrong; ``h_select`` as in the public inputs."""
    commitments = {"comm_r_old": comm_r_old, "comm_d_new": comm_d_new, "comm_r_new": comm_r_new}
    for name, value in commitments.items():
        expect_bytes(value, name)
    old, new = (
        nodes.comm_r(update.comm_c, root)
        for root in (update.comm_r_last_old, update.comm_r_last_new)
    )
    expect_node(old, comm_r_old, "comm_r_old")
    expect_node(new, comm_r_new, "comm_r_new")
    expect_node(update.comm_d_new, comm_d_new, "comm_d_new")
    _check_challenges(update, comm_r_new)
    _check_paths(update, threads)
    _check_encoding(update, comm_d_new, comm_r_old, h_select)
    _check_apex(update, threads)


def _challenge(update: UpdatePartitions, partition: int, challenge: int) -> str:
    node = update.data_new.index[partition, challenge]
    return f"{update.place(partition)}: challenge {challenge} (node {node})"


def _check_challenges(update: UpdatePartitions, comm_r_new: bytes) -> None:
    partitions = range(update.proof.partitions)
    expected = np.stack([update_challenges(update.proof.shape, comm_r_new, k) for k in partitions])
    _expect_order(update, expected)
    for tree, paths in (
        ("the old tree R_last", update.replica_old),
        ("the new tree D", update.data_new),
        ("the new tree R_last", update.replica_new),
    ):
        expect_numbers(
            expected,
            paths.index,
            lambda p, c, tree=tree: f"{update.place(p)}: challenge {c}: challenged node in {tree}",
        )


def _expect_order(update: UpdatePartitions, expected: NDArray[np.uint64]) -> None:
    """A partition in another's place is told by all of its challenges."""
    index = update.data_new.index
    for place in range(len(expected)):
        whose = (expected == index[place]).all(axis=1)
        if whose.any() and not whose[place]:
            raise UnsatisfiedError(
                f"{update.place(place)}: expected its challenges, found those of partition {int(whose.argmax())}: "
                "give the vanilla proofs in the order of the partitions"
            )


def _check_paths(update: UpdatePartitions, threads: int) -> None:
    old = nodes.octree_roots(update.replica_old, threads=threads)
    new = nodes.octree_roots(update.replica_new, threads=threads)
    data = nodes.binary_roots(update.data_new, threads=threads)
    for tree, expected, found in (
        ("the old tree R_last", update.comm_r_last_old, old),
        ("the new tree D", update.comm_d_new, data),
        ("the new tree R_last", update.comm_r_last_new, new),
    ):
        expect_nodes(
            np.frombuffer(expected, dtype="<u8"),
            found,
            lambda p, c, tree=tree: (
                f"{_challenge(update, p, c)}: root that the path in {tree} leads to"
            ),
        )


def _check_encoding(
    update: UpdatePartitions, comm_d_new: bytes, comm_r_old: bytes, h_select: int | None
) -> None:
    shape = update.proof.shape
    choice = production_h_select(update.proof) if h_select is None else h_select
    high = update.data_new.index >> np.uint64(shape.log2_nodes - shape.update_h_values[choice])
    values, places = np.unique(high, return_inverse=True)
    factors = _rho(comm_d_new, comm_r_old, values)[places.reshape(high.shape)]
    encoded = nodes.add(update.replica_old.leaf, nodes.multiply(update.data_new.leaf, factors))
    expect_nodes(
        encoded,
        update.replica_new.leaf,
        lambda p, c: f"{_challenge(update, p, c)}: new replica's node, old node + rho * data",
    )


def _rho(comm_d_new: bytes, comm_r_old: bytes, high_bits: Words) -> Words:
    """(n, 4) for n different values of a node's high bits."""
    pair = np.frombuffer(comm_d_new + comm_r_old, dtype="<u8")
    phi = poseidon.digests(pair, 2, tag=poseidon.RANDOMNESS_TAG)
    inputs = np.zeros((len(high_bits), 2, 4), dtype=np.uint64)
    inputs[:, 0], inputs[:, 1, 0] = phi, high_bits
    return poseidon.digests(inputs, 2, tag=poseidon.RANDOMNESS_TAG)


def _check_apex(update: UpdatePartitions, threads: int) -> None:
    shape = update.proof.shape
    leaves = shape.update_apex_leaves
    apex_bits = leaves.bit_length() - 1
    below = shape.log2_nodes - shape.update_partition_bits - apex_bits
    reached = nodes.binary_roots(update.data_new, below, threads=threads)
    places = (update.data_new.index >> np.uint64(below)) % np.uint64(leaves)
    partitions = np.arange(len(places))[:, None]
    expect_nodes(
        update.apex_leaves[partitions, places],
        reached,
        lambda p, c: f"{_challenge(update, p, c)}: apex leaf {places[p, c]} of its path in tree D",
    )
    level = update.apex_leaves
    for _ in range(apex_bits):
        pairs = np.ascontiguousarray(level).reshape(-1, 8)
        out = np.empty((len(pairs), 4), dtype=np.uint64)
        _core.tree_d_nodes(pairs, out, threads)
        level = out.reshape(len(places), -1, 4)
    expect_nodes(
        nodes.binary_roots(update.data_new, below + apex_bits, threads=threads)[:, 0],
        level[:, 0],
        lambda p: f"{update.place(p)}: root of the tree of its apex leaves",
    )
