"""Deaths of a worker's process and of its parent; ends in order, and what is logged."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from running_workers import SOON, begun, descriptors, in_loop, kill, running, until
from toy_catalogue import ToyCatalogue, proof_of, request_of

from cuzk.engine import link as link_module
from cuzk.engine import process
from cuzk.engine.link import Link
from cuzk.engine.process import ProcessWorker
from cuzk.errors import (
    EngineError,
    InternalError,
    WorkerLost,
)

# Death


DEATHS = {
    "kill": ("kill 9", r"signal 9 \(SIGKILL\)"),
    "bus": ("kill 7", r"signal 7 \(SIGBUS\); its last words: Fatal Python error: Bus error"),
    "abort": ("say out of chunks;abort", r"signal 6 \(SIGABRT\); its last words: out of chunks"),
    "exit": ("exit 3", "exit status 3$"),
}


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends by itself is given time to: else it is killed, and that is how it has ended."""
    monkeypatch.setattr(link_module, "EXIT_SECONDS", SOON)
    monkeypatch.setattr(link_module, "LOST_SECONDS", 2 * SOON)


STAGES = ["load", "check", "prepare", "prove", "finish"]


@pytest.mark.parametrize(
    ("stage", "death"),
    [
        *((stage, "kill") for stage in STAGES),
        *(("prove", death) for death in DEATHS if death != "kill"),
    ],
)
@in_loop
async def test_a_worker_that_dies_is_lost_and_comes_back(
    stage: str, death: str, tmp_path: Path
) -> None:
    script, text = DEATHS[death]
    (tmp_path / "once").write_text("1")
    fatal = f"times {tmp_path}/once;{script}"
    catalogue = ToyCatalogue({"toy": fatal if stage == "load" else ""})
    fields: dict[str, Any] = {stage: fatal} if stage != "load" else {}
    lost: list[str] = []
    async with running(catalogue=catalogue) as worker:
        worker.on_lost = lost.append

        async def job() -> bytes:
            request = request_of("a", **fields)
            await worker.load("toy")
            await worker.check(request)
            await worker.prepare("toy", request)
            part = await worker.prove("toy", "a", 0)
            return bytes((await worker.finish("toy", "a", [part])).proof)

        with pytest.raises(WorkerLost, match=text) as caught:
            await job()
        assert caught.value.args[0].startswith("worker cpu (process ")
        assert lost == ["cpu"], "told before the call"
        assert await job() == proof_of("a", b"payload", 0)
        assert lost == ["cpu"]
        health = worker.health()
        assert (health.alive, health.restarts, health.fault) == (True, 1, "")


@in_loop
async def test_every_call_in_work_hears_of_the_death(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with running() as worker:
        await worker.load("toy")
        await worker.prepare("toy", request_of("a", prove=f"wait {gate}"))
        calls = [asyncio.create_task(worker.prove("toy", "a", n)) for n in range(5)]
        calls.append(asyncio.create_task(worker.check(request_of("b", check=f"wait {gate}"))))
        await until(begun(gate), "a proof")
        os.kill(worker.health().process, signal.SIGKILL)
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(end) for end in ends] == [WorkerLost] * 6
        assert len({str(end) for end in ends}) == 1


@in_loop
async def test_calls_between_the_end_of_the_channel_and_that_of_the_process() -> None:
    """They hear how it ended, or wait until it is back: they are not refused at once, again and again."""
    async with running() as worker:
        await worker.load("toy")
        link = worker._link
        link._transport.abort()
        await link._gone.wait()
        assert not link.ended.is_set()
        proving = asyncio.create_task(worker.prove("toy", "a", 0))
        await worker.check(request_of("a"))
        assert worker.health().restarts == 1
        with pytest.raises(
            WorkerLost, match=rf"\(process {link.process.pid}\) died: exit status 0"
        ):
            await proving


@in_loop
async def test_until_it_is_back_some_calls_wait_and_some_fail(tmp_path: Path) -> None:
    gate, times = tmp_path / "gate", tmp_path / "times"
    catalogue = ToyCatalogue(device_does=f"times {times};wait {gate}")
    async with running(catalogue=catalogue, patience=SOON) as worker:
        await worker.load("toy")
        kill(worker, times, 1)
        await until(lambda: not worker.health().alive, "its death")
        assert "signal 9" in worker.health().fault
        assert (worker.health().title, worker.health().free) == ("Toy cpu", {})
        checking = asyncio.create_task(worker.check(request_of("a")))
        for call in (
            worker.prepare("toy", request_of("a")),
            worker.prove("toy", "a", 0),
            worker.finish("toy", "a", []),
        ):
            with pytest.raises(WorkerLost, match=r"does not run: worker cpu .* died: signal 9"):
                await call
        await worker.forget("a")
        await worker.unload("toy")
        await until(begun(gate), "another start")
        assert not checking.done()
        gate.touch()
        await checking
        with pytest.raises(EngineError, match="toy is not loaded"):
            await worker.prepare("toy", request_of("a"))


@in_loop
async def test_a_call_waits_for_a_restart_as_long_as_it_may(tmp_path: Path) -> None:
    times = tmp_path / "times"
    catalogue = ToyCatalogue(device_does=f"times {times};exit 4")
    async with running(catalogue=catalogue, patience=0.05) as worker:
        kill(worker, times, 100)
        await until(lambda: not worker.health().alive, "its death")
        with pytest.raises(WorkerLost, match="worker cpu does not run"):
            await worker.check(request_of("a"))


@in_loop
async def test_restarts_come_slower_and_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.1 s, doubled for each that fails, to a limit; back to the first after a life that was long enough."""
    times = tmp_path / "times"
    pauses: list[float] = []
    really = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.extend([seconds] if seconds >= process.FIRST_PAUSE else [])
        await really(min(seconds, 0.002))

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(process, "LONGEST_PAUSE", 0.8)
    lost = "raise DeviceUnavailable fell off the bus"
    async with running(catalogue=ToyCatalogue(device_does=f"times {times};{lost}")) as worker:

        async def die(failing: int) -> None:
            kill(worker, times, failing)
            await until(lambda: not worker.health().alive, "its death")

        await die(4)
        await until(lambda: worker.health().fault == "fell off the bus", "a start that fails")
        await worker.check(request_of("a"))
        assert pauses == [0.1, 0.2, 0.4, 0.8, 0.8]
        assert worker.health().restarts == 1
        await die(0)
        await worker.check(request_of("a"))
        assert pauses[5:] == [0.8]
        monkeypatch.setattr(process, "WELL_SECONDS", 0.0)
        await die(0)
        await worker.check(request_of("a"))
        assert pauses[6:] == [0.1]
        assert worker.health().restarts == 3


@in_loop
async def test_a_first_start_that_dies_says_why() -> None:
    before = descriptors()
    worker = ProcessWorker("cpu", "cpu", ToyCatalogue(device_does="say no driver;exit 5"))
    with pytest.raises(WorkerLost, match="exit status 5; its last words: no driver"):
        await worker.start()
    assert "exit status 5" in worker.health().fault
    assert not psutil.Process().children()
    await worker.close()
    await until(lambda: descriptors() <= before, "its descriptors")


@in_loop
async def test_a_start_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "START_SECONDS", 0.2)
    with pytest.raises(WorkerLost, match="did not start within"):
        async with running(catalogue=ToyCatalogue(device_does="native 60")):
            pass
    assert not psutil.Process().children()


@in_loop
async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    before = descriptors()
    worker = ProcessWorker("cpu", "cpu", ToyCatalogue(device_does=f"wait {tmp_path}/gate"))
    starting = asyncio.create_task(worker.start())
    await until(begun(tmp_path / "gate"), "the start")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not psutil.Process().children()
    await until(lambda: descriptors() <= before, "its descriptors")
    await worker.close()


@in_loop
async def test_an_engine_that_cannot_be_told_stops_no_restart() -> None:
    def fail(name: str) -> None:
        raise ValueError(name)

    async with running() as worker:
        worker.on_lost = fail
        os.kill(worker.health().process, signal.SIGKILL)
        await until(lambda: not worker.health().alive, "its death")
        await worker.check(request_of("a"))


# The log


@in_loop
async def test_what_the_child_writes_is_logged_escaped(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with running() as worker:
            await worker.check(request_of("a", check="say \x1b[31mred"))
            with pytest.raises(InternalError):
                await worker.check(request_of("a", check="raise ValueError seven"))
            await until(lambda: "ValueError: seven" in caplog.text, "the traceback")
    said = {(r.levelname, r.getMessage()) for r in caplog.records if r.name == "cuzk.worker"}
    assert ("WARNING", "cpu: \\x1b[31mred") in said
    assert ("ERROR", "cpu: ValueError: seven") in said
    assert ("ERROR", "cpu: Traceback (most recent call last):") in said


@in_loop
async def test_nothing_comes_to_the_daemons_own_output(capfd: pytest.CaptureFixture[str]) -> None:
    async with running() as worker:
        await worker.check(request_of("a", check="say hello"))
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


# Ends


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@in_loop
async def test_signals_for_the_daemon_do_not_end_its_workers(number: signal.Signals) -> None:
    async with running() as worker:
        pid = worker.health().process
        assert os.getsid(pid) == pid, "a terminal's Ctrl-C goes to its own session"
        os.kill(pid, number)
        await worker.check(request_of("a"))
        assert worker.health().process == pid


@in_loop
async def test_the_kernel_takes_a_worker_before_the_daemon() -> None:
    async with running() as worker:
        score = Path(f"/proc/{worker.health().process}/oom_score_adj").read_text()
        assert int(score) >= 300


@pytest.mark.parametrize("busy", ["idle", "python", "native", "starting", "lost"])
@in_loop
async def test_close_leaves_no_process_thread_or_descriptor(
    busy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it can end by itself it is not killed, which would be minutes later, and the end of this test."""
    seconds = 0.1 if busy == "native" else 2 * SOON
    monkeypatch.setattr(Link.close, "__defaults__", (seconds,))
    gate = tmp_path / "gate"
    files, threads = descriptors(), set(threading.enumerate())
    worker = ProcessWorker("cpu", "cpu", ToyCatalogue(device_does=f"times {gate}.t;wait {gate}"))
    await worker.start()
    await worker.load("toy")
    call: asyncio.Task[Any] | None = None
    script = {"python": f"wait {gate}", "native": f"touch {gate}.begun;native 60"}.get(busy)
    if script:
        await worker.prepare("toy", request_of("a", prove=script))
        call = asyncio.create_task(worker.prove("toy", "a", 0))
        await until(begun(gate), "the proof")
    if busy in ("starting", "lost"):
        kill(worker, Path(f"{gate}.t"), 1)
        await until(lambda: not worker.health().alive, "its death")
        call = asyncio.create_task(worker.check(request_of("a")))
    if busy == "starting":
        await until(begun(gate), "another start")
    assert set(threading.enumerate()) <= threads, "none in the parent"
    async with asyncio.timeout(SOON):
        await worker.close()
    if call is not None:
        with pytest.raises(WorkerLost):
            await call
    assert not psutil.Process().children(recursive=True)
    await until(lambda: descriptors() <= files, "its descriptors")
    assert set(threading.enumerate()) <= threads
    await worker.close()


PARENT = """
import asyncio, sys
sys.path[:] = eval(sys.argv[1])
from toy_catalogue import ToyCatalogue, request_of
from cuzk.engine.process import ProcessWorker

async def main(device, prove):
    worker = ProcessWorker("cpu", "cpu", ToyCatalogue(device_does=device))
    await worker.start()
    await worker.load("toy")
    await worker.prepare("toy", request_of("a", prove=prove))
    await worker.prove("toy", "a", 0)
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(sys.argv[2], sys.argv[3]))
"""


@pytest.mark.parametrize("doing", ["nothing", "native code", "Python", "starting", "not yet begun"])
@in_loop
async def test_no_worker_outlives_its_parent(doing: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    device = f"touch {gate}.begun;native 60" if doing == "starting" else ""
    prove = {
        "nothing": f"touch {gate}.begun",
        "native code": f"touch {gate}.begun;native 60",
        "Python": f"wait {gate}",
    }.get(doing, "")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, repr(sys.path), device, prove], stdout=subprocess.PIPE
    )
    children: list[psutil.Process] = []
    try:
        await until(lambda: psutil.Process(parent.pid).children(), "a child")
        children = psutil.Process(parent.pid).children()
        if doing != "not yet begun":
            await until(begun(gate), doing)
        parent.kill()
        assert len(children) == 1
        await until(lambda: not any(_lives(child) for child in children), "their end")
    finally:
        parent.kill()
        parent.communicate()
        for child in children:
            if _lives(child):
                child.kill()


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
