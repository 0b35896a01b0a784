"""Vanilla proofs of PoSt and SnapDeals, as sealing software hands them over in bincode.

    FallbackPoStSectorProof { sector_id, comm_r, vanilla_proof: { sectors: [ one of
                                { inclusion_proofs: [MerkleProof], comm_c, comm_r_last } ] } }
        one for each sector; 10 inclusion proofs for WindowPoSt, 66 for WinningPoSt

    PartitionProof          { comm_c, apex_leafs, challenge_proofs: [
                                { proof_r_old, proof_d_new, proof_r_new } ] }
        one for each partition of an EmptySectorUpdate

Every inclusion proof repeats the root of its tree: what says the same is compared and kept once. That hashes
lead where they should is for the vanilla check.

Definitions: rust-fil-proofs filecoin-proofs::types::FallbackPoStSectorProof, storage-proofs-post
fallback::vanilla, storage-proofs-update::vanilla::PartitionProof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import FormatError
from cuzk.filecoin.openings import (
    Openings,
    binary_segments,
    merkle_proof,
    octree_segments,
    openings,
)
from cuzk.filecoin.registered import Kind, RegisteredProof
from cuzk.filecoin.serde import ELEMENT, U64, List, Struct, read_bincodes, struct
from cuzk.filecoin.shapes import WINDOW_CHALLENGES, WINNING_CHALLENGES
from cuzk.formats.source import IN_MEMORY, Bytes, Readable, Source
from cuzk.vectors import Words

POST_CHALLENGES = {Kind.WINDOW: WINDOW_CHALLENGES, Kind.WINNING: WINNING_CHALLENGES}


@dataclass(frozen=True)
class PostSectors:
    """The vanilla proofs of n sectors, in the order they were given; node values as four plain words."""

    proof: RegisteredProof
    sector_ids: NDArray[np.uint64]
    """(n,)"""
    comm_r: Words
    """(n, 4)"""
    comm_c: Words
    """(n, 4)"""
    comm_r_last: Words
    """(n, 4)"""
    replica: Openings
    """(n, challenges) in each sector's tree R_last."""
    names: tuple[str, ...] = ()
    """What each was read from; none, or "", in memory."""

    def place(self, i: int) -> str:
        """Of a sector, for messages: "9.vproof: sector 0"."""
        return f"{_prefix(self.names, i)}sector {i}"


@dataclass(frozen=True)
class UpdatePartitions:
    """The vanilla proofs of all partitions of an update; node values as four plain words."""

    proof: RegisteredProof
    comm_c: bytes
    comm_r_last_old: bytes
    comm_r_last_new: bytes
    comm_d_new: bytes
    apex_leaves: Words
    """(partitions, leaves, 4)"""
    replica_old: Openings
    """(partitions, challenges) in tree R_last of the replica before the update."""
    data_new: Openings
    """(partitions, challenges) in the new tree D."""
    replica_new: Openings
    """(partitions, challenges) in the new tree R_last."""
    names: tuple[str, ...] = ()
    """What each was read from; none, or "", in memory."""

    def place(self, partition: int) -> str:
        """Of a partition, for messages: "b.vproof: partition 1"."""
        return f"{_prefix(self.names, partition)}partition {partition}"


@cache
def post_layout(proof: RegisteredProof) -> Struct:
    """The type of one sector's proof."""
    if proof.kind not in POST_CHALLENGES:
        raise FormatError(f"PoSt vanilla proofs: expected a PoSt proof type, found {proof.name}")
    opening = merkle_proof(octree_segments(proof.shape))
    opened = List(opening, POST_CHALLENGES[proof.kind], "challenge")
    sector = struct(inclusion_proofs=opened, comm_c=ELEMENT, comm_r_last=ELEMENT)
    return struct(
        sector_id=U64, comm_r=ELEMENT, vanilla_proof=struct(sectors=List(sector, 1, "sector"))
    )


@cache
def update_layout(proof: RegisteredProof) -> Struct:
    """The type of one partition's proof."""
    if proof.kind is not Kind.UPDATE:
        raise FormatError(
            f"update vanilla proofs: expected an update proof type, found {proof.name}"
        )
    octree = merkle_proof(octree_segments(proof.shape))
    binary = merkle_proof(binary_segments(proof.shape.log2_nodes))
    challenge = struct(proof_r_old=octree, proof_d_new=binary, proof_r_new=octree)
    return struct(
        comm_c=ELEMENT,
        apex_leafs=List(ELEMENT, proof.shape.update_apex_leaves, "apex leaf"),
        challenge_proofs=List(challenge, proof.shape.update_challenges, "challenge"),
    )


def read_post(blobs: Sequence[Readable], proof: RegisteredProof) -> PostSectors:
    """One sector's proof in each of ``blobs``; WinningPoSt has one, a partition of WindowPoSt up to its size."""
    layout = post_layout(proof)
    most = 1 if proof.kind is Kind.WINNING else proof.shape.window_sectors
    if not 1 <= len(blobs) <= most:
        raise FormatError(
            f"PoSt vanilla proofs: expected 1 to {most} sectors of {proof.name}, found {len(blobs)}"
        )
    names, files, data = _open(blobs, "PoSt vanilla proofs")
    values = read_bincodes(layout, data, names, "sector")
    sectors = values["vanilla_proof"]["sectors"]["items"][:, 0]
    post = PostSectors(
        proof=proof,
        sector_ids=np.array(values["sector_id"], dtype=np.uint64),
        comm_r=np.array(values["comm_r"], dtype=np.uint64),
        comm_c=np.array(sectors["comm_c"], dtype=np.uint64),
        comm_r_last=np.array(sectors["comm_r_last"], dtype=np.uint64),
        replica=openings(sectors["inclusion_proofs"]["items"], octree_segments(proof.shape)),
        names=files,
    )
    zero = ~post.comm_r.any(axis=1)
    if zero.any():
        i = int(zero.argmax())
        raise FormatError(
            f"{names[i]}: sector {i}: comm_r: expected a value other than zero, found zero"
        )
    _same_root(names, "sector", "inclusion_proofs", post.replica.root, post.comm_r_last[:, None])
    return post


def read_update(blobs: Sequence[Readable], proof: RegisteredProof) -> UpdatePartitions:
    """One partition's proof in each of ``blobs``, in the order of the partitions."""
    layout = update_layout(proof)
    if len(blobs) != proof.partitions:
        raise FormatError(
            f"update vanilla proofs: expected {proof.partitions} partitions of {proof.name}, found {len(blobs)}"
        )
    names, files, data = _open(blobs, "update vanilla proofs")
    values = read_bincodes(layout, data, names, "partition")
    challenges = values["challenge_proofs"]["items"]
    octree = octree_segments(proof.shape)
    old, new = (openings(challenges[f"proof_r_{age}"], octree) for age in ("old", "new"))
    data_new = openings(challenges["proof_d_new"], binary_segments(proof.shape.log2_nodes))
    for name, opened in (("proof_r_old", old), ("proof_d_new", data_new), ("proof_r_new", new)):
        _same_root(names, "partition", name, opened.root, opened.root[0, 0])
    comm_c = np.array(values["comm_c"], dtype=np.uint64)
    if (different := (comm_c != comm_c[0]).any(axis=1)).any():
        partition = int(different.argmax())
        raise FormatError(
            f"{names[partition]}: partition {partition}: comm_c: expected {comm_c[0].tobytes().hex()} as in "
            f"partition 0, found {comm_c[partition].tobytes().hex()}"
        )
    return UpdatePartitions(
        proof=proof,
        comm_c=comm_c[0].tobytes(),
        comm_r_last_old=old.root[0, 0].tobytes(),
        comm_r_last_new=new.root[0, 0].tobytes(),
        comm_d_new=data_new.root[0, 0].tobytes(),
        apex_leaves=np.array(values["apex_leafs"]["items"], dtype=np.uint64),
        replica_old=old,
        data_new=data_new,
        replica_new=new,
        names=files,
    )


def _open(blobs: Sequence[Readable], what: str) -> tuple[list[str], tuple[str, ...], list[Bytes]]:
    """What to call each in messages, what was read from ("" in memory), and their bytes."""
    sources = [Source.open(blob, "a vanilla proof in bincode") for blob in blobs]
    files = tuple("" if source.name == IN_MEMORY else source.name for source in sources)
    return [name or what for name in files], files, [source.data for source in sources]


def _prefix(names: tuple[str, ...], i: int) -> str:
    return f"{names[i]}: " if names and names[i] else ""


def _same_root(names: Sequence[str], label: str, name: str, found: Words, expected: Words) -> None:
    """(n, challenges, 4) roots against what they are to be."""
    expected = np.broadcast_to(expected, found.shape)
    different = (found != expected).any(axis=-1)
    if different.any():
        i, challenge = (int(k) for k in np.argwhere(different)[0])
        shown = [roots[i, challenge].tobytes().hex() for roots in (expected, found)]
        raise FormatError(
            f"{names[i]}: {label} {i}: challenge {challenge}: {name}: root: expected {shown[0]} as "
            f"elsewhere in the proofs, found {shown[1]}"
        )
