"""A payload crosses to a worker's process once, and is there no longer than it is needed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running_workers import SOON, begun, in_loop, running, until
from toy_catalogue import proof_of, request_of

from cuzk.engine.channel import pack
from cuzk.engine.in_process import InProcessWorker
from cuzk.engine.kept import Kept
from cuzk.engine.process import ProcessWorker
from cuzk.engine.request import Payload
from cuzk.engine.worker import Worker
from cuzk.errors import FormatError

either = pytest.mark.parametrize(
    "kind", [ProcessWorker, InProcessWorker], ids=["process", "threads"]
)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of every message to a worker's process, but for the heartbeats, which come when they come."""
    sizes: list[int] = []

    def counted(number: int, message: tuple[str, object], limit: int) -> bytes:
        frame = pack(number, message, limit)
        if message[0] != "beat":
            sizes.append(len(frame))
        return frame

    monkeypatch.setattr("cuzk.engine.link.pack", counted)
    return sizes


async def there(worker: Any, name: str) -> int:
    """Requests of an id that are in the memory of the worker's process."""
    await worker.prepare("toy", request_of("asks", prove=f"requests {name}"))
    answer = (await worker.prove("toy", "asks", 0)).milliseconds["all"]
    return int(answer)


async def gone(worker: Any, name: str) -> None:
    """A thread that has answered lets go a moment later."""
    end = time.monotonic() + SOON
    while await there(worker, name):
        assert time.monotonic() < end, f"{name} is kept"


# What both kinds of worker do


@either
@in_loop
async def test_a_request_that_was_checked_is_prepared(kind: Callable[..., Worker]) -> None:
    async with running(kind) as worker:
        await worker.load("toy")
        requests = [request_of(f"{n}", os.urandom(1000 + n)) for n in range(100)]
        for request in requests:
            await worker.check(request)
        for request in reversed(requests):
            assert await worker.prepare("toy", request) == request.nbytes
        for request in requests:
            payload = request.payload[0].data or b""
            proof = (await worker.prove("toy", request.id, 0)).proof
            assert proof == proof_of(request.id, payload, 0)


@either
@in_loop
async def test_a_new_try_never_gets_the_payload_of_an_earlier_one(
    kind: Callable[..., Worker],
) -> None:
    async with running(kind) as worker:
        await worker.load("toy")
        old, new, unchecked = (request_of("a", text) for text in (b"old", b"new", b"unchecked"))
        await worker.check(old)
        await worker.check(new)
        await worker.prepare("toy", new)
        assert (await worker.prove("toy", "a", 0)).proof == proof_of("a", b"new", 0)
        await worker.check(new)
        await worker.prepare("toy", unchecked)
        assert (await worker.prove("toy", "a", 0)).proof == proof_of("a", b"unchecked", 0)
        await worker.check(new)
        await worker.forget("a")
        await worker.prepare("toy", old)
        assert (await worker.prove("toy", "a", 0)).proof == proof_of("a", b"old", 0)


# A process


@in_loop
async def test_the_payload_is_sent_once(sent: list[int]) -> None:
    async with running() as worker:
        await worker.load("toy")
        request = request_of("a", bytes(131_072))
        sent.clear()
        await worker.check(request)
        await worker.prepare("toy", request)
        assert len(sent) == 2
        assert 131_072 < sum(sent) < 132_000
        await worker.prepare("toy", request)
        assert sent[-1] > 131_072, "again: it is not kept any more"
        assert (await worker.prove("toy", "a", 0)).proof == proof_of("a", bytes(131_072), 0)


@in_loop
async def test_a_worker_that_died_has_nothing(sent: list[int]) -> None:
    async with running() as worker:
        request = request_of("a", bytes(50_000))
        await worker.check(request)
        worker._link.process.kill()
        await until(lambda: worker.health().restarts, "its next life")
        await worker.load("toy")
        assert await worker.prepare("toy", request) == 50_000
        assert sent[-1] > 50_000


@in_loop
async def test_nothing_is_kept_of_what_is_prepared_and_forgotten() -> None:
    async with running() as worker:
        await worker.load("toy")
        request = request_of("a")
        await worker.check(request)
        assert await there(worker, "a") == 1
        await worker.prepare("toy", request)
        assert await there(worker, "a") == 1
        await worker.forget("a")
        await gone(worker, "a")


@in_loop
async def test_nothing_is_kept_of_what_is_refused_or_given_up(tmp_path: Path) -> None:
    async with running() as worker:
        await worker.load("toy")
        refused = request_of("refused", check="raise FormatError bad magic")
        with pytest.raises(FormatError, match="bad magic"):
            await worker.check(refused)
        await gone(worker, "refused")
        left = request_of("left", check=f"wait {tmp_path}/gate")
        checking = asyncio.create_task(worker.check(left))
        await until(begun(tmp_path / "gate"), "the check")
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking
        assert await there(worker, "left") == 1
        (tmp_path / "gate").touch()
        await gone(worker, "left")
        forgotten = request_of("forgotten")
        await worker.check(forgotten)
        await worker.forget("forgotten")
        await gone(worker, "forgotten")


@in_loop
async def test_what_the_daemon_lets_go_of_is_not_kept() -> None:
    """A job that was cancelled in the queue, or was proved by another worker."""
    async with running() as worker:
        await worker.load("toy")
        request = request_of("a")
        await worker.check(request)
        assert await there(worker, "a") == 1
        del request
        await gone(worker, "a")
        assert not worker._kept._entries


@in_loop
async def test_a_payload_in_a_file_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "spool").write_bytes(b"witness")
    async with running() as worker:
        await worker.load("toy")
        request = request_of("a", Payload(path=tmp_path / "spool", size=7))
        await worker.check(request)
        await gone(worker, "a")


# The books


@in_loop
async def test_the_oldest_go_where_there_are_too_many_or_too_large_ones() -> None:
    dropped: list[int] = []
    books = Kept(dropped.append, most=3, most_bytes=100)
    requests = [request_of(f"{n}", bytes(10)) for n in range(5)]
    numbers = [books.add(request) for request in requests]
    assert dropped == numbers[:2]
    assert [books.take(request) for request in requests] == [0, 0, *numbers[2:]]
    assert [books.take(request) for request in requests] == [0] * 5
    assert dropped == numbers[:2], "what was taken is not there to be dropped"
    large = [request_of(name, bytes(50)) for name in "abc"]
    numbers = [books.add(request) for request in large]
    assert dropped[2:] == numbers[:1]
    assert books.add(request_of("d", bytes(101))) == 0
    assert books.add(request_of("e", b"")) == 0
    assert dropped[2:] == numbers[:1], "and nothing is pushed out for it"
    assert books._nbytes == 100
    assert [books.take(request) for request in large] == [0, *numbers[1:]]
    assert books._nbytes == 0


@in_loop
async def test_a_number_is_of_one_check() -> None:
    dropped: list[int] = []
    books = Kept(dropped.append)
    first, second = request_of("a", b"1"), request_of("a", b"2")
    old = books.add(first)
    new = books.add(second)
    assert new != old
    assert dropped == [old]
    books.remove("a", old)  # a check that was refused late
    assert books.take(first) == 0
    assert books.take(second) == new
    assert dropped == [old]
