"""The engine with a worker in a process of its own, in real time: proofs, a job that kills the process, a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
from running_workers import begun, in_loop, until
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
    catalogue = ToyCatalogue()
    journal = Journal(folder / "state")
    engine = Engine(catalogue, [ProcessWorker("cpu", "cpu", catalogue)], journal, POLICY)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.stop()
        journal.close()


async def proof(engine: Engine, request: Request) -> bytes:
    _, outcome = await engine.result(request.id, timeout=20)
    assert outcome is not None
    assert not outcome.code, outcome.message
    return outcome.proof


@in_loop
async def test_a_job_that_kills_its_process_costs_the_others_nothing(tmp_path: Path) -> None:
    async with service(tmp_path) as engine:
        good = [request_of(f"r{n}", b"%d" % n, partitions=2) for n in range(6)]
        bad = request_of("bad", prove="kill 9")
        refused = request_of("refused", check="raise FormatError x.wtns: too short")
        for request in (*good[:3], bad, *good[3:]):
            await engine.submit(request)
        assert await raised(FormatError, engine.submit(refused)) == "x.wtns: too short"
        view, _ = await engine.result("bad", timeout=20)
        assert (view.state, view.code) == ("failed", "worker-lost")
        assert view.message.startswith("the worker died 2 times while it worked on this request: ")
        assert "SIGKILL" in view.message or "signal 9" in view.message
        for number, request in enumerate(good):
            parts = [proof_of(request.id, b"%d" % number, part) for part in range(2)]
            assert await proof(engine, request) == b"+".join(parts)
        snapshot = engine.snapshot()
        assert (snapshot.totals[0].done, snapshot.totals[0].failed) == (6, 1)
        assert snapshot.workers[0].restarts >= 1


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
