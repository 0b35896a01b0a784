"""The HTTP side on a socket, run by uvicorn inside the daemon's event loop, which keeps its own signal handlers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from cuzk.config.addresses import Address
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
    """One that serves; ``address`` is where, its port the one that it got."""

    def __init__(self, server: _Server, listener: socket.socket, task: asyncio.Task[None]) -> None:
        self._server, self._task = server, task
        self.address = Address(*listener.getsockname()[:2])

    async def close(self) -> None:
        """Take no more connections, end those that are open within a second or so."""
        self._server.should_exit = True
        await self._task


async def serve_web(
    engine: Watched,
    where: Address,
    *,
    token: str = "",
    certificate: Path | None = None,
    key: Path | None = None,
) -> WebServer:
    """Serve at ``where``; returns when it listens.

    FormatError where the certificate is none, or where it is open to others without both a token and a certificate;
    Unavailable where the port is taken.
    """
    if not where.local and not (token and certificate):
        raise FormatError(
            f"daemon.status_listen: {where} is open to others: expected a token and a certificate, or a loopback address"
        )
    hosts = LOOPBACK | {where.host.lower()} if where.local else None
    config = uvicorn.Config(
        web_app(engine, token=token, hosts=hosts), log_config=None, log_level="warning", access_log=False, lifespan="off",
        http="h11", ws="none", proxy_headers=False, server_header=False, limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE, ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise FormatError(
            f"{certificate}, {key}: expected a certificate and its key in PEM: {error}"
        ) from error
    listener = _listen(where)
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="status page")
    web = WebServer(server, listener, task)
    while not server.started and not task.done():
        await asyncio.sleep(0.005)  # it has no event for it
    if task.done():
        listener.close()
        await task
        raise Unavailable(f"{where}: the status page ended as it began")
    return web


def _listen(where: Address) -> socket.socket:
    if where.path is not None:
        raise FormatError(f'daemon.status_listen: expected "host:port", found {where}')
    try:
        found = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(found[4][:2], family=found[0], backlog=CONNECTIONS)
    except OSError as error:
        raise Unavailable(
            f"{where}: {error.strerror or error}; does another listen there?"
        ) from None
