"""Cancelling, deadlines and clients that go away, at every stage; all that was held is free afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scripted import World, play, raised
from scripted_catalogue import Circuit
from scripted_worker import expected_proof
from virtual_time import EPOCH

from cuzk.errors import UnknownJob

BIG = {
    "big": Circuit(partitions=3)
}  # loaded until 10, prepared until 11, proved until 41, done at 42
STAGES = {
    "queued": (5.0, False),
    "preparing": (10.5, True),
    "proving": (25.0, True),
    "verifying": (41.5, True),
}


@pytest.mark.parametrize("stage", STAGES)
def test_16_a_job_is_cancelled_at_once_at_any_stage(tmp_path: Path, stage: str) -> None:
    """D8, fault 16: cancel was a stub. What is in work ends in the worker, and is thrown away."""
    moment, begun = STAGES[stage]

    async def scenario(world: World) -> None:
        loop = asyncio.get_running_loop()
        request = world.request("a", "big")
        await world.engine.submit(request)
        waiting = [asyncio.ensure_future(world.engine.result("a")) for _ in range(3)]
        await asyncio.sleep(moment)
        assert world.job("a").state == stage
        now = loop.time()
        assert await world.engine.cancel("a") is begun
        for view, outcome in await asyncio.gather(*waiting):
            assert outcome is not None
            assert (view.state, view.code, outcome.proof) == ("cancelled", "cancelled", b"")
        assert loop.time() == now
        assert await world.engine.cancel("a") is False
        if stage == "proving":
            assert "job a partition 1" in world.engine.snapshot().memories[0].owners
            await asyncio.sleep(7)
            assert list(world.engine.snapshot().memories[0].owners) == ["key big on cpu"]
            assert len(world.worker.words("prove")) == 2
        snapshot = await world.quiet()
        assert (snapshot.totals[0].cancelled, snapshot.totals[0].done) == (1, 0)
        assert world.worker.requests == {}

    play(tmp_path, scenario, BIG)


def test_cancel_of_what_ended_and_of_what_never_was(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a")
        await world.engine.submit(request)
        await world.proof("a")
        assert await world.engine.cancel("a") is False
        assert await world.proof("a") == expected_proof(request, 1)
        assert "'b': no request has this id" in await raised(UnknownJob, world.engine.cancel("b"))

    play(tmp_path, scenario)


@pytest.mark.parametrize("moment", [10.5, 25.0, 41.5])
def test_a_new_try_waits_until_the_worker_has_let_go_of_the_first(
    tmp_path: Path, moment: float
) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a", "big")
        await world.engine.submit(request)
        await asyncio.sleep(moment)
        await world.engine.cancel("a")
        view = await world.engine.submit(request)
        assert (view.state, view.number) == ("queued", 2)
        assert await world.proof("a") == expected_proof(request, 3)
        total = (await world.quiet()).totals[0]
        assert (total.submitted, total.cancelled, total.done) == (2, 1, 1)

    play(tmp_path, scenario, BIG)


def test_cancelled_jobs_leave_their_slot_to_others(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "big"))
        other = world.request("b", "big")
        await world.engine.submit(other)
        await asyncio.sleep(15)
        await world.engine.cancel("a")
        assert await world.proof("b") == expected_proof(other, 3)
        assert world.worker.when("prove", "b") == pytest.approx(21.001)  # when a's partition ended
        await world.quiet()

    play(tmp_path, scenario, BIG)


@pytest.mark.parametrize("stage", STAGES)
def test_a_job_that_is_late_fails(tmp_path: Path, stage: str) -> None:
    moment, _ = STAGES[stage]

    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "big", deadline=EPOCH + moment))
        view, outcome = await world.engine.result("a")
        assert asyncio.get_running_loop().time() == pytest.approx(moment)
        assert outcome is not None
        assert (view.state, view.code) == ("failed", "deadline")
        assert view.message == f"not done by its deadline; it was {stage}"
        assert (await world.quiet()).totals[0].failed == 1

    play(tmp_path, scenario, BIG)


def test_a_deadline_that_is_met_is_none(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a", "big", deadline=EPOCH + 43)
        await world.engine.submit(request)
        assert await world.proof("a") == expected_proof(request, 3)
        await asyncio.sleep(10)
        assert world.job("a").state == "done"
        late = world.request("late", "big", deadline=EPOCH + 1)
        await world.engine.submit(late)
        assert (await world.engine.result("late"))[0].code == "deadline"
        await world.quiet()

    play(tmp_path, scenario, BIG)


def test_a_job_without_an_id_ends_with_its_last_client(tmp_path: Path) -> None:
    async def leave(world: World, waiting: asyncio.Future[Any], name: str) -> None:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        world.engine.left(name)
        await asyncio.sleep(0.1)

    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("made-up", "big", named=False))
        await world.engine.submit(world.request("named", "big"))
        waits = [asyncio.ensure_future(world.engine.result("made-up")) for _ in range(2)]
        other = asyncio.ensure_future(world.engine.result("named"))
        await asyncio.sleep(15)
        await leave(world, waits[0], "made-up")
        assert world.job("made-up").state == "proving"
        await leave(world, waits[1], "made-up")
        assert world.job("made-up").state == "cancelled"
        await leave(world, other, "named")
        assert await world.proof("named")
        world.engine.left("unknown")
        await world.quiet()

    play(tmp_path, scenario, BIG)


def test_a_client_that_leaves_while_its_job_is_accepted(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for named in (True, False):
            world.journal.gate = asyncio.Event()
            request = world.request(f"{named}", "big", named=named)
            task = asyncio.ensure_future(world.engine.submit(request))
            while world.journal.accepted < 2 - named:
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            world.journal.gate.set()
            await asyncio.sleep(1)
        snapshot = world.engine.snapshot()
        assert [(job.id, job.state) for job in snapshot.jobs] == [("True", "queued"), ("False", "cancelled")]  # fmt: skip
        await world.quiet()

    play(tmp_path, scenario, BIG)


def test_cancel_while_a_proof_is_written_is_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the journal as done is done for everybody."""

    async def scenario(world: World) -> None:
        writing, really = asyncio.Event(), world.journal.end

        async def slowly(*about: Any, **more: Any) -> None:
            writing.set()
            await asyncio.sleep(50)
            await really(*about, **more)

        monkeypatch.setattr(world.journal, "end", slowly)
        request = world.request("a")
        await world.engine.submit(request)
        await writing.wait()
        assert world.job("a").state == "verifying"
        assert await world.engine.cancel("a") is False
        assert await world.proof("a") == expected_proof(request, 1)
        assert (await world.quiet()).totals[0].done == 1

    play(tmp_path, scenario)
