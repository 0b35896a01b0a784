"""Sectors of random nodes, opened for a PoSt, in the form that sealing software hands over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from made_sectors import Tree, random_nodes

from bench.c1 import fill, open_at
from cuzk.filecoin.challenges import post_challenges, post_indices
from cuzk.filecoin.node_arithmetic import comm_r
from cuzk.filecoin.openings import octree_segments
from cuzk.filecoin.registered import RegisteredProof
from cuzk.filecoin.vanilla import POST_CHALLENGES, post_layout

RANDOMNESS = b"\x07" * 31 + b"\0"


@dataclass(frozen=True)
class MadeSector:
    number: int
    comm_r: bytes
    blob: bytes


def made_sector(
    proof: RegisteredProof, number: int, position: int = 0, randomness: bytes = RANDOMNESS
) -> MadeSector:
    """The sector at ``position`` among those of all partitions."""
    shape, layout = proof.shape, post_layout(proof)
    tree = Tree.of_poseidon(random_nodes(number, shape.nodes), shape.arities)
    comm_c = random_nodes(number + 1000, 1).tobytes()
    root = comm_r(comm_c, tree.root)
    indices = post_indices(proof.api, position, POST_CHALLENGES[proof.kind])
    asked = post_challenges(randomness, number, indices, shape.nodes)
    value = np.zeros(1, dtype=layout.dtype)
    fill(layout, value, np.random.default_rng(number))
    value["sector_id"] = number
    value["comm_r"] = np.frombuffer(root, "<u8")
    inner = value["vanilla_proof"]["sectors"]["items"][:, 0]
    inner["comm_c"] = np.frombuffer(comm_c, "<u8")
    inner["comm_r_last"] = np.frombuffer(tree.root, "<u8")
    opened = inner["inclusion_proofs"]["items"]
    paths = tree.open(asked)
    segments = octree_segments(shape)
    open_at(opened, segments, asked[None], np.frombuffer(tree.root, "<u8"))
    content, at = opened["data"]["content"], 0
    content["leaf"] = paths.leaf
    for name, arity, levels in segments:
        hashes = content[name]["path"]["items"]["hashes"]["items"]
        for level in range(levels):
            hashes[:, :, level] = paths.siblings[None, :, at : at + arity - 1]
            at += arity - 1
    return MadeSector(number, root, value.tobytes())
