"""A worker that is lost at any moment of a run costs no job, and no planning step fails of it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from scripted import World, play
from scripted_catalogue import Circuit, gib
from scripted_worker import expected_proof

from cuzk.engine.policy import EnginePolicy

CIRCUITS = {
    "many": Circuit(partitions=4, slots=2, load=5, prove=4, ahead=1, stage=1),
    "other": Circuit(partitions=2, load=3, prove=3, ahead=1, stage=1),
}
POLICY = EnginePolicy(limits=gib({"host": 64}), losses=2, turn=5.0)
JOBS = ("many", "many", "other", "many", "many", "other")
WORKERS: dict[str, dict[str, int]] = {"cpu": {}, "more": {}}


def run(folder: Path, workers: int, at: int, first: str, *, told_first: bool) -> int:
    """Four jobs; how many messages went to workers. With message number ``at`` a worker dies: when it comes (``first``
    is "asked"), or when its answer is there."""
    messages = 0

    def watch(world: World) -> None:
        for worker in world.workers:
            worker.told_first = told_first
            really = worker._work

            async def work(word: str, name: str, circuit: str, seconds: float, number: int = -1, *, worker=worker, really=really) -> None:  # type: ignore[no-untyped-def]  # fmt: skip
                nonlocal messages
                messages += 1
                dies = messages == at
                if dies and first == "asked":
                    asyncio.get_running_loop().call_later(seconds / 2, worker.die)
                await really(word, name, circuit, seconds, number)
                if dies and first == "answered":
                    asyncio.get_running_loop().call_soon(worker.die)

            worker._work = work  # type: ignore[method-assign]

    async def scenario(world: World) -> None:
        requests = [world.request(f"job-{n}", name) for n, name in enumerate(JOBS)]
        for request in requests:
            await world.engine.submit(request)
        async with asyncio.timeout(600):
            for request, name in zip(requests, JOBS, strict=True):
                assert await world.proof(request.id) == expected_proof(request, CIRCUITS[name].partitions)  # fmt: skip
        await world.quiet()

    names = dict(list(WORKERS.items())[:workers])
    play(folder, scenario, CIRCUITS, POLICY, names, watch)
    return messages


@pytest.mark.parametrize("told_first", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("first", ["asked", "answered"])
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_worker_lost_at_each_message(
    workers: int, first: str, *, told_first: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """``told_first``: the engine plans before the calls hear of it, as with a process; or after. One death is one loss, which
    no job ends of."""
    count = run(tmp_path / "whole", workers, 0, first, told_first=told_first)
    assert count > 4 * (1 + 1 + 2 + 1)
    for at in range(1, count + 1):
        with caplog.at_level(logging.INFO):
            run(tmp_path / f"{at}", workers, at, first, told_first=told_first)
        assert "this is a bug" not in caplog.text, (at, caplog.text)
        assert "worker cpu lost" in caplog.text or "worker more lost" in caplog.text
        caplog.clear()
