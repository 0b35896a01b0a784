"""Are vanilla proofs of a PoSt what its circuit can prove?

    for each sector: comm_r = H(comm_c, comm_r_last); the challenged leaves are those that follow from the
    randomness; their paths lead to comm_r_last

Definitions: storage-proofs-post::fallback::vanilla (verify_all_partitions).
"""

from __future__ import annotations

import numpy as np

from cuzk.filecoin import node_arithmetic as nodes
from cuzk.filecoin import poseidon
from cuzk.filecoin.challenges import post_challenges, post_indices
from cuzk.filecoin.derive import field_element
from cuzk.filecoin.mismatch import expect_nodes, expect_numbers
from cuzk.filecoin.vanilla import PostSectors


def check_post(
    post: PostSectors, randomness: bytes, *, partition: int = 0, threads: int = 1
) -> None:
    """UnsatisfiedError names the first sector, and its challenge, that is wrong.

    ``partition``: which one of a WindowPoSt the sectors are.
    """
    field_element(randomness, "randomness")

    def sector(i: int) -> str:
        return f"{post.place(i)} (number {post.sector_ids[i]})"

    def challenge(i: int, k: int) -> str:
        return f"{sector(i)}: challenge {k} (node {post.replica.index[i, k]})"

    pairs = np.stack([post.comm_c, post.comm_r_last], axis=1)
    expect_nodes(
        poseidon.digests(pairs, 2, threads=threads), post.comm_r, lambda i: f"{sector(i)}: comm_r"
    )
    size, count = post.proof.shape.window_sectors, post.replica.index.shape[1]
    challenged = [
        post_challenges(
            randomness,
            int(number),
            post_indices(post.proof.api, partition * size + position, count),
            post.proof.shape.nodes,
        )
        for position, number in enumerate(post.sector_ids)
    ]
    expect_numbers(
        np.stack(challenged),
        post.replica.index,
        lambda i, k: f"{sector(i)}: challenge {k}: challenged node",
    )
    expect_nodes(
        post.comm_r_last[:, None],
        nodes.octree_roots(post.replica, threads=threads),
        lambda i, k: f"{challenge(i, k)}: root that the path in tree R_last leads to",
    )
