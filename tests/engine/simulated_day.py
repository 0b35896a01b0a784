"""A day of a proving service in a second: jobs arrive, the scheduler plans, keys load and partitions take their time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from legal import check_plan

from cuzk.engine.catalogue import Needs
from cuzk.engine.fit import without
from cuzk.engine.ledger import Ledger, Ledgers
from cuzk.engine.request import Priority
from cuzk.engine.scheduler import plan
from cuzk.engine.view import (
    Action,
    Evict,
    Forget,
    Key,
    Load,
    Policy,
    Prepare,
    Site,
    Stage,
    Staged,
    Start,
    Unstage,
    View,
    Waiting,
)

TICK = 5.0
"""Seconds after which the engine plans again though nothing happened: ages and turns have."""


@dataclass(frozen=True)
class Kind:
    """A circuit: seconds and bytes. The key and a partition take ``key`` and ``part`` of the device, some of the host."""

    circuit: str
    key: int
    part: int
    load: float
    prepare: float
    prove: float
    partitions: int = 1
    slots: int = 1
    host_key: int = 0
    host_part: int = 1
    payload: int = 1
    finish: float = 0.1
    ahead: int = 0
    """Bytes of the host, among ``host_part``, of a partition that is staged; 0: none is."""
    stage: float = 0.0
    """How much of ``prove`` that saves, and takes before."""


@dataclass
class Task:
    """A job, as the simulation knows it."""

    id: str
    number: int
    kind: Kind
    priority: Priority
    accepted: float
    ready: list[int]
    running: int = 0
    proved: int = 0
    staging: list[int] = field(default_factory=list)
    staged: list[int] = field(default_factory=list)
    prepared_on: str = ""
    preparing_on: str = ""
    first_prepared: float = -1.0
    first_start: float = -1.0
    ended: float = -1.0


@dataclass
class Loaded:
    """A key on a worker."""

    kind: Kind
    loading: bool
    used: float
    loaded: float
    users: set[str] = field(default_factory=set)


class Day:
    """``run`` until everything has ended. ``loads`` are (time, worker, circuit)."""

    def __init__(
        self, workers: list[str], device: int, host: int, kinds: list[Kind], policy: Policy
    ) -> None:
        self.policy = policy
        self.kinds = {kind.circuit: kind for kind in kinds}
        self.ledgers = Ledgers(
            Ledger(name, limit, headroom=policy.headroom.get(name, 0))
            for name, limit in [("host", host), *((worker, device) for worker in workers)]
        )
        self.sites: dict[str, dict[str, Loaded]] = {worker: {} for worker in workers}
        self.running = dict.fromkeys(workers, 0)
        self.tasks: list[Task] = []
        self._live: dict[str, Task] = {}
        self.loads: list[tuple[float, str, str]] = []
        self.forgets = self.unstaged = self.overlapped = 0
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = count()

    def at(self, time: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._sequence), what))

    def arrive(self, time: float, kind: Kind, priority: Priority) -> None:
        def accept() -> None:
            number = len(self.tasks)
            name = f"{kind.circuit}-{number}"
            task = Task(name, number, kind, priority, self.now, list(range(kind.partitions)))
            self.tasks.append(task)
            self._live[name] = task

        self.at(time, accept)

    def run(self) -> None:
        """AssertionError where a plan is not legal, memory is exceeded or something never ends."""
        steps = 0
        while self._events or self.waiting():
            assert steps < 200_000, "it goes on for ever"
            steps += 1
            if self._events:
                self.now = self._events[0][0]
                while self._events and self._events[0][0] <= self.now:
                    heapq.heappop(self._events)[2]()
            begun = self._plan()
            if self.waiting() and (not self._events or self._events[0][0] > self.now + TICK):
                assert begun or self._events or self.now < 1e7, "nothing will ever happen"
                self.at(self.now + TICK, lambda: None)
        self.ledgers.check({f"key {c} on {w}" for w, keys in self.sites.items() for c in keys})

    def waiting(self) -> list[Task]:
        return list(self._live.values())

    def view(self) -> View:
        jobs = tuple(
            Waiting(
                task.id, task.number, task.priority, task.accepted, task.kind.circuit, tuple(task.ready),
                task.running, task.proved, task.prepared_on, task.preparing_on, task.kind.payload,
                tuple(
                    Staged(number, {"host": task.kind.ahead}, number in task.staged)
                    for number in task.staged + task.staging
                ),
            )
            for task in self.waiting()
            if task.ready or task.running or task.staging
        )  # fmt: skip
        sites = tuple(
            Site(
                worker, worker, alive=True, running=self.running[worker],
                preparing=sum(task.preparing_on == worker for task in self._live.values()),
                keys=tuple(
                    Key(name, key.used, len(key.users), key.loading, key.kind.slots, key.loaded, self._needs(worker, key.kind).key)
                    for name, key in keys.items()
                ),
            )
            for worker, keys in self.sites.items()
        )  # fmt: skip
        needs = {(k.circuit, w): self._needs(w, k) for k in self.kinds.values() for w in self.sites}
        return View(jobs, sites, self.ledgers.free(), needs)

    def _needs(self, worker: str, kind: Kind) -> Needs:
        return Needs(
            {worker: kind.key, "host": kind.host_key}, {worker: kind.part, "host": kind.host_part},
            {"host": kind.ahead} if kind.ahead else {},
        )  # fmt: skip

    def _plan(self) -> bool:
        for again in range(10):
            view = self.view()
            actions = plan(view, self.policy, self.now)
            check_plan(view, self.policy, actions)
            for action in actions:
                self._carry_out(action)
            if not actions:
                return again > 0
        raise AssertionError(f"plans without end: {actions}")

    def _reserve(self, owner: str, needs: dict[str, int], task: Task) -> None:
        critical = task.priority == Priority.CRITICAL
        assert self.ledgers.reserve(owner, needs, critical=critical), f"{owner} does not fit"

    def _carry_out(self, action: Action) -> None:
        keys = self.sites[action.worker]
        if isinstance(action, Evict):
            assert not keys.pop(action.circuit).users
            self.ledgers.release(f"key {action.circuit} on {action.worker}")
            return
        task = self.tasks[int(action.job.rsplit("-", 1)[1])]
        needs = self._needs(action.worker, task.kind)
        if isinstance(action, Load):
            self._reserve(f"key {action.circuit} on {action.worker}", dict(needs.key), task)
            keys[action.circuit] = key = Loaded(task.kind, True, self.now, self.now)
            self.loads.append((self.now, action.worker, action.circuit))
            self.at(self.now + task.kind.load, lambda: self._loaded(key))
        elif isinstance(action, Forget):
            self.forgets += 1
            task.prepared_on = ""
            keys[task.kind.circuit].users.remove(task.id)
            self.ledgers.release(f"job {task.id}")
            for number in task.staged:
                self.ledgers.release(f"job {task.id} partition {number} ahead")
            task.ready = sorted(task.ready)
            task.staged.clear()
        elif isinstance(action, Prepare):
            self._reserve(f"job {task.id}", {"host": task.kind.payload}, task)
            task.preparing_on = action.worker
            if task.first_prepared < 0:
                task.first_prepared = self.now
            keys[task.kind.circuit].users.add(task.id)
            self.at(self.now + task.kind.prepare, lambda: self._prepared(task))
        elif isinstance(action, Stage):
            self._stage(action, task)
        elif isinstance(action, Unstage):
            self.unstaged += 1
            task.staged.remove(action.partition)
            task.ready.sort()
            self.ledgers.release(f"job {task.id} partition {action.partition} ahead")
        else:
            assert isinstance(action, Start)
            self._start(action, task, dict(needs.partition))

    def _loaded(self, key: Loaded) -> None:
        key.loading = False
        key.loaded = key.used = self.now

    def _prepared(self, task: Task) -> None:
        task.prepared_on, task.preparing_on = task.preparing_on, ""

    def _stage(self, action: Stage, task: Task) -> None:
        number = action.partition
        self._reserve(f"job {task.id} partition {number} ahead", {"host": task.kind.ahead}, task)
        task.ready.remove(number)
        task.staging.append(number)

        def end() -> None:
            task.staging.remove(number)
            task.staged.append(number)
            task.ready.insert(0, number)

        self.at(self.now + task.kind.stage, end)

    def _start(self, action: Start, task: Task, needs: dict[str, int]) -> None:
        owner = f"job {task.id} partition {action.partition}"
        left = task.kind.prove
        staged = action.partition in task.staged
        held = {"host": task.kind.ahead if staged else 0}
        self._reserve(owner, without(needs, held), task)
        if staged:
            self.ledgers.release(f"{owner} ahead")
            for ledger in self.ledgers.all():
                ledger.hold(owner, needs.get(ledger.name, 0))
            task.staged.remove(action.partition)
            left -= task.kind.stage
            self.overlapped += 1
        key = self.sites[action.worker][task.kind.circuit]
        key.users.add(owner)
        key.used = self.now
        task.ready.remove(action.partition)
        task.running += 1
        self.running[action.worker] += 1
        if task.first_start < 0:
            task.first_start = self.now

        def end() -> None:
            self.ledgers.release(owner)
            key.users.remove(owner)
            key.used = self.now
            task.running -= 1
            task.proved += 1
            self.running[action.worker] -= 1
            if task.proved == task.kind.partitions:
                self.at(self.now + task.kind.finish, finish)

        def finish() -> None:
            key.users.remove(task.id)
            self.ledgers.release(f"job {task.id}")
            task.ended = self.now
            del self._live[task.id]

        self.at(self.now + left, end)
