"""Who may call, from where, how much at a time; and what comes in that is no call at all."""

from __future__ import annotations

import errno
import os
import random
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived
from scripted_engine import PATIENCE, Running, channel_to, circuit, method, prove, refused, running

from cuzk.config import Address
from cuzk.errors import FormatError, Unavailable
from cuzk.server import proving_pb2 as pb
from cuzk.server.listen import bind
from cuzk.server.rpc_server import RpcServer
from cuzk.server.security import Calls, read_token, tls_context

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of localhost, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-out", str(paths[0]), "-keyout", str(paths[1])),
        ],
        check=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    return paths


def token_file(folder: Path, token: str = TOKEN, mode: int = 0o600) -> Path:
    path = folder / "token"
    path.write_text(f"{token}\n")
    path.chmod(mode)
    return path


def with_token(token: str) -> dict[str, Any]:
    return {"metadata": (("authorization", f"Bearer {token}"),)}


def health(channel: grpc.Channel, service: str, **call: Any) -> HealthCheckResponse:
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        HealthCheckRequest.SerializeToString,
        HealthCheckResponse.FromString,
    )
    answer: HealthCheckResponse = check(HealthCheckRequest(service=service), **call)
    return answer


def test_a_token_is_needed_everywhere(tmp_path: Path) -> None:
    with running(tmp_path, token_file=token_file(tmp_path)) as server, channel_to(server.target()) as channel:  # fmt: skip
        status = method(channel, "GetStatus")
        asked = pb.GetStatusRequest()
        assert status(asked, **with_token(TOKEN)).uptime_seconds == 599
        assert prove(channel, circuit("a", b"w"), **with_token(TOKEN)).status == 1
        assert health(channel, "", **with_token(TOKEN)).status == 1
        none = refused(status, asked)
        assert none == (grpc.StatusCode.UNAUTHENTICATED, "expected a token (authorization: Bearer TOKEN), found none", "refused")  # fmt: skip
        assert refused(health, channel, "")[0] is grpc.StatusCode.UNAUTHENTICATED
        assert refused(prove, channel, circuit("b", b"w"))[0] is grpc.StatusCode.UNAUTHENTICATED
        basic = {"metadata": (("authorization", f"Basic {TOKEN}"),)}
        assert refused(status, asked, **basic)[0] is grpc.StatusCode.UNAUTHENTICATED
        twice = {"metadata": (("authorization", f"Bearer {TOKEN}"),) * 2}
        assert refused(status, asked, **twice)[0] is grpc.StatusCode.UNAUTHENTICATED
        other = {"metadata": (("x-authorization", f"Bearer {TOKEN}"),)}
        assert refused(status, asked, **other)[0] is grpc.StatusCode.UNAUTHENTICATED
        for wrong in (TOKEN[:-1], TOKEN + "0", TOKEN.upper(), "x"):
            answer = refused(status, asked, **with_token(wrong))
            assert answer == (grpc.StatusCode.PERMISSION_DENIED, "expected the daemon's token, found another one", "refused")  # fmt: skip
        assert "b" not in server.engine.requests


@pytest.mark.parametrize(
    ("token", "mode", "text"),
    [
        (TOKEN, 0o640, "expected a file of mode 0600 at most, found 0640"),
        (TOKEN, 0o604, "found 0604"),
        ("short", 0o600, "expected a token of 16 to 4,096 characters without spaces, found 5"),
        ("with a space in its middle", 0o600, "without spaces"),
        ("ünïcödé-ünïcödé-ünïcödé", 0o600, "expected a token in ASCII"),
    ],
)
def test_a_token_file_is_private_and_long(tmp_path: Path, token: str, mode: int, text: str) -> None:
    path = token_file(tmp_path, token, mode)
    with pytest.raises(FormatError, match=text) as error:
        read_token(path)
    assert str(error.value).startswith(f"{path}: ")
    assert token not in str(error.value)
    with pytest.raises(FormatError, match="none: No such file or directory"):
        read_token(tmp_path / "none")


def test_who_may_not_read_the_token_is_told_whose_it_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """root's, as who made it by hand under a service manager has it."""

    def denied(*_: object) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    path = token_file(tmp_path, TOKEN, 0o600)
    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(FormatError, match=f"`chown {os.geteuid()}` the file"):
        read_token(path)


def test_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with running(tmp_path, tls_certificate=cert, tls_key=key) as server:
        target = server.address.replace("127.0.0.1", "localhost")
        trusted = grpc.ssl_channel_credentials(cert.read_bytes())
        with grpc.secure_channel(target, trusted) as channel:
            assert prove(channel, circuit("tls", b"w" * (2 << 20)), timeout=PATIENCE).status == 1
        with channel_to(target) as channel:
            assert refused(prove, channel, circuit("plain", b"w"), timeout=PATIENCE)[0] is grpc.StatusCode.UNAVAILABLE  # fmt: skip
        assert set(server.engine.requests) == {"tls"}
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(cert)
        old.set_alpn_protocols(["h2"])
        host, _, port = server.address.rpartition(":")
        with socket.create_connection((host, int(port)), PATIENCE) as raw, old.wrap_socket(raw, server_hostname="localhost") as tls:  # fmt: skip
            assert tls.version() == "TLSv1.3"
            assert tls.selected_alpn_protocol() == "h2"
    assert tls_context(cert, key).minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_certificate_that_is_none(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate\n")
    with pytest.raises(FormatError, match="expected a certificate and its key in PEM"):
        tls_context(wrong, key)
    wrong.write_bytes(key.read_bytes())
    wrong.chmod(0o644)
    with pytest.raises(FormatError, match="expected a file of mode 0640 at most, found 0644"):
        tls_context(cert, wrong)


def test_calls_of_one_client_are_bounded(tmp_path: Path) -> None:
    with running(tmp_path, client_requests=2) as server, channel_to(server.target()) as first, channel_to(server.target()) as second:  # fmt: skip
        futures = [
            method(channel, "Prove").future(pb.ProveRequest(submit=circuit(f"hold-{n}", b"w")))
            for n, channel in enumerate((first, second))
        ]
        server.wait(lambda: server.engine.waiting == 2)
        status, text, word = refused(
            method(first, "GetMetrics"), pb.GetMetricsRequest(), timeout=PATIENCE
        )
        assert (status, word) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "refused")
        assert text == "expected at most 2 calls at a time of one client and 8 of all, found one more; try again later"  # fmt: skip
        server.tell("hold-0")
        assert futures[0].result(PATIENCE).result.status == 1
        assert method(first, "GetMetrics")(pb.GetMetricsRequest()).prometheus_text
        server.tell("hold-1")
        assert futures[1].result(PATIENCE).result.status == 1


def test_calls_are_counted_and_given_back() -> None:
    calls = Calls(1)
    with calls.one("a"), calls.one("b"), calls.one("c"), calls.one("d"):
        for client in ("a", "e"):
            with pytest.raises(Exception, match="1 calls at a time of one client and 4 of all"), calls.one(client):  # fmt: skip
                pass
    assert not calls.of


def push(raw: socket.socket, data: bytes, *, last: bool = False) -> None:
    """All of it, and, if it is the ``last``, its end; or until the other end closes."""
    with suppress(ConnectionResetError, BrokenPipeError):
        raw.sendall(data)
    if last:
        with suppress(OSError):  # not connected any more
            raw.shutdown(socket.SHUT_WR)


def read_all(raw: socket.socket) -> bytes:
    """Until the other end closes."""
    raw.settimeout(PATIENCE)
    data = b""
    try:
        while more := raw.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def connect(server: Running) -> socket.socket:
    host, _, port = server.address.rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("rpc")) as server:
        yield server


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


@pytest.mark.parametrize(
    "data",
    [
        b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),  # a TLS hello
        random.Random(1).randbytes(5000),
        PREFACE + random.Random(2).randbytes(5000),
        PREFACE + SETTINGS + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(70_000),  # a frame of 16 MiB
        PREFACE + SETTINGS + b"\x00\x00\x05\x01\x04\x00\x00\x00\x01" + b"\xff" * 5,  # headers that are none
        PREFACE + SETTINGS + b"\x00\x00\x05\x00\x00\x00\x00\x00\x09hello",  # data of no call
        PREFACE + SETTINGS + b"\x00\x00\x04\x08\x00\x00\x00\x00\x00" + bytes(4),  # a window grown by 0
    ],
    ids=["http1", "tls", "garbage", "garbage2", "frame", "headers", "data", "window"],
)  # fmt: skip
def test_what_is_no_http2_ends_its_connection_and_nothing_else(
    server: Running, data: bytes
) -> None:
    with channel_to(server.target()) as channel, connect(server) as raw:
        assert prove(channel, circuit("before", b"w")).status == 1
        push(raw, data, last=True)
        read_all(raw)
        assert prove(channel, circuit("after", b"w")).status == 1


def test_a_frame_that_is_announced_too_large_is_not_waited_for(server: Running) -> None:
    with connect(server) as raw:
        push(raw, PREFACE + SETTINGS + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(200_000))
        read_all(raw)  # the server closes; the client has not


def test_random_frames_do_no_harm(server: Running) -> None:
    rng = random.Random(7)
    for _ in range(150):
        frames = bytearray(PREFACE + SETTINGS)
        for _ in range(rng.randrange(1, 8)):
            body = rng.randbytes(rng.randrange(60))
            head = len(body).to_bytes(3, "big") + bytes([rng.randrange(14), rng.randrange(256)])
            frames += head + rng.choice([0, 1, 1, 3, 5]).to_bytes(4, "big") + body
        with connect(server) as raw:
            push(raw, bytes(frames), last=True)
            read_all(raw)
    with channel_to(server.target()) as channel:
        assert prove(channel, circuit("well", b"w")).status == 1
    no_calls(server)


def no_calls(server: Running) -> None:
    keeper = server.server.gatekeeper
    server.until(lambda: not keeper.tasks and not keeper.calls.of)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({":method": "GET"}, "405"),
        ({"content-type": "text/html"}, "415"),
        ({"te": "x"}, "400"),
        ({":path": "/cuzk.v1.ProvingEngine/Nothing"}, "12"),
        ({"grpc-timeout": "soon"}, "2"),
        ({":path": "/cuzk.v1.ProvingEngine/GetStatus", "x": "é"}, ""),
        ({"grpc-bin": "!"}, None),
        ({"odd-bin": "!!!"}, None),
    ],
)
def test_headers_that_are_not_grpcs(server: Running, change: dict[str, str], status: str | None) -> None:  # fmt: skip
    headers = {
        ":method": "POST", ":scheme": "http", ":path": "/cuzk.v1.ProvingEngine/Prove", ":authority": "x",
        "te": "trailers", "content-type": "application/grpc",
    } | change  # fmt: skip
    h2 = H2Connection(H2Configuration(validate_outbound_headers=False, header_encoding=None))
    h2.initiate_connection()
    h2.send_headers(1, [(k.encode(), v.encode()) for k, v in headers.items()], end_stream=True)
    with connect(server) as raw:
        push(raw, h2.data_to_send(), last=True)
        events = h2.receive_data(read_all(raw))
    answers = [dict(e.headers) for e in events if isinstance(e, ResponseReceived)]
    if status:
        assert status.encode() in answers[0].values()
    with channel_to(server.target()) as channel:
        assert prove(channel, circuit("well", b"w")).status == 1


def test_connections_of_one_client_are_bounded(tmp_path: Path) -> None:
    """One more takes the place of the longest idle one; where every one has a call, none comes in."""
    with running(tmp_path, client_requests=5) as server:
        idle = [connect(server) for _ in range(4)]
        try:
            with channel_to(server.target()) as channel:
                assert prove(channel, circuit("in", b"w")).status == 1
                with connect(server) as more:
                    read_all(idle[0])  # closed
                    more.settimeout(0)
                    assert server.soon(lambda: len(server.server.server.transports)) == 5
                assert prove(channel, circuit("still", b"w")).status == 1
        finally:
            for raw in idle:
                raw.close()
        server.until(lambda: not server.server.server.transports)
        with channel_to(server.target()) as channel:
            assert prove(channel, circuit("again", b"w")).status == 1


def test_a_connection_sends_at_once_and_asks_whether_the_other_end_is_there(
    server: Running,
) -> None:
    """Without TCP_NODELAY a call takes 43 ms, with it 1."""
    with channel_to(server.target()) as channel:
        assert prove(channel, circuit("n", b"w")).status == 1
        for transport in server.soon(lambda: list(server.server.server.transports)):
            end = transport.get_extra_info("socket")
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


def test_a_unix_socket_is_its_owners_alone_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "cuzk.sock"
    with running(tmp_path, f"unix://{path}") as server:
        assert server.address == f"unix://{path}"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        with channel_to(server.target()) as channel:
            assert prove(channel, circuit("u", b"w")).status == 1
    assert not path.exists()


def test_a_stale_socket_is_reclaimed_and_a_live_one_named(tmp_path: Path) -> None:
    path = tmp_path / "s"
    code = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print(flush=True); sys.stdin.read()"  # fmt: skip
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:  # fmt: skip
        try:
            assert other.stdout
            other.stdout.readline()
            with pytest.raises(Unavailable, match=f"{path}: process {other.pid} listens there"):
                bind(Address(path=path))
        finally:
            other.kill()
    assert path.is_socket(), "killed, and its socket still there"
    listening = bind(Address(path=path))
    assert path.is_socket()
    listening.close()
    assert not path.exists()
    path.write_text("precious")
    with pytest.raises(FormatError, match="expected a socket or nothing, found another file"):
        bind(Address(path=path))
    assert path.read_text() == "precious"


def test_a_socket_that_another_took_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = bind(Address(path=path))
    path.unlink()
    second = bind(Address(path=path))
    first.close()
    assert path.is_socket()
    second.close()
    assert not path.exists()


def test_tcp_is_loopback_unless_said_otherwise_and_one_daemons() -> None:
    listening = bind(Address("localhost"))
    try:
        host, _, port = listening.address.rpartition(":")
        assert host in ("127.0.0.1", "[::1]")
        assert int(port) > 0
        taken = Address(host.strip("[]"), int(port))
        with pytest.raises(Unavailable, match=r"Address already in use; does another daemon"):
            bind(taken)
    finally:
        listening.close()
    with pytest.raises(
        FormatError, match=r"0\.0\.0\.0:0: expected a name of this machine's loopback"
    ):
        bind(Address("0.0.0.0"))
    wide = bind(Address("0.0.0.0"), wide=True)
    wide.close()
    with pytest.raises(FormatError, match=r"no\.such\.host\.invalid:1: "):
        bind(Address("no.such.host.invalid", 1))


def test_health_says_when_the_daemon_drains(tmp_path: Path) -> None:
    with running(tmp_path) as server, channel_to(server.target()) as channel:
        for service in ("", "cuzk.v1.ProvingEngine"):
            assert health(channel, service).status == HealthCheckResponse.SERVING
        assert refused(health, channel, "other")[0] is grpc.StatusCode.NOT_FOUND
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            HealthCheckRequest.SerializeToString,
            HealthCheckResponse.FromString,
        )(HealthCheckRequest())
        assert next(watch).status == HealthCheckResponse.SERVING
        server.soon(RpcServer.drain, server.server)
        assert next(watch).status == HealthCheckResponse.NOT_SERVING
        watch.cancel()
        for service in ("", "cuzk.v1.ProvingEngine"):
            assert health(channel, service).status == HealthCheckResponse.NOT_SERVING
        assert prove(channel, circuit("d", b"w")).status == 1, "calls are answered as before"
        too_long = refused(health, channel, "x" * 70_000)
        assert too_long[0] is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_call_that_never_sends_its_message_holds_one_place_for_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuzk.server.receive.PATIENCE", 0.1)
    with running(tmp_path) as server, channel_to(server.target()) as channel:
        stream = channel.stream_unary("/cuzk.v1.ProvingEngine/Prove")
        never = threading.Event()
        status, text, _ = refused(stream, iter(never.wait, True), timeout=PATIENCE)
        assert status is grpc.StatusCode.DEADLINE_EXCEEDED
        assert text == "expected a message within 0 s, found none"
        never.set()
        no_calls(server)
