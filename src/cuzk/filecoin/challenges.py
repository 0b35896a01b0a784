"""Which nodes a proof is asked about.

PoRep, challenge i of all partitions (partition k has n: i = n k ... n k + n - 1), as 1 + x mod (nodes - 1):

    interactive      x = SHA-256(replica id, seed, i)
    non-interactive  x = SHA-256("filecoin.io|PoRep|1|NonInteractive|1", replica id, comm_r, i)
    synthetic        x = 32 bytes of the ChaCha20 stream of (replica id, comm_r), number j of min(nodes, 2^18),
                     j = u32 number i of the stream of (replica id, seed) modulo so many

PoSt: SHA-256(randomness, sector id, index) mod nodes, of which 64 bits are taken; the index counts through all
sectors of all partitions in API versions 1.0 and 1.1, and in each sector anew in 1.2.

SnapDeals: Poseidon digests of (comm_r_new, number), cut into pieces of log2(nodes of a partition) bits, lowest
first; the partition is what stands above them.

All numbers little-endian. Definitions: storage-proofs-porep::stacked::vanilla::challenges,
storage-proofs-post::fallback, storage-proofs-update::challenges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b, sha256

import numpy as np

from cuzk.curves import BLS12_381
from cuzk.filecoin.chacha import WORDS, cipher_blocks
from cuzk.filecoin.derive import expect_bytes, field_element
from cuzk.filecoin.parents import Nodes
from cuzk.filecoin.poseidon import RANDOMNESS_TAG, digests
from cuzk.filecoin.registered import ApiVersion, Challenges, RegisteredProof
from cuzk.filecoin.shapes import Shape
from cuzk.vectors import pack, unpack

NON_INTERACTIVE = b"filecoin.io|PoRep|1|NonInteractive|1"
GENERATION = b"filecoin.io|PoRep|1|Synthetic|1|Generation"
SELECTION = b"filecoin.io|PoRep|1|Synthetic|1|Selection"
SYNTHETIC_NONCE = b"synth-porep\0"
SYNTHETIC_SET = 1 << 18


def porep_challenges(
    proof: RegisteredProof, replica_id: bytes, comm_r: bytes, seed: bytes, partition: int
) -> Nodes:
    """Of one partition, in order. ``seed`` is not looked at for non-interactive proofs."""
    for name, value in (("replica id", replica_id), ("comm_r", comm_r), ("seed", seed)):
        expect_bytes(value, name)
    nodes, count = proof.shape.nodes, proof.shape.challenges
    wanted = range(count * partition, count * (partition + 1))
    if proof.challenges is Challenges.SYNTHETIC:
        return synthetic(replica_id, comm_r, seed, nodes, wanted)
    if proof.challenges is Challenges.NON_INTERACTIVE:
        return hashed(NON_INTERACTIVE + replica_id + comm_r, nodes, wanted)
    return hashed(replica_id + seed, nodes, wanted)


def hashed(start: bytes, nodes: int, wanted: Iterable[int]) -> Nodes:
    """The challenges with these numbers; ``start`` is what is hashed before the number."""
    prefix = sha256(start)
    found = []
    for i in wanted:
        hasher = prefix.copy()
        hasher.update(i.to_bytes(4, "little"))
        found.append(_challenge(hasher.digest(), nodes))
    return np.array(found, dtype=np.uint64)


def synthetic(
    replica_id: bytes,
    comm_r: bytes,
    seed: bytes,
    nodes: int,
    wanted: range,
    candidates: int = SYNTHETIC_SET,
) -> Nodes:
    """The challenges with these (consecutive) numbers, each one of ``candidates``."""
    candidates = min(nodes, candidates)
    selection = _stream_key(SELECTION, replica_id, seed)
    first, last = wanted.start // WORDS, -(-wanted.stop // WORDS)
    words = cipher_blocks(selection, SYNTHETIC_NONCE, np.arange(first, last)).ravel()
    chosen = words[wanted.start - first * WORDS :][: len(wanted)] % np.uint32(candidates)
    generation = _stream_key(GENERATION, replica_id, comm_r)
    halves = cipher_blocks(generation, SYNTHETIC_NONCE, chosen // 2).reshape(-1, 2, WORDS // 2)
    pieces = halves[np.arange(len(chosen)), chosen % 2].astype("<u4")
    return np.array([_challenge(piece.tobytes(), nodes) for piece in pieces], dtype=np.uint64)


def _stream_key(name: bytes, replica_id: bytes, other: bytes) -> bytes:
    return blake2b(replica_id + other, key=name, digest_size=32).digest()


def _challenge(digest: bytes, nodes: int) -> int:
    return int.from_bytes(digest, "little") % (nodes - 1) + 1  # node 0 is never asked for


# PoSt


def post_challenges(randomness: bytes, sector: int, indices: Iterable[int], nodes: int) -> Nodes:
    """The challenged leaves of one sector."""
    prefix = sha256(randomness + sector.to_bytes(8, "little"))
    found = []
    for index in indices:
        hasher = prefix.copy()
        hasher.update(index.to_bytes(8, "little"))
        found.append(int.from_bytes(hasher.digest()[:8], "little") % nodes)
    return np.array(found, dtype=np.uint64)


def post_indices(api: ApiVersion, position: int, count: int) -> range:
    """The indices of the sector at ``position`` among those of all partitions."""
    first = 0 if api is ApiVersion.V1_2 else position * count
    return range(first, first + count)


# SnapDeals


def update_challenges(shape: Shape, comm_r_new: bytes, partition: int) -> Nodes:
    """Of one partition, in order: nodes of the whole sector."""
    bits = shape.log2_nodes - shape.update_partition_bits
    per_digest = (BLS12_381.r.bit_length() - 1) // bits
    count = -(-shape.update_challenges // per_digest)
    root = field_element(comm_r_new, "comm_r_new")
    first = count * partition
    inputs = [value for j in range(first, first + count) for value in (root, j)]
    values = unpack(digests(pack(inputs, 4), 2, tag=RANDOMNESS_TAG))
    return _pieces(values, bits, per_digest, shape.update_challenges, partition << bits)


def _pieces(values: Sequence[int], bits: int, each: int, count: int, above: int) -> Nodes:
    mask = (1 << bits) - 1
    found = [value >> bits * i & mask | above for value in values for i in range(each)]
    return np.array(found[:count], dtype=np.uint64)
