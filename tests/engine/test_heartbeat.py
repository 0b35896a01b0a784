"""Workers that hang and yet live are noticed, killed and made good; nobody is killed for the daemon's own pauses."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from running_workers import SOON, begun, in_loop, running, until
from toy_catalogue import ToyCatalogue, proof_of, request_of

from cuzk.engine import heartbeat
from cuzk.engine.heartbeat import within
from cuzk.errors import WorkerLost

SILENCE = 1.0
KILLED = "killed, nothing was heard of it for 1 s"


@pytest.mark.parametrize("how", ["stopped", "native", "device"])
@in_loop
async def test_a_worker_that_hangs_is_killed_and_comes_back(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Stopped by a signal; in native code that holds the GIL; its device does not answer, and all else does."""
    gate, times = tmp_path / "gate", tmp_path / "times"
    catalogue = ToyCatalogue(device_does=f"times {times};sleep 60" if how == "device" else "")
    prove = f"touch {gate}.begun;native 60" if how == "native" else f"wait {gate}"
    lost: list[str] = []
    async with running(catalogue=catalogue, silence=SILENCE) as worker:
        worker.on_lost = lost.append
        await worker.load("toy")
        await worker.prepare("toy", request_of("a", prove=prove))
        if how == "device":
            times.write_text("1")
        call = asyncio.create_task(worker.prove("toy", "a", 0))
        await until(begun(gate), "the proof")
        pid = worker.health().process
        if how == "stopped":
            os.kill(pid, signal.SIGSTOP)
        with pytest.raises(WorkerLost, match=rf"worker cpu \(process {pid}\) died: {KILLED}"):
            await call
        assert lost == ["cpu"]
        assert not psutil.pid_exists(pid)
        await worker.load("toy")
        await worker.prepare("toy", request_of("a"))
        assert (await worker.prove("toy", "a", 0)).proof == proof_of("a", b"payload", 0)
        assert worker.health().restarts == 1
    assert [KILLED in r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == [True]  # fmt: skip


@in_loop
async def test_an_idle_worker_that_hangs_is_noticed_before_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeat, "IDLE_SECONDS", 0.1)
    async with running(silence=SILENCE) as worker:
        os.kill(worker.health().process, signal.SIGSTOP)
        await until(lambda: KILLED in worker.health().fault, "its end")
        await worker.check(request_of("a"))


@in_loop
async def test_work_that_is_long_is_no_silence() -> None:
    """Python and native code that lets go of the GIL, longer than the patience."""
    async with running(silence=SILENCE) as worker:
        await worker.load("toy")
        pid = worker.health().process
        await worker.prepare("toy", request_of("a", prove=f"sleep {1.5 * SILENCE}"))
        await worker.prove("toy", "a", 0)
        assert (worker.health().process, worker.health().restarts) == (pid, 0)


@in_loop
async def test_a_device_with_a_fault_is_no_silence(tmp_path: Path) -> None:
    times, gate = tmp_path / "times", tmp_path / "gate"
    catalogue = ToyCatalogue(device_does=f"times {times};raise DeviceUnavailable off the bus")
    async with running(catalogue=catalogue, silence=SILENCE) as worker:
        times.write_text("1")
        call = asyncio.create_task(worker.check(request_of("a", check=f"wait {gate}")))
        await until(lambda: times.read_text() == "0", "a beat")
        gate.touch()
        await call
        assert worker.health().alive


@in_loop
async def test_only_time_in_which_the_daemon_runs_counts() -> None:
    """Its loop stands still for longer than the patience: one such pause is two steps of ten."""
    done = asyncio.Event()

    async def answer() -> str:
        await done.wait()
        return "yes"

    loop = asyncio.get_running_loop()
    loop.call_later(0.05, time.sleep, 1.5)
    loop.call_later(0.1, loop.call_later, 0.2, done.set)
    assert await within(1.0, answer()) == "yes"
    with pytest.raises(TimeoutError):
        await within(0.1, asyncio.sleep(SOON))


DAEMON = """
import asyncio, sys
sys.path[:] = eval(sys.argv[1])
from toy_catalogue import ToyCatalogue, request_of
from cuzk.engine.process import ProcessWorker

async def main():
    worker = ProcessWorker("cpu", "cpu", ToyCatalogue(), silence=1.0)
    await worker.start()
    await worker.load("toy")
    await worker.prepare("toy", request_of("a", prove="wait " + sys.argv[2]))
    call = asyncio.create_task(worker.prove("toy", "a", 0))
    print(worker.health().process, flush=True)
    print((await call).proof.decode(), worker.health().restarts, flush=True)
    await worker.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("together", [True, False])
def test_nobody_is_killed_when_the_daemon_was_stopped_too(
    *, together: bool, tmp_path: Path
) -> None:
    """The worker wakes with it, or a little later (a shell's `fg`, a container that thaws)."""
    gate = tmp_path / "gate"
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON, repr(sys.path), str(gate)], stdout=subprocess.PIPE, text=True
    )
    assert daemon.stdout is not None
    try:
        child = int(daemon.stdout.readline())
        end = time.monotonic() + SOON
        while not begun(gate)():
            assert time.monotonic() < end
            time.sleep(0.002)
        for pid in (daemon.pid, child):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2 * SILENCE)  # the pause itself
        os.kill(daemon.pid, signal.SIGCONT)
        if not together:
            time.sleep(SILENCE / 4)
        os.kill(child, signal.SIGCONT)
        gate.touch()
        assert daemon.stdout.readline().split() == [proof_of("a", b"payload", 0).decode(), "0"]
        assert daemon.wait(SOON) == 0
    finally:
        for pid in (daemon.pid, child):
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGKILL)
        daemon.wait()
        daemon.stdout.close()
