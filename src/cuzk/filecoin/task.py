"""What is to be proved: vanilla proofs that were checked, and the statement that they are proofs of.

A task is made by the vanilla check alone (:mod:`cuzk.filecoin.check`), so that no witness is ever made of vanilla
proofs that its circuit refuses; the first item that is wrong is named (UnsatisfiedError).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuzk.errors import FormatError
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.check import check_c1
from cuzk.filecoin.check_post import check_post
from cuzk.filecoin.check_update import check_update
from cuzk.filecoin.mismatch import expect_node
from cuzk.filecoin.registered import RegisteredProof
from cuzk.filecoin.statement import (
    PostStatement,
    SealStatement,
    Statement,
    UpdateStatement,
    derived,
)
from cuzk.filecoin.vanilla import PostSectors, UpdatePartitions
from cuzk.filecoin.witness.data import Data, porep_data, post_data, update_data


@dataclass(frozen=True)
class Task:
    """``data`` gives what the programs of a partition's circuit take."""

    statement: Statement
    data: Callable[[int], Data]

    @property
    def proof(self) -> RegisteredProof:
        """Its type."""
        return self.statement.proof


def seal_task(
    c1: C1,
    statement: SealStatement | None = None,
    *,
    prover_id: bytes | None = None,
    sector: int | None = None,
    threads: int = 1,
) -> Task:
    """The second phase of a seal's commit.

    A C1 output holds its own statement; a ``statement`` that is given must be that one. ``prover_id`` and ``sector``
    (or a C1 that says it) let the replica id be checked.
    """
    sector = _sector(c1, prover_id, sector)
    own = SealStatement(
        c1.proof,
        c1.replica_id,
        c1.comm_d,
        c1.comm_r,
        c1.seed,
        statement.porep_id if statement else c1.proof.porep_id(),
    )
    if statement is not None:
        _expect_derived(statement)
        _expect_type(c1.proof, statement.proof, c1.name)
        for name in ("comm_r", "comm_d", "replica_id", "seed"):
            expect_node(getattr(statement, name), getattr(own, name), f"{c1.name}: {name}")
    check_c1(c1, prover_id=prover_id, sector=sector, porep_id=own.porep_id, threads=threads)
    return Task(own, lambda partition: porep_data(c1, partition))


def _sector(c1: C1, prover_id: bytes | None, asked: int | None) -> int | None:
    """The sector number for the replica id; what is said of it must agree, and take a prover id to be checked."""
    if asked is not None and c1.sector_number not in (None, asked):
        raise FormatError(
            f"{c1.name}: SectorNum: expected {asked}, as asked for, found {c1.sector_number}"
        )
    found = c1.sector_number if asked is None else asked
    if prover_id is not None and found is None:
        raise FormatError(f"{c1.name}: expected a sector number with the prover id, found none")
    if prover_id is None and asked is not None:
        raise FormatError(f"{c1.name}: expected a prover id with the sector number, found none")
    return found


def post_task(post: PostSectors, statement: PostStatement, *, threads: int = 1) -> Task:
    """A WinningPoSt, or one partition of a WindowPoSt: the statement's sectors in its order."""
    _expect_derived(statement)
    expect_stated(post, statement)
    randomness = statement.randomness or b""
    check_post(post, randomness, partition=statement.partition, threads=threads)
    return Task(statement, lambda _: post_data(post))


def expect_stated(post: PostSectors, statement: PostStatement) -> None:
    """Are they vanilla proofs of the statement's sectors, in its order? Not whether they hold."""
    _expect_type(post.proof, statement.proof, "PoSt vanilla proofs")
    if len(statement.sectors) != len(post.sector_ids):
        raise FormatError(
            f"PoSt vanilla proofs: expected {len(statement.sectors)} sectors, as the statement has, found "
            f"{len(post.sector_ids)}"
        )
    known = {sector.number for sector in statement.sectors}
    for i, sector in enumerate(statement.sectors):
        if sector.number != (found := int(post.sector_ids[i])):
            do = (
                "give the vanilla proofs in the statement's order"
                if found in known
                else "the statement has no such sector"
            )
            raise FormatError(
                f"{post.place(i)}: sector_id: expected {sector.number}, found {found}: {do}"
            )
        expect_node(sector.comm_r, post.comm_r[i].tobytes(), f"{post.place(i)}: comm_r")


def update_task(update: UpdatePartitions, statement: UpdateStatement, *, threads: int = 1) -> Task:
    """A SnapDeals update, all of its partitions."""
    _expect_type(update.proof, statement.proof, "update vanilla proofs")
    commitments = (statement.comm_r_old, statement.comm_d_new, statement.comm_r_new)
    check_update(update, *commitments, h_select=statement.h_select, threads=threads)
    h_select = statement.h_select
    return Task(statement, lambda partition: update_data(update, partition, h_select=h_select))


def _expect_type(found: RegisteredProof, stated: RegisteredProof, where: str) -> None:
    if found != stated:
        raise FormatError(
            f"{where}: expected proofs of {stated.name} ({stated.family}), as the statement has, found {found.name}"
        )


def _expect_derived(statement: Statement) -> None:
    if not derived(statement):
        raise FormatError(
            "statement: expected the seed or the randomness, found challenges: who proves must know what they "
            "follow from"
        )
