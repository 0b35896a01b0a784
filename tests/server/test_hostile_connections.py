"""Clients that mean harm: frames without end, answers that nobody reads, connections that do nothing."""

from __future__ import annotations

import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from h2.exceptions import FrameTooLargeError, ProtocolError
from hpack import Encoder
from scripted_engine import PATIENCE, Running, channel_to, circuit, method, prove, running
from test_rpc_security import PREFACE, SETTINGS, connect, push, read_all

from cuzk.server import connections, frames
from cuzk.server import proving_pb2 as pb
from cuzk.server.connections import Connection
from cuzk.server.frames import BURST, FRAME, Frames

DATA, HEADERS, RST, SETTING, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
AGREED = PREFACE + SETTINGS + b"\0\0\0\4\1\0\0\0\0" * 2
NO_WINDOW = PREFACE + b"\0\0\6\4\0\0\0\0\0" + struct.pack(">HI", 4, 0) + b"\0\0\0\4\1\0\0\0\0" * 2
MIB = 1 << 20


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def call(stream: int, name: str = "GetStatus", flags: int = END_HEADERS) -> bytes:
    block = Encoder().encode([
        (":method", "POST"), (":scheme", "http"), (":path", f"/cuzk.v1.ProvingEngine/{name}"),
        (":authority", "x"), ("te", "trailers"), ("content-type", "application/grpc"),
    ])  # fmt: skip
    return frame(HEADERS, flags, stream, block)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("rpc")) as server:
        yield server


@contextmanager
def others_are_answered(server: Running) -> Iterator[None]:
    """One that was connected before, and nothing is left when all have gone."""
    with channel_to(server.target()) as channel:
        status = method(channel, "GetStatus")
        assert status(pb.GetStatusRequest(), timeout=PATIENCE).uptime_seconds == 599
        yield
        assert status(pb.GetStatusRequest(), timeout=PATIENCE).uptime_seconds == 599
    server.until(lambda: not server.server.server.transports)
    assert not server.server.gatekeeper.calls.of
    assert not server.server.gatekeeper.tasks
    server.nothing_spooled()


def only(server: Running, raw: socket.socket) -> Connection:
    """The server's end of a connection."""

    def find() -> list[Connection]:
        return [
            connection
            for transport, connection in server.server.server.transports.items()
            if transport.get_extra_info("peername") == raw.getsockname()
        ]

    server.until(lambda: bool(find()))
    found: list[Connection] = server.soon(find)
    return found[0]


@pytest.mark.parametrize(
    "flood",
    [
        frame(PING, 0, 0, bytes(8)),
        SETTINGS,
        frame(WINDOW, 0, 0, (1).to_bytes(4, "big")),
        frame(DATA, 0, 1),
        frame(77, 0, 0),
    ],
    ids=["ping", "settings", "window", "data", "unknown"],
)
def test_a_flood_of_frames_ends_its_connection(
    server: Running, flood: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "EACH_SECOND", 0.0)  # however long it takes
    with others_are_answered(server), connect(server) as raw:
        push(raw, AGREED + call(1, "Prove") + flood * 5000)
        read_all(raw)  # its end: we have not closed


def test_calls_that_are_taken_back_at_once_leave_nothing(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rapid reset: a task that is cancelled before it began forgets its call all the same."""
    monkeypatch.setattr(frames, "EACH_SECOND", 0.0)  # however long it takes
    with others_are_answered(server), connect(server) as raw:
        raw.sendall(AGREED)
        connection = only(server, raw)
        taken_back = b"".join(call(n) + frame(RST, 0, n, bytes(4)) for n in range(1, 401, 2))
        raw.sendall(taken_back)
        server.until(lambda: connection.connection.streams_failed == 200)
        server.until(lambda: not connection.processor.streams)
        push(raw, b"".join(call(n) + frame(RST, 0, n, bytes(4)) for n in range(401, 6401, 2)))
        read_all(raw)


def test_headers_that_go_on_and_on_are_not_kept(server: Running) -> None:
    with others_are_answered(server), connect(server) as raw:
        push(raw, AGREED + frame(HEADERS, 0, 1, bytes(16000)))
        push(raw, frame(CONTINUATION, 0, 1, bytes(120 << 10)) * 20)
        read_all(raw)


def test_headers_that_unpack_to_much_are_not_unpacked(server: Running) -> None:
    """A table's entry of 3,900 bytes, named again by one byte each time."""
    encoder = Encoder()
    plain = [(":method", "POST"), (":scheme", "http"), (":path", "/x"), ("a", "b" * 3900)]
    with others_are_answered(server), connect(server) as raw:
        first = frame(HEADERS, END_HEADERS | END_STREAM, 1, encoder.encode(plain))
        block = encoder.encode(plain + [("a", "b" * 3900)] * 8)
        assert len(block) < 100
        push(raw, AGREED + first + frame(HEADERS, END_HEADERS | END_STREAM, 3, block))
        read_all(raw)


def test_an_answer_that_is_not_read_is_given_up(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with others_are_answered(server), connect(server) as raw, monkeypatch.context() as brief:
        brief.setattr("cuzk.server.streams.UNREAD_SECONDS", 0.1)
        raw.sendall(NO_WINDOW + call(1) + frame(DATA, END_STREAM, 1, bytes(5)))
        connection = only(server, raw)
        server.until(lambda: connection.connection.streams_started == 1)
        server.until(lambda: not connection.processor.streams)
        assert not server.server.gatekeeper.calls.of


def test_what_comes_after_a_calls_message_is_not_kept(server: Running) -> None:
    """3 MiB with every call that waits would be 3 GiB; the connection's window of 8 MiB opens again with each call's end."""
    with others_are_answered(server), connect(server) as raw:
        raw.sendall(AGREED)
        connection = only(server, raw)
        for n in range(1, 9, 2):
            name = f"hold-rest-{n}"
            body = pb.ProveRequest(submit=circuit(name, b"w")).SerializeToString()
            raw.sendall(call(n, "Prove"))
            raw.sendall(frame(DATA, 0, n, b"\0" + len(body).to_bytes(4, "big") + body))
            server.wait(lambda: server.engine.waiting == 1)
            raw.sendall(frame(DATA, 0, n, bytes(FRAME)) * 24)
            stream = server.soon(lambda n=n: connection.processor.streams[n])
            server.until(lambda s=stream: s.buffer.unacked_size() == 24 * FRAME)  # type: ignore[misc]
            assert list(vars(stream.buffer)) == ["size"], "a number, and no data"
            server.tell(name)
            server.until(lambda: not connection.processor.streams)
            server.wait(lambda: server.engine.waiting == 0)


def test_a_client_that_reads_nothing_is_not_read_either_and_then_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every PING is answered; their answers would grow without end. The server's clock is put forward a minute."""
    monkeypatch.setattr(frames, "BURST", 1e9)
    monkeypatch.setattr(frames, "EACH_SECOND", 1e9)
    with running(tmp_path) as server, others_are_answered(server), socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, _, port = server.address.rpartition(":")
        raw.connect((host, int(port)))
        raw.sendall(AGREED)
        connection = only(server, raw)
        transport: Any = connection.transport
        raw.setblocking(False)
        pings = frame(PING, 0, 0, bytes(8)) * 1000
        with suppress(BlockingIOError):
            while True:
                raw.send(pings)
                server.soon(transport.is_reading)
        server.until(lambda: connection._unread is not None)
        with suppress(BlockingIOError):
            while True:
                raw.send(pings)  # until no more is taken
        assert 64 << 10 < server.soon(transport.get_write_buffer_size) < MIB
        time = server.loop.time
        monkeypatch.setattr(server.loop, "time", lambda: time() + connections.UNREAD_SECONDS)
        server.until(lambda: transport not in server.server.server.transports)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            raw.send(pings)


def test_idle_connections_keep_nobody_out(tmp_path: Path) -> None:
    with running(tmp_path, client_requests=8) as server:
        raws = [connect(server) for _ in range(30)]
        try:
            with channel_to(server.target()) as channel:
                assert prove(channel, circuit("in", b"w"), timeout=PATIENCE).status == 1
                assert server.soon(lambda: len(server.server.server.transports)) <= 8
        finally:
            for raw in raws:
                raw.close()
        server.until(lambda: not server.server.server.transports)


def test_a_connection_with_a_call_stays_and_one_more_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, client_requests=1) as server, channel_to(server.target()) as channel:
        held = method(channel, "Prove").future(pb.ProveRequest(submit=circuit("hold", b"w")))
        server.wait(lambda: server.engine.waiting == 1)
        with connect(server) as more:
            assert read_all(more) == b"", "closed at once"
        server.tell("hold")
        assert held.result(PATIENCE).result.status == 1


def test_connections_leave_files_for_the_journal(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    try:
        with running(tmp_path) as server:
            assert server.server.server.most == 150
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("seconds", [0.0, 0.5, 1.0])
def test_frames_cost_what_they_cost(seconds: float) -> None:
    """2,048 at once, and 1,000 more with every second after that."""
    clock = Clock()
    ping = frame(PING, 0, 0, bytes(8))
    meter = Frames(clock)
    clock.now = 100.0
    meter.take(PREFACE + ping * int(BURST))
    clock.now += seconds
    meter.take(ping * int(1000 * seconds))
    with pytest.raises(ProtocolError, match="too many frames that carry nothing"):
        meter.take(ping)


@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
def test_frames_are_found_in_pieces_of_any_size(size: int) -> None:
    """As many as there are, whatever the reads; large DATA costs nothing."""
    pings = frame(PING, 0, 0, bytes(8)) * int(BURST)
    sent = PREFACE + frame(DATA, 0, 1, bytes(500)) * 100 + pings
    meter = Frames(Clock())
    for at in range(0, len(sent), size):
        meter.take(sent[at : at + size])
    with pytest.raises(ProtocolError):
        meter.take(frame(PING, 0, 0, bytes(8)))


def test_who_waits_for_answers_never_runs_short() -> None:
    meter = Frames(Clock())
    meter.take(PREFACE)
    for n in range(1, 20_001, 2):
        meter.take(call(n) + frame(DATA, END_STREAM, n, bytes(5)) + frame(WINDOW, 0, 0, bytes(4)))
        meter.answered()


def test_frames_and_headers_that_are_too_long() -> None:
    meter = Frames(Clock())
    meter.take(PREFACE + b"\x02\0\0\0\0\0\0\0\1" + bytes(FRAME))
    with pytest.raises(
        FrameTooLargeError, match="a frame of 131,073 bytes, expected at most 131,072"
    ):
        meter.take(b"\x02\0\1\0\0\0\0\0\1")
    meter = Frames(Clock())
    meter.take(
        PREFACE + frame(HEADERS, 0, 1, bytes(30_000)) + frame(CONTINUATION, 4, 1, bytes(2000))
    )
    meter.take(frame(HEADERS, 0, 3, bytes(30_000)))
    with pytest.raises(ProtocolError, match="headers of more than 32,768 bytes"):
        meter.take(frame(CONTINUATION, 0, 3, bytes(3000)))
