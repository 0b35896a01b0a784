"""The engine after a restart: accepted work goes on, finished proofs are served, nothing is proved twice."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from scripted import World, play, raised
from scripted_catalogue import GIB, Circuit
from scripted_worker import expected_proof
from virtual_time import EPOCH

from cuzk.engine.policy import EnginePolicy
from cuzk.errors import NotReady, RequestConflict, Unavailable

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


def missing(world: World) -> None:
    world.catalogue.circuits["big"].fault = "no such file"


async def big_and_small(world: World) -> None:
    """Two jobs of a circuit whose key is missing after the restart, and one of another behind them."""
    await world.engine.submit(world.request("a", "big", deadline=EPOCH + 1000))
    await world.engine.submit(world.request("b", "big"))
    await world.engine.submit(world.request("c"))


def test_jobs_wait_for_a_key_that_is_missing_after_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def after(world: World) -> None:
        jobs = world.engine.snapshot().jobs
        assert [(job.id, job.place) for job in jobs] == [("c", 0), ("a", -1), ("b", -1)]
        assert await world.proof("c") == expected_proof(world.request("c"), 1)
        await asyncio.sleep(100)
        for name in ("a", "b"):
            view, outcome = await world.engine.result(name, 0)
            assert view == world.job(name)
            assert (view.state, view.code, view.place, outcome) == ("queued", "", -1, None)
            assert view.message == "waits for its circuit, which is NOT READY: no such file"
        held = world.engine.snapshot()
        assert [owner for memory in held.memories for owner in memory.owners] == [
            "key small on cpu"
        ]
        text = await raised(NotReady, world.engine.submit(world.request("d", "big")))
        assert text == "big: no such file"
        world.catalogue.circuits["big"].fault = ""
        back = world.clock()
        assert await world.proof("a") == expected_proof(world.request("a", "big"), 3)
        assert world.worker.when("load", "big") + EPOCH < back + 5
        assert await world.proof("b") == expected_proof(world.request("b", "big"), 3)
        await world.quiet()

    play(tmp_path, big_and_small, {**BIG, "big": Circuit(partitions=3)})
    with caplog.at_level(logging.INFO, "cuzk.engine"):
        play(tmp_path, after, {**BIG, "big": Circuit(partitions=3)}, prepare=missing)
    said = [
        record.getMessage() for record in caplog.records if "ready" in record.getMessage().lower()
    ]
    assert said == [
        "'big' is NOT READY, 2 jobs wait for it: 'no such file'",
        "'big' is ready again: 2 jobs go on",
    ]


def test_a_job_that_was_begun_waits_for_its_key_with_what_is_proved(tmp_path: Path) -> None:
    async def before(world: World) -> None:
        await world.engine.submit(world.request("a", "big"))
        await asyncio.sleep(25)
        assert [part.state for part in world.job("a").partitions] == ["done", "proving", "pending"]

    async def after(world: World) -> None:
        await asyncio.sleep(100)
        assert (world.job("a").state, world.worker.events) == ("queued", [])
        assert world.job("a").message.endswith("NOT READY: no such file")
        world.catalogue.circuits["big"].fault = ""
        assert await world.proof("a") == expected_proof(world.request("a", "big"), 3)
        assert sorted(world.worker.proofs) == [("a", 1), ("a", 2)]
        await world.quiet()

    play(tmp_path, before, {**BIG, "big": Circuit(partitions=3)})
    play(tmp_path, after, {**BIG, "big": Circuit(partitions=3)}, prepare=missing)


def test_a_deadline_and_a_cancel_end_jobs_that_wait_for_a_key(tmp_path: Path) -> None:
    async def after(world: World) -> None:
        assert not await world.engine.cancel("b")
        assert (await world.engine.result("b"))[0].state == "cancelled"
        view, _ = await world.engine.result("a")
        assert (view.state, view.code, view.ended) == ("failed", "deadline", EPOCH + 1000)
        assert view.message == (
            "not done by its deadline; it was queued: "
            "waits for its circuit, which is NOT READY: no such file"
        )
        await world.quiet()
        assert not world.engine._state.jobs.away
        world.catalogue.circuits["big"].fault = ""
        await world.engine.submit(world.request("b", "big"))
        assert await world.proof("b") == expected_proof(world.request("b", "big"), 3)
        await world.quiet()

    play(tmp_path, big_and_small, {**BIG, "big": Circuit(partitions=3)})
    play(tmp_path, after, {**BIG, "big": Circuit(partitions=3)}, prepare=missing)


def test_a_drain_leaves_jobs_that_wait_for_a_key_in_the_journal(tmp_path: Path) -> None:
    async def drained(world: World) -> None:
        begun = world.clock()
        assert not await world.engine.drain(1000)  # not all is done
        assert world.clock() < begun + 30
        assert world.job("c").state == "done"
        assert [world.job(name).state for name in ("a", "b")] == ["queued"] * 2

    async def after(world: World) -> None:
        for name in ("a", "b"):
            proof = await world.proof(name)
            assert proof == expected_proof(world.request(name, "big"), 3)
        await world.quiet()

    play(tmp_path, big_and_small, {**BIG, "big": Circuit(partitions=3)})
    play(tmp_path, drained, {**BIG, "big": Circuit(partitions=3)}, prepare=missing)
    play(tmp_path, after, BIG)


def test_a_key_that_comes_back_larger_than_fits_fails_its_jobs(tmp_path: Path) -> None:
    async def after(world: World) -> None:
        await asyncio.sleep(100)
        assert world.job("b").state == "queued"
        world.catalogue.circuits["big"] = Circuit(partitions=3, key={"host": 90})
        view, _ = await world.engine.result("b")
        assert (view.state, view.code) == ("failed", "out-of-memory")
        await world.quiet()

    play(tmp_path, big_and_small, {**BIG, "big": Circuit(partitions=3)})
    play(tmp_path, after, {**BIG, "big": Circuit(partitions=3)}, prepare=missing)


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
