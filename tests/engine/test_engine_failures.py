"""What the engine does when work fails, workers die, memory runs out, or there is a bug."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scripted import GIB, HOST, Circuit, World, expected_proof, play, raised

from cuzk.engine.policy import EnginePolicy
from cuzk.engine.scheduler import plan
from cuzk.errors import (
    CircuitError,
    CuzkError,
    DeviceUnavailable,
    EngineError,
    FormatError,
    KernelError,
    NotReady,
    OutOfMemory,
    ProofError,
    Unavailable,
    UnknownJob,
    UnsatisfiedError,
)

BIG = {"big": Circuit(partitions=3)}
ERRORS = [
    FormatError("a: bad"),
    CircuitError("b: no"),
    UnsatisfiedError("c: row 7"),
    ProofError("d: withheld"),
    KernelError("e: status 700"),
]


@pytest.mark.parametrize("word", ["prepare", "prove", "finish"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_6_a_job_that_fails_is_not_worked_on_any_more(
    tmp_path: Path, word: str, error: CuzkError
) -> None:
    """Fault 6: the other partitions kept burning the GPU, and the request leaked. 4: an error became a wrong proof."""

    async def scenario(world: World) -> None:
        world.worker.fail[word, "a"] = [error]
        await world.engine.submit(world.request("a", "big"))
        other = world.request("b", "big")
        await world.engine.submit(other)
        view, outcome = await world.engine.result("a")
        assert outcome is not None
        assert (view.state, view.code, view.message) == ("failed", error.code, str(error))
        assert (outcome.code, outcome.message, outcome.proof) == (error.code, str(error), b"")
        proved = [name for _, name in world.worker.words("prove") if name == "a"]
        assert len(proved) == {"prepare": 0, "prove": 1, "finish": 3}[word]
        assert await world.proof("b") == expected_proof(other, 3)
        snapshot = await world.quiet()
        assert (snapshot.totals[0].failed, snapshot.totals[0].done) == (1, 1)
        assert world.worker.requests == {}

    play(tmp_path, scenario, BIG)


def test_a_failure_is_shown_however_many_jobs_are_done_after_it(tmp_path: Path) -> None:
    """The page said that nothing had failed: the last 50 jobs that ended were good ones."""

    def shown(world: World) -> list[tuple[str, str]]:
        snapshot = world.engine.snapshot(ended=1)
        assert [job.state for job in snapshot.jobs] == ["done"]
        return [(job.id, job.message) for job in snapshot.failures]

    async def before(world: World) -> None:
        for name in ("first", "second"):
            world.worker.fail["prove", name] = [KernelError(name)]
            await world.engine.submit(world.request(name, "big"))
            await world.engine.result(name)
        for number in range(3):
            await world.engine.submit(world.request(f"good{number}", "big"))
            await world.proof(f"good{number}")
        assert shown(world) == [("second", "second"), ("first", "first")]

    async def after(world: World) -> None:
        assert shown(world) == [("second", "second"), ("first", "first")]

    play(tmp_path, before, BIG)
    play(tmp_path, after, BIG)


def test_a_failed_job_can_be_tried_again(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["prove", "a"] = [KernelError("once")]
        request = world.request("a", "big")
        first = await world.engine.submit(request)
        assert (await world.engine.result("a"))[0].code == "kernel"
        second = await world.engine.submit(request)
        assert second.number == first.number + 1
        assert await world.proof("a") == expected_proof(request, 3)
        assert (await world.quiet()).totals[0].submitted == 2

    play(tmp_path, scenario, BIG)


@pytest.mark.parametrize("word", ["prepare", "prove", "finish"])
def test_memory_that_runs_out_is_tried_once_more_without_idle_keys(
    tmp_path: Path, word: str
) -> None:
    async def scenario(world: World) -> None:
        idle = world.request("i", "idle")
        await world.engine.submit(idle)
        await world.proof("i")
        world.worker.fail[word, "a"] = [OutOfMemory("6 GiB")]
        world.worker.fail[word, "b"] = [OutOfMemory("6 GiB"), OutOfMemory("5 GiB")]
        requests = [world.request(name) for name in "ab"]
        await world.engine.submit(requests[0])
        assert await world.proof("a") == expected_proof(requests[0], 1)
        assert world.worker.words("unload") == [("unload", "idle")]
        await world.engine.submit(requests[1])
        assert (await world.engine.result("b"))[0].message == "5 GiB"
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), "idle": Circuit()})


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
            "worker cpu: killed by signal 7 (SIGBUS)"
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


def test_a_key_that_cannot_be_loaded_fails_its_jobs_and_no_others(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = [FormatError("big.zkey: section 4: 7 rows, expected 8")]
        bad = [world.request(f"w{n}", "big") for n in range(3)]
        good = world.request("good")
        for request in (*bad, good):
            await world.engine.submit(request)
        for request in bad:
            view, _ = await world.engine.result(request.id)
            assert view.message == "big.zkey: section 4: 7 rows, expected 8"
        key = next(key for key in world.engine.snapshot().keys if key.circuit == "big")
        assert (key.tier, key.worker) == ("not ready", "cpu")
        assert key.fault == "big.zkey: section 4: 7 rows, expected 8"
        assert await world.proof("good") == expected_proof(good, 1)
        await world.engine.submit(bad[0])  # the file was put right
        assert await world.proof("w0") == expected_proof(bad[0], 3)
        key = next(key for key in world.engine.snapshot().keys if key.circuit == "big")
        assert (key.tier, key.fault) == ("hot", "")
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG})


def test_a_key_without_memory_is_tried_once_more_later(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = [OutOfMemory("no 4 GiB")]
        request, other = world.request("a", "big"), world.request("b")
        await world.engine.submit(request)
        await asyncio.sleep(11)
        await world.engine.submit(other)
        assert await world.proof("a") == expected_proof(request, 3)
        loads = [
            time for time, word, name, _ in world.worker.events if (word, name) == ("load", "big")
        ]
        assert loads[1] - loads[0] >= 15.0
        world.worker.fail["load", "big"] = [OutOfMemory("no 4 GiB"), OutOfMemory("not now either")]
        await world.engine.evict("big")
        await world.engine.submit(world.request("c", "big"))
        assert (await world.engine.result("c"))[0].message == "not now either"
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG})


def test_a_key_that_kills_the_worker_is_given_up(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = ["die"] * 3
        await world.engine.submit(world.request("a", "big"))
        await world.engine.submit(world.request("b", "big"))
        for name in "ab":
            view, _ = await world.engine.result(name)
            assert (view.code, view.message) == ("worker-lost", "worker cpu: killed by signal 7 (SIGBUS)")  # fmt: skip
        assert len(world.worker.words("load")) == 3
        await world.quiet()

    play(tmp_path, scenario, BIG)


def test_another_worker_takes_what_one_cannot_load(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.workers[0].fail["load", "big"] = [DeviceUnavailable("lost")] * 5
        request = world.request("a", "big")
        await world.engine.submit(request)
        assert await world.proof("a") == expected_proof(request, 3)
        assert world.workers[0].words("load") == [("load", "big")]
        assert world.workers[1].words("load") == [("load", "big")]
        await world.quiet()

    play(tmp_path, scenario, BIG, workers={"cpu": {}, "cuda:0": {"cuda:0": 80}})


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


@pytest.mark.parametrize("word", ["prepare", "prove", "finish", "load"])
def test_a_bug_fails_its_job_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, word: str
) -> None:
    async def scenario(world: World) -> None:
        name = "big" if word == "load" else "a"
        world.worker.fail[word, name] = [ZeroDivisionError("secret 1234")]
        await world.engine.submit(world.request("a", "big"))
        view, _ = await world.engine.result("a")
        assert view.state == "failed"
        assert "bug" in view.message
        assert "1234" not in view.message
        if word != "load":
            assert view.code == "internal"
        other = world.request("b", "big")
        await world.engine.submit(other)
        assert await world.proof("b") == expected_proof(other, 3)
        await world.quiet()

    play(tmp_path, scenario, BIG)
    assert any(record.exc_info for record in caplog.records if record.name == "cuzk.engine")


def test_a_bug_in_a_plan_does_not_stop_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> object:
        monkeypatch.setattr("cuzk.engine.engine.plan", plan)
        raise ZeroDivisionError

    async def scenario(world: World) -> None:
        monkeypatch.setattr("cuzk.engine.engine.plan", broken)
        request = world.request("a")
        await world.engine.submit(request)
        await world.engine.submit(world.request("b"))
        assert await world.proof("a") == expected_proof(request, 1)

    play(tmp_path, scenario)
    assert "a planning step failed: this is a bug" in caplog.text


def test_a_worker_that_dies_of_a_check_refuses_the_request(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["check", "a"] = ["die"] * 3
        text = await raised(EngineError, world.engine.submit(world.request("a")))
        assert text == "worker cpu: killed by signal 7 (SIGBUS)"
        await raised(UnknownJob, world.engine.result("a"))
        assert (await world.quiet()).totals == ()

    play(tmp_path, scenario)


def test_a_full_disk_refuses_what_comes_and_still_tells_what_was_proved(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        request = world.request("a")
        await world.engine.submit(request)
        waiting = asyncio.ensure_future(world.proof("a"))
        await asyncio.sleep(12)
        world.journal.full = EngineError("journal.sqlite: cannot be written: disk is full")
        text = await raised(EngineError, world.engine.submit(world.request("b")))
        assert text == "journal.sqlite: cannot be written: disk is full"
        assert await waiting == expected_proof(request, 1)
        assert [(job.id, job.state) for job in world.engine.snapshot().jobs] == [("a", "done")]
        assert await world.proof("a") == expected_proof(request, 1)
        assert (await world.engine.submit(request)).state == "done"
        assert world.journal.outcome("a") is None
        world.journal.full = None
        await world.engine.submit(world.request("b"))
        await world.proof("b")
        await asyncio.sleep(100)
        stored = world.journal.outcome("a")
        assert stored is not None
        assert stored[2].proof == expected_proof(request, 1)
        await world.quiet()

    play(tmp_path, scenario)


def test_real_bytes_beyond_the_estimate_are_charged(tmp_path: Path) -> None:
    """Fault 9 and 10: constants were charged, and too low."""

    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a"))
        await asyncio.sleep(5)
        assert world.engine.snapshot().memories[0].owners == {"key small on cpu": 2 * GIB}
        await world.proof("a")
        memory = world.engine.snapshot().memories[0]
        assert memory.owners["key small on cpu"] == 4 * GIB
        assert memory.limit == memory.reserved + memory.free
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(estimate=-2)}, EnginePolicy(limits=HOST))


def test_a_key_that_turns_out_too_large_fails_its_jobs(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a"))
        await world.engine.submit(world.request("b"))
        for name in "ab":
            view, _ = await world.engine.result(name)
            assert view.code == "out-of-memory"
            assert f"{17 * GIB} bytes of host" in view.message
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(key={"host": 16}, estimate=-4)})


def test_the_log_has_the_whole_reason_of_a_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was cut at 80 characters, before the file and the numbers."""
    text = f"{'x' * 200}: expected 7 bytes, found 8\x1b[2J"

    async def scenario(world: World) -> None:
        world.worker.fail["prove", "a"] = [CircuitError(text)]
        await world.engine.submit(world.request("a", "big"))
        await world.engine.result("a")

    play(tmp_path, scenario, BIG)
    line = next(line for line in caplog.messages if line.startswith("failed 'a'"))
    assert line.endswith("expected 7 bytes, found 8\\x1b[2J'")


def test_log_lines_escape_what_was_sent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="cuzk.engine")

    async def scenario(world: World) -> None:
        name = "a\n2026-11-30 ERROR forged\x1b[31m" + "x" * 200
        await world.engine.submit(world.request(name, data=b"WITNESS"))
        await world.proof(name)

    play(tmp_path, scenario)
    lines = [record.getMessage() for record in caplog.records if record.name == "cuzk.engine"]
    assert any(
        line.startswith("accepted 'a\\n2026-11-30 ERROR forged\\x1b[31mxxx") for line in lines
    )
    for line in lines:
        assert line.isprintable()
        assert len(line) < 250
        assert "WITNESS" not in line
    words = [line.split()[0] for line in lines]
    assert words == ["accepted", "loaded", "started", "proved", "done"]


def test_jobs_wait_for_a_file_that_is_gone_and_new_ones_are_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        loading = asyncio.ensure_future(world.engine.preload("small"))  # one at a time
        await world.engine.submit(world.request("a"))
        accepted = world.request("b", "big")
        await world.engine.submit(accepted)
        world.engine._state.forget_sizes("big")
        world.catalogue.gone = True
        await loading
        assert await world.proof("a") == expected_proof(world.request("a"), 1)  # its key is loaded
        view, outcome = await world.engine.result("b", 100)
        assert (view.state, view.code, outcome) == ("queued", "", None)
        assert view.message.endswith("NOT READY: big.zkey: no such file")
        text = await raised(NotReady, world.engine.submit(world.request("c", "big")))
        assert text == "big: big.zkey: no such file"
        assert (await world.engine.submit(accepted)).number == 2  # a repeat attaches
        world.catalogue.gone = False
        assert await world.proof("b") == expected_proof(accepted, 3)
        assert world.job("b").message == ""
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG})


def test_a_file_that_is_gone_when_it_is_loaded_and_one_that_is_damaged(tmp_path: Path) -> None:
    """The border: a fault that a look at the file shows is waited for, one that only a load finds is the jobs' end."""

    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = [FormatError("big.zkey: no such file")]
        await world.engine.submit(world.request("a", "big"))
        await world.engine.submit(world.request("b", "big"))
        world.catalogue.circuits["big"].fault = "no such file"  # while it is loaded
        await asyncio.sleep(30)
        for name in ("a", "b"):
            assert (world.job(name).state, world.job(name).place) == ("queued", -1)
            assert world.job(name).message.endswith("NOT READY: no such file")
        assert world.worker.words("load") == [("load", "big")]  # not again and again
        world.catalogue.circuits["big"].fault = ""
        world.worker.fail["load", "big"] = [FormatError("big.zkey: another digest")]
        for name in ("a", "b"):
            view, _ = await world.engine.result(name)
            assert (view.state, view.code) == ("failed", "bad-format")
            assert view.message == "big.zkey: another digest"
        await world.quiet()

    play(tmp_path, scenario, BIG)


def test_a_key_that_another_worker_has_is_not_waited_for(tmp_path: Path) -> None:
    """What is loaded is loaded, whatever became of its file."""

    async def scenario(world: World) -> None:
        await world.engine.preload("big")
        world.catalogue.circuits["big"].fault = "no such file"
        for worker in world.workers:
            worker.fail["load", "big"] = [FormatError("big.zkey: no such file")]
        for name in ("a", "b"):
            world.catalogue.circuits["big"].fault = ""
            await world.engine.submit(world.request(name, "big"))
            world.catalogue.circuits["big"].fault = "no such file"
        for name in ("a", "b"):
            assert await world.proof(name) == expected_proof(world.request(name, "big"), 3)
        assert world.engine._state.jobs.away == {}
        tried = [worker.words("load") for worker in world.workers]
        assert tried == [[("load", "big")]] * 2  # one has it, the other one could not
        await world.quiet()

    play(tmp_path, scenario, BIG, workers={"one": {}, "two": {}})


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


def test_a_submission_in_the_middle_of_a_stop_is_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.journal.gate = asyncio.Event()
        task = asyncio.ensure_future(world.engine.submit(world.request("a")))
        while not world.journal.accepted:
            await asyncio.sleep(0.001)
        await world.engine.stop()
        assert (
            await raised(Unavailable, task) == "the service stops: submit it again when it is back"
        )

    play(tmp_path, scenario)
