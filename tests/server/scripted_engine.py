"""A gRPC server over an engine that does as its requests' ids say, in a thread or, run as a program, in a process.

    python scripted_engine.py ADDRESS FOLDER     prints its address, ends with its standard input

A proof is the BLAKE2b of the payload's parts, so that a test knows what to expect. Ids: "hold..." is done when told,
"fail..." fails, "no ..." is refused, "slow..." is
accepted when the gate opens.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import grpc

from cuzk.config import DaemonSettings, SecuritySettings, Settings
from cuzk.engine.job import Outcome, State
from cuzk.engine.request import Payload, Request
from cuzk.engine.snapshot import (
    JobView,
    KeyView,
    KindTotals,
    MemoryView,
    QueueView,
    Snapshot,
    WorkerView,
)
from cuzk.errors import CuzkError, QueueFull, UnknownJob
from cuzk.server import CODE_KEY
from cuzk.server import proving_pb2 as messages
from cuzk.server.rpc_server import RpcServer, serve_rpc

SERVICE = messages.DESCRIPTOR.services_by_name["ProvingEngine"]
PATIENCE = 120.0  # seconds: no bound on speed, an end for a test that would hang
SPENT = {"queue": 1.4, "load": 2.6, "prepare": 3.0, "prove": 40.0, "verify": 5.0, "total": 52.0, "work": 400.0}  # fmt: skip


class FileSpool:
    def __init__(self, folder: Path) -> None:
        self.path = folder / secrets.token_hex(8)
        self.file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.kept = False

    def write(self, chunk: bytes) -> None:
        os.write(self.file, chunk)

    def payload(self, offset: int, size: int) -> Payload:
        return Payload(path=self.path, offset=offset, size=size)

    def discard(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
        self.path.unlink(missing_ok=True)


def proof_of(*parts: bytes) -> bytes:
    state = blake2b()
    for part in parts:
        state.update(part)
    return state.digest()


@dataclass
class ScriptedEngine:
    refusals: dict[str, CuzkError] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)
    proofs: dict[str, bytes] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    told: dict[str, asyncio.Event] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    waiting: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    async def submit(self, request: Request) -> JobView:
        if request.id in self.refusals:
            raise self.refusals[request.id]
        if request.id.startswith("no "):
            raise QueueFull("1,000 jobs wait: expected fewer; try again later")
        if request.id.startswith("slow"):
            self.count(1)
            await self.gate.wait()
            self.count(-1)
        parts = request.payload
        self.proofs[request.id] = await asyncio.to_thread(
            lambda: proof_of(*(bytes(p.data) if p.data is not None else p.view() for p in parts))  # type: ignore[arg-type]
        )
        with self.changed:
            self.told[request.id] = asyncio.Event()
            self.requests[request.id] = request
            self.changed.notify_all()
        return self.view(request.id)

    def view(self, name: str) -> JobView:
        state = "proving" if name.startswith("hold") else "done"
        return JobView(name, 1, "circuit", "c", "normal", state, 1.0, 2.0, 3.0, 4.0, place=7)

    async def result(
        self, job_id: str, timeout: float | None = None
    ) -> tuple[JobView, Outcome | None]:
        if job_id not in self.proofs:
            raise UnknownJob(f"{job_id!r}: no request has this id")
        if job_id.startswith("hold"):
            try:
                self.count(1)
                await asyncio.wait_for(self.told[job_id].wait(), timeout)
            except TimeoutError:
                return self.view(job_id), None
            finally:
                self.count(-1)
        if job_id in self.cancelled:
            return self.view(job_id), Outcome(State.CANCELLED, code="cancelled", message="by you")
        if job_id.startswith("fail"):
            return self.view(job_id), Outcome(State.FAILED, code="unsatisfied", message="row 3")
        outcome = Outcome(
            State.DONE, self.proofs[job_id], public=b'["1"]', milliseconds=dict(SPENT)
        )
        return self.view(job_id), outcome

    def count(self, more: int) -> None:
        with self.changed:
            self.waiting += more
            self.changed.notify_all()

    def left(self, job_id: str) -> None:
        with self.changed:
            self.gone.append(job_id)
            self.changed.notify_all()

    async def cancel(self, job_id: str) -> bool:
        if job_id not in self.proofs:
            raise UnknownJob(f"{job_id!r}: no request has this id")
        self.cancelled.add(job_id)
        self.told[job_id].set()
        return job_id.startswith("hold")

    async def preload(self, circuit: str) -> tuple[bool, float]:
        milliseconds = {"porep-32g": 0.0, "set-back": -3.6e6}  # the clock was, meanwhile
        return circuit == "porep-32g", milliseconds.get(circuit, 1234.5)

    async def evict(self, circuit: str) -> tuple[bool, int]:
        return circuit == "porep-32g", 44 << 30 if circuit == "porep-32g" else 0

    def snapshot(self, *, ended: int = 50, spans_since: float | None = None) -> Snapshot:
        assert ended <= 50
        assert spans_since is None
        return SNAPSHOT


SNAPSHOT = Snapshot(
    now=1000.0, started=400.5, version="1", process=1, draining=False, queue_limit=1000, jobs=(),
    queues=(QueueView("porep-c2", 3, 2), QueueView("winning-post", 0, 1), QueueView("circuit", 0, 0)),
    workers=(
        WorkerView("cpu", "cpu", "EPYC", True, 2, 5),
        WorkerView("cuda:1", "cuda:1", "NVIDIA H200", True, 3, 6, 140 << 30, 90 << 30, "p-1", "porep-c2"),
        WorkerView("cuda:3", "cuda:3", "", False, 0, 0, fault="no device"),
    ),
    keys=(
        KeyView("porep-32GiB", "porep-c2", "k", "hot", "cuda:1", 44 << 30, 2),
        KeyView("winning-32GiB", "winning-post", "k", "warm", "cpu", 1 << 30, 0),
        KeyView("window-32GiB", "window-post", "k", "cold"),
        KeyView("update-32GiB", "snap-update", "k", "not ready", fault="no file"),
    ),
    memories=(MemoryView("host", 9, 1, 8), MemoryView("pinned", 70, 20, 50)),
    totals=(KindTotals("porep-c2", 9, 5, 1, 1), KindTotals("circuit", 9, 2, 3, 0)),
)  # fmt: skip


@dataclass
class Running:
    address: str
    engine: ScriptedEngine
    folder: Path
    server: RpcServer
    loop: asyncio.AbstractEventLoop

    def target(self) -> str:
        return self.address.replace("unix://", "unix:")

    def wait(self, what: Any) -> None:
        with self.engine.changed:
            assert self.engine.changed.wait_for(what, PATIENCE), "it did not happen"

    def tell(self, job: str) -> None:
        self.loop.call_soon_threadsafe(self.engine.told[job].set)

    def soon(self, what: Any, *arguments: Any) -> Any:
        async def run() -> Any:
            result = what(*arguments)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(PATIENCE)

    def nothing_spooled(self) -> None:
        """Threads delete, so that it takes a moment."""
        self.until(lambda: not list(self.folder.iterdir()))

    def until(self, ready: Callable[[], object]) -> None:
        """Asked in the server's thread."""
        self.soon(until, ready)


async def until(ready: Callable[[], object]) -> None:
    """Wait for what nobody announces."""
    async with asyncio.timeout(PATIENCE):
        while not ready():
            await asyncio.sleep(0.001)


def settings(folder: Path, listen: str = "127.0.0.1:0", **security: Any) -> Settings:
    return Settings(
        daemon=DaemonSettings(listen=listen, state=folder, status_listen=""),
        security=SecuritySettings(**security),
    )


async def start(engine: ScriptedEngine, folder: Path, wanted: Settings) -> RpcServer:
    return await serve_rpc(
        engine,
        wanted,
        spool=lambda _size: FileSpool(folder),
        status_json=lambda state: b'{"now": %d}' % state.now,
        metrics_text=lambda state: f"cuzk_queue_limit {state.queue_limit}\n",
    )


@contextmanager
def running(folder: Path, listen: str = "127.0.0.1:0", **security: Any) -> Iterator[Running]:
    spools = folder / "spools"
    spools.mkdir(exist_ok=True)
    engine, started, ending = ScriptedEngine(), threading.Event(), asyncio.Event()
    made: list[Running] = []

    async def serve() -> None:
        server = await start(engine, spools, settings(folder, listen, **security))
        made.append(Running(server.address, engine, spools, server, asyncio.get_running_loop()))
        started.set()
        await ending.wait()
        await server.close(0.2)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(PATIENCE)
        yield made[0]
    finally:
        if made:
            made[0].loop.call_soon_threadsafe(ending.set)
        thread.join(PATIENCE)
        assert not thread.is_alive()


OPTIONS = (
    ("grpc.max_send_message_length", 256 << 20),
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.use_local_subchannel_pool", 1),
)


@contextmanager
def channel_to(target: str) -> Iterator[grpc.Channel]:
    """As Curio's: plaintext, 256 MiB; a connection of its own."""
    with grpc.insecure_channel(target, OPTIONS) as channel:
        yield channel


def method(channel: grpc.Channel, name: str, *, raw: bool = False) -> Any:
    """``raw``: its request is bytes."""
    described = SERVICE.methods_by_name[name]
    answer = getattr(messages, described.output_type.name)
    asked = getattr(messages, described.input_type.name)
    return channel.unary_unary(
        f"/{SERVICE.full_name}/{name}",
        request_serializer=None if raw else asked.SerializeToString,
        response_deserializer=answer.FromString,
    )


def circuit(name: str, witness: bytes, **fields: Any) -> messages.SubmitProofRequest:
    return messages.SubmitProofRequest(
        request_id=name, proof_kind=messages.CIRCUIT, circuit_id="c", witness=witness, **fields
    )


def prove(channel: grpc.Channel, submit: messages.SubmitProofRequest, **call: Any) -> Any:
    """Curio's one call; what it answers."""
    wanted = {"timeout": PATIENCE, **call}
    return method(channel, "Prove")(messages.ProveRequest(submit=submit), **wanted).result


def refused(call: Any, *arguments: Any, **keywords: Any) -> tuple[grpc.StatusCode, str, str]:
    """Status, text, and the error's word."""
    try:
        answer = call(*arguments, **keywords)
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata() or ())
        return error.code(), error.details(), trailers.get(CODE_KEY, "")
    raise AssertionError(f"answered instead of refused: {answer!r}")


async def main(listen: str, folder: Path) -> None:
    server = await start(ScriptedEngine(), folder, settings(folder, listen))
    print(server.address, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.close(0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
