"""The HTTP side on a socket, run by uvicorn inside the daemon's event loop, which keeps its own signal handlers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from cuzk.errors import FormatError, Unavailable
from cuzk.server.gate import LOOPBACK
from cuzk.server.web import Watched, web_app

CONNECTIONS = 128  # at a time; one more is answered 503
GRACE = 1  # seconds that requests have to end in when the daemon stops


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are the daemon's."""
        yield


class WebServer:
    """One that serves; ``address`` is where: "127.0.0.1:9821"."""

    def __init__(self, server: _Server, listener: socket.socket, task: asyncio.Task[None]) -> None:
        self._server, self._task = server, task
        host, port = listener.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.port: int = port

    async def close(self) -> None:
        """Take no more connections, end those that are open within a second or so."""
        self._server.should_exit = True
        await self._task


async def serve_web(
    engine: Watched,
    address: str,
    *,
    token: str = "",
    certificate: Path | None = None,
    key: Path | None = None,
) -> WebServer:
    """Serve at ``address`` ("127.0.0.1:9821", "[::1]:0"); returns when it listens.

    FormatError where the address or the certificate is none, or where it is open to others without both a token and
    a certificate; Unavailable where the port is taken.
    """
    host, port = split_address(address)
    local = is_loopback(host)
    if not local and not (token and certificate):
        raise FormatError(
            f"status_listen: {address} is open to others: expected a token and a certificate, or a loopback address"
        )
    app = web_app(engine, token=token, hosts=LOOPBACK | {host.lower()} if local else None)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", http="h11", ws="none",
        proxy_headers=False, server_header=False, limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE, ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise FormatError(f"{certificate}, {key}: no certificate and key: {error}") from error
    listener = _listen(host, port)
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="status page")
    web = WebServer(server, listener, task)
    while not server.started and not task.done():
        await asyncio.sleep(0.005)  # it has no event for it
    if task.done():
        listener.close()
        await task
        raise Unavailable(f"{address}: the status page ended as it began")
    return web


def split_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[host]:port"."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) < 65536):
        raise FormatError(f'status_listen: expected "host:port", found {address!r}')
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        family, where = found[0], found[4]
        return socket.create_server(where[:2], family=family, backlog=CONNECTIONS)
    except OSError as error:
        raise Unavailable(f"status_listen: {host}:{port} cannot be had: {error}") from error
