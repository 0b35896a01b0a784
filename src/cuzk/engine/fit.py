"""What fits: memory as it will be when the actions planned so far are carried out.

    free for a job = free - set aside by those before it - headroom (not of CRITICAL jobs)

What a job waits for is *set aside*: all that it needs, of every memory, not only what it lacks. Those behind it share the
rest, which it does not need, so they neither stand idle nor ever take from it: what is released gets it there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from cuzk.engine.catalogue import Needs
from cuzk.engine.view import Key, Site

HOST = "host"
Bytes = Mapping[str, int]
Held = tuple[str, str]
"""(worker, circuit): a key where it is."""


def added(*parts: Bytes) -> dict[str, int]:
    """Bytes of each memory, together."""
    total: dict[str, int] = defaultdict(int)
    for part in parts:
        for name, nbytes in part.items():
            total[name] += nbytes
    return dict(total)


def shared_out(needs: Needs, limits: Bytes, headroom: Bytes) -> Needs:
    """Of every memory but the host's no more than there is for jobs that are not CRITICAL.

    Estimates are of devices where nothing has to give way. On a smaller one points are streamed and sums cut, and
    pages that cannot be locked are copied through buffers: a key takes all that there is, a partition the rest.
    """
    key, partition, ahead = dict(needs.key), dict(needs.partition), dict(needs.ahead)
    for name in limits.keys() - {HOST}:
        room = max(0, limits[name] - headroom.get(name, 0))
        if key.get(name, 0) + partition.get(name, 0) > room:
            key[name] = min(key.get(name, 0), room)
            partition[name] = room - key[name]
            if name in ahead:
                ahead[name] = min(ahead[name], partition[name])
    return Needs(key, partition, ahead)


def never_fits(needs: Needs, limits: Bytes, headroom: Bytes) -> str:
    """A memory that is too small for a key with one partition, were it empty; "" where all are large enough.

    Such a job must not be accepted: the scheduler would set aside for it what never suffices.
    """
    need = added(needs.key, needs.partition)
    for name, nbytes in need.items():
        if name in limits and nbytes > limits[name] - headroom.get(name, 0):
            return name
    return ""


def without(need: Bytes, held: Bytes) -> dict[str, int]:
    """What is to be reserved beside what is held already."""
    return {name: max(0, nbytes - held.get(name, 0)) for name, nbytes in need.items()}


@dataclass
class Memory:
    """Free bytes. ``strict`` is off where nothing else can be done: then nothing is set aside."""

    free: dict[str, int]
    headroom: Bytes
    strict: bool = True
    aside: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """From all that those behind do."""
    aside_loads: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """From the keys alone that they load."""

    def lacking(self, need: Bytes, *, critical: bool, load: bool = False) -> dict[str, int]:
        """Bytes that are missing, of each memory where some are; empty where it fits."""
        missing = {}
        for name, nbytes in need.items():
            if nbytes <= 0 or name not in self.free:
                continue
            left = self.free[name] - self.aside.get(name, 0)
            if load:
                left -= self.aside_loads.get(name, 0)
            if not critical:
                left -= self.headroom.get(name, 0)
            if nbytes > left:
                missing[name] = nbytes - left
        return missing

    def take(self, need: Bytes) -> None:
        """For an action."""
        for name, nbytes in need.items():
            if name in self.free:
                self.free[name] -= nbytes

    def give(self, freed: Bytes) -> None:
        """By an eviction."""
        for name, nbytes in freed.items():
            if name in self.free:
                self.free[name] += nbytes

    def set_aside(self, need: Bytes, *, loads_only: bool = False) -> None:
        """For a job that waits, from those behind it."""
        if self.strict:
            aside = self.aside_loads if loads_only else self.aside
            for name, nbytes in need.items():
                aside[name] += nbytes


@dataclass
class Spot:
    """A living worker as it will be when the actions planned so far are carried out."""

    site: Site
    keys: dict[str, Key]
    running: int
    loading: bool
    classes: list[int] = field(default_factory=list)
    """Of the jobs that are prepared there, or nearly, and have partitions left to start."""
    used: set[str] = field(default_factory=set)
    """Circuits that a planned action uses."""
    ahead: int = 0
    """Jobs looked at so far that have partitions left to start there."""
    staged: int = 0
    """Partitions that are staged, or being staged, of jobs looked at so far."""
    held: int = 0
    """Jobs of classes below this start nothing there: the next slot belongs to a job looked at before."""

    @classmethod
    def of(cls, site: Site) -> Spot:
        """As it is."""
        keys = {key.circuit: key for key in site.keys}
        loading = any(key.loading and not key.stalled for key in site.keys)
        return cls(site, keys, site.running, loading)

    @property
    def worker(self) -> str:
        """The worker's name."""
        return self.site.worker

    @property
    def idle(self) -> bool:
        """Whether nothing is done there, nor will be."""
        users = any(key.users for key in self.keys.values())
        return not (self.running or self.loading or self.classes or users)

    def hot(self, circuit: str) -> bool:
        """Whether a circuit can be worked on."""
        key = self.keys.get(circuit)
        return key is not None and not key.loading
