"""Many jobs: memory stays flat, nothing is left, and the event loop has little to do for each."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from itertools import pairwise
from pathlib import Path
from time import thread_time

import pytest
from processor_time import plain_python, seconds
from scripted import HOST, World, play
from scripted_catalogue import GIB, Circuit
from scripted_worker import expected_proof

from cuzk.engine.job import Job
from cuzk.engine.jobs import Live
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Priority, Request

SHOWN = 20


async def wave(world: World, name: str, count: int) -> None:
    """Some of everything that can happen to a job, 50 at a time."""
    for start in range(0, count, 50):
        requests = [
            world.request(f"{name}-{n}", "ab"[n % 2], Priority(1 + n % 4), data=b"%900d" % n)
            for n in range(start, min(start + 50, count))
        ]
        await asyncio.gather(*(world.engine.submit(request) for request in requests))
        await world.engine.cancel(requests[7].id)
        for request in requests:
            _, outcome = await world.engine.result(request.id)
            assert outcome is not None
            if outcome.state.value == "done":
                assert outcome.proof == expected_proof(request, 2)
        await asyncio.sleep(61)


def alive() -> Counter[str]:
    gc.collect()
    kinds = (Live, Job, Request, asyncio.Task)
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, kinds))


def flat(folder: Path, count: int) -> None:
    async def scenario(world: World) -> None:
        tracemalloc.start()
        await wave(world, "warm", count)
        await world.quiet()
        await asyncio.sleep(700)  # its spans are forgotten with the next ones
        forget(world)
        objects = alive()
        before, _ = tracemalloc.get_traced_memory()
        await wave(world, "more", count)
        snapshot = await world.quiet()
        forget(world)
        assert alive() == objects
        grown = tracemalloc.get_traced_memory()[0] - before
        assert grown < 50_000 + 20 * count, f"{grown} bytes for {count} jobs"  # a payload is 900
        assert snapshot.totals[0].submitted == 2 * count
        assert len(snapshot.jobs) == SHOWN

    def forget(world: World) -> None:
        """What the test's worker keeps."""
        world.worker.events.clear()
        world.worker.proofs.clear()

    policy = EnginePolicy(shown=SHOWN, keep=100_000, keep_count=50, limits=HOST)
    circuit = Circuit(partitions=2, load=1, prepare=0.1, prove=1, finish=0.1)
    try:
        play(folder, scenario, {"a": circuit, "b": circuit}, policy)
    finally:
        tracemalloc.stop()


def test_7_memory_is_flat(tmp_path: Path) -> None:
    """Fault 7: results, failed assemblers and status jobs were kept for ever."""
    flat(tmp_path, 100)


@pytest.mark.slow
def test_7_memory_is_flat_over_thousands_of_jobs(tmp_path: Path) -> None:
    flat(tmp_path, 2_000)  # twice; a minute, most of it what tracemalloc costs


def test_a_full_queue_costs_little(tmp_path: Path) -> None:
    """A thousand wait: what the event loop does for each of the jobs takes as long as 16,000 steps of a loop (1.2 ms of a
    processor, EPYC, 2026-11-30)."""
    unit = min(seconds(plain_python) for _ in range(15))

    async def scenario(world: World) -> None:
        began = thread_time()
        for n in range(0, 1000, 100):
            requests = [world.request(f"r{m}", data=bytes(1000)) for m in range(n, n + 100)]
            await asyncio.gather(*(world.engine.submit(request) for request in requests))
        assert len(world.engine.snapshot().jobs) > 990
        for n in range(1000):
            await world.engine.result(f"r{n}")
        a_job = (thread_time() - began) / 1000
        assert a_job < 7 * unit, f"{a_job} s a job, where a loop's ten thousand steps take {unit}"
        snapshot = await world.quiet()
        assert snapshot.totals[0].done == 1000

    circuit = Circuit(key={"host": 1}, partition={"host": 1}, prove=0.07, prepare=0.01)
    play(tmp_path, scenario, {"small": circuit}, EnginePolicy(limits={"host": 3 * GIB}))


def test_the_next_partition_starts_when_one_ends(tmp_path: Path) -> None:
    """No time passes between them: the device is never idle while something is prepared."""

    async def scenario(world: World) -> None:
        for n in range(20):
            await world.engine.submit(world.request(f"r{n}"))
        await world.quiet()
        starts = [at for at, word, _, _ in world.worker.events if word == "prove"]
        gaps = [later - earlier for earlier, later in pairwise(starts)]
        assert gaps == pytest.approx([0.07] * 19)

    circuit = Circuit(prove=0.07, prepare=0.01, finish=0.005)
    play(tmp_path, scenario, {"small": circuit})
