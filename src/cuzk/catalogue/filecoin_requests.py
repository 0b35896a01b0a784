"""Requests of Filecoin's sealing software, field by field: which proof is asked for, and of what.

    kind            registered_proof         fields                                        payload
    porep-c2        seal 0-14                miner_id, sector_number                       a C1: vanilla_proof
    snap-update     update 0-4               comm_r_old, comm_r_new, comm_d_new            one for each partition
    window-post     post 5-14                randomness, partition_index                   one for each sector
    winning-post    post 0-4                 randomness                                    that of the one sector

``sector_size`` may be there with each, and agrees then. A field that is not set is 0, as in every message of this
kind: registered_proof 0 is a 2 KiB one. A PoSt's sectors are those that its vanilla proofs name, in their order.
Fields of other kinds are not looked at. Proofs of non-interactive PoRep are refused: the chain takes their
aggregate, which is not made here, and whoever asks would take the bare proofs for it.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np

from cuzk.catalogue.circuits import node_of, number_of, source_of
from cuzk.engine.request import Request
from cuzk.errors import FormatError
from cuzk.filecoin.c1 import C1, read_c1
from cuzk.filecoin.derive import field_element, prover_id
from cuzk.filecoin.registered import Challenges, Kind, RegisteredProof, registered
from cuzk.filecoin.statement import PostStatement, Sector, UpdateStatement
from cuzk.filecoin.task import Task, post_task, seal_task, update_task
from cuzk.filecoin.vanilla import PostSectors, UpdatePartitions, read_post, read_update
from cuzk.formats.source import Source

KINDS = {
    "porep-c2": Kind.POREP,
    "snap-update": Kind.UPDATE,
    "window-post": Kind.WINDOW,
    "winning-post": Kind.WINNING,
}
REQUEST_KIND = {kind: name for name, kind in KINDS.items()}
FAMILY = {Kind.POREP: "seal", Kind.UPDATE: "update", Kind.WINDOW: "post", Kind.WINNING: "post"}
COMMITMENTS = ("comm_r_old", "comm_d_new", "comm_r_new")
IN_BINCODE = "a vanilla proof in bincode"

Vanilla = C1 | PostSectors | UpdatePartitions


def registered_of(request: Request) -> RegisteredProof:
    """The proof type; FormatError where it is none of this kind, or ``sector_size`` is another's."""
    kind = KINDS[request.kind]
    number = number_of(request.fields, "registered_proof")
    proof = registered(FAMILY[kind], number, "registered_proof")
    if proof.kind is not kind:
        raise FormatError(
            f"registered_proof: expected one of kind {request.kind}, found {number} ({proof.name})"
        )
    if proof.challenges is Challenges.NON_INTERACTIVE:
        raise FormatError(
            f"registered_proof: expected interactive or synthetic challenges, found {number} ({proof.name}): "
            "the chain takes the aggregate of such proofs, which is not made here"
        )
    size = number_of(request.fields, "sector_size")
    if size not in (0, proof.shape.sector_bytes):
        raise FormatError(
            f"sector_size: expected {proof.shape.sector_bytes}, as {proof.name} says, found {size}"
        )
    return proof


def expect_fields(request: Request, proof: RegisteredProof) -> None:
    """FormatError names the first field that is missing or wrong; vanilla proofs are counted only."""
    if proof.kind is Kind.POREP:
        _expect_count(request, "vanilla_proof", 1, 1, "C1 output")
        _miner(request)
    elif proof.kind is Kind.UPDATE:
        for name in COMMITMENTS:
            _commitment(request, name)
        count = proof.partitions
        _expect_count(request, "vanilla_proofs", count, count, f"partitions of {proof.name}")
    else:
        field_element(node_of(request.fields, "randomness"), "randomness")
        partition = number_of(request.fields, "partition_index")
        if proof.kind is Kind.WINNING and partition:
            raise FormatError(f"partition_index: expected none of a WinningPoSt, found {partition}")
        most = 1 if proof.kind is Kind.WINNING else proof.shape.window_sectors
        _expect_count(request, "vanilla_proofs", 1, most, f"sectors of {proof.name}")


def read_vanilla(request: Request, proof: RegisteredProof) -> Vanilla:
    """Whether they are well-formed and of this proof type; not whether they hold."""
    if proof.kind is Kind.POREP:
        c1 = read_c1(source_of(request.payload[0], "vanilla_proof", "a C1 output"))
        if c1.proof != proof:
            raise FormatError(
                f"vanilla_proof: registered_proof: expected {proof.name}, as the request says, found {c1.proof.name}"
            )
        asked = number_of(request.fields, "sector_number")
        if "sector_number" in request.fields and c1.sector_number not in (None, asked):
            raise FormatError(
                f"vanilla_proof: SectorNum: expected {asked}, as the request says, found {c1.sector_number}"
            )
        return c1
    blobs: list[Source] = [
        source_of(part, f"vanilla_proofs[{i}]", IN_BINCODE)
        for i, part in enumerate(request.payload)
    ]
    if proof.kind is Kind.UPDATE:
        return read_update(blobs, proof)
    return read_post(blobs, proof)


def task_of(request: Request, proof: RegisteredProof, vanilla: Vanilla, threads: int) -> Task:
    """The vanilla proofs, checked: UnsatisfiedError names the first item that is wrong."""
    if isinstance(vanilla, C1):
        miner, sector = _miner(request)
        if miner is None:
            return seal_task(vanilla, threads=threads)
        if sector is None and vanilla.sector_number is None:
            sector = 0
        return seal_task(vanilla, prover_id=miner, sector=sector, threads=threads)
    if isinstance(vanilla, UpdatePartitions):
        old, data, new = (_commitment(request, name) for name in COMMITMENTS)
        return update_task(vanilla, UpdateStatement(proof, old, data, new), threads=threads)
    sectors = tuple(
        Sector(int(number), comm_r.tobytes())
        for number, comm_r in zip(vanilla.sector_ids, vanilla.comm_r, strict=True)
    )
    partition = number_of(request.fields, "partition_index")
    randomness = node_of(request.fields, "randomness")
    return post_task(vanilla, PostStatement(proof, randomness, sectors, partition), threads=threads)


def held_bytes(value: object) -> int:
    """Of the arrays of vanilla proofs: each memory once, however many arrays look at it."""
    return sum(_memories(value).values())


def _memories(value: object) -> dict[int, int]:
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        return {id(value): value.nbytes}
    if not is_dataclass(value) or isinstance(value, RegisteredProof):
        return {}
    found: dict[int, int] = {}
    for part in fields(value):
        found |= _memories(getattr(value, part.name))
    return found


def _miner(request: Request) -> tuple[bytes | None, int | None]:
    """Prover id and sector number, with which the replica id is checked; without them the C1's own counts."""
    miner, sector = (number_of(request.fields, name) for name in ("miner_id", "sector_number"))
    if miner:
        return prover_id(miner), sector if "sector_number" in request.fields else None
    if sector:
        raise FormatError(f"miner_id: expected one with sector_number {sector}, found none")
    return None, None


def _commitment(request: Request, name: str) -> bytes:
    value = node_of(request.fields, name)
    if not field_element(value, name):
        raise FormatError(f"{name}: expected a value other than zero, found zero")
    return value


def _expect_count(request: Request, name: str, least: int, most: int, what: str) -> None:
    if not least <= (found := len(request.payload)) <= most:
        expected = str(most) if least == most else f"{least} to {most}"
        raise FormatError(f"{name}: expected {expected} {what}, found {found or 'none'}")
