"""Faults of the reference system that only processes show: what a large request takes, what a long check holds up."""

from __future__ import annotations

import asyncio
import json
import re
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from journal_jobs import make_job
from running_workers import SOON, begun, in_loop, pipe, until
from toy_catalogue import ToyCatalogue, proof_of, request_of

from cuzk.config import Settings, address
from cuzk.engine.engine import Engine
from cuzk.engine.journal import Journal
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.process import ProcessWorker
from cuzk.server.listen import bind
from cuzk.server.metrics import metrics_text
from cuzk.server.proving_pb2 import GetStatusRequest, GetStatusResponse
from cuzk.server.rpc_server import serve_rpc
from cuzk.server.status_json import status_json

MIB = 1 << 20
POLICY = EnginePolicy(limits={"host": 1 << 30})


@asynccontextmanager
async def service(folder: Path) -> AsyncIterator[tuple[Engine, Journal]]:
    catalogue = ToyCatalogue()
    journal = Journal(folder / "state")
    engine = Engine(catalogue, [ProcessWorker("cpu", "cpu", catalogue)], journal, POLICY)
    try:
        await engine.start()
        yield engine, journal
    finally:
        await engine.stop()
        journal.close()


def own_bytes(process: int) -> int:
    """Of a process: memory that is no file's."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) << 10


@in_loop
async def test_8_a_request_of_ten_partitions_is_there_once(tmp_path: Path) -> None:
    """Fault 8: every partition had a copy of 51 MB, outside of the budget."""
    data, gate = b"0123456789abcdef" * (2 * MIB), tmp_path / "gate"
    async with service(tmp_path) as (engine, journal):
        await engine.submit(request_of("warm", partitions=10))
        await engine.result("warm")
        worker = engine.snapshot().workers[0].process
        before = own_bytes(worker)
        spool = journal.spool(len(data))
        spool.write(data)
        payload = spool.payload(0, len(data))
        request = request_of("large", payload, partitions=10, prove=f"wait {gate}")
        tracemalloc.start()
        try:
            await engine.submit(request)
            await until(begun(gate), "no partition began")
            held = own_bytes(worker) - before
            reserved = engine.snapshot().memories[0].owners["job large prepared"]
            gate.touch()
            _, outcome = await engine.result("large")
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        await until(lambda: own_bytes(worker) - before < len(data) * 0.5, "it is not gone")
    assert outcome is not None
    assert outcome.proof == b"+".join(proof_of("large", data, number) for number in range(10))
    assert len(data) * 0.9 < held < len(data) * 1.5
    assert reserved >= len(data)  # it is charged
    assert most < 4 * MIB, f"{most} bytes of the daemon's own process"


@in_loop
async def test_18_status_answers_while_a_proof_is_checked_for_seconds(tmp_path: Path) -> None:
    """Fault 18: checks, JSON and the allocator ran under the lock that status, pickup and other jobs' ends wait for.
    Here a check in a worker, which does not even let go of the interpreter's lock there, ends when status has been
    answered a hundred times."""
    held = tmp_path / "held"
    with pipe(held) as let_it_go_on:
        async with service(tmp_path) as (engine, journal):
            rpc = await serve_rpc(
                engine, Settings(), spool=journal.spool, status_json=status_json,
                metrics_text=metrics_text, listening=bind(address("127.0.0.1:0")),
            )  # fmt: skip
            try:
                for number in range(20):
                    await engine.submit(request_of(f"r{number}"))
                await engine.submit(request_of("checked", finish=f"held {held}"))
                await until(begun(held), "it is not checked")
                states = await asyncio.to_thread(_states, rpc.address, 100)
                let_it_go_on()
                _, outcome = await engine.result("checked")
            finally:
                await rpc.close(0)
    assert outcome is not None
    assert outcome.proof == proof_of("checked", b"payload", 0)
    assert states == ["verifying"] * 100


@in_loop
async def test_18_the_daemon_goes_on_while_a_request_is_read_for_a_second(tmp_path: Path) -> None:
    """Fault 18: JSON of 50 MB was read, and read again, under that lock. Here before acceptance, then for the proof."""
    held = tmp_path / "held"
    with pipe(held) as let_it_go_on:
        async with service(tmp_path) as (engine, journal):
            for first, step, state in ((1000, "check", ""), (2000, "prepare", "preparing")):
                request = request_of(step, b"payload", **{step: f"held {held}"})
                submitted = asyncio.ensure_future(engine.submit(request))
                await until(begun(held), f"no {step}")
                for number in range(first, first + 20):
                    await journal.accept(make_job(number))
                    jobs = engine.snapshot().jobs
                    assert [job.state for job in jobs if job.id == step] == [state] * bool(state)
                assert submitted.done() == (step == "prepare")
                let_it_go_on()
                await submitted
                _, outcome = await engine.result(step)
                assert outcome is not None
                assert outcome.proof == proof_of(step, b"payload", 0)
                Path(f"{held}.begun").unlink()


def _states(target: str, count: int) -> list[str]:
    """What status says of the job that is checked, so often."""
    with grpc.insecure_channel(target) as channel:
        ask = channel.unary_unary(
            "/cuzk.v1.ProvingEngine/GetStatus",
            request_serializer=GetStatusRequest.SerializeToString,
            response_deserializer=GetStatusResponse.FromString,
        )
        answers = [
            json.loads(ask(GetStatusRequest(), timeout=SOON).status_json) for _ in range(count)
        ]
    return [job["state"] for answer in answers for job in answer["jobs"] if job["id"] == "checked"]
