"""Faults of the reference system that only many jobs show: what is counted, and what is reserved, at a thousand moments.

The scripted workers' own books are compared with what the engine says.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from scripted import World, play
from scripted_catalogue import GIB, Circuit
from scripted_worker import ScriptedWorker, expected_proof

from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Priority, Request
from cuzk.errors import FormatError

KINDS = ("porep-c2", "snap-update", "window-post", "winning-post", "circuit")


class Book:
    """What clients know: jobs that were taken, and those whose end they were told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.taken: dict[str, Request] = {}
        self.ended: Counter[str] = Counter()
        self.tasks: list[asyncio.Task[None]] = []

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def submit(self, request: Request) -> None:
        await self.world.engine.submit(request)
        self.taken[request.id] = request
        self.begin(self._wait(request))

    async def _wait(self, request: Request) -> None:
        _, outcome = await self.world.engine.result(request.id)
        assert outcome is not None
        self.ended[request.kind] += 1

    def open(self) -> Counter[str]:
        return Counter(request.kind for request in self.taken.values()) - self.ended


async def arrivals(book: Book, rng: Random, count: int, circuits: str, gap: float) -> None:
    """Jobs of all kinds; some are cancelled, some fail, now and then a worker dies."""
    workers = book.world.workers
    for number in range(count):
        name, circuit = f"r{number}", rng.choice(circuits)
        request = book.world.request(name, circuit, rng.choice(list(Priority)))
        for worker in workers:
            if number % 9 == 4:
                worker.fail[rng.choice(["prepare", "prove", "finish"]), name] = [FormatError("no")]
        await book.submit(replace(request, kind=KINDS[number % len(KINDS)]))
        await asyncio.sleep(rng.random() * gap)
        if number % 11 == 5:
            await book.world.engine.cancel(f"r{rng.randrange(number)}")
        if number % 29 == 17:
            rng.choice(workers).die()


def test_15_17_depths_of_every_kind_are_what_clients_wait_for(tmp_path: Path) -> None:
    """Fault 15: queues were shown empty while all was in work. Fault 17: counts drifted away with every failure."""

    async def scenario(world: World) -> None:
        rng, book, depths = Random(15), Book(world), []
        book.begin(arrivals(book, rng, 120, "ab", 8))
        for _ in range(1000):
            await asyncio.sleep(rng.random() * 3)  # nothing else happens at such a moment
            snapshot = world.engine.snapshot()
            shown = {queue.kind: queue.pending + queue.in_progress for queue in snapshot.queues}
            assert shown == dict(book.open())
            depths.append(sum(shown.values()))
            working = {job for worker in world.workers for _, job, _ in worker._in_work.values()}
            begun = {job.id for job in snapshot.jobs if job.started and not job.ended}
            assert sum(queue.in_progress for queue in snapshot.queues) == len(begun)
            cancelled = {job.id for job in snapshot.jobs if job.ended}
            assert working <= begun | cancelled | {"a", "b"}
        assert max(depths) > 20
        await asyncio.gather(*book.tasks)
        snapshot = await world.quiet()
        assert sum(kind.submitted for kind in snapshot.totals) == 120
        assert {kind.kind for kind in snapshot.totals} == set(KINDS)
        began = {job for worker in world.workers for _, job in worker.words("prove")}
        assert sum(kind.begun for kind in snapshot.totals) == len(began)
        assert sum(wait.jobs for wait in snapshot.waits) == len(began)

    circuits = {"a": Circuit(partitions=3), "b": Circuit(partitions=2, prove=4)}
    play(tmp_path, scenario, circuits, workers={"cpu": {}, "other": {}})


def in_use(worker: ScriptedWorker) -> Counter[str]:
    """GiB that it has: keys that are there or come, partitions in work."""
    circuits, used = worker.catalogue.circuits, Counter[str]()
    coming = {circuit for word, _, circuit in worker._in_work.values() if word == "load"}
    for circuit in worker.loaded | coming:
        used.update(circuits[circuit].key)
    for word, _, circuit in worker._in_work.values():
        if word == "prove":
            used.update(circuits[circuit].partition)
    return used


def test_21_many_jobs_never_take_more_than_there_is(tmp_path: Path) -> None:
    """Fault 21: 668 GiB were taken before something held it back, and processes were killed. Fault 9: what was charged
    was not what was used."""
    limits = {"host": 16, "pinned": 8}

    async def scenario(world: World) -> None:
        rng, book, most = Random(21), Book(world), Counter[str]()
        book.begin(arrivals(book, rng, 100, "abcd", 20))
        while len(book.taken) < 100 or book.open():
            await asyncio.sleep(rng.random() * 4)
            used = sum((in_use(worker) for worker in world.workers), Counter[str]())
            for memory in world.engine.snapshot(ended=0).memories:
                assert memory.reserved <= memory.limit == limits[memory.name] * GIB
                assert used[memory.name] * GIB <= memory.reserved
                most[memory.name] = max(most[memory.name], used[memory.name])
        assert all(most[name] >= limits[name] - 2 for name in limits), most
        await asyncio.gather(*book.tasks)
        for name, request in book.taken.items():
            view, outcome = await world.engine.result(name)
            partitions = world.catalogue.circuits[str(request.fields["circuit_id"])].partitions
            assert outcome is not None
            if view.state == "done":
                assert outcome.proof == expected_proof(request, partitions)
        await world.quiet()

    circuits = {
        "a": Circuit(partitions=4, key={"host": 5}, partition={"host": 2, "pinned": 2}, slots=3),
        "b": Circuit(key={"host": 3, "pinned": 3}, partition={"host": 4}),
        "c": Circuit(partitions=2, key={"host": 7}, partition={"host": 1, "pinned": 1}, slots=2),
        "d": Circuit(partitions=2, key={"host": 1}, partition={"host": 1, "pinned": 4}),
    }
    policy = EnginePolicy(limits={name: size * GIB for name, size in limits.items()}, ageing=120)
    play(tmp_path, scenario, circuits, policy, workers={"cpu": {}, "other": {}})
