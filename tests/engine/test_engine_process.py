"""The engine with a worker in a process of its own, in real time: proofs, a job that kills the process, a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
from running_workers import SOON, begun, in_loop, pipe, until
from scripted import raised
from toy_catalogue import ToyCatalogue, proof_of, request_of

from cuzk.engine.engine import Engine
from cuzk.engine.journal import Journal
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.process import ProcessWorker
from cuzk.engine.request import Request
from cuzk.errors import FormatError

POLICY = EnginePolicy(limits={"host": 1 << 30}, losses=2)


@asynccontextmanager
async def service(folder: Path) -> AsyncIterator[Engine]:
    catalogue = ToyCatalogue(slots=1)
    journal = Journal(folder / "state")
    engine = Engine(catalogue, [ProcessWorker("cpu", "cpu", catalogue)], journal, POLICY)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.stop()
        journal.close()


async def proof(engine: Engine, request: Request) -> bytes:
    _, outcome = await engine.result(request.id, timeout=SOON)
    assert outcome is not None
    assert not outcome.code, outcome.message
    return outcome.proof


@in_loop
async def test_a_job_that_kills_its_process_costs_the_others_nothing(tmp_path: Path) -> None:
    """They wait while it is in work, two of them prepared."""
    with pipe(tmp_path / "now") as let_it_go_on:
        async with service(tmp_path) as engine:
            good = [request_of(f"r{n}", b"%d" % n, partitions=2) for n in range(6)]
            bad = request_of("bad", prove=f"pipe {tmp_path}/now;kill 9")
            refused = request_of("refused", check="raise FormatError x.wtns: too short")
            for request in (*good[:3], bad, *good[3:]):
                await engine.submit(request)
            assert await raised(FormatError, engine.submit(refused)) == "x.wtns: too short"
            for life in range(2):
                await until(lambda: in_work(engine) == ["bad"], "it is not alone in work")
                assert restarts(engine) == life
                let_it_go_on()
                await until(died(engine, life), "the process goes on")
            view, _ = await engine.result("bad", timeout=SOON)
            assert (view.state, view.code) == ("failed", "worker-lost")
            assert view.message.startswith(
                "the worker died 2 times while it worked on this request: "
            )
            assert "signal 9 (SIGKILL)" in view.message
            for number, request in enumerate(good):
                parts = [proof_of(request.id, b"%d" % number, part) for part in range(2)]
                assert await proof(engine, request) == b"+".join(parts)
            snapshot = engine.snapshot()
            assert (snapshot.totals[0].done, snapshot.totals[0].failed) == (6, 1)
            assert restarts(engine) == 2


def died(engine: Engine, before: int) -> Callable[[], bool]:
    return lambda: restarts(engine) > before


def restarts(engine: Engine) -> int:
    return engine.snapshot().workers[0].restarts


def in_work(engine: Engine) -> list[str]:
    """Jobs of which a worker does something just now, when it has prepared as many more as it ever does."""
    jobs = engine._state.jobs.unfinished()
    ahead = sum(bool(live.job.prepared_on) for live in jobs if not live.busy)
    return [live.job.id for live in jobs if live.busy] if ahead == POLICY.scheduler.prepared else []


@in_loop
async def test_what_is_in_work_when_the_engine_stops_is_done_by_the_next(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    request = request_of("a", b"data", prove=f"wait {gate}")
    async with service(tmp_path) as engine:
        await engine.submit(request)
        await until(begun(gate), "the partition did not begin")
        process = psutil.Process(engine.snapshot().workers[0].process)
    assert not process.is_running()
    gate.touch()
    async with service(tmp_path) as engine:
        assert await proof(engine, request) == proof_of("a", b"data", 0)
        assert (await engine.submit(request)).state == "done"
