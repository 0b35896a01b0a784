"""The engine stages the next partition while the device works on the one before: times, memory, and what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from running_workers import begun, in_loop, until
from scripted import World, play
from scripted_catalogue import GIB, Circuit
from scripted_worker import expected_proof
from toy_catalogue import ToyCatalogue, proof_of, request_of

from cuzk.engine.engine import Engine
from cuzk.engine.in_process import InProcessWorker
from cuzk.engine.journal import Journal
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Priority
from cuzk.errors import CircuitError, OutOfMemory

POREP = Circuit(partitions=4, load=10, prepare=1, prove=10, stage=4, finish=1, partition={"host": 3}, ahead=2)  # fmt: skip
PLAIN = Circuit(partitions=1, load=1, prepare=0.5, prove=2, finish=1)
CIRCUITS = {"porep": POREP, "plain": PLAIN}


def owners(world: World) -> dict[str, int]:
    (memory,) = world.engine.snapshot(ended=0).memories
    assert memory.reserved == sum(memory.owners.values())
    return {owner: nbytes // GIB for owner, nbytes in memory.owners.items() if nbytes >= GIB}


def test_the_device_waits_for_one_host_part_only(tmp_path: Path) -> None:
    """Of 10 s a partition 4 are the host's. Two jobs of four: 8 x 10 s one after the other, else 4 + 8 x 6."""

    async def scenario(world: World) -> None:
        for name in ("a", "b"):
            await world.engine.submit(world.request(name, "porep"))
        await asyncio.sleep(11 + 0.1 + 5)  # loaded, prepared, and half of the first partition
        assert owners(world) == {"key porep on cpu": 4, "job a partition 0": 3, "job a partition 1 ahead": 2}  # fmt: skip
        for name in ("a", "b"):
            request = world.request(name, "porep")
            assert await world.proof(name) == expected_proof(request, 4)
        proofs = [(time, name, number) for time, word, name, number in world.worker.events if word == "prove"]  # fmt: skip
        began = proofs[0][0]
        assert [(name, number) for _, name, number in proofs] == [(name, k) for name in "ab" for k in range(4)]  # fmt: skip
        assert [time - began for time, _, _ in proofs] == pytest.approx([0, *(10 + 6 * k for k in range(7))])  # fmt: skip
        staged = [(time - began, name, number) for time, word, name, number in world.worker.events if word == "stage"]  # fmt: skip
        assert [(name, number) for _, name, number in staged] == [("a", 1), ("a", 2), ("a", 3), *(("b", k) for k in range(4))]  # fmt: skip
        assert [time for time, _, _ in staged] == pytest.approx([0, *(10 + 6 * k for k in range(6))])  # fmt: skip
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


def test_nothing_is_staged_where_memory_has_no_room_for_it(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "porep"))
        await world.proof("a")
        assert world.worker.words("stage") == []
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS, EnginePolicy(limits={"host": 8 * GIB}))


def test_an_error_of_staging_is_the_jobs(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["stage", "a"] = [CircuitError("partition 1: public input 3: another")]
        for name in ("a", "b"):
            await world.engine.submit(world.request(name, "porep"))
        view, outcome = await world.engine.result("a")
        assert outcome is not None
        assert (view.state, view.code) == ("failed", "mismatch")
        assert view.message == "partition 1: public input 3: another"
        await world.proof("b")
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


def test_where_staging_finds_no_memory_the_job_goes_on_without_it(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["stage", "a"] = [OutOfMemory("not enough memory on this machine")]
        for name in ("a", "b"):
            await world.engine.submit(world.request(name, "porep"))
        assert await world.proof("a") == expected_proof(world.request("a", "porep"), 4)
        await world.proof("b")
        stages = [name for _, name in world.worker.words("stage")]
        assert stages == ["a", "b", "b", "b", "b"]
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


STAGING, STAGED = (
    11 + 2,
    11 + 7,
)  # seconds after the start: into the first partition, while the second is staged, and after


@pytest.mark.parametrize("when", [STAGING, STAGED])
def test_a_job_that_is_cancelled_leaves_nothing_staged(tmp_path: Path, when: float) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "porep"))
        await world.engine.submit(world.request("b", "porep"))
        await asyncio.sleep(when)
        assert owners(world)["job a partition 1 ahead"] == 2
        assert await world.engine.cancel("a")
        assert world.job("a").state == "cancelled"
        await world.proof("b")
        assert ("prove", "a") in world.worker.words("prove")
        assert world.worker.proofs["a", 0] == 1  # what was in work ran to its end
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


@pytest.mark.parametrize("when", [STAGING, STAGED])
def test_a_deadline_leaves_nothing_staged(tmp_path: Path, when: float) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a", "porep", deadline=world.clock() + when)
        await world.engine.submit(request)
        view, _ = await world.engine.result("a")
        assert (view.state, view.code) == ("failed", "deadline")
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


@pytest.mark.parametrize("when", [STAGING, STAGED])
def test_what_is_staged_is_lost_with_its_worker(tmp_path: Path, when: float) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "porep"))
        await asyncio.sleep(when)
        world.worker.die()
        assert "job a partition 1 ahead" not in owners(world) or when == STAGING
        await asyncio.sleep(0)
        assert await world.proof("a") == expected_proof(world.request("a", "porep"), 4)
        assert world.job("a").state == "done"
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


def test_a_worker_that_dies_of_staging_costs_the_job_a_try(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["stage", "a"] = ["die"] * 3
        await world.engine.submit(world.request("a", "porep"))
        view, outcome = await world.engine.result("a")
        assert outcome is not None
        assert (view.state, view.code) == ("failed", "worker-lost")
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


URGENT = Circuit(partitions=1, load=1, prepare=0.5, prove=2, stage=1, finish=1, key={"host": 1}, partition={"host": 3}, ahead=2)  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        # keys 4 + 1, a partition 3, one staged 2: room for one, and then for two
        (11, [("unstage", "a"), ("stage", "c"), ("prove", "c"), ("stage", "a")]),
        (13, [("stage", "c"), ("prove", "c"), ("prove", "a"), ("stage", "a")]),
    ],
)
def test_critical_comes_at_the_end_of_a_partition_whatever_is_staged(
    tmp_path: Path, limit: int, words: list[tuple[str, str]]
) -> None:
    async def scenario(world: World) -> None:
        await world.engine.preload("urgent")
        await world.engine.submit(world.request("a", "porep"))
        await asyncio.sleep(STAGED)
        assert owners(world)["job a partition 1 ahead"] == 2
        seen = len(world.worker.events)
        await world.engine.submit(world.request("c", "urgent", Priority.CRITICAL))
        await world.proof("c")
        after = [(word, name) for _, word, name, _ in world.worker.events[seen:]]
        began = [(word, name) for word, name in after if word in {"stage", "unstage", "prove"}]
        assert began == words
        assert world.worker.when("prove", "c") - world.worker.when("prove", "a") == pytest.approx(10)  # fmt: skip
        assert await world.proof("a") == expected_proof(world.request("a", "porep"), 4)
        await world.quiet()

    policy = EnginePolicy(limits={"host": limit * GIB + GIB // 2})
    play(tmp_path, scenario, {**CIRCUITS, "urgent": URGENT}, policy)


def test_a_drain_finishes_what_is_staged(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "porep"))
        await asyncio.sleep(STAGED)
        assert await world.engine.drain(100)
        await world.proof("a")
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


def test_what_is_staged_when_the_engine_stops_is_made_again_by_the_next(tmp_path: Path) -> None:
    async def first(world: World) -> None:
        await world.engine.submit(world.request("a", "porep"))
        await asyncio.sleep(STAGED)

    async def second(world: World) -> None:
        assert await world.proof("a") == expected_proof(world.request("a", "porep"), 4)
        await world.quiet()

    play(tmp_path, first, CIRCUITS)
    play(tmp_path, second, CIRCUITS)


def test_a_key_is_not_evicted_under_what_is_staged(tmp_path: Path) -> None:
    """Two circuits that fit one at a time: the second has its turn, and nothing is closed with a job there."""

    async def scenario(world: World) -> None:
        for name, circuit in (("a", "porep"), ("b", "plain"), ("c", "porep")):
            await world.engine.submit(world.request(name, circuit))
        for name in ("a", "b", "c"):
            await world.proof(name)
        await world.quiet()  # the worker complains of a key that was closed in use

    play(tmp_path, scenario, CIRCUITS, EnginePolicy(limits={"host": 10 * GIB}, turn=5))


def test_status_says_what_is_staged(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "porep"))

        def states() -> list[str]:
            return [part.state for part in world.job("a").partitions]

        await asyncio.sleep(STAGING)
        assert states() == ["proving", "staging", "pending", "pending"]
        await asyncio.sleep(STAGED - STAGING)
        assert states() == ["proving", "staged", "pending", "pending"]
        await asyncio.sleep(5)
        assert states() == ["done", "proving", "staging", "pending"]
        await world.proof("a")
        assert states() == ["done"] * 4

    play(tmp_path, scenario, CIRCUITS)


@in_loop
async def test_a_partition_is_staged_while_another_is_in_work_in_the_same_process(tmp_path: Path) -> None:  # fmt: skip
    """By what has begun, not by time: the proof of the first waits until the second is staged."""
    catalogue = ToyCatalogue(slots=1, stages=True)
    journal = Journal(tmp_path / "state")
    policy = EnginePolicy(limits={"host": 1 << 30})
    engine = Engine(catalogue, [InProcessWorker("cpu", "cpu", catalogue)], journal, policy)
    proving, staging = tmp_path / "prove", tmp_path / "stage"

    def state(number: int) -> Callable[[], bool]:
        def staged() -> bool:
            (job,) = engine.snapshot().jobs
            return job.partitions[number].state == "staged"

        return staged

    try:
        await engine.start()
        await engine.submit(request_of("a", b"data", partitions=3, prove=f"wait {proving}", stage=f"wait {staging}"))  # fmt: skip
        await until(begun(proving), "the first partition did not begin")
        await until(begun(staging), "the second was not staged beside it")
        staging.touch()
        await until(state(1), "it is not there")
        assert not state(2)()
        proving.touch()
        _, outcome = await engine.result("a", timeout=20)
        assert outcome is not None
        assert outcome.proof == b"+".join(proof_of("a", b"data", part) for part in range(3))
        parts = engine.snapshot().jobs[0].partitions
        assert [part.state for part in parts] == ["done"] * 3
        left = {owner for memory in engine.snapshot().memories for owner in memory.owners}
        assert not any(owner.startswith("job ") for owner in left), left
    finally:
        await engine.stop()
        journal.close()
