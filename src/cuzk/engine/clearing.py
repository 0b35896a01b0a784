"""Which keys go for one that needs their memory.

A key can go where nobody uses it, where no job that comes first could use it, and where it had its turn: for the first
``turn`` seconds after it was loaded other jobs *of the same class* keep it, so that two circuits that take turns on one
device are each loaded once a turn and not once a job. A higher class waits for no turn, a CRITICAL job for none at all.
Of those that can go the least recently used go first, no more than needed, and none where all of them are not enough.

A key in use goes when what runs has ended: no job behind the one that waits is started or prepared with it meanwhile (it
is *doomed*), and what was prepared of lower classes is forgotten. Without that a CRITICAL job would wait for whole jobs,
and any job behind the stream of jobs that a key gets prepared for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from cuzk.engine.fit import Bytes, Held, Spot
from cuzk.engine.order import CRITICAL
from cuzk.engine.view import Key, Policy, Waiting


@dataclass
class Clearing:
    """How to come by memory. ``enough``: by doing it now; otherwise ``doomed`` are the keys to wait for, unless some
    only have their turn (``yields``)."""

    evict: list[tuple[Spot, Key]] = field(default_factory=list)
    forget: list[tuple[Spot, Waiting]] = field(default_factory=list)
    enough: bool = False
    doomed: list[Held] = field(default_factory=list)
    yields: bool = False


class Keys:
    """All keys with who uses them and who wants them, for one walk through the jobs in their order."""

    def __init__(
        self, spots: Iterable[Spot], rows: list[tuple[int, Waiting]], policy: Policy, now: float, *,
        strict: bool,
    ) -> None:  # fmt: skip
        self._spots = list(spots)
        self._policy = policy
        self._now = now
        self._strict = strict
        self.before: set[str] = set()
        """Circuits of the jobs walked so far that are nowhere yet."""
        self.forgotten: set[str] = set()
        """Jobs whose preparation the plan lets go of."""
        self._classes = {(rank, job.circuit) for rank, job in rows}
        self._wanted = {job.circuit for _, job in rows}
        self._there: dict[Held, list[tuple[int, Waiting]]] = defaultdict(list)
        for rank, job in rows:
            if job.place:
                self._there[job.place, job.circuit].append((rank, job))

    def clear(self, lacking: Bytes, job: Waiting, rank: int, *, gentle: bool = False) -> Clearing:
        """For ``job`` of class ``rank``; ``gentle``: only keys that no job at all wants."""
        found = Clearing()
        idle, busy, firm = [], [], []
        for spot in self._spots:
            for key in spot.keys.values():
                if key.loading or key.circuit == job.circuit:
                    continue
                if not any(key.bytes.get(name) for name in lacking):
                    continue
                if self._in_turn(key, rank):
                    found.yields = True
                elif self._firm(spot, key, rank, gentle=gentle):
                    firm.append((spot, key))
                elif self._unused(spot, key, job, rank):
                    idle.append((spot, key))
                else:
                    busy.append((spot, key))
        chosen = _fewest(lacking, idle)
        if chosen is not None:
            found.enough = True
            found.evict = chosen
            found.forget = [
                (spot, other)
                for spot, key in chosen
                for other in self._stopped(spot, key, job, rank)
            ]
        else:
            doomed = _fewest(lacking, idle + busy) or idle + busy + firm
            found.doomed = [(spot.worker, key.circuit) for spot, key in doomed]
        return found

    def gone(self, spot: Spot, key: Key) -> None:
        """A key is evicted by the plan, and what was prepared with it forgotten."""
        del spot.keys[key.circuit]
        for rank, job in self._there.pop((spot.worker, key.circuit), []):
            if job.ready:
                spot.classes.remove(rank)
            self.forgotten.add(job.id)

    def _firm(self, spot: Spot, key: Key, rank: int, *, gentle: bool) -> bool:
        """Whether it stays until jobs before this one are done."""
        if key.circuit in spot.used or key.circuit in self.before:
            return True
        if gentle and (key.users or key.circuit in self._wanted):
            return True
        there = self._there.get((spot.worker, key.circuit), ())
        return self._strict and any(other >= rank for other, _ in there)

    def _unused(self, spot: Spot, key: Key, job: Waiting, rank: int) -> bool:
        """Whether nobody uses it once those that stand still are forgotten."""
        stopped = len(self._stopped(spot, key, job, rank))
        there = len(self._there.get((spot.worker, key.circuit), ()))
        return key.users == stopped == there

    def _in_turn(self, key: Key, rank: int) -> bool:
        return (
            self._strict
            and rank < CRITICAL
            and (rank, key.circuit) in self._classes
            and self._now - key.loaded < self._policy.turn
        )

    def _stopped(self, spot: Spot, key: Key, job: Waiting, rank: int) -> list[Waiting]:
        """Prepared jobs of lower classes (or, where nothing else can be done, any) of which nothing runs."""
        return [
            other
            for theirs, other in self._there.get((spot.worker, key.circuit), ())
            if other.prepared_on and not other.running and other.ready and other is not job
            if theirs < rank or not self._strict
        ]


def _fewest(lacking: Bytes, keys: list[tuple[Spot, Key]]) -> list[tuple[Spot, Key]] | None:
    """The least recently used that together give what is lacking, without those that are not needed for it."""
    left = dict(lacking)
    chosen: list[tuple[Spot, Key]] = []
    for spot, key in sorted(keys, key=lambda pair: (pair[1].used, pair[0].worker, pair[1].circuit)):
        if any(nbytes > 0 and key.bytes.get(name) for name, nbytes in left.items()):
            chosen.append((spot, key))
            left = {name: nbytes - key.bytes.get(name, 0) for name, nbytes in left.items()}
    if any(nbytes > 0 for nbytes in left.values()):
        return None
    for pair in reversed(chosen[:]):
        spare = {name: nbytes + pair[1].bytes.get(name, 0) for name, nbytes in left.items()}
        if all(nbytes <= 0 for nbytes in spare.values()):
            chosen.remove(pair)
            left = spare
    return chosen
