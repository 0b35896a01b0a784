"""Public inputs of Filecoin's circuits, from public data alone; the leading ONE is left out.

    PoRep      replica id, comm_d, comm_r, then for each challenge c: c (path in D), its 14 parents (paths in C),
               c (the node that is labelled), c (path in R_last), c (path in C)
    PoSt       for each sector comm_r and its challenges; sectors that are missing repeat the last one
    SnapDeals  partition k and, above its bits, one of six bits for h; comm_r_old, comm_d_new, comm_r_new

Definitions: generate_public_inputs of storage-proofs-porep::stacked::circuit, storage-proofs-post::fallback,
storage-proofs-update::compound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuzk.curves import BLS12_381
from cuzk.errors import FormatError
from cuzk.filecoin.challenges import porep_challenges, post_challenges, post_indices
from cuzk.filecoin.derive import field_element
from cuzk.filecoin.parents import Nodes, parents
from cuzk.filecoin.registered import ApiVersion, Kind, RegisteredProof
from cuzk.filecoin.shapes import PARENTS, UPDATE_H_SELECTS, WINDOW_CHALLENGES, WINNING_CHALLENGES
from cuzk.vectors import Scalars, Words, pack

CHALLENGE_INPUTS = 4 + PARENTS
PRODUCTION_H = 3
"""Which of the six numbers of high bits (10 of them) is used where they differ."""


# PoRep


def porep_inputs(
    proof: RegisteredProof,
    replica_id: bytes,
    comm_d: bytes,
    comm_r: bytes,
    seed: bytes,
    partition: int,
    porep_id: bytes | None = None,
) -> Scalars:
    """Of one partition. ``porep_id`` only where it is not the one of the registered proof."""
    _expect_partition(proof, Kind.POREP, partition)
    challenges = porep_challenges(proof, replica_id, comm_r, seed, partition)
    named = {"replica id": replica_id, "comm_d": comm_d, "comm_r": comm_r}
    head = [field_element(value, name) for name, value in named.items()]
    graph = (proof.shape.nodes, porep_id or proof.porep_id(), proof.api)
    return _scalars(pack(head, 4), challenge_inputs(challenges, *graph).ravel())


def challenge_inputs(
    challenges: Nodes, sector_nodes: int, porep_id: bytes, api: ApiVersion
) -> Nodes:
    """(n, 18) of the challenged nodes."""
    inputs = np.repeat(challenges[:, None], CHALLENGE_INPUTS, axis=1)
    inputs[:, 1 : 1 + PARENTS] = parents(challenges, sector_nodes, porep_id, api)
    return inputs


# PoSt


def winning_inputs(
    proof: RegisteredProof, randomness: bytes, sector: int, comm_r: bytes
) -> Scalars:
    """The sector that won, once for each of its challenges."""
    _expect_partition(proof, Kind.WINNING, 0)
    field_element(randomness, "randomness")
    indices = post_indices(proof.api, 0, WINNING_CHALLENGES)
    found = post_challenges(randomness, sector, indices, proof.shape.nodes)
    root = pack([field_element(comm_r, "comm_r")], 4)
    return post_inputs(np.repeat(root, len(found), axis=0), found[:, None], len(found))


def window_inputs(
    proof: RegisteredProof,
    randomness: bytes,
    sectors: Sequence[tuple[int, bytes]],
    partition: int = 0,
) -> Scalars:
    """Of one partition, whose ``sectors`` are (number, comm_r), in order."""
    field_element(randomness, "randomness")
    if proof.kind is not Kind.WINDOW or partition < 0:
        raise FormatError(
            f"partition {partition}: expected one of a WindowPoSt, found {proof.name}"
        )
    size = proof.shape.window_sectors
    if not 0 < len(sectors) <= size:
        raise FormatError(f"sectors: expected 1 to {size} in a partition, found {len(sectors)}")
    roots = pack([field_element(c, f"sector {number}: comm_r") for number, c in sectors], 4)
    challenges = [
        post_challenges(
            randomness,
            number,
            post_indices(proof.api, partition * size + position, WINDOW_CHALLENGES),
            proof.shape.nodes,
        )
        for position, (number, _) in enumerate(sectors)
    ]
    return post_inputs(roots, np.array(challenges), size)


def post_inputs(roots: Words, challenges: Nodes, sectors: int) -> Scalars:
    """Of a circuit for so many sectors; ``roots`` (n, 4) are their comm_r, ``challenges`` (n, c)."""
    each = 1 + challenges.shape[1]
    words = np.zeros((sectors, each, 4), dtype=np.uint64)
    words[: len(roots), 0] = roots
    words[: len(roots), 1:, 0] = challenges
    words[len(roots) :] = words[len(roots) - 1]
    return Scalars(BLS12_381, words.reshape(-1, 4))


# SnapDeals


def update_inputs(
    proof: RegisteredProof,
    comm_r_old: bytes,
    comm_d_new: bytes,
    comm_r_new: bytes,
    partition: int,
    h_select: int | None = None,
) -> Scalars:
    """Of one partition; ``h_select`` (0 to 5) says how many high bits are taken, None: as in production."""
    _expect_partition(proof, Kind.UPDATE, partition)
    if h_select is None:
        h_select = production_h_select(proof)
    if not 0 <= h_select < UPDATE_H_SELECTS:
        raise FormatError(f"h select: expected 0 to {UPDATE_H_SELECTS - 1}, found {h_select}")
    select = partition | 1 << proof.shape.update_partition_bits + h_select
    named = {"comm_r_old": comm_r_old, "comm_d_new": comm_d_new, "comm_r_new": comm_r_new}
    values = [select, *(field_element(value, name) for name, value in named.items())]
    return Scalars(BLS12_381, pack(values, 4))


def production_h_select(proof: RegisteredProof) -> int:
    """The first of the six choices that means the number of bits used in production."""
    values = proof.shape.update_h_values
    return values.index(values[PRODUCTION_H])


def _expect_partition(proof: RegisteredProof, kind: Kind, partition: int) -> None:
    if proof.kind is not kind:
        raise FormatError(f"registered proof: expected one of {kind.value}, found {proof.name}")
    if not 0 <= partition < proof.partitions:
        last = proof.partitions - 1
        raise FormatError(f"partition: expected 0 to {last} for {proof.name}, found {partition}")


def _scalars(head: Words, rest: Nodes) -> Scalars:
    words = np.zeros((len(head) + len(rest), 4), dtype=np.uint64)
    words[: len(head)] = head
    words[len(head) :, 0] = rest
    return Scalars(BLS12_381, words)
