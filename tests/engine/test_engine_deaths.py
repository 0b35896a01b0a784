"""Workers that die, or do not start: what was in work is proved again, and no more is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scripted import World, play, raised
from scripted_catalogue import Circuit
from scripted_worker import expected_proof

from cuzk.errors import (
    DeviceUnavailable,
    EngineError,
    Unavailable,
    UnknownJob,
)

SUSPECT = (
    "; SIGBUS says that a file was cut or its disk failed while it was read: look at big.zkey, and put keys there whole "
    "(copy beside, then mv)"
)
BIG = {"big": Circuit(partitions=3)}


def test_21_a_job_is_requeued_when_its_worker_dies(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request, other = world.request("a", "big"), world.request("b", "big")
        await world.engine.submit(request)
        await world.engine.submit(other)
        await asyncio.sleep(25)  # a: one partition proved, one in work; b: prepared
        assert [part.state for part in world.job("a").partitions] == ["done", "proving", "pending"]
        world.worker.die()
        await asyncio.sleep(0.01)
        snapshot = world.engine.snapshot()
        assert [(job.id, job.state) for job in snapshot.jobs] == [("a", "queued"), ("b", "queued")]
        assert snapshot.memories[0].owners == {}
        assert snapshot.workers[0].fault == "worker cpu: killed by signal 7 (SIGBUS)"
        assert (snapshot.workers[0].alive, snapshot.keys[0].tier) == (False, "cold")
        assert await world.proof("a") == expected_proof(request, 3)
        assert await world.proof("b") == expected_proof(other, 3)
        assert set(world.worker.proofs.values()) == {1}  # what was proved stayed
        assert world.engine.snapshot().workers[0].restarts == 1
        await world.quiet()

    play(tmp_path, scenario, BIG)


@pytest.mark.parametrize("word", ["prepare", "prove", "finish"])
def test_a_job_that_kills_workers_fails_and_says_with_what(tmp_path: Path, word: str) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail[word, "a"] = ["die"] * 3
        await world.engine.submit(world.request("a", "big"))
        other = world.request("b", "big")
        await world.engine.submit(other)
        view, _ = await world.engine.result("a")
        assert (view.state, view.code) == ("failed", "worker-lost")
        assert view.message == (
            "the worker died 3 times while it worked on this request: "
            f"worker cpu: killed by signal 7 (SIGBUS){SUSPECT}"
        )
        assert await world.proof("b") == expected_proof(other, 3)
        assert all(count == 1 for count in world.worker.proofs.values())
        await world.quiet()

    play(tmp_path, scenario, BIG)


def test_a_death_between_two_jobs_costs_only_the_key(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a"))
        await world.proof("a")
        await asyncio.sleep(100)
        world.worker.die()
        request = world.request("b")
        await asyncio.sleep(5)
        await world.engine.submit(request)
        assert await world.proof("b") == expected_proof(request, 1)
        assert [name for _, name in world.worker.words("load")] == ["small", "small"]
        await world.quiet()

    play(tmp_path, scenario)


def test_two_partitions_lost_together_are_one_loss(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a", "wide")
        await world.engine.submit(request)
        for _ in range(2):
            await asyncio.sleep(15)
            assert world.job("a").state == "proving"
            world.worker.die()
            await asyncio.sleep(1.5)
        assert await world.proof("a") == expected_proof(request, 3)
        await world.quiet()

    play(tmp_path, scenario, {"wide": Circuit(partitions=3, slots=3)})


def test_a_key_that_kills_the_worker_is_given_up(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = ["die"] * 3
        await world.engine.submit(world.request("a", "big"))
        await world.engine.submit(world.request("b", "big"))
        for name in "ab":
            view, _ = await world.engine.result(name)
            assert (view.code, view.message) == ("worker-lost", f"worker cpu: killed by signal 7 (SIGBUS){SUSPECT}")  # fmt: skip
        assert len(world.worker.words("load")) == 3
        await world.quiet()

    play(tmp_path, scenario, BIG)


def test_a_worker_that_does_not_start_is_shown_and_the_others_work(tmp_path: Path) -> None:
    def prepare(world: World) -> None:
        world.workers[0].start_error = DeviceUnavailable("cuda:0: no driver")

    async def scenario(world: World) -> None:
        views = {view.name: view for view in world.engine.snapshot().workers}
        assert (views["cuda:0"].alive, views["cuda:0"].fault) == (False, "cuda:0: no driver")
        request = world.request("a")
        await world.engine.submit(request)
        assert await world.proof("a") == expected_proof(request, 1)

    play(tmp_path, scenario, workers={"cuda:0": {}, "cpu": {}}, prepare=prepare)


def test_without_a_worker_nothing_is_accepted(tmp_path: Path) -> None:
    def prepare(world: World) -> None:
        world.worker.start_error = DeviceUnavailable("cuda:0: no driver")

    async def scenario(world: World) -> None:
        text = await raised(Unavailable, world.engine.submit(world.request("a")))
        assert text == "no device works: cuda:0: cuda:0: no driver"
        assert (await world.quiet()).totals == ()

    play(tmp_path, scenario, workers={"cuda:0": {}}, prepare=prepare)


def test_a_worker_that_dies_of_a_check_refuses_the_request(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["check", "a"] = ["die"] * 3
        text = await raised(EngineError, world.engine.submit(world.request("a")))
        assert text == "worker cpu: killed by signal 7 (SIGBUS)"
        await raised(UnknownJob, world.engine.result("a"))
        assert (await world.quiet()).totals == ()

    play(tmp_path, scenario)


def test_a_worker_that_is_not_back_refuses_with_unavailable(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("z"))
        world.worker.fail["check", "b"] = ["die"]  # of something else at the same time
        await world.engine.submit(world.request("b"))
        await world.proof("b")
        world.worker.revival = 100
        world.worker.die()
        text = await raised(Unavailable, world.engine.submit(world.request("a")))
        assert text.startswith("no device works: worker cpu does not run")
        await asyncio.sleep(101)
        await world.engine.submit(world.request("a"))
        await world.proof("a")
        await world.quiet()

    play(tmp_path, scenario)
