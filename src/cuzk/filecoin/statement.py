"""What a proof states: a registered proof type and public data, from which all public inputs follow.

    seal       replica id, comm_d, comm_r, seed
    PoSt       randomness; each sector's number and comm_r; which partition of a WindowPoSt
    SnapDeals  comm_r_old, comm_d_new, comm_r_new

Where seed or randomness is not known, the challenges may stand in their place: a proof then shows only that these
were answered. :mod:`cuzk.filecoin.statement_json` has the form on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cuzk.curves import BLS12_381
from cuzk.filecoin.derive import field_element
from cuzk.filecoin.parents import Nodes
from cuzk.filecoin.public import (
    challenge_inputs,
    porep_inputs,
    post_inputs,
    update_inputs,
    window_inputs,
    winning_inputs,
)
from cuzk.filecoin.registered import Kind, RegisteredProof
from cuzk.filecoin.shapes import WINNING_CHALLENGES
from cuzk.vectors import Scalars, pack


@dataclass(frozen=True)
class SealStatement:
    """One sealing of one sector."""

    proof: RegisteredProof
    replica_id: bytes
    comm_d: bytes
    comm_r: bytes
    seed: bytes
    """Not looked at where the challenges are non-interactive, or given."""
    porep_id: bytes
    challenges: Nodes | None = None
    """(partitions, n) challenged nodes, where the seed is not known."""

    def inputs(self, partition: int) -> Scalars:
        """The public inputs of a partition's circuit, ONE left out."""
        if self.challenges is None:
            data = (self.replica_id, self.comm_d, self.comm_r, self.seed)
            return porep_inputs(self.proof, *data, partition, self.porep_id)
        graph = (self.proof.shape.nodes, self.porep_id, self.proof.api)
        rest = challenge_inputs(self.challenges[partition], *graph).ravel()
        named = {"replica_id": self.replica_id, "comm_d": self.comm_d, "comm_r": self.comm_r}
        words = np.zeros((len(named) + len(rest), 4), dtype=np.uint64)
        words[:3] = pack([field_element(value, name) for name, value in named.items()], 4)
        words[3:, 0] = rest
        return Scalars(BLS12_381, words)


@dataclass(frozen=True)
class Sector:
    """One sector of a PoSt; ``challenges`` where the randomness is not known."""

    number: int
    comm_r: bytes
    challenges: tuple[int, ...] | None = None


@dataclass(frozen=True)
class PostStatement:
    """A WinningPoSt of one sector, or one partition of a WindowPoSt."""

    proof: RegisteredProof
    randomness: bytes | None
    """None where the sectors have challenges."""
    sectors: tuple[Sector, ...]
    partition: int = 0
    """Which one of the WindowPoSt: in versions before 1.2 the challenges depend on it."""

    def inputs(self, partition: int = 0) -> Scalars:
        """The public inputs of the one circuit, ONE left out; ``partition`` is 0, for there is one proof."""
        del partition
        if self.randomness is None:
            return self._of_challenges()
        if self.proof.kind is Kind.WINNING:
            (sector,) = self.sectors
            return winning_inputs(self.proof, self.randomness, sector.number, sector.comm_r)
        sectors = [(sector.number, sector.comm_r) for sector in self.sectors]
        return window_inputs(self.proof, self.randomness, sectors, self.partition)

    def _of_challenges(self) -> Scalars:
        roots = pack([field_element(s.comm_r, "comm_r") for s in self.sectors], 4)
        challenges = np.array([s.challenges for s in self.sectors], dtype=np.uint64)
        if self.proof.kind is Kind.WINNING:
            roots = np.repeat(roots, WINNING_CHALLENGES, axis=0)
            return post_inputs(roots, challenges.reshape(-1, 1), WINNING_CHALLENGES)
        return post_inputs(roots, challenges, self.proof.shape.window_sectors)


@dataclass(frozen=True)
class UpdateStatement:
    """An update of an empty sector with data."""

    proof: RegisteredProof
    comm_r_old: bytes
    comm_d_new: bytes
    comm_r_new: bytes
    h_select: int | None = None
    """Which of six numbers of high bits; None: as in production."""

    def inputs(self, partition: int) -> Scalars:
        """The public inputs of a partition's circuit, ONE left out."""
        commitments = (self.comm_r_old, self.comm_d_new, self.comm_r_new)
        return update_inputs(self.proof, *commitments, partition, self.h_select)


Statement: TypeAlias = SealStatement | PostStatement | UpdateStatement


def derived(statement: Statement) -> bool:
    """Whether the challenges follow from public data; else they were given."""
    if isinstance(statement, SealStatement):
        return statement.challenges is None
    return not isinstance(statement, PostStatement) or statement.randomness is not None
