"""Jobs that have not ended: by id, in the order in which they are worked on, with what is going on for each.

Those that nothing was begun of wait in one group for each circuit and priority, in order of acceptance: within a group
the first is always next, so that a decision looks at the first few of every group and at all that have begun. Those of a
circuit that is away are in their groups like all others, and no decision looks at them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice

from cuzk.engine.catalogue import PartProof
from cuzk.engine.job import Job, Outcome, State
from cuzk.engine.order import effective
from cuzk.engine.request import Priority
from cuzk.engine.snapshot import JobView
from cuzk.engine.view import Policy, Staged, Waiting


@dataclass(eq=False)
class Live:
    """A job and what is going on for it."""

    job: Job
    done: asyncio.Future[None]
    """Set when it has ended and the journal knows, or when the engine stops."""
    proved: dict[int, PartProof] = field(default_factory=dict)
    payload_bytes: int = 0
    unbegun: Waiting | None = None
    """As the scheduler sees it until something is begun of it."""
    unbegun_view: JobView | None = None
    """As it was first shown; gone with ``unbegun``."""
    waiters: int = 0
    """Clients that wait for its end."""
    preparing: str = ""
    """The worker that reads its request now."""
    running: dict[int, str] = field(default_factory=dict)
    """Partitions in work, and the worker."""
    staging: dict[int, Mapping[str, int]] = field(default_factory=dict)
    """Partitions whose host part is being made, or let go of, and the bytes that are reserved for each."""
    staged: dict[int, Mapping[str, int]] = field(default_factory=dict)
    """Those whose host part is there: where the job is prepared."""
    stages: bool = True
    """Not any more where that once found no memory."""
    finishing: bool = False
    forgetting: asyncio.Task[None] | None = None
    """A worker is told to let go of what it read of it."""
    ending: Outcome | None = None
    """How it ends: decided, and on its way to the journal."""
    deadline: asyncio.TimerHandle | None = None
    memory_tried: bool = False
    """Its one more try after memory ran out was made."""
    losses: set[tuple[str, int]] = field(default_factory=set)
    """(worker, its how-many-th life) that ended while it worked on this."""
    load_milliseconds: float = 0.0
    """How long its key took to load while it waited."""
    first_partition: float = 0.0
    """When it began: never again, however often the job is requeued."""
    prepare_seconds: float = 0.0
    finish_seconds: float = 0.0

    @property
    def busy(self) -> bool:
        """Whether a worker does something for it."""
        return bool(self.preparing or self.running or self.staging or self.finishing)

    def requeue(self) -> None:
        """What it was prepared on is gone; proved partitions stay."""
        if self.ending is None and self.job.state is not State.QUEUED:
            self.job.become(State.QUEUED)

    @property
    def critical(self) -> bool:
        """Whether it may have what is set aside for CRITICAL jobs."""
        return self.job.priority is Priority.CRITICAL

    @property
    def owner(self) -> str:
        """Of the memory that its prepared request takes."""
        return f"job {self.job.id} prepared"

    def partition_owner(self, number: int) -> str:
        """Of the memory that a partition in work takes."""
        return f"job {self.job.id} partition {number}"

    def ahead_owner(self, number: int) -> str:
        """Of the memory that a partition takes which is staged, until it is in work."""
        return f"job {self.job.id} partition {number} ahead"

    def unstaged(self) -> list[str]:
        """What is staged is gone: whose memory is to be released."""
        owners = [self.ahead_owner(number) for number in self.staged]
        self.staged.clear()
        return owners

    def waiting(self) -> Waiting | None:
        """As the scheduler sees it; None where nothing is left to start.

        A job whose partitions are all proved but which no worker holds prepared (they were recovered, or the worker
        died) offers its last one again: to start that is to finish the job. One whose worker died offers none until
        all that was in work there has failed.
        """
        if self.ending or self.finishing:
            return None
        if self.unbegun is not None:
            return self.unbegun
        job = self.job
        taken = self.proved.keys() | self.running.keys() | self.staging.keys() | self.staged.keys()
        ready = (*self.staged, *(part.number for part in job.partitions if part.number not in taken))  # fmt: skip
        every = len(self.proved) == len(job.partitions)
        if every and not self.running:
            ready = (job.partitions[-1].number,)
        lost = bool(self.running or self.staging) and not job.prepared_on
        return Waiting(
            id=job.id,
            number=job.number,
            priority=job.priority,
            accepted=job.accepted,
            circuit=job.circuit,
            ready=() if lost else ready,
            running=len(self.running) + (len(self.staging) if lost else 0),
            proved=len(self.proved),
            prepared_on=job.prepared_on,
            preparing_on=self.preparing,
            payload_bytes=self.payload_bytes,
            staged=() if lost else self._ahead(),
            stages=self.stages and not every,
        )

    def _ahead(self) -> tuple[Staged, ...]:
        return (
            *(Staged(number, nbytes) for number, nbytes in self.staged.items()),
            *(Staged(number, nbytes, ready=False) for number, nbytes in self.staging.items()),
        )


Group = tuple[str, Priority]


class Jobs:
    """All that have not ended, and those that have but which a worker is still busy with."""

    def __init__(self) -> None:
        self.live: dict[str, Live] = {}
        self.begun: dict[str, Live] = {}
        self.groups: dict[Group, dict[str, Live]] = {}
        self.away: dict[str, str] = {}
        """Circuits whose jobs wait for the key's file, and what the status says of those."""
        self.leaving: dict[str, Live] = {}
        """Ended; a worker still works on them or holds what it read: their ids' next tries wait for that."""

    def add(self, live: Live) -> None:
        """To its group, behind the others of it."""
        job = live.job
        self.live[job.id] = live
        if live.proved:
            self.begun[job.id] = live
        else:
            self.groups.setdefault((job.circuit, job.priority), {})[job.id] = live
            live.unbegun = live.waiting()

    def begin(self, live: Live) -> None:
        """Work on it begins: it never goes back to its group."""
        self._leave_group(live)
        live.unbegun = live.unbegun_view = None
        self.begun[live.job.id] = live

    def remove(self, live: Live) -> None:
        """It has ended."""
        self.live.pop(live.job.id, None)
        self.begun.pop(live.job.id, None)
        self._leave_group(live)

    def _leave_group(self, live: Live) -> None:
        key = (live.job.circuit, live.job.priority)
        group = self.groups.get(key, {})
        if group.get(live.job.id) is live:
            del group[live.job.id]
            if not group:
                del self.groups[key]

    @property
    def payload_bytes(self) -> int:
        """Of all that have not ended."""
        return sum(live.payload_bytes for live in self.live.values())

    def candidates(self, heads: int, losses: int) -> Iterator[Live]:
        """All that have begun, and the first ``heads`` of every group; none of a circuit that is away.

        Of those that have one loss left until ``losses`` only the first: one that kills every worker does not take
        the same neighbour along each time.
        """
        last_try = None
        for live in self.begun.values():
            if live.job.id in self.leaving or live.job.circuit in self.away:
                continue
            if 0 < live.job.losses == losses - 1 and live.ending is None:
                last_try = last_try or live
                if live is not last_try:
                    continue
            yield live
        for group in self._present():
            free = (live for live in group.values() if live.job.id not in self.leaving)
            yield from islice(free, heads)

    def waiting_for(self, circuit: str) -> list[Live]:
        """Those that need a circuit's key and have it nowhere."""
        return [
            live
            for live in self.live.values()
            if live.job.circuit == circuit
            and not (live.ending or live.busy or live.job.prepared_on)
        ]

    def place(self, live: Live, policy: Policy, now: float) -> int:
        """How many of those that wait will begin before it; -1 where it does not wait for its turn."""
        job = live.job
        if job.circuit in self.away:
            return -1
        if self.groups.get((job.circuit, job.priority), {}).get(job.id) is not live:
            return -1
        mine = rank(live, policy, now)
        return sum(_before(group, mine, policy, now) for group in self._present())

    def waiting(self, policy: Policy, now: float) -> list[Live]:
        """All that nothing was begun of, the next one first; none of a circuit that is away."""
        groups = (group.values() for group in self._present())  # each of them is in order
        return list(merge(*groups, key=lambda live: rank(live, policy, now)))

    def held(self) -> list[Live]:
        """All that nothing was begun of and whose circuit is away, in the order of acceptance."""
        groups = [group for (circuit, _), group in self.groups.items() if circuit in self.away]
        return sorted(
            (live for group in groups for live in group.values()), key=lambda live: live.job.number
        )

    def unfinished(self) -> list[Live]:
        """All that end by themselves, sooner or later: but those whose circuit is away."""
        lives = self.live.values()
        return [live for live in lives if live.ending or live.job.circuit not in self.away]

    def _present(self) -> Iterator[dict[str, Live]]:
        return (group for (circuit, _), group in self.groups.items() if circuit not in self.away)


def rank(live: Live, policy: Policy, now: float) -> tuple[int, int]:
    """What those that wait are sorted by: class, then acceptance."""
    return -effective(live.job, policy, now), live.job.number


def _before(group: dict[str, Live], mine: tuple[int, int], policy: Policy, now: float) -> int:
    """How many of a group, which is sorted, come before ``mine``: mostly none or all."""
    last = rank(next(reversed(group.values())), policy, now)
    if last <= mine:
        return len(group) - (last == mine)
    count = 0
    for live in group.values():
        if rank(live, policy, now) >= mine:
            break
        count += 1
    return count
