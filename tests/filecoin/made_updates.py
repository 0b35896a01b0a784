"""Vanilla proofs of an update that was made here, as sealing software hands them over: bincode, partition by partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.c1 import fill, open_at
from cuzk.filecoin.openings import Openings, Segment, binary_segments, octree_segments
from cuzk.filecoin.vanilla import UpdatePartitions, update_layout


def update_blobs(update: UpdatePartitions) -> list[bytes]:
    """One for each partition."""
    layout, shape = update_layout(update.proof), update.proof.shape
    values = np.zeros(update.proof.partitions, dtype=layout.dtype)
    fill(layout, values, np.random.default_rng(1))
    values["comm_c"] = np.frombuffer(update.comm_c, "<u8")
    values["apex_leafs"]["items"] = update.apex_leaves
    opened = values["challenge_proofs"]["items"]
    octree, binary = octree_segments(shape), binary_segments(shape.log2_nodes)
    write_paths(opened["proof_r_old"], octree, update.replica_old)
    write_paths(opened["proof_d_new"], binary, update.data_new)
    write_paths(opened["proof_r_new"], octree, update.replica_new)
    return [value.tobytes() for value in values]


def write_paths(proofs: Any, segments: tuple[Segment, ...], paths: Openings) -> None:
    """Leaves, siblings, positions and roots."""
    open_at(proofs, segments, paths.index, paths.root)
    content, at = proofs["data"]["content"], 0
    content["leaf"] = paths.leaf
    for name, arity, levels in segments:
        hashes = content[name]["path"]["items"]["hashes"]["items"]
        for level in range(levels):
            hashes[..., level, :, :] = paths.siblings[..., at : at + arity - 1, :]
            at += arity - 1
