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

import pytest
from scripted import HOST, World, play, raised
from scripted_catalogue import GIB, Circuit
from scripted_worker import ScriptedWorker, expected_proof

from cuzk.engine.catalogue import PartProof
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Priority, Request
from cuzk.errors import FormatError, KernelError, UnknownJob

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


def test_2_partitions_of_one_number_never_take_each_others_place(tmp_path: Path) -> None:
    """Fault 2: they shared a place in a table, so that less was in work than there was, and the wrong one was taken out."""

    async def scenario(world: World) -> None:
        rng, worker = Random(2), world.worker
        requests = [world.request(f"r{number}", "wide") for number in range(6)]
        for request in requests:
            await world.engine.submit(request)
        most = 0
        for _ in range(200):
            await asyncio.sleep(rng.random())
            shown = world.engine.snapshot().workers[0].partitions
            works = Counter(job for word, job, _ in worker._in_work.values() if word == "prove")
            assert Counter(job for job, _ in shown) == works
            assert len(set(shown)) == len(shown)
            most = max(most, len(works))
        assert most > 1, "partitions of two jobs at a time"
        for request in requests:
            assert await world.proof(request.id) == expected_proof(request, 4)
        assert all(count == 1 for count in worker.proofs.values())
        await world.quiet()

    play(tmp_path, scenario, {"wide": Circuit(partitions=4, slots=3)})


def test_6_a_job_fails_while_another_partition_of_it_is_in_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 6: nobody was told before the others had burnt the GPU. No more is begun, and what runs is let go of."""

    async def scenario(world: World) -> None:
        really = world.worker.prove

        async def prove(circuit: str, job: str, partition: int) -> PartProof:
            if partition == 1:
                await asyncio.sleep(3)
                raise KernelError("status 700")
            return await really(circuit, job, partition)

        monkeypatch.setattr(world.worker, "prove", prove)
        await world.engine.submit(world.request("a", "wide"))
        view, outcome = await world.engine.result("a")
        assert outcome is not None
        assert (outcome.code, outcome.message) == ("kernel", "status 700")
        assert view.ended - view.partitions[0].started == pytest.approx(3)
        assert ("prove", "a", "wide") in world.worker._in_work.values()
        await world.quiet()
        assert world.worker.words("prove") == [("prove", "a")]

    play(tmp_path, scenario, {"wide": Circuit(partitions=6, slots=2)})


def test_7_of_many_results_and_failures_the_last_are_kept(tmp_path: Path) -> None:
    """Fault 7: all of them were kept, however many."""

    async def scenario(world: World) -> None:
        for number in range(60):
            if number % 2:
                world.worker.fail["prove", f"r{number}"] = [FormatError("no")]
            await world.engine.submit(world.request(f"r{number}"))
            await world.engine.result(f"r{number}")
        failures = [job.id for job in world.engine.snapshot().failures]
        assert failures == [f"r{number}" for number in range(59, 19, -2)]
        await asyncio.sleep(70)  # forgotten once a minute
        assert "no request has this id" in await raised(UnknownJob, world.engine.result("r48"))
        assert await world.proof("r50") == expected_proof(world.request("r50"), 1)

    policy = EnginePolicy(keep=1e6, keep_count=10, limits=HOST)
    quick = Circuit(load=0.1, prepare=0.1, prove=0.1, finish=0.1)
    play(tmp_path, scenario, {"small": quick}, policy)


def test_10_bytes_are_free_when_a_key_is_closed_and_not_before(tmp_path: Path) -> None:
    """Fault 10: eviction gave what others had still."""

    async def scenario(world: World) -> None:
        await world.engine.preload("small")
        evict = asyncio.ensure_future(world.engine.evict("small"))
        await asyncio.sleep(0.05)
        memory = world.engine.snapshot().memories[0]
        assert (memory.reserved, memory.owners) == (4 * GIB, {"key small on cpu": 4 * GIB})
        assert await evict == (True, 4 * GIB)
        assert world.engine.snapshot().memories[0].reserved == 0

    play(tmp_path, scenario)


def test_11_whatever_ends_nobody_who_waits_stands_still(tmp_path: Path) -> None:
    """Fault 11: of jobs that wait for memory. Here partitions end, jobs are forgotten for others, workers die, loads fail."""

    async def scenario(world: World) -> None:
        rng, book = Random(11), Book(world)
        async with asyncio.timeout(20_000):  # 2,400 seconds of work
            await arrivals(book, rng, 90, "abc", 30)
            await asyncio.gather(*book.tasks)
        assert not book.open()
        await world.quiet()

    circuits = {
        "a": Circuit(partitions=3, key={"host": 12}),
        "b": Circuit(partitions=2, key={"host": 12}),
        "c": Circuit(key={"host": 3}, partition={"host": 4}, slots=2),
    }
    play(tmp_path, scenario, circuits, EnginePolicy(limits=HOST, ageing=120))
