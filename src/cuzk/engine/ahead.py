"""What is staged of jobs further behind, and when it gives way.

One partition is staged on a worker at a time: the one that is to start next. When another job comes before it, its place
is that one's: what is staged is let go of (or waited for, while it is being made), and made again later. A CRITICAL job's is
staged beside it: what waits for a slot then goes on at once. Whoever lacks memory has what is staged of jobs behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass

from cuzk.engine.fit import HOST, Bytes, added
from cuzk.engine.request import Priority
from cuzk.engine.view import Waiting


@dataclass(frozen=True)
class Drop:
    """A staged partition to let go of."""

    worker: str
    job: str
    number: int
    bytes: Bytes


def freed(drops: Iterable[Drop]) -> dict[str, int]:
    """By letting go of them."""
    return added(*(drop.bytes for drop in drops))


class Ahead:
    """Of all jobs in their order, those that a walk through them has not reached."""

    def __init__(self, jobs: Iterable[Waiting], workers: Container[str]) -> None:
        self._behind = {job.id: job for job in jobs if job.staged and job.place in workers}
        self._gone: set[tuple[str, int]] = set()

    def reached(self, job: Waiting) -> None:
        """Nobody behind it has what is staged of it."""
        self._behind.pop(job.id, None)

    def gone(self, drop: Drop) -> None:
        """The plan lets go of it."""
        self._gone.add((drop.job, drop.number))

    def giving_place(self, worker: str, *, critical: bool) -> list[Drop] | None:
        """What goes for another partition that is to be staged there; None where one is being staged."""
        there = [
            job
            for job in self._behind.values()
            if job.place == worker and (job.priority is Priority.CRITICAL or not critical)
        ]
        if any(job.staging for job in there):
            return None
        return [drop for job in there for drop in self._of(job)]

    def giving_some(self, lacking: Bytes) -> list[Drop]:
        """All that gives some of what is lacking, the last in order first."""
        found = [drop for job in reversed(self._behind.values()) for drop in self._of(job)]
        return [drop for drop in found if any(drop.bytes.get(name) for name in lacking)]

    def giving(self, lacking: Bytes, beside: Collection[Drop] = ()) -> list[Drop] | None:
        """As little as is enough; None where all but what goes ``beside`` is not."""
        left, chosen = dict(lacking), []
        for drop in self.giving_some(lacking):
            if drop not in beside and any(
                nbytes > 0 and drop.bytes.get(name) for name, nbytes in left.items()
            ):
                chosen.append(drop)
                left = {name: nbytes - drop.bytes.get(name, 0) for name, nbytes in left.items()}
        return None if any(nbytes > 0 for nbytes in left.values()) else chosen

    def made(self, job: Waiting) -> dict[int, Bytes]:
        """What is staged of a job, and stays so by the plan."""
        return {
            one.number: one.bytes
            for one in job.staged
            if one.ready and (job.id, one.number) not in self._gone
        }

    def making(self, job: Waiting) -> dict[int, Bytes]:
        """What is being staged of it, or let go of by the plan: it can start when that is over."""
        made = self.made(job)
        return {one.number: one.bytes for one in job.staged if one.number not in made}

    def held(self, job: Waiting) -> dict[str, int]:
        """What it gives back when it is forgotten: its request, and what is staged."""
        return added({HOST: job.payload_bytes}, *self.made(job).values())

    def _of(self, job: Waiting) -> list[Drop]:
        return [Drop(job.place, job.id, *one) for one in self.made(job).items()]
