"""A task of several partitions: no circuit that has them is small, so statements of PoSts are taken for one."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from made_posts import RANDOMNESS, MadeSector, made_sector

from cuzk.filecoin.registered import RegisteredProof, registered
from cuzk.filecoin.statement import PostStatement, Sector
from cuzk.filecoin.task import Task
from cuzk.filecoin.vanilla import read_post
from cuzk.filecoin.witness.data import post_data
from cuzk.vectors import Scalars

NEWER = registered("post", "StackedDrgWindow2KiBV1_2")
CIRCUIT = "window-2KiB"


def stated(proof: RegisteredProof, *sectors: MadeSector, partition: int = 0) -> PostStatement:
    found = tuple(Sector(sector.number, sector.comm_r) for sector in sectors)
    return PostStatement(proof, RANDOMNESS, found, partition)


class TwoPartitions(RegisteredProof):
    @property
    def partitions(self) -> int:
        return 2


class FourPartitions(RegisteredProof):
    @property
    def partitions(self) -> int:
        return 4


@dataclass(frozen=True)
class Parts:
    """As a statement, of several partitions."""

    proof: RegisteredProof
    parts: tuple[PostStatement, ...]

    def inputs(self, partition: int) -> Scalars:
        return self.parts[partition % 2].inputs()


def both(kind: type[RegisteredProof] = TwoPartitions) -> Task:
    """A newer proof's partition with two sectors, and one with a sector that is repeated; in turn."""
    found = (made_sector(NEWER, 11), made_sector(NEWER, 12))
    parts = (stated(NEWER, *found), stated(NEWER, found[1]))
    posts = [read_post([s.blob for s in chosen], NEWER) for chosen in (found, found[1:])]
    values = {f.name: getattr(NEWER, f.name) for f in dataclasses.fields(NEWER)}
    return Task(Parts(kind(**values), parts), lambda k: post_data(posts[k % 2]))  # type: ignore[arg-type]
