"""What the engine does when work fails, memory runs out, the disk is full, or there is a bug."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scripted import World, play, raised
from scripted_catalogue import Circuit
from scripted_worker import expected_proof

from cuzk.engine.scheduler import plan
from cuzk.errors import (
    CircuitError,
    CuzkError,
    EngineError,
    FormatError,
    KernelError,
    OutOfMemory,
    ProofError,
    Unavailable,
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


def test_a_repeat_while_a_failure_is_being_stored_is_a_new_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a client that comes back at that moment: it would hear of the failure once more."""

    async def scenario(world: World) -> None:
        world.worker.fail["prove", "a"] = [KernelError("status 700")]
        ending, really = asyncio.Event(), world.journal.end

        async def slowly(*about: Any, **more: Any) -> None:
            ending.set()
            await asyncio.sleep(50)
            await really(*about, **more)

        monkeypatch.setattr(world.journal, "end", slowly)
        request = world.request("a")
        await world.engine.submit(request)
        await ending.wait()
        assert (await world.engine.submit(request)).number == 2
        assert await world.proof("a") == expected_proof(request, 1)
        total = (await world.quiet()).totals[0]
        assert (total.submitted, total.failed, total.done) == (2, 1, 1)

    play(tmp_path, scenario)


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
    """It is made again, though nothing else happens."""

    def broken(*_: object) -> object:
        raise ZeroDivisionError

    async def scenario(world: World) -> None:
        monkeypatch.setattr("cuzk.engine.engine.plan", broken)
        request = world.request("a")
        await world.engine.submit(request)
        await asyncio.sleep(1)
        monkeypatch.setattr("cuzk.engine.engine.plan", plan)
        assert await world.proof("a") == expected_proof(request, 1)

    play(tmp_path, scenario)
    assert "a planning step failed: this is a bug" in caplog.text


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
