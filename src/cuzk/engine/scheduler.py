"""What to do next: a pure function of the queue, the workers and the memory.

    plan(view, policy, now) -> [Evict | Load | Prepare | Start, ...]

Order of jobs: class (a job's priority, raised by one for every ``ageing`` seconds it waited, never to CRITICAL), then
jobs that have begun before others (the oldest is finished first), then the order of acceptance. A partition is the
unit: nothing is interrupted, so a CRITICAL job starts when the next partition of any other ends, at the latest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuzk.engine.catalogue import Needs
from cuzk.engine.request import Priority


@dataclass(frozen=True)
class Waiting:
    """A job that has something left to do. ``ready`` are its partitions that nobody works on."""

    id: str
    number: int
    priority: Priority
    accepted: float
    circuit: str
    ready: tuple[int, ...]
    running: int = 0
    """Partitions in work."""
    prepared_on: str = ""
    preparing_on: str = ""
    payload_bytes: int = 0


@dataclass(frozen=True)
class Key:
    """A circuit that a worker has, or (``loading``) will have. ``users`` are jobs and partitions that need it there."""

    circuit: str
    used: float
    """When last."""
    users: int = 0
    loading: bool = False
    slots: int = 1
    bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """A worker as the scheduler sees it."""

    worker: str
    device: str
    alive: bool
    keys: tuple[Key, ...] = ()
    running: int = 0
    """Partitions in work there, all of one circuit at a time unless their keys have slots for more."""
    preparing: int = 0


@dataclass(frozen=True)
class View:
    """Everything that decides. ``free`` are bytes of each memory that nobody has reserved."""

    jobs: tuple[Waiting, ...]
    sites: tuple[Site, ...]
    free: Mapping[str, int]
    needs: Mapping[tuple[str, str], Needs]
    """(circuit, device): what its key and a partition take."""


@dataclass(frozen=True)
class Policy:
    """Settings. ``headroom``: bytes of each memory that only CRITICAL jobs get."""

    ageing: float = 600.0
    headroom: Mapping[str, int] = field(default_factory=dict)
    prepared: int = 2
    """Jobs prepared on a worker at a time, those in work included; a CRITICAL one more."""


@dataclass(frozen=True)
class Evict:
    """Close an idle key."""

    worker: str
    circuit: str


@dataclass(frozen=True)
class Load:
    """Open a circuit; ``job`` is for whom."""

    worker: str
    circuit: str
    job: str


@dataclass(frozen=True)
class Prepare:
    """Read a job's request on a worker."""

    worker: str
    job: str


@dataclass(frozen=True)
class Start:
    """Prove a partition."""

    worker: str
    job: str
    partition: int


Action = Evict | Load | Prepare | Start
