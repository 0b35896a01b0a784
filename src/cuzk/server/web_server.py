"""The HTTP side on a socket, run by uvicorn inside the daemon's event loop, which keeps its own signal handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from cuzk.config import Settings, address
from cuzk.errors import Unavailable
from cuzk.server.gate import LOOPBACK
from cuzk.server.listen import BACKLOG, ONE, Listening, bind
from cuzk.server.security import read_token, tls_context
from cuzk.server.web import Watched, web_app
from cuzk.server.web_connection import WebConnection

GRACE = 1  # seconds that requests have to end in when the daemon stops


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are the daemon's."""
        yield


class WebServer:
    """One that serves; ``address`` is where, with the port that it has: "127.0.0.1:9821"."""

    def __init__(self, server: _Server, listening: Listening, task: asyncio.Task[None]) -> None:
        self._server, self._listening, self._task = server, listening, task
        self.address = listening.address

    async def close(self) -> None:
        """Take no more connections, end those that are open within a second or so."""
        self._server.should_exit = True
        try:
            await self._task
        finally:
            self._listening.close()


async def serve_web(engine: Watched, settings: Settings) -> WebServer:
    """Serve at ``daemon.status_listen``, which is not empty; returns when it listens. FormatError, Unavailable."""
    security, where = settings.security, address(settings.daemon.status_listen)
    token = read_token(security.token_file) if security.token_file else ""
    hosts = LOOPBACK | {where.host.lower()} if where.local and where.path is None else None
    config = uvicorn.Config(
        web_app(engine, token=token, hosts=hosts), log_config=None, log_level="warning",
        access_log=False, lifespan="off", http=WebConnection, ws="none", proxy_headers=False,
        server_header=False, backlog=ONE, timeout_graceful_shutdown=GRACE,
    )  # fmt: skip
    config.load()
    if security.tls_certificate and security.tls_key:
        config.ssl = tls_context(security.tls_certificate, security.tls_key)
        config.ssl.set_alpn_protocols(["http/1.1"])
    listening = bind(where, wide=security.allow_remote)
    server = _Server(config)
    serving = server.serve(sockets=[listening.socket])
    web = WebServer(server, listening, asyncio.create_task(serving, name="status page"))
    while not server.started and not web._task.done():
        await asyncio.sleep(0.005)  # it has no event for it
    if web._task.done():
        await web.close()
        raise Unavailable(f"{where}: the status page ended as it began")
    listening.socket.listen(BACKLOG)
    return web
