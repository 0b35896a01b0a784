"""A message in pieces: where it goes, what is refused before it is read, what a client leaves that goes away.

What we use of grpclib's inside is used for real here, so that a version that changed it fails.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from grpclib.protocol import Buffer
from h2.connection import H2Connection
from scripted_engine import FileSpool, Running, channel_to, circuit, method, prove, running, until

from cuzk.errors import DeadlineExceeded, EngineError, FormatError
from cuzk.server import receive
from cuzk.server.codes import TooMuch, Unsupported
from cuzk.server.proving_pb2 import GetMetricsRequest, ProveRequest
from cuzk.server.receive import IN_MEMORY, PIECE, Arrivals, Receiver


class Incoming:
    """What ``read_piece`` asks of a call: grpclib's own buffer, which a test fills."""

    def __init__(self) -> None:
        self.acked = 0
        self.buffer = Buffer(self.ack)
        self._stream = self
        self.peer = self._transport = self
        self.recv_data = self.buffer.read

    def get_extra_info(self, name: str) -> Any:
        return None if name == "socket" else ("192.0.2.1", 1)

    def ack(self, size: int) -> None:
        self.acked += size

    def add(self, *chunks: bytes) -> Any:
        for chunk in chunks:
            self.buffer.add(chunk, len(chunk))
        return self

    def end(self) -> Any:
        self.buffer.eof()
        return self


def prefix(size: int, flag: int = 0) -> bytes:
    return bytes([flag]) + size.to_bytes(4, "big")


def receiver(folder: Path, limit: int = 1 << 30, arrivals: int = 1 << 30) -> Receiver:
    return Receiver(limit, Arrivals(arrivals), lambda _: FileSpool(folder))


def nothing_left(folder: Path) -> bool:
    """What threads delete takes a moment."""
    return not list(folder.iterdir())


@pytest.mark.parametrize("size", [0, 1, IN_MEMORY, IN_MEMORY + 1, 3 * PIECE * 8 + 5])
def test_small_in_memory_large_in_a_file(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    stream = Incoming().add(prefix(size), data[:size]).end() if size else Incoming().add(prefix(0))

    async def run() -> None:
        message = await receiver(tmp_path).receive(stream)
        assert message.size == size
        assert bytes(message.view()) == data[:size]
        assert (message.spool is None) == (size <= IN_MEMORY)
        part = message.payload(size // 3, size // 2)
        assert bytes(part.view()) == data[size // 3 : size // 2]
        assert part.size == size // 2 - size // 3
        assert (part.path is None) == (size <= IN_MEMORY)
        assert len(list(tmp_path.iterdir())) == (size > IN_MEMORY)
        assert all(p.stat().st_mode & 0o777 == 0o600 for p in tmp_path.iterdir())
        message.discard()
        await until(lambda: nothing_left(tmp_path))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("begin", "error", "text"),
    [
        (prefix(101), TooMuch, "expected a message of at most 100 bytes, found one of 101"),
        (prefix(2**32 - 1), TooMuch, "at most 100 bytes, found one of 4,294,967,295"),
        (
            prefix(5, 1),
            Unsupported,
            "expected a message that is not compressed, found a compressed",
        ),
        (b"", FormatError, "expected a message, found none"),
        (b"\x00\x00", FormatError, "message: expected 5 bytes more, found its end"),
        (prefix(50) + b"abc", FormatError, "message: expected 50 bytes more, found its end"),
    ],
)
def test_what_is_refused(tmp_path: Path, begin: bytes, error: type[Exception], text: str) -> None:
    stream = (Incoming().add(begin) if begin else Incoming()).end()
    with pytest.raises(error, match=text):
        asyncio.run(receiver(tmp_path, limit=100).receive(stream))


def test_a_size_is_refused_before_anything_of_it_came(tmp_path: Path) -> None:
    stream = Incoming().add(prefix(101))
    with pytest.raises(TooMuch):
        asyncio.run(receiver(tmp_path, limit=100).receive(stream))
    assert stream.acked == 5


def test_one_client_does_not_keep_others_messages_out() -> None:
    """Three quarters are one client's; a message that is larger than that comes alone."""
    arrivals = Arrivals(100)
    with arrivals.reserve(50, "a"), arrivals.reserve(25, "a"):
        with pytest.raises(TooMuch, match="found 75 of others, 75 of them this client's"), arrivals.reserve(1, "a"):  # fmt: skip
            pass
        with arrivals.reserve(25, "b"), pytest.raises(TooMuch), arrivals.reserve(1, "c"):
            pass
    with arrivals.reserve(100, "a"), pytest.raises(TooMuch), arrivals.reserve(1, "b"):
        pass
    assert not arrivals.of


def test_bytes_that_arrive_at_a_time_are_bounded(tmp_path: Path) -> None:
    async def run() -> None:
        reads = receiver(tmp_path, arrivals=10 << 20)
        slow = Incoming().add(prefix(6 << 20), b"x")
        first = asyncio.ensure_future(reads.receive(slow))
        await until(lambda: reads.arrivals.nbytes == 6 << 20)
        with pytest.raises(
            TooMuch, match="a message of 5,242,880 bytes: expected at most 10,485,760"
        ):
            await reads.receive(Incoming().add(prefix(5 << 20)))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert reads.arrivals.nbytes == 0
        await until(lambda: nothing_left(tmp_path))
        second = await reads.receive(Incoming().add(prefix(5 << 20), bytes(5 << 20)))
        second.discard()
        await until(lambda: nothing_left(tmp_path))

    asyncio.run(run())


def test_a_client_that_sends_half_a_message_and_waits_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "PATIENCE", 0.05)
    monkeypatch.setattr(receive, "SLOWEST", 1 << 30)

    async def run() -> None:
        reads = receiver(tmp_path)
        half = Incoming().add(prefix(4 << 20), bytes(1 << 20))
        with pytest.raises(DeadlineExceeded, match="a message of 4,194,304 bytes: expected all"):
            await reads.receive(half)
        with pytest.raises(DeadlineExceeded, match="expected a message within 0 s, found none"):
            await reads.receive(Incoming().add())
        assert reads.arrivals.nbytes == 0
        await until(lambda: nothing_left(tmp_path))

    asyncio.run(run())


def test_a_full_disk_is_an_answer(tmp_path: Path) -> None:
    class Full(FileSpool):
        def write(self, chunk: bytes) -> None:
            raise EngineError(f"cannot write {len(chunk)} bytes: No space left on device")

    async def run() -> None:
        reads = Receiver(1 << 30, Arrivals(1 << 30), lambda _: Full(tmp_path))
        with pytest.raises(TooMuch, match="No space left on device"):
            await reads.receive(Incoming().add(prefix(2 << 20), bytes(2 << 20)))
        await until(lambda: nothing_left(tmp_path))

        def none(_: int) -> FileSpool:
            raise EngineError("a request of 2097152 bytes needs more than is free")

        with pytest.raises(TooMuch, match="needs more than is free"):
            await Receiver(1 << 30, Arrivals(1 << 30), none).receive(
                Incoming().add(prefix(2 << 20))
            )

    asyncio.run(run())


def test_grpclib_still_has_what_is_used_of_its_inside(tmp_path: Path) -> None:
    """By a call: its body in pieces, its client, its connection, MAX_CONCURRENT_STREAMS."""
    with running(tmp_path) as server, channel_to(server.target()) as channel:
        result = prove(channel, circuit("a", bytes(3 << 20)))
        assert result.job_id == "a"
        assert server.engine.requests["a"].client == "127.0.0.1"
        (connection,) = server.soon(lambda: list(server.server.server.transports.values()))
        assert connection.client == "127.0.0.1"
    with (
        running(tmp_path, f"unix://{tmp_path}/s") as server,
        channel_to(server.target()) as channel,
    ):
        prove(channel, circuit("b", b"w"))
        assert server.engine.requests["b"].client == f"uid {tmp_path.stat().st_uid}"


def client_gone(server: Running, name: str, size: int) -> None:
    """Half a message, then the connection is closed, as of a process that was killed."""
    host, _, port = server.address.rpartition(":")
    body = ProveRequest(submit=circuit(name, bytes(size))).SerializeToString()
    with socket.create_connection((host, int(port))) as raw:
        h2 = H2Connection()
        h2.initiate_connection()
        h2.send_headers(1, [
            (":method", "POST"), (":scheme", "http"), (":path", "/cuzk.v1.ProvingEngine/Prove"),
            (":authority", "x"), ("te", "trailers"), ("content-type", "application/grpc"),
        ])  # fmt: skip
        raw.sendall(h2.data_to_send())
        h2.send_data(1, prefix(len(body)))
        for start in range(0, 48 << 10, 16 << 10):
            h2.send_data(1, body[start : start + (16 << 10)])
        raw.sendall(h2.data_to_send())
        server.until(lambda: bool(list(server.folder.iterdir())))


def test_a_client_that_goes_away_within_a_message_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        client_gone(server, "half", 8 << 20)
        server.until(lambda: nothing_left(server.folder))
        assert "half" not in server.engine.requests
        assert server.soon(lambda: server.server.server.transports) == {}
        with channel_to(server.target()) as channel:
            assert method(channel, "GetMetrics")(GetMetricsRequest()).prometheus_text
