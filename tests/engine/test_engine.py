"""The engine when all goes well: order, repeats, bounds, times, and nothing left behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from scripted import HOST, World, play, raised
from scripted_catalogue import GIB, Circuit
from scripted_worker import expected_proof
from virtual_time import EPOCH

from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Priority
from cuzk.errors import (
    FormatError,
    NotReady,
    OutOfMemory,
    QueueFull,
    RequestConflict,
    Unavailable,
    UnknownJob,
)


def test_a_request_becomes_its_own_proof(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a", "big")
        view = await world.engine.submit(request)
        assert (view.state, view.place, view.circuit) == ("queued", 0, "big")
        assert await world.proof("a") == expected_proof(request, 3)
        job = world.job("a")
        assert job.milliseconds == {
            "queue": 0.0, "load": 10_000.0, "prepare": 1000.0, "prove": 30_000.0,
            "verify": 1000.0, "total": 42_000.0, "work": 30_000.0,
        }  # fmt: skip
        assert [part.state for part in job.partitions] == ["done"] * 3
        assert {part.worker for part in job.partitions} == {"cpu"}
        await world.quiet()

    play(tmp_path, scenario, {"big": Circuit(partitions=3)})


def test_thirty_two_at_once_over_three_circuits_each_get_their_own(tmp_path: Path) -> None:
    circuits = {
        "a": Circuit(),
        "b": Circuit(partitions=4, slots=2),
        "c": Circuit(partitions=2, key={"host": 9}),
    }

    async def scenario(world: World) -> None:
        requests = [world.request(f"r{n}", "abc"[n % 3]) for n in range(32)]
        await asyncio.gather(*(world.engine.submit(request) for request in requests))
        for request in requests:
            name = str(request.fields["circuit_id"])
            assert await world.proof(request.id) == expected_proof(request, circuits[name].partitions)  # fmt: skip
        await world.quiet()

    play(tmp_path, scenario, circuits, workers={"cpu": {}, "other": {}})


def test_2_one_job_never_takes_the_place_of_another(tmp_path: Path) -> None:
    """Fault 2: jobs of one partition overwrote each other under one key of a map, and a caller hung."""

    async def scenario(world: World) -> None:
        requests = [world.request(f"post-{n}") for n in range(6)]
        await asyncio.gather(*(world.engine.submit(request) for request in requests))
        proofs = await asyncio.gather(*(world.proof(request.id) for request in requests))
        assert proofs == [expected_proof(request, 1) for request in requests]
        assert set(world.worker.proofs.values()) == {1}

    play(tmp_path, scenario)


def test_3_a_repeat_is_the_same_job(tmp_path: Path) -> None:
    """Fault 3: every retry queued a second full run, and replaced the first in the middle."""

    async def scenario(world: World) -> None:
        request = world.request("a", "big")
        first, second = await asyncio.gather(
            world.engine.submit(request), world.engine.submit(replace(request))
        )
        assert first.number == second.number
        await asyncio.sleep(15)  # in the middle of it
        third = await world.engine.submit(request)
        assert (third.number, third.state) == (first.number, "proving")
        results = await asyncio.gather(*(world.proof("a") for _ in range(3)))
        assert set(results) == {expected_proof(request, 3)}
        fourth = await world.engine.submit(request)
        assert (fourth.number, fourth.state) == (first.number, "done")
        assert set(world.worker.proofs.values()) == {1}
        assert sum(total.submitted for total in (await world.quiet()).totals) == 1

    play(tmp_path, scenario, {"big": Circuit(partitions=3)})


def test_other_contents_under_an_id_are_a_conflict(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", data=b"one"))
        other = world.request("a", data=b"two")
        text = await raised(RequestConflict, world.engine.submit(other))
        assert "'a'" in text
        await world.proof("a")
        await raised(RequestConflict, world.engine.submit(other))
        again = world.request("b", data=b"one"), world.request("b", data=b"two")
        answers = await asyncio.gather(
            *(world.engine.submit(each) for each in again), return_exceptions=True
        )
        assert [type(answer).__name__ for answer in answers] == ["JobView", "RequestConflict"]

    play(tmp_path, scenario)


def test_two_at_once_are_refused_alike(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a", data=b"bad")
        texts = await asyncio.gather(
            *(raised(FormatError, world.engine.submit(request)) for _ in range(3))
        )
        assert set(texts) == {"x.wtns: not a witness file"}
        assert world.worker.words("check") == [("check", "a")]
        await raised(UnknownJob, world.engine.result("a"))
        assert (await world.quiet()).totals == ()
        assert await world.engine.submit(world.request("a")) is not None

    play(tmp_path, scenario)


def test_a_submission_given_up_leaves_its_place_to_its_repeat(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a")
        first = asyncio.ensure_future(world.engine.submit(request))
        second = asyncio.ensure_future(world.engine.submit(replace(request)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).state == "queued"
        assert await world.proof("a") == expected_proof(request, 1)
        assert first.cancelled()

    play(tmp_path, scenario)


def test_a_full_queue_says_how_many_wait_and_takes_more_later(tmp_path: Path) -> None:
    """D16, M7; and the critical one still gets in."""

    async def scenario(world: World) -> None:
        answers = await asyncio.gather(
            *(world.engine.submit(world.request(f"r{n}")) for n in range(100)),
            return_exceptions=True,
        )
        refused = [answer for answer in answers if isinstance(answer, QueueFull)]
        assert len(refused) == 95
        assert str(refused[0]) == (
            "5 requests are waiting or in work, the limit is 5: try again later"
        )
        critical = [world.request(f"c{n}", priority=Priority.CRITICAL) for n in range(3)]
        await world.engine.submit(critical[0])
        await world.engine.submit(critical[1])
        assert "the limit is 7" in await raised(QueueFull, world.engine.submit(critical[2]))
        await world.proof("r0")
        await world.proof("c0")
        await world.proof("c1")
        await world.engine.submit(world.request("later"))
        snapshot = await world.quiet()
        assert snapshot.totals[0].done == 8
        assert snapshot.queue_limit == 5

    play(tmp_path, scenario, policy=EnginePolicy(5, critical_places=2, limits=HOST))


def test_queued_bytes_are_bounded(tmp_path: Path) -> None:
    """M7, fault 8: payloads count, each once however many partitions it has."""

    async def scenario(world: World) -> None:
        for n in range(10):
            await world.engine.submit(world.request(f"r{n}", "big", data=bytes(1000)))
        text = await raised(QueueFull, world.engine.submit(world.request("x", "big", data=b"12345")))  # fmt: skip
        assert text.startswith("10 requests with 10000 bytes are waiting")
        assert "10003" in text
        assert sum(job.payload_bytes for job in world.engine.snapshot().jobs) == 10_000
        await world.quiet()
        await world.engine.submit(world.request("x", "big", data=b"12345"))

    play(
        tmp_path, scenario, {"big": Circuit(partitions=10)},
        policy=EnginePolicy(queue_bytes=10_003, limits=HOST),
    )  # fmt: skip


def test_bytes_of_requests_that_arrive_together_are_bounded(tmp_path: Path) -> None:
    """Also of those that are being checked, and of large ones, whose digest is made in a thread."""

    async def scenario(world: World) -> None:
        for size in (1000, 300_000):
            requests = [world.request(f"{size}-{n}", data=bytes(size)) for n in range(4)]
            answers = await asyncio.gather(
                *(world.engine.submit(each) for each in requests), return_exceptions=True
            )
            names = sorted(type(answer).__name__ for answer in answers)
            assert names == (["JobView"] * 4 if size == 1000 else ["JobView"] + ["QueueFull"] * 3)
            await world.quiet()

    play(tmp_path, scenario, policy=EnginePolicy(queue_bytes=599_999, limits=HOST))


def test_what_can_never_fit_is_refused_with_both_numbers(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        text = await raised(OutOfMemory, world.engine.submit(world.request("a", "huge")))
        assert f"need {17 * GIB + 1} bytes of host, the limit is {16 * GIB}" in text
        assert (await world.quiet()).totals == ()

    play(tmp_path, scenario, {"huge": Circuit(key={"host": 16})})


def test_unknown_and_missing_circuits_are_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        text = await raised(NotReady, world.engine.submit(world.request("a", "gone")))
        assert text == "gone: key gone.zkey: no such file"
        await raised(FormatError, world.engine.submit(world.request("a", "")))
        keys = {key.circuit: (key.tier, key.fault) for key in world.engine.snapshot().keys}
        assert keys == {
            "small": ("cold", ""),
            "gone": ("not ready", "key gone.zkey: no such file"),
        }
        await world.engine.submit(world.request("a"))
        await world.proof("a")

    circuits = {"small": Circuit(), "gone": Circuit(fault="key gone.zkey: no such file")}
    play(tmp_path, scenario, circuits)


def test_13_a_critical_job_waits_for_one_partition_behind_a_hundred(tmp_path: Path) -> None:
    """D2 and fault 13: WinningPoSt waited behind budget and a dispatcher that ran other things inline."""

    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("long", "big", Priority.LOW))
        for n in range(99):
            await world.engine.submit(world.request(f"n{n}"))
        await asyncio.sleep(500)
        now = asyncio.get_running_loop().time()
        critical = await world.engine.submit(world.request("urgent", priority=Priority.CRITICAL))
        assert critical.place == 0
        await world.proof("urgent")
        first = world.worker.when("prove", "urgent")
        assert first - now <= 10.0 + 1.0 + 0.01  # a partition, its own preparation, its check
        waits = {wait.priority: wait for wait in world.engine.snapshot().waits}
        assert abs(waits["critical"].seconds - (first - now)) < 0.01
        assert waits["critical"].jobs == 1
        assert waits["critical"].longest == waits["critical"].seconds
        assert waits["normal"].jobs > 10
        assert world.job("urgent").milliseconds["queue"] <= 10_001
        total = world.engine.snapshot().totals[0]
        assert total.begun == sum(wait.jobs for wait in waits.values())
        await world.quiet()

    circuits = {"big": Circuit(partitions=20), "small": Circuit()}
    play(tmp_path, scenario, circuits)


def test_low_ends_though_normal_ones_keep_coming(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("low", priority=Priority.LOW))
        for n in range(40):
            await world.engine.submit(world.request(f"n{n}"))
            await asyncio.sleep(9)  # one takes 10
        assert world.job("low").state == "done"
        assert world.worker.when("prove", "low") > world.worker.when("prove", "n5")

    play(
        tmp_path, scenario, {"small": Circuit(load=60)}, EnginePolicy(ageing=120, limits=HOST)
    )  # fmt: skip


def test_15_depths_are_those_of_the_work_itself(tmp_path: Path) -> None:
    """Fault 15: queues were shown empty while everything was in work."""

    async def scenario(world: World) -> None:
        for n in range(5):
            await world.engine.submit(world.request(f"r{n}"))
        await asyncio.sleep(12)
        snapshot = world.engine.snapshot()
        queue = snapshot.queues[0]
        assert (queue.kind, queue.pending, queue.in_progress) == ("circuit", 2, 3)
        assert [(job.id, job.state, job.place) for job in snapshot.jobs] == [
            ("r0", "proving", -1), ("r1", "preparing", -1), ("r2", "preparing", -1), ("r3", "queued", 0),
            ("r4", "queued", 1),
        ]  # fmt: skip
        worker = snapshot.workers[0]
        assert (worker.job, worker.kind, worker.partitions) == ("r0", "circuit", (("r0", 0),))
        assert [(m.name, m.limit, m.reserved + m.free) for m in snapshot.memories] == [
            ("host", 16 * GIB, 16 * GIB)
        ]
        assert snapshot.memories[0].owners == {
            "key small on cpu": 4 * GIB, "job r0 prepared": 4, "job r0 partition 0": GIB,
            "job r1 prepared": 4, "job r2 prepared": 4,
        }  # fmt: skip
        key = snapshot.keys[0]
        assert (key.tier, key.users, key.bytes) == ("hot", 4, 4 * GIB)

    play(tmp_path, scenario)


def test_17_after_load_nothing_is_left(tmp_path: Path) -> None:
    """D13 and fault 17: counters that only rose, or went below zero after a failure."""

    async def scenario(world: World) -> None:
        world.worker.fail["prove", "r3"] = [FormatError("no")]
        world.worker.fail["prepare", "r5"] = [FormatError("no")]
        world.worker.fail["finish", "r7"] = [FormatError("no")]
        world.worker.fail["prove", "r11"] = ["die"]
        for n in range(20):
            await world.engine.submit(world.request(f"r{n}", "big"))
        await asyncio.sleep(30)
        for name in ("r1", "r2", "r19"):
            await world.engine.cancel(name)
        snapshot = await world.quiet()
        total = snapshot.totals[0]
        assert (total.submitted, total.done, total.failed, total.cancelled) == (20, 14, 3, 3)
        assert world.worker.requests == {}

    play(tmp_path, scenario, {"big": Circuit(partitions=3)})


def test_18_status_does_not_wait_for_work(tmp_path: Path) -> None:
    """Fault 18: checks of proofs ran under the lock that status needed. Here a snapshot is made in no time at all."""

    async def scenario(world: World) -> None:
        for n in range(50):
            await world.engine.submit(world.request(f"r{n}"))
        await asyncio.sleep(11.5)
        before = asyncio.get_running_loop().time()
        snapshot = world.engine.snapshot()
        assert asyncio.get_running_loop().time() == before
        assert len(snapshot.jobs) == 50

    play(tmp_path, scenario)


def test_a_time_limit_of_waiting_is_no_end(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a"))
        view, outcome = await world.engine.result("a", timeout=5)
        assert outcome is None
        assert (view.state, view.age) == ("queued", 5.0)
        view, outcome = await world.engine.result("a", timeout=500)
        assert outcome is not None
        assert view.state == "done"
        await raised(UnknownJob, world.engine.result("b"))

    play(tmp_path, scenario)


def test_a_drain_finishes_what_is_there_and_takes_nothing_new(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a")
        await world.engine.submit(request)
        await world.engine.submit(world.request("b"))
        draining = asyncio.ensure_future(world.engine.drain(1000))
        await asyncio.sleep(5)
        text = await raised(Exception, world.engine.submit(world.request("c")))  # type: ignore[arg-type]
        assert text == "the service stops: submit it again when it is back"
        assert (await world.engine.submit(request)).id == "a"
        assert world.engine.snapshot().draining
        assert await draining
        assert await world.proof("a") == expected_proof(request, 1)
        assert (await world.engine.submit(request)).state == "done"

    play(tmp_path, scenario)


def test_what_is_checked_when_a_drain_begins_is_not_taken(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        checked = asyncio.ensure_future(world.engine.submit(world.request("a")))
        await asyncio.sleep(0.0005)  # in the middle of its check
        draining = asyncio.ensure_future(world.engine.drain(1000))
        await raised(Unavailable, checked)
        assert await draining
        assert world.engine.snapshot().jobs == ()

    play(tmp_path, scenario)


def test_a_drain_that_is_too_short_says_so(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a"))
        began = asyncio.get_running_loop().time()
        assert not await world.engine.drain(10)
        assert asyncio.get_running_loop().time() == began + 10

    play(tmp_path, scenario)


def test_results_are_kept_for_a_day(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a")
        await world.engine.submit(request)
        await world.proof("a")
        await asyncio.sleep(86_300)
        assert await world.proof("a") == expected_proof(request, 1)
        await asyncio.sleep(200)
        text = await raised(UnknownJob, world.engine.result("a"))
        assert "ended more than 24 h ago" in text
        assert world.engine.snapshot().jobs == ()
        view = await world.engine.submit(request)  # and is a new one then
        assert view.number == 2

    play(tmp_path, scenario)


def test_history_of_the_last_minutes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for n in range(10):
            await world.engine.submit(world.request(f"r{n}"))
        for n in range(10):
            await world.proof(f"r{n}")
        snapshot = world.engine.snapshot(spans_since=EPOCH)
        spans = [(span.track, span.name) for span in snapshot.spans if span.job in ("", "r0")]
        assert spans == [
            ("keys", "load small"),
            ("read", "r0"),
            ("device", "msm"),
            ("finish", "r0"),
        ]
        assert sum(count for _, count in snapshot.throughput) == 10
        assert all(start % 60 == 0 for start, _ in snapshot.throughput)
        assert len(world.engine.snapshot(spans_since=world.clock() - 5).spans) < 4
        assert world.engine.snapshot().spans == ()
        await asyncio.sleep(4000)
        assert world.engine.snapshot().throughput == ()

    play(tmp_path, scenario)
