"""The engine as others see it, at one moment: what status RPC, JSON, metrics and page are made of.

Plain frozen data, all numbers derived from the state itself when asked: no counter is kept beside what it counts.
Times are seconds of the epoch, ages and durations seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PartitionView:
    """One partition of a job."""

    number: int
    state: str
    """ "pending", "staging", "staged", "proving" or "done"."""
    worker: str = ""
    started: float = 0.0
    ended: float = 0.0
    milliseconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class JobView:
    """One job. ``place`` is its rank among those that wait, 0 for the next; -1 where it does not wait for its turn.

    ``message``: why it failed (``code``), or, without a code, what a queued one waits for that is not there.
    """

    id: str
    number: int
    kind: str
    circuit: str
    priority: str
    """ "low", "normal", "high" or "critical"."""
    state: str
    accepted: float
    started: float
    ended: float
    age: float
    place: int = -1
    payload_bytes: int = 0
    deadline: float = 0.0
    client: str = ""
    partitions: tuple[PartitionView, ...] = ()
    code: str = ""
    message: str = ""
    milliseconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class KeyView:
    """A circuit and where its key is. ``tier``: "hot", "warm", "cold", "loading" or "not ready" (``fault``)."""

    circuit: str
    kind: str
    key: str
    tier: str
    worker: str = ""
    bytes: int = 0
    users: int = 0
    last_used: float = 0.0
    fault: str = ""


@dataclass(frozen=True)
class MemoryView:
    """One ledger: ``limit`` = ``free`` + the sum of ``owners``, ``reserved``. ``free`` is below 0 where more is in use than
    there may be: a key turned out larger than its estimate, another program took memory of the device."""

    name: str
    limit: int
    reserved: int
    free: int
    owners: dict[str, int] = field(default_factory=dict)
    """ "key porep-32GiB on cuda:0", "job porep-1000-7 partition 3", "context on cuda:0", "other programs on cuda:0",
    "process on cuda:0", "process of the daemon"."""


@dataclass(frozen=True)
class WorkerView:
    """One worker."""

    name: str
    device: str
    title: str
    alive: bool
    process: int
    resident_bytes: int
    device_total: int = 0
    device_free: int = 0
    """As its process last said; 0 where that does not run."""
    job: str = ""
    """What it works on, the oldest of it."""
    kind: str = ""
    partitions: tuple[tuple[str, int], ...] = ()
    """(job, partition) in work."""
    restarts: int = 0
    fault: str = ""


@dataclass(frozen=True)
class QueueView:
    """Of one kind of request: accepted and not begun, begun and not ended."""

    kind: str
    pending: int
    in_progress: int


@dataclass(frozen=True)
class KindTotals:
    """Since the daemon started, of one kind."""

    kind: str
    submitted: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    seconds: float = 0.0
    """Of all that are done, from acceptance to end."""
    begun: int = 0
    wait_seconds: float = 0.0
    """Of all that began, from acceptance to the first partition."""


@dataclass(frozen=True)
class WaitTotals:
    """Since the daemon started, of one kind and priority: from acceptance to the first partition."""

    kind: str
    priority: str
    jobs: int
    """Those that began."""
    seconds: float
    longest: float


@dataclass(frozen=True)
class SpanView:
    """Something that happened: on the lane ``track`` of ``worker``."""

    worker: str
    track: str
    name: str
    start: float
    end: float
    job: str = ""


@dataclass(frozen=True)
class Snapshot:
    """All of it. ``jobs``: those that have not ended in the order in which they will be worked on, then ended ones,
    the last first, as many as were asked for."""

    now: float
    started: float
    version: str
    process: int
    draining: bool
    queue_limit: int
    jobs: tuple[JobView, ...]
    queues: tuple[QueueView, ...]
    workers: tuple[WorkerView, ...]
    keys: tuple[KeyView, ...]
    memories: tuple[MemoryView, ...]
    totals: tuple[KindTotals, ...]
    waits: tuple[WaitTotals, ...] = ()
    failures: tuple[JobView, ...] = ()
    """The last jobs that failed, the last first, however many ended well since."""
    throughput: tuple[tuple[float, int], ...] = ()
    """(start of a minute, proofs done in it): minutes with any that began within the last hour, this one among them."""
    spans: tuple[SpanView, ...] = ()
    """Of the last minutes."""
    rss: int = 0
    """Of the daemon's own process."""
    journal_bytes: int = 0
