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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cuzk.engine.ahead import Drop
from cuzk.engine.fit import Bytes, Held, Spot, added
from cuzk.engine.order import CRITICAL
from cuzk.engine.view import Key, Policy, Waiting


@dataclass
class Clearing:
    """How to come by memory. ``enough``: by doing it now; otherwise ``doomed`` are the keys to wait for, unless some
    only have their turn (``yields``)."""

    evict: list[tuple[Spot, Key]] = field(default_factory=list)
    forget: list[tuple[Spot, Waiting]] = field(default_factory=list)
    drop: list[Drop] = field(default_factory=list)
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

    def clear(
        self, lacking: Bytes, job: Waiting, rank: int, keep: Spot, *, gentle: bool = False
    ) -> Clearing:
        """For ``job`` of class ``rank``, whose own key on ``keep`` stays; ``gentle``: only keys that no job at all wants."""
        found = Clearing()
        idle, busy, firm = [], [], []
        for spot in self._spots:
            for key in spot.keys.values():
                if key.loading or (spot is keep and key.circuit == job.circuit):
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
        freed = {
            (spot.worker, key.circuit): self._freed(spot, key, job, rank)
            for spot, key in idle + busy
        }
        chosen = _fewest(lacking, idle, freed)
        if chosen is not None:
            found.enough = True
            found.evict = chosen
            found.forget = [
                (spot, other)
                for spot, key in chosen
                for other in self._stopped(spot, key, job, rank)
            ]
        else:
            doomed = _fewest(lacking, idle + busy, freed) or idle + busy + firm
            found.doomed = [(spot.worker, key.circuit) for spot, key in doomed]
        return found

    def last_resort(self, job: Waiting, keep: Spot) -> Clearing:
        """All that stands still but ``job`` is forgotten, and all keys but its own go: for when nothing else can be done.
        Prepared jobs may hold what none of them leaves for another's partition."""
        found = Clearing(enough=True)
        for spot in self._spots:
            for key in spot.keys.values():
                found.forget += [(spot, other) for other in self._stopped(spot, key, job, 0)]
                own = spot is keep and key.circuit == job.circuit
                if not own and not key.loading and self._unused(spot, key, job, 0):
                    found.evict.append((spot, key))
        return found

    def forget(self, spot: Spot, job: Waiting) -> None:
        """What was prepared of a job is let go of by the plan."""
        there = self._there[spot.worker, job.circuit]
        for at, (rank, other) in enumerate(there):
            if other is job:
                spot.classes.remove(rank)
                del there[at]
                break
        self.forgotten.add(job.id)

    def gone(self, spot: Spot, key: Key) -> None:
        """A key is evicted by the plan."""
        del spot.keys[key.circuit]

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

    def _freed(self, spot: Spot, key: Key, job: Waiting, rank: int) -> Bytes:
        """By its eviction, and by forgetting what was prepared with it."""
        stopped = self._stopped(spot, key, job, rank)
        return added(key.bytes, {"host": sum(other.payload_bytes for other in stopped)})

    def _in_turn(self, key: Key, rank: int) -> bool:
        return (
            self._strict
            and rank < CRITICAL
            and (rank, key.circuit) in self._classes
            and 0 <= self._now - key.loaded < self._policy.turn  # a clock may be set back
        )

    def _stopped(self, spot: Spot, key: Key, job: Waiting, rank: int) -> list[Waiting]:
        """Prepared jobs of lower classes (or, where nothing else can be done, any) of which nothing is in work."""
        return [
            other
            for theirs, other in self._there.get((spot.worker, key.circuit), ())
            if other.prepared_on and other.ready and other is not job
            if not (other.running or other.staging)
            if theirs < rank or not self._strict
        ]


def _fewest(
    lacking: Bytes, keys: list[tuple[Spot, Key]], freed: Mapping[Held, Bytes]
) -> list[tuple[Spot, Key]] | None:
    """The least recently used that together give what is lacking, without those that are not needed for it."""
    left = dict(lacking)
    chosen: list[tuple[Spot, Key]] = []
    for spot, key in sorted(keys, key=lambda pair: (pair[1].used, pair[0].worker, pair[1].circuit)):
        gain = freed[spot.worker, key.circuit]
        if any(nbytes > 0 and gain.get(name) for name, nbytes in left.items()):
            chosen.append((spot, key))
            left = {name: nbytes - gain.get(name, 0) for name, nbytes in left.items()}
    if any(nbytes > 0 for nbytes in left.values()):
        return None
    for spot, key in reversed(chosen[:]):
        gain = freed[spot.worker, key.circuit]
        without = {name: nbytes + gain.get(name, 0) for name, nbytes in left.items()}
        if all(nbytes <= 0 for nbytes in without.values()):
            chosen.remove((spot, key))
            left = without
    return chosen
