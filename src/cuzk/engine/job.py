"""A request on its way to a proof: its state, its partitions, its times.

    queued --> preparing --> proving --> verifying --> done
       \\___________\\____________\\___________\\_______--> failed | cancelled

A job whose worker died goes back to queued, with the partitions that are proved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from cuzk.engine.request import Priority, Request
from cuzk.errors import EngineError


class State(Enum):
    """Of a job; the value is what status and journal call it."""

    QUEUED = "queued"
    PREPARING = "preparing"
    PROVING = "proving"
    VERIFYING = "verifying"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self in ENDED


ENDED = frozenset({State.DONE, State.FAILED, State.CANCELLED})
NEXT = {
    State.QUEUED: {State.PREPARING, State.PROVING, State.FAILED, State.CANCELLED},
    State.PREPARING: {State.PROVING, State.QUEUED, State.FAILED, State.CANCELLED},
    State.PROVING: {State.VERIFYING, State.QUEUED, State.FAILED, State.CANCELLED},
    State.VERIFYING: {State.DONE, State.QUEUED, State.FAILED, State.CANCELLED},
    State.DONE: set[State](),
    State.FAILED: set[State](),
    State.CANCELLED: set[State](),
}


@dataclass
class Partition:
    """One circuit of a job. ``proof`` is set when it is proved; times are seconds of the epoch."""

    number: int
    worker: str = ""
    """Who works on it now, or did."""
    started: float = 0.0
    ended: float = 0.0
    proof: bytes | None = None
    milliseconds: dict[str, float] = field(default_factory=dict)
    public: bytes = b""
    """As in PartProof: what ``finish`` needs of it after a restart."""

    @property
    def state(self) -> str:
        """ "pending", "proving" or "done"."""
        if self.proof is not None:
            return "done"
        return "proving" if self.started else "pending"


@dataclass(frozen=True)
class Outcome:
    """How a job ended: a proof, or why there is none (``code`` as in errors)."""

    state: State
    proof: bytes = b""
    public: bytes = b""
    """The public signals as a public.json, of a circuit job."""
    code: str = ""
    message: str = ""
    milliseconds: dict[str, float] = field(default_factory=dict)
    """Wall time of "queue", "load", "prepare", "prove", "verify" and "total"; "work" is partitions' times added up."""


@dataclass
class Job:
    """A request that was accepted. Times are seconds of the epoch."""

    request: Request
    number: int
    """The how-many-th accepted one."""
    digest: bytes
    circuit: str
    partitions: list[Partition]
    accepted: float
    state: State = State.QUEUED
    started: float = 0.0
    """When its first work began."""
    ended: float = 0.0
    prepared_on: str = ""
    """The worker that holds what was read of its request."""
    losses: int = 0
    """How often a worker died with it."""
    outcome: Outcome | None = None

    @property
    def id(self) -> str:
        """The request's."""
        return self.request.id

    @property
    def priority(self) -> Priority:
        """The request's."""
        return self.request.priority

    def become(self, state: State) -> None:
        """EngineError where that cannot follow: a bug."""
        if state not in NEXT[self.state]:
            raise EngineError(
                f"{self.id}: a job that is {self.state.value} cannot be {state.value}"
            )
        self.state = state
