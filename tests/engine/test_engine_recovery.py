"""The engine after a restart: accepted work goes on, finished proofs are served, nothing is proved twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scripted import EPOCH, GIB, Circuit, World, expected_proof, play, raised

from cuzk.engine.policy import EnginePolicy
from cuzk.errors import RequestConflict, Unavailable

BIG = {"big": Circuit(partitions=3), "small": Circuit()}


@pytest.mark.parametrize("moment", [0.5, 10.5, 25.0, 41.5])
def test_unfinished_jobs_go_on_with_their_partitions(tmp_path: Path, moment: float) -> None:
    proofs: list[tuple[str, int]] = []

    async def before(world: World) -> None:
        await world.engine.submit(world.request("done"))
        await world.proof("done")
        await world.engine.evict("small")
        await world.engine.submit(world.request("a", "big"))
        await world.engine.submit(world.request("b"))
        await asyncio.sleep(moment)
        proofs.extend(world.worker.proofs)

    async def after(world: World) -> None:
        jobs = world.engine.snapshot().jobs
        assert [(job.id, job.number) for job in jobs] == [("a", 2), ("b", 3), ("done", 1)]
        assert await world.proof("done") == expected_proof(world.request("done"), 1)
        assert await world.proof("a") == expected_proof(world.request("a", "big"), 3)
        assert await world.proof("b") == expected_proof(world.request("b"), 1)
        assert not set(proofs) & set(world.worker.proofs)  # none twice
        assert len(proofs) + len(world.worker.proofs) == 5
        view = await world.engine.submit(world.request("new"))
        assert view.number == 4
        total = (await world.quiet()).totals[0]
        assert (total.submitted, total.done) == (3, 3)

    play(tmp_path, before, BIG)
    play(tmp_path, after, BIG)


def test_a_job_that_was_all_proved_is_only_finished(tmp_path: Path) -> None:
    async def before(world: World) -> None:
        await world.engine.submit(world.request("a", "big"))
        await asyncio.sleep(41.5)
        assert world.job("a").state == "verifying"

    async def after(world: World) -> None:
        assert await world.proof("a") == expected_proof(world.request("a", "big"), 3)
        assert world.worker.words("prepare", "prove", "finish") == [
            ("prepare", "a"),
            ("finish", "a"),
        ]
        await world.quiet()

    play(tmp_path, before, BIG)
    play(tmp_path, after, BIG)


def test_a_repeat_after_a_restart_attaches_or_gets_the_stored_proof(tmp_path: Path) -> None:
    async def before(world: World) -> None:
        await world.engine.submit(world.request("done"))
        await world.proof("done")
        await world.engine.submit(world.request("a", "big"))

    async def after(world: World) -> None:
        assert (await world.engine.submit(world.request("done"))).state == "done"
        assert (await world.engine.submit(world.request("a", "big"))).number == 2
        other = world.request("a", "big", data=b"other")
        await raised(RequestConflict, world.engine.submit(other))
        other = world.request("done", data=b"other")
        await raised(RequestConflict, world.engine.submit(other))
        await world.proof("a")
        assert (await world.quiet()).totals[0].submitted == 1

    play(tmp_path, before, BIG)
    play(tmp_path, after, BIG)


def test_circuits_that_are_gone_or_too_large_now_fail_their_jobs(tmp_path: Path) -> None:
    async def before(world: World) -> None:
        await world.engine.submit(world.request("a", "big"))
        await world.engine.submit(world.request("b", "huge"))
        await world.engine.submit(world.request("c"))

    async def after(world: World) -> None:
        view, _ = await world.engine.result("a")
        assert (view.state, view.code) == ("failed", "not-ready")
        assert view.message == (
            "big: accepted before a restart, and not in the configuration any more"
        )
        view, _ = await world.engine.result("b")
        assert (view.state, view.code) == ("failed", "out-of-memory")
        assert f"the limit is {6 * GIB}" in view.message
        assert await world.proof("c") == expected_proof(world.request("c"), 1)
        await world.quiet()

    huge = {"huge": Circuit(key={"host": 9}), "small": Circuit()}
    play(tmp_path, before, {**BIG, **huge})
    play(tmp_path, after, huge, EnginePolicy(limits={"host": 6 * GIB}))


def test_a_key_that_is_missing_now_fails_its_jobs(tmp_path: Path) -> None:
    async def before(world: World) -> None:
        await world.engine.submit(world.request("a", "big"))

    async def after(world: World) -> None:
        view, _ = await world.engine.result("a")
        assert (view.state, view.message) == ("failed", "big: no such file")
        await world.quiet()

    def fault(world: World) -> None:
        world.catalogue.circuits["big"].fault = "no such file"

    play(tmp_path, before, BIG)
    play(tmp_path, after, {**BIG, "big": Circuit(partitions=3)}, prepare=fault)


def test_a_deadline_that_passed_while_nobody_was_there(tmp_path: Path) -> None:
    async def before(world: World) -> None:
        await world.engine.submit(world.request("a", "big", deadline=EPOCH + 20))

    async def after(world: World) -> None:
        view, _ = await world.engine.result("a")
        assert (view.state, view.code) == ("failed", "deadline")
        await world.quiet()

    play(tmp_path, before, BIG)
    play(tmp_path, after, BIG)  # its clock begins at 0 again: 20 s later


def test_losses_count_over_restarts(tmp_path: Path) -> None:
    async def before(world: World) -> None:
        world.worker.fail["prove", "a"] = ["die", "die"]
        await world.engine.submit(world.request("a", "big"))
        while world.engine._state.jobs.live["a"].job.losses < 2:
            await asyncio.sleep(1)

    async def after(world: World) -> None:
        world.worker.fail["prove", "a"] = ["die"]
        view, _ = await world.engine.result("a")
        assert view.message.startswith("the worker died 3 times while it worked on this request")
        await world.quiet()

    play(tmp_path, before, BIG)
    play(tmp_path, after, BIG)


def test_who_waits_when_the_engine_stops_is_told(tmp_path: Path) -> None:
    async def before(world: World) -> None:
        await world.engine.submit(world.request("a", "big"))
        waiting = asyncio.ensure_future(world.engine.result("a"))
        await asyncio.sleep(20)
        await world.engine.stop()
        assert (
            await raised(Unavailable, waiting)
            == "'a': the service stops; ask again when it is back"
        )

    async def after(world: World) -> None:
        assert await world.proof("a") == expected_proof(world.request("a", "big"), 3)

    play(tmp_path, before, BIG)
    play(tmp_path, after, BIG)
