"""Is a C1 output what a seal's second phase can prove? Everything that its circuits will enforce, natively.

    comm_r = H(comm_c, comm_r_last); replica id; challenges; parents; paths in the trees D, R_last and C;
    a column's hash is the leaf it stands at; labels follow from the columns of the parents, layer by layer;
    the replica's node = the last label + the data's node

A witness of tens of millions of values, made of a wrong C1, is found out only when the circuit is evaluated, or when
the proof does not verify; here the first wrong item is named. Of each kind the first in the order of partition,
challenge, column or layer; kinds in the order above.

Definitions: storage-proofs-porep::stacked::vanilla::proof (verify_all_partitions).
"""

from __future__ import annotations

import numpy as np

from cuzk import _core
from cuzk.filecoin import node_arithmetic as nodes
from cuzk.filecoin import poseidon
from cuzk.filecoin.c1 import C1, COLUMN_NAMES
from cuzk.filecoin.challenges import porep_challenges
from cuzk.filecoin.derive import replica_id
from cuzk.filecoin.mismatch import expect_node, expect_nodes, expect_numbers
from cuzk.filecoin.openings import Openings
from cuzk.filecoin.parents import parents
from cuzk.filecoin.shapes import DRG_DEGREE, LABEL_PARENTS, PARENTS
from cuzk.vectors import Words


def check_c1(
    c1: C1,
    *,
    prover_id: bytes | None = None,
    sector: int | None = None,
    porep_id: bytes | None = None,
    threads: int = 1,
) -> None:
    """UnsatisfiedError names the first item that is wrong.

    The replica id is recomputed where ``prover_id`` is given, and ``sector`` or a C1 that says it. ``porep_id``
    only where it is not the one of the registered proof.
    """
    porep_id = porep_id or c1.proof.porep_id()
    expect_node(nodes.comm_r(c1.comm_c, c1.comm_r_last), c1.comm_r, f"{c1.name}: comm_r")
    sector = c1.sector_number if sector is None else sector
    if prover_id is not None and sector is not None:
        expected = replica_id(prover_id, sector, c1.ticket, c1.comm_d, porep_id)
        expect_node(expected, c1.replica_id, f"{c1.name}: replica_id")
    _check_graph(c1, porep_id)
    _check_paths(c1, threads)
    _check_columns(c1, threads)
    _check_labels(c1, threads)
    last = c1.columns[:, :, 0, -1]
    expect_nodes(
        nodes.add(last, c1.data.leaf),
        c1.replica.leaf,
        lambda p, c: f"{_challenge(c1, p, c)}: replica's node, last label + data",
    )


def _challenge(c1: C1, partition: int, challenge: int) -> str:
    node = c1.nodes[partition, challenge]
    return f"{c1.name}: partition {partition}: challenge {challenge} (node {node})"


def _column(c1: C1, partition: int, challenge: int, column: int) -> str:
    node = c1.column_openings.index[partition, challenge, column]
    where = _challenge(c1, partition, challenge)
    return f"{where}: {COLUMN_NAMES[column]} (node {node})"


def _check_graph(c1: C1, porep_id: bytes) -> None:
    """Challenged nodes, and the nodes of their parents."""
    challenged = np.stack(
        [
            porep_challenges(c1.proof, c1.replica_id, c1.comm_r, c1.seed, partition)
            for partition in range(c1.proof.partitions)
        ]
    )
    expect_numbers(
        challenged,
        c1.nodes,
        lambda p, c: f"{c1.name}: partition {p}: challenge {c}: challenged node",
    )
    found = parents(c1.nodes.ravel(), c1.proof.shape.nodes, porep_id, c1.proof.api)
    graph = np.concatenate([c1.nodes[..., None], found.reshape(*c1.nodes.shape, PARENTS)], axis=-1)
    expect_numbers(
        graph,
        c1.column_openings.index,
        lambda p, c, k: f"{_challenge(c1, p, c)}: node of {COLUMN_NAMES[k]}",
    )


def _check_paths(c1: C1, threads: int) -> None:
    """In the trees D and R_last."""
    expect_nodes(
        _node(c1.comm_d),
        nodes.binary_roots(c1.data, threads=threads),
        lambda p, c: f"{_challenge(c1, p, c)}: root that the path in tree D leads to",
    )
    expect_nodes(
        _node(c1.comm_r_last),
        nodes.octree_roots(c1.replica, threads=threads),
        lambda p, c: f"{_challenge(c1, p, c)}: root that the path in tree R_last leads to",
    )


def _check_columns(c1: C1, threads: int) -> None:
    """The hashes of the columns, and their paths in tree C."""
    opened: Openings = c1.column_openings
    hashes = poseidon.digests(c1.columns, c1.proof.shape.layers, threads=threads)
    expect_nodes(
        hashes.reshape(opened.leaf.shape),
        opened.leaf,
        lambda p, c, k: f"{_column(c1, p, c, k)}: leaf of tree C, the column's hash",
    )
    expect_nodes(
        _node(c1.comm_c),
        nodes.octree_roots(opened, threads=threads),
        lambda p, c, k: f"{_column(c1, p, c, k)}: root that the path in tree C leads to",
    )


def _check_labels(c1: C1, threads: int) -> None:
    """Each label of the challenged columns, from the labels that the parents' columns hold."""
    partitions, challenges, layers = c1.label_parents.shape[:3]
    preimages = np.zeros((partitions, challenges, layers, PARENTS, 4), dtype=np.uint64)
    by_layer = c1.columns.swapaxes(2, 3)  # (partition, challenge, layer, column, 4)
    preimages[..., :DRG_DEGREE, :] = by_layer[:, :, :, 1 : 1 + DRG_DEGREE]
    preimages[:, :, 1:, DRG_DEGREE:] = by_layer[:, :, :-1, 1 + DRG_DEGREE :]
    for layer in range(layers):
        slots = np.arange(LABEL_PARENTS) % (PARENTS if layer else DRG_DEGREE)
        expect_nodes(
            preimages[:, :, layer, slots],
            c1.label_parents[:, :, layer],
            lambda p, c, slot, layer=layer: (
                f"{_challenge(c1, p, c)}: layer {layer + 1}: label of parent {slot}"
            ),
        )
    numbers = np.broadcast_to(np.arange(1, layers + 1), preimages.shape[:3])
    out = np.empty((numbers.size, 4), dtype=np.uint64)
    _core.sdr_labels(
        _node(c1.replica_id),
        numbers.astype(np.uint32).ravel(),
        np.repeat(c1.nodes.ravel(), layers),
        preimages.reshape(-1, PARENTS * 4),
        out,
        threads,
    )
    expect_nodes(
        out.reshape(*preimages.shape[:3], 4),
        c1.columns[:, :, 0],
        lambda p, c, layer: f"{_challenge(c1, p, c)}: layer {layer + 1}: label",
    )


def _node(data: bytes) -> Words:
    return np.frombuffer(data, dtype="<u8").reshape(1, 4)
