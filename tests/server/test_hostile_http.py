"""The HTTP side and clients that mean harm: connections that say nothing, requests that are none, names and paths with tricks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

import pytest
from snapshots import Scripted, busy

from cuzk.config import Settings
from cuzk.server import web_connection
from cuzk.server.web_server import WebServer, serve_web

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PATIENCE = 120.0  # seconds: no bound on speed, an end for a test that would hang
GOOD = b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def served(attack: Callable[[WebServer], Awaitable[None]]) -> None:
    """Others are answered while it goes on, and afterwards; and then no connection is left."""

    async def run() -> None:
        settings = Settings.model_validate({"daemon": {"status_listen": "127.0.0.1:0"}})
        web = await serve_web(Scripted(busy()), settings)
        try:
            await attack(web)
            assert json.loads((await ask(web, GOOD))[1])["version"] == "0.6.0"
            await none_is_left(web)
        finally:
            await web.close()

    asyncio.run(run())


async def none_is_left(web: WebServer) -> None:
    async with asyncio.timeout(PATIENCE):
        while web._server.server_state.connections:
            await asyncio.sleep(0.001)


async def connect(web: WebServer) -> Connection:
    host, _, port = web.address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def ask(web: WebServer, sent: bytes) -> tuple[int, bytes]:
    """Status (0: none) and body of the first answer."""
    reader, writer = await connect(web)
    try:
        writer.write(sent)
        async with asyncio.timeout(PATIENCE):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        return int(head.split()[1]) if head else 0, body
    except ConnectionResetError:
        return 0, b""
    finally:
        writer.close()


def test_connections_that_say_nothing_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_connection, "CONNECTIONS", 8)

    async def attack(web: WebServer) -> None:
        idle = [await connect(web) for _ in range(40)]
        assert (await ask(web, GOOD))[0] == 200
        assert len(web._server.server_state.connections) <= 8
        for _, writer in idle:
            writer.close()

    served(attack)


def test_a_request_that_comes_slowly_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack(web: WebServer) -> None:
        for begun in (
            b"",
            b"GET /status HTTP/1.1\r\nHost: localhost\r\nX: ",
            GOOD[:-2] + b"Content-Length: 9\r\n\r\n",
        ):
            with monkeypatch.context() as brief:
                brief.setattr(web_connection, "REQUEST_SECONDS", 0.2)
                reader, writer = await connect(web)
                writer.write(begun)
                async with asyncio.timeout(PATIENCE):
                    with suppress(ConnectionResetError):
                        await reader.read()
            writer.close()

    served(attack)


def test_an_answer_that_is_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen thousand requests at once: no more is in memory than one answer."""

    async def attack(web: WebServer) -> None:
        with monkeypatch.context() as brief:
            brief.setattr(web_connection, "REQUEST_SECONDS", 0.3)
            reader, writer = await connect(web)
            cast(asyncio.Transport, writer.transport).pause_reading()
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 16_000)
            async with asyncio.timeout(PATIENCE):
                while not web._server.server_state.connections:
                    await asyncio.sleep(0.001)
            await none_is_left(web)
        writer.transport.abort()
        del reader

    served(attack)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % (b"x" * 100_000), 404),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % (b"X: y\r\n" * 50_000), 400),
        (b"GET /status?jobs=%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % (b"9" * 5000), 400),
        (b"GET /status?since=1e308&first=-1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400),
        ("GET /status?jobs=\u0661 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), 400),
        (b"GET /status?jobs=%D9%A1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: localhost.evil.example\r\nConnection: close\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: evil.example:80\r\nX-Forwarded-Host: localhost\r\nConnection: close\r\n\r\n", 403),
        (b"GET http://localhost/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"GET /%2e%2e/status.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"GET //status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"GET /status%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", 405),
        (b"TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405),
        (b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1,2-3,%s\r\nConnection: close\r\n\r\n" % (b"4-5," * 500), 200),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n", 200),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n\r\n", 200),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", 405),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 403),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), 400),
    ],
)  # fmt: skip
def test_requests_with_tricks(sent: bytes, status: int, caplog: pytest.LogCaptureFixture) -> None:
    async def attack(web: WebServer) -> None:
        found, body = await ask(web, sent)
        # what a client still sends when it is refused may end the connection before it reads why
        assert found == status or (not found and len(sent) > 65536)
        assert b"root:" not in body
        assert b"Traceback" not in body

    with caplog.at_level(logging.WARNING):
        served(attack)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
