"""A worker and all that is there now: keys, prepared jobs, partitions in work. Who uses a key is counted when asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum

from cuzk.engine.catalogue import Needs
from cuzk.engine.jobs import Live
from cuzk.engine.view import Key, Site
from cuzk.engine.worker import Loaded, Worker


class Phase(Enum):
    """Of a key on a worker."""

    LOADING = "loading"
    LOADED = "loaded"
    CLOSING = "closing"


@dataclass(eq=False)
class Held:
    """A circuit's key on a worker."""

    circuit: str
    owner: str
    """Of its memory in the ledgers."""
    needs: Needs
    used: float
    phase: Phase = Phase.LOADING
    tier: str = ""
    slots: int = 1
    loaded: float = 0.0
    milliseconds: float = 0.0
    task: asyncio.Task[Exception | None] | None = None
    """Its load; the error with which that failed."""
    closing: asyncio.Task[None] | None = None
    """Its end."""
    stalled: str = ""
    """Why its load stands still: its files do not answer."""
    aside: asyncio.Event = field(default_factory=asyncio.Event)
    """Its load has ended, or stood still once: the worker's next one need not wait for it."""

    @property
    def key_bytes(self) -> int:
        """Of all memories; locked pages are the host's and counted there."""
        return sum(n for name, n in self.needs.key.items() if name != "pinned")

    def ready(self, loaded: Loaded, now: float) -> None:
        """It is there, with its real bytes."""
        self.phase, self.stalled = Phase.LOADED, ""
        self.needs = loaded.needs
        self.tier, self.slots = loaded.tier, max(1, loaded.slots)
        self.milliseconds = loaded.milliseconds
        self.loaded = self.used = now


@dataclass(eq=False)
class Fault:
    """Why a circuit is not on a worker. ``until``: not tried there again before."""

    message: str
    until: float = 0.0
    again: bool = False
    """It found no memory, and has one more try."""
    deaths: int = 0
    """How often the worker died while it loaded this, one after the other."""


@dataclass(eq=False)
class Station:
    """One worker. ``life`` is the how-many-th it lives: what was begun in an earlier one is gone."""

    worker: Worker
    life: int = 0
    keys: dict[str, Held] = field(default_factory=dict)
    prepared: dict[str, Live] = field(default_factory=dict)
    """By id: those whose request it holds, until it was told to forget them."""
    preparing: dict[str, Live] = field(default_factory=dict)
    partitions: dict[tuple[str, int], Live] = field(default_factory=dict)
    """In work, of jobs that have ended too."""
    faults: dict[str, Fault] = field(default_factory=dict)
    """By circuit."""
    fault: str = ""
    """Why the worker did not start."""

    @property
    def name(self) -> str:
        """The worker's."""
        return self.worker.name

    @property
    def alive(self) -> bool:
        """Whether work can be given to it."""
        return not self.fault and self.worker.health().alive

    def users(self, circuit: str) -> int:
        """Jobs and partitions that need a key here."""
        jobs = [*self.prepared.values(), *self.preparing.values(), *self.partitions.values()]
        return sum(live.job.circuit == circuit for live in jobs)

    def forgetting(self, circuit: str) -> list[asyncio.Task[None]]:
        """Of its jobs here those that the worker is told to forget now."""
        jobs = self.prepared.values()
        return [
            live.forgetting
            for live in jobs
            if live.job.circuit == circuit and live.forgetting is not None
        ]

    @property
    def leaving(self) -> int:
        """Prepared jobs that are finished or forgotten now: that ends by itself, too."""
        return sum(bool(job.finishing or job.forgetting) for job in self.prepared.values())

    def idle(self) -> list[Held]:
        """Keys that nobody uses, the one that was used longest ago first."""
        keys = [
            held
            for held in self.keys.values()
            if held.phase is Phase.LOADED and not self.users(held.circuit)
        ]
        return sorted(keys, key=lambda held: held.used)

    def blocked(self, circuit: str, now: float) -> bool:
        """Whether a circuit is not to be tried here now."""
        fault = self.faults.get(circuit)
        return fault is not None and now < fault.until

    def site(self, lanes: int | None) -> Site:
        """As the scheduler sees it. A key that is being closed is one that nobody can have yet."""
        keys = tuple(
            Key(
                circuit=held.circuit,
                used=held.used,
                users=self.users(held.circuit) + (held.phase is Phase.CLOSING),
                loading=held.phase is not Phase.LOADED,
                stalled=bool(held.stalled),
                slots=held.slots if lanes is None else min(held.slots, lanes),
                loaded=held.loaded,
                bytes=held.needs.key,
            )
            for held in self.keys.values()
        )
        return Site(
            worker=self.name,
            device=self.worker.device,
            alive=self.alive,
            keys=keys,
            running=len(self.partitions),
            preparing=len(self.preparing) + self.leaving,
        )
