"""Workers that hang and yet live are noticed, killed and made good; work that is long is no silence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hurried_time import ahead, hurry, in_hurried_loop
from running_workers import begun, in_loop, pipe, running, stop, until
from toy_catalogue import ToyCatalogue, proof_of, request_of

from cuzk.engine import heartbeat
from cuzk.engine.link import Link
from cuzk.errors import WorkerLost

SILENCE = 120.0  # more than a machine that is busy keeps a process waiting
KILLED = "killed, nothing was heard of it for 120 s"


@pytest.mark.parametrize("how", ["stopped", "native", "device"])
@in_hurried_loop
async def test_a_worker_that_hangs_is_killed_and_comes_back(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by a signal; in native code that holds the GIL; its device does not answer, and all else does."""
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)
    gate, times = tmp_path / "gate", tmp_path / "times"
    catalogue = ToyCatalogue(device_does=f"times {times};wait {gate}d" if how == "device" else "")
    prove = f"held {gate}" if how == "native" else f"wait {gate}"
    lost: list[str] = []
    with pipe(gate) if how == "native" else pipe(tmp_path / "none"):
        async with running(catalogue=catalogue, silence=SILENCE) as worker:
            worker.on_lost = lost.append
            await worker.load("toy")
            await worker.prepare("toy", request_of("a", prove=prove))
            if how == "device":
                times.write_text("1")
            call = asyncio.create_task(worker.prove("toy", "a", 0))
            await until(begun(gate), "the proof")
            if how == "device":
                await until(begun(Path(f"{gate}d")), "a beat")
            link, pid = worker._link, worker.health().process
            if how == "stopped":
                stop(pid)
            await hurry(lambda: link.ending, "it hangs, and lives")
            with pytest.raises(WorkerLost, match=rf"worker cpu \(process {pid}\) died: {KILLED}"):
                await call
            assert lost == ["cpu"]
            assert not psutil.pid_exists(pid)
            await worker.load("toy")
            await worker.prepare("toy", request_of("a"))
            assert (await worker.prove("toy", "a", 0)).proof == proof_of("a", b"payload", 0)
            assert worker.health().restarts == 1
    assert [KILLED in r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == [True]  # fmt: skip


@in_hurried_loop
async def test_an_idle_worker_that_hangs_is_noticed_before_it_is_needed() -> None:
    async with running(silence=SILENCE) as worker:
        link = worker._link
        stop(worker.health().process)
        await hurry(lambda: link.ending, "it hangs, and lives")
        await link.ended.wait()
        assert KILLED in worker.health().fault
        await worker.check(request_of("a"))


@in_hurried_loop
async def test_work_that_is_long_is_no_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python and native code that lets go of the GIL, longer than the patience."""
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)
    answered, really = 0, Link.beat

    async def beat(link: Link) -> None:
        nonlocal answered
        await really(link)
        answered += 1

    def more_than(count: int) -> Callable[[], bool]:
        return lambda: answered > count

    monkeypatch.setattr(Link, "beat", beat)
    with pipe(tmp_path / "native") as let_it_go_on:
        async with running(silence=SILENCE) as worker:
            await worker.load("toy")
            pid = worker.health().process
            script = f"pipe {tmp_path}/native;wait {tmp_path}/python"
            await worker.prepare("toy", request_of("a", prove=script))
            proof = asyncio.create_task(worker.prove("toy", "a", 0))
            for where, end in (
                (tmp_path / "native", let_it_go_on),
                (tmp_path / "python", (tmp_path / "python").touch),
            ):
                await until(begun(where), f"{where.name} code")
                for _ in range(4):
                    ahead(0.5 * SILENCE)
                    await until(more_than(answered + 1), "an answer that was asked for since")
                assert not proof.done()
                end()
            assert (await proof).proof == proof_of("a", b"payload", 0)
            assert (worker.health().process, worker.health().restarts) == (pid, 0)


@in_loop
async def test_a_device_with_a_fault_is_no_silence(tmp_path: Path) -> None:
    times, gate = tmp_path / "times", tmp_path / "gate"
    catalogue = ToyCatalogue(device_does=f"times {times};raise DeviceUnavailable off the bus")
    async with running(catalogue=catalogue, silence=SILENCE) as worker:
        pid = worker.health().process
        times.write_text("1")
        call = asyncio.create_task(worker.check(request_of("a", check=f"wait {gate}")))
        await until(lambda: times.read_text() == "0", "a beat")
        gate.touch()
        await call
        assert (worker.health().alive, worker.health().process) == (True, pid)
