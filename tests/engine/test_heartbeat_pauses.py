"""Silence is measured in time in which the daemon runs: to the second, and whoever else stood still."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import psutil
import pytest
from running_workers import SOON, begun, stop
from toy_catalogue import proof_of
from virtual_time import VirtualLoop

from cuzk.engine.heartbeat import BEAT_SECONDS, watch, within


class Scripted:
    """A process whose beats take so many seconds each; the last one is the last."""

    def __init__(self, *seconds: float) -> None:
        self.ended, self.active = asyncio.Event(), asyncio.Event()
        self.working = True
        self.given_up: list[tuple[float, str]] = []
        self.asked: list[float] = []
        self._seconds = iter(seconds)

    async def beat(self) -> None:
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(next(self._seconds))

    def give_up(self, how: str) -> None:
        self.given_up.append((asyncio.get_running_loop().time(), how))


def test_patience_is_that_with_one_answer() -> None:
    """Each just in time is well, however many there are; one that is late is the end, at that moment."""

    async def scenario() -> None:
        process = Scripted(*[9.5] * 100, 10.5)
        await watch(process, 10.0)
        began = [n * (9.5 + BEAT_SECONDS) for n in range(101)]
        assert process.asked == began
        assert process.given_up == [(began[-1] + 10.0, "killed, nothing was heard of it for 10 s")]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())


def test_only_time_in_which_the_daemon_runs_counts() -> None:
    """Its loop stands still for longer than the patience: one such pause is two steps of ten."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)

        def pause(more: int) -> None:
            loop.now += 1000.0
            if more:
                loop.call_later(0.05, pause, more - 1)

        for pauses, last, ends in ((1, 0.75, True), (1, 0.95, False), (4, 0.25, True), (4, 0.55, False)):  # fmt: skip
            loop.call_later(0.001, pause, pauses - 1)
            work = within(1.0, asyncio.sleep(1000.0 * pauses + last, "yes"))
            if ends:
                assert await work == "yes"
            else:
                with pytest.raises(TimeoutError):
                    await work

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())


DAEMON = """
import asyncio, signal, sys, time
sys.path[:] = eval(sys.argv[1])
from hurried_time import HurriedLoop, ahead
from toy_catalogue import ToyCatalogue, request_of
from cuzk.engine import heartbeat
from cuzk.engine.link import Link
from cuzk.engine.process import ProcessWorker

heartbeat.BEAT_SECONDS = 0.01
asked = answered = 0
really = Link.beat

async def beat(link):
    global asked, answered
    asked += 1
    await really(link)
    answered += 1

Link.beat = beat

async def turn():
    while True:
        print("turn", time.monotonic(), asked, answered, flush=True)
        await asyncio.sleep(0.01)

async def main():
    signal.signal(signal.SIGCONT, lambda *_: ahead(1000.0))
    worker = ProcessWorker("cpu", "cpu", ToyCatalogue(), silence=120.0)
    await worker.start()
    await worker.load("toy")
    await worker.prepare("toy", request_of("a", prove="wait " + sys.argv[2]))
    call = asyncio.create_task(worker.prove("toy", "a", 0))
    turning = asyncio.create_task(turn())
    print("child", worker.health().process, flush=True)
    proof = (await call).proof.decode()
    print("proof", proof, worker.health().restarts, asyncio.get_running_loop().ahead, flush=True)
    turning.cancel()
    await worker.close()

with asyncio.Runner(loop_factory=HurriedLoop) as runner:
    runner.run(main())
"""


def line(output: IO[str], word: str, after: float = 0.0) -> list[str]:
    """Of the next line that begins so, and has a moment later than ``after``, the rest."""
    while words := output.readline().split():
        if words[0] == word and (not after or float(words[1]) > after):
            return words[1:]
    raise AssertionError(f"no {word}")


def unanswered(output: IO[str], after: float) -> None:
    """Read on until a beat has no answer in two turns of the daemon's loop: between them it would have been read."""
    before: list[str] = []
    while True:
        _, *beats = line(output, "turn", after)
        if beats == before and beats[0] != beats[1]:
            return
        before = beats


@pytest.mark.parametrize("together", [True, False])
def test_nobody_is_killed_when_the_daemon_was_stopped_too(
    *, together: bool, tmp_path: Path
) -> None:
    """The worker wakes with it, or a little later (a shell's `fg`, a container that thaws). The pause is a thousand
    seconds by the daemon's clock, and a beat has no answer when it begins."""
    gate = tmp_path / "gate"
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON, repr(sys.path), str(gate)], stdout=subprocess.PIPE, text=True
    )
    assert daemon.stdout is not None
    processes: list[psutil.Process] = [psutil.Process(daemon.pid)]
    try:
        processes.append(psutil.Process(int(line(daemon.stdout, "child")[0])))
        end = time.monotonic() + SOON
        while not begun(gate)():
            assert time.monotonic() < end
            time.sleep(0.002)
        own, child = processes
        stop(child.pid)
        unanswered(daemon.stdout, after=time.monotonic())
        stop(own.pid)
        if together:
            child.resume()
        own.resume()
        for _ in range(0 if together else 3):
            line(daemon.stdout, "turn", after=time.monotonic())
        child.resume()
        gate.touch()
        proof = proof_of("a", b"payload", 0).decode()
        assert line(daemon.stdout, "proof") == [proof, "0", "1000.0"]
        daemon.stdout.read()
        assert daemon.wait(SOON) == 0
    finally:
        for process in processes:
            if process.is_running():
                process.kill()
        daemon.wait()
        daemon.stdout.close()
