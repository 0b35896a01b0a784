"""Clients that go away, and a service that does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from scripted_engine import (
    PATIENCE,
    Running,
    channel_to,
    circuit,
    method,
    proof_of,
    prove,
    refused,
    running,
)

from cuzk.server import proving_pb2 as pb

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("rpc")) as server:
        yield server


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with channel_to(server.target()) as channel:
        yield channel


def test_a_client_that_goes_away(server: Running, channel: grpc.Channel) -> None:
    """A job with a name goes on, whether its call was cancelled or its deadline passed."""
    call = method(channel, "Prove")
    future = call.future(pb.ProveRequest(submit=circuit("hold-named", b"w")))
    server.wait(lambda: server.engine.waiting == 1)
    future.cancel()
    late = past_its_deadline(server, channel)
    server.wait(lambda: server.engine.waiting == 0)
    assert server.engine.gone == []
    for name in ("hold-named", late):
        server.tell(name)
        asked = pb.AwaitProofRequest(job_id=name)
        assert method(channel, "AwaitProof")(asked).proof == proof_of(b"w")


def past_its_deadline(server: Running, channel: grpc.Channel) -> str:
    """A job's name that was accepted before its call's deadline, which has passed."""
    for seconds in (0.3, 1, 3, 10, 30):
        name = f"hold-late-{seconds}"
        answer = refused(prove, channel, circuit(name, b"w"), timeout=seconds)
        assert answer[0] is grpc.StatusCode.DEADLINE_EXCEEDED
        if name in server.engine.requests:
            return name
    raise TimeoutError("no job was accepted within 30 s")


def test_a_job_without_a_name_is_left(
    server: Running, channel: grpc.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuzk.server.submission.uuid.uuid4", lambda: "hold-nobody")
    call = method(channel, "Prove")
    future = call.future(pb.ProveRequest(submit=circuit("", b"w")))
    server.wait(lambda: server.engine.waiting == 1)
    future.cancel()
    server.wait(lambda: server.engine.gone == ["hold-nobody"])
    server.engine.gone.clear()


def test_a_client_that_goes_away_while_its_job_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is accepted all the same; one without a name is left then."""
    monkeypatch.setattr("cuzk.server.submission.uuid.uuid4", lambda: "slow-nobody")
    with running(tmp_path) as server, channel_to(server.target()) as channel:
        futures = [
            method(channel, "Prove").future(pb.ProveRequest(submit=circuit(name, bytes(2 * MIB))))
            for name in ("slow-named", "")
        ]
        server.wait(lambda: server.engine.waiting == 2)
        for future in futures:
            future.cancel()
        server.until(lambda: not server.server.gatekeeper.tasks)
        assert server.engine.requests == {}
        server.soon(server.engine.gate.set)
        server.wait(lambda: set(server.engine.requests) == {"slow-named", "slow-nobody"})
        server.wait(lambda: server.engine.gone == ["slow-nobody"])
        server.nothing_spooled()


def test_close_answers_those_that_wait(tmp_path: Path) -> None:
    answers: list[Any] = []
    with running(tmp_path) as server, channel_to(server.target()) as channel:
        submit = circuit("hold-end", b"w")
        thread = threading.Thread(target=lambda: answers.append(refused(prove, channel, submit)))
        thread.start()
        server.wait(lambda: server.engine.waiting == 1)
        server.soon(server.server.close, 0.0)
        thread.join(PATIENCE)
    ((status, text, word),) = answers
    assert (status, word) == (grpc.StatusCode.UNAVAILABLE, "unavailable")
    assert text.startswith("the service stops; a job whose request has an id goes on")


def test_close_lets_calls_end_for_a_while(tmp_path: Path) -> None:
    answers: list[Any] = []
    with running(tmp_path) as server, channel_to(server.target()) as channel:
        submit = circuit("hold-on", b"w")
        thread = threading.Thread(target=lambda: answers.append(prove(channel, submit)))
        thread.start()
        server.wait(lambda: server.engine.waiting == 1)
        closing = asyncio.run_coroutine_threadsafe(server.server.close(PATIENCE), server.loop)
        server.until(lambda: server.server.listening.socket.fileno() < 0)  # it has begun
        assert answers == []
        server.tell("hold-on")
        thread.join(PATIENCE)
        closing.result(PATIENCE)
    assert [(answer.status, answer.proof) for answer in answers] == [(1, proof_of(b"w"))]
