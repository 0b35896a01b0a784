"""The graph of SDR: the six parents of a node in its own layer and its eight in the layer before.

DRG (depth-robust graph, bucket sampling): with m = 5 v and two u64 of the node's own ChaCha8 stream a parent,

    b = u mod ceil(log2 m) + 1,  hi = min(m, 2^b),  lo = max(2, hi / 2),  parent = (m - lo - u' mod (hi - lo + 1)) / 5

five times; the sixth parent is v - 1, first in all versions but 1.0, where it is last. Nodes 0 and 1 have node 0.

Expander: edge e = 8 v + i goes to a Feistel permutation of all edges (three rounds of BLAKE2b, walked on while
it leads out of them), and its node is that edge / 8. Version 1.0 cuts the permuted edge to 32 bits first, so
that at 32 GiB only the lower half of the nodes, and at 64 GiB a quarter of them, are anyone's parents.

Only the nodes that are asked for are computed. Definitions: storage-proofs-core::drgraph,
storage-proofs-porep::stacked::vanilla::graph, storage-proofs-core::crypto::feistel.
"""

from __future__ import annotations

from hashlib import blake2b, sha256

import numpy as np
from numpy.typing import NDArray

from cuzk.filecoin import chacha
from cuzk.filecoin.registered import ApiVersion
from cuzk.filecoin.shapes import DRG_DEGREE, EXPANDER_DEGREE

Nodes = NDArray[np.uint64]

SAMPLED = DRG_DEGREE - 1
FEISTEL_ROUNDS = 3


def parents(nodes: Nodes, sector_nodes: int, porep_id: bytes, api: ApiVersion) -> Nodes:
    """(n, 14): DRG parents, then expander parents, in the order in which labels take them."""
    drg = drg_parents(nodes, porep_id, api)
    expander = expander_parents(nodes, sector_nodes, porep_id, api)
    return np.concatenate([drg, expander], axis=1)


def drg_parents(nodes: Nodes, porep_id: bytes, api: ApiVersion) -> Nodes:
    """(n, 6). They do not depend on the size of the sector."""
    u = _node_streams(nodes, porep_id)
    meta = np.maximum(nodes, np.uint64(2))[:, None] * np.uint64(SAMPLED)
    # the exponent of a float is the bit length of an integer below 2^53
    log2 = np.frexp((meta - np.uint64(1)).astype(np.float64))[1].astype(np.uint64)
    bucket = u[:, 0::2] % log2 + np.uint64(1)
    high = np.minimum(meta, np.uint64(1) << bucket)
    low = np.maximum(np.uint64(2), high >> np.uint64(1))
    distance = low + u[:, 1::2] % (high - low + np.uint64(1))  # at least 2: never the node itself
    sampled = (meta - distance) // np.uint64(SAMPLED)
    before = np.maximum(nodes, np.uint64(1))[:, None] - np.uint64(1)
    order = (sampled, before) if api is ApiVersion.V1_0 else (before, sampled)
    found = np.concatenate(order, axis=1)
    found[nodes < 2] = 0
    return found


def _node_streams(nodes: Nodes, porep_id: bytes) -> Nodes:
    """The first ten u64 of each node's stream, (n, 10): its number is the end of its key."""
    seed = sha256(b"Filecoin_DRSample" + porep_id).digest()
    count = -(-4 * SAMPLED // chacha.WORDS)  # blocks of a node
    keys = np.empty((len(nodes), 8), dtype=np.uint32)
    keys[:, :7] = np.frombuffer(seed[:28], dtype="<u4")
    keys[:, 7] = nodes
    counters = np.zeros((count * len(nodes), 4), dtype=np.uint32)
    counters[:, 0] = np.tile(np.arange(count, dtype=np.uint32), len(nodes))
    words = chacha.blocks(np.repeat(keys, count, axis=0), counters, 8)
    return (
        words.reshape(len(nodes), count * chacha.WORDS)[:, : 4 * SAMPLED].astype("<u4").view("<u8")
    )


def expander_parents(nodes: Nodes, sector_nodes: int, porep_id: bytes, api: ApiVersion) -> Nodes:
    """(n, 8)."""
    edges = sector_nodes * EXPANDER_DEGREE
    permutation = _Feistel(edges, porep_id)
    found = [
        permutation.image(int(node) * EXPANDER_DEGREE + i)
        for node in nodes
        for i in range(EXPANDER_DEGREE)
    ]
    targets = np.array(found, dtype=np.uint64).reshape(len(nodes), EXPANDER_DEGREE)
    if api is ApiVersion.V1_0:
        targets &= np.uint64(0xFFFFFFFF)
    return targets // np.uint64(EXPANDER_DEGREE)


class _Feistel:
    """A permutation of 0 .. edges - 1, keyed by the PoRep id."""

    def __init__(self, edges: int, porep_id: bytes) -> None:
        digest = sha256(b"Filecoin_Feistel" + porep_id).digest()
        keys = np.frombuffer(digest, dtype="<u8")[:FEISTEL_ROUNDS]
        self.edges = edges
        self.half = ((edges - 1).bit_length() + 1) // 2  # bits of half an edge
        self.mask = (1 << self.half) - 1
        self.keys = [int(key).to_bytes(8, "big") for key in keys]

    def image(self, edge: int) -> int:
        """Permutes 2^(2 half) numbers until one of the edges is reached."""
        while True:
            left, right = edge >> self.half, edge & self.mask
            for key in self.keys:
                digest = blake2b(right.to_bytes(8, "big") + key).digest()
                left, right = right, left ^ int.from_bytes(digest[:8], "big") & self.mask
            edge = left << self.half | right
            if edge < self.edges:
                return edge
