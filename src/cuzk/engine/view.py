"""What the scheduler sees, and what it may ask for: frozen nouns, no behaviour.

A view is one moment of the engine: the jobs that have something left to do, the workers, the free memory. An action is
one thing for a worker to begin now; actions are carried out in their order, and memory that an ``Evict`` frees is there
for what follows it when the key is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuzk.engine.catalogue import Needs
from cuzk.engine.request import Priority


@dataclass(frozen=True)
class Staged:
    """A partition whose host part is made (``ready``), or being made, before its slot is free; with its bytes."""

    number: int
    bytes: Mapping[str, int]
    ready: bool = True


@dataclass(frozen=True)
class Waiting:
    """A job that has something left to do. ``ready`` are its partitions that nobody works on, staged ones first."""

    id: str
    number: int
    priority: Priority
    accepted: float
    circuit: str
    ready: tuple[int, ...]
    running: int = 0
    """Partitions in work."""
    proved: int = 0
    """Partitions that are done."""
    prepared_on: str = ""
    preparing_on: str = ""
    payload_bytes: int = 0
    """Of the host's memory, what preparing it takes, or what is reserved for it since."""
    staged: tuple[Staged, ...] = ()
    """Where it is prepared; those that are being staged are not among the ``ready`` ones."""
    stages: bool = True
    """Whether more of it may be staged."""

    @property
    def staging(self) -> tuple[Staged, ...]:
        """Those that are being staged."""
        return tuple(one for one in self.staged if not one.ready) if self.staged else ()

    @property
    def left(self) -> bool:
        """Whether it has partitions left to start."""
        return bool(self.ready) or bool(self.staged and self.staging)

    @property
    def place(self) -> str:
        """The worker that has it, prepared or nearly; "" where none has."""
        return self.prepared_on or self.preparing_on

    @property
    def begun(self) -> bool:
        """Whether some of its work is done or under way."""
        return bool(self.place or self.running or self.proved)


@dataclass(frozen=True)
class Key:
    """A circuit that a worker has, or (``loading``) will have. ``users`` are jobs and partitions that need it there."""

    circuit: str
    used: float
    """When last, or when it was loaded."""
    users: int = 0
    loading: bool = False
    slots: int = 1
    """Partitions at a time that the device has room for."""
    loaded: float = 0.0
    """When it was loaded."""
    bytes: Mapping[str, int] = field(default_factory=dict)
    stalled: bool = False
    """Its load waits for a file that does not answer, perhaps for ever: others are loaded beside it."""


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
    """Everything that decides. ``free`` are bytes of each memory that nobody has reserved, below 0 where more is in use
    than there may be; a memory that it does not name has no limit. Those of a key that is being closed are free: a key is
    loaded there when it is closed."""

    jobs: tuple[Waiting, ...]
    sites: tuple[Site, ...]
    free: Mapping[str, int]
    needs: Mapping[tuple[str, str], Needs]
    """(circuit, device): what its key and a partition take; a circuit that is not named for a device cannot go there."""


@dataclass(frozen=True)
class Policy:
    """Settings. ``headroom``: bytes of each memory that only CRITICAL jobs get."""

    ageing: float = 600.0
    headroom: Mapping[str, int] = field(default_factory=dict)
    prepared: int = 2
    """Jobs of one class or higher that are prepared on a worker with partitions left to start (a CRITICAL one may be one
    more): those of lower classes do not keep a higher one out."""
    turn: float = 60.0
    """Seconds for which a key stays loaded for other jobs of a class than the one that wants its memory."""


@dataclass(frozen=True)
class Forget:
    """Let go of what was prepared of a job of which nothing runs: it waits again, with its proved partitions."""

    worker: str
    job: str


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
class Stage:
    """Make the host part of a partition that is to start when a slot is free."""

    worker: str
    job: str
    partition: int


@dataclass(frozen=True)
class Unstage:
    """Let go of a staged partition: it is ready as if it had never been staged."""

    worker: str
    job: str
    partition: int


@dataclass(frozen=True)
class Start:
    """Prove a partition, with what was staged of it if something was."""

    worker: str
    job: str
    partition: int


Action = Forget | Evict | Load | Prepare | Stage | Unstage | Start
