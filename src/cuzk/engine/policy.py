"""Settings of the engine: how much it takes, how long it keeps results, when it gives a job up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuzk.engine.view import Policy

CRITICAL_BYTES = 16  # CRITICAL jobs may go beyond ``queue_bytes`` by a 16th of it


@dataclass(frozen=True)
class EnginePolicy:
    """Times in seconds, sizes in bytes."""

    queue_limit: int = 1000
    """Jobs accepted and not ended, those in work included."""
    queue_bytes: int = 16 << 30
    """Their payloads."""
    critical_places: int = 16
    """More of both for CRITICAL jobs."""
    ageing: float = 600.0
    keep: float = 86400.0
    """How long results are kept."""
    keep_count: int = 10_000
    """How many, at most: the oldest go first."""
    shown: int = 1000
    """Ended jobs kept in memory for the list, without their proofs."""
    losses: int = 3
    """How often a worker may die with a job (or while it loads a key) until the job fails."""
    again: float = 5.0
    """How long a key that found no memory waits for its second try."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Of the memories: "host", "pinned"; those of devices come from their workers where they are not named here."""
    headroom: Mapping[str, int] = field(default_factory=dict)
    prepared: int = 2
    """Jobs whose requests a worker has read, of one class."""
    turn: float = 60.0
    """How long a key stays for jobs of its class when others want its memory."""
    lanes: int | None = None
    """Partitions at a time on a device, at most; None: as many as have room there."""

    @property
    def scheduler(self) -> Policy:
        """What the scheduler needs of it."""
        return Policy(
            ageing=self.ageing, headroom=self.headroom, prepared=self.prepared, turn=self.turn
        )

    def room(self, *, critical: bool) -> tuple[int, int]:
        """(jobs, payload bytes) at a time."""
        if not critical:
            return self.queue_limit, self.queue_bytes
        return (
            self.queue_limit + self.critical_places,
            self.queue_bytes + self.queue_bytes // CRITICAL_BYTES,
        )
