"""gRPC's connections, bounded: how many, what their clients may send without cause, how long they may read nothing.

A client that is at its limit of connections gets one more in the place of its longest idle one: whoever opens connections
and does nothing with them keeps nobody out. gRPC's clients connect again by themselves.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
import time
from asyncio import BaseTransport, Transport
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from grpclib.protocol import EventsProcessor, H2Protocol
from grpclib.protocol import Stream as HttpStream
from grpclib.server import Handler, Server
from h2.settings import SettingCodes

from cuzk.server.frames import FRAME, Frames
from cuzk.server.listen import BACKLOG, ONE
from cuzk.server.streams import client_at

CONNECTIONS = 1024  # of all clients: each can hold 8 MiB that nobody has read yet
HANDSHAKE_SECONDS = 10.0  # of TLS
HEADERS = 16 << 10  # bytes of a call's headers, decoded: a 4 KiB token and what clients add
UNREAD_SECONDS = 60.0  # for which a client may read nothing that is written already
PROBE_SECONDS = 60  # of silence, after which TCP asks whether the other end is there
log = logging.getLogger(__name__)


class Connections(Server):
    """A gRPC server that knows its connections: at most so many of a client, all closed at its end."""

    def __init__(self, *args: Any, of_client: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.of_client = of_client
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.most = CONNECTIONS if files < 0 else min(CONNECTIONS, files // 2)
        self.transports: dict[Transport, Connection] = {}

    async def listen(self, sock: socket.socket, tls: ssl.SSLContext | None) -> None:
        """As ``start``; a client has ten seconds for TLS's handshake, for which asyncio waits a minute."""
        self._server = await self._loop.create_server(
            self._protocol_factory,
            sock=sock,
            ssl=tls,
            backlog=ONE,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if tls else None,
        )
        sock.listen(BACKLOG)
        self._server_closed_fut = self._loop.create_future()

    def _protocol_factory(self) -> H2Protocol:
        made = super()._protocol_factory()
        self._handlers.discard(made.handler)
        handler = _Handler(
            self._mapping, self._codec, self._status_details_codec, self.__dispatch__
        )
        self._handlers.add(handler)
        return Connection(handler, made.config, made.h2_config, self)

    def admits(self, client: str) -> bool:
        """Whether this client may have one more, if need be instead of an idle one."""
        count = Counter(connection.client for connection in self.transports.values())
        if count[client] >= self.of_client:
            return self._make_room(client)
        return len(self.transports) < self.most or self._make_room(None)

    def _make_room(self, client: str | None) -> bool:
        """Close the connection, of a client or of any, that has had no call for the longest time."""
        idle = [
            connection
            for connection in self.transports.values()
            if connection.idle and client in (None, connection.client)
        ]
        if not idle:
            return False
        min(idle, key=lambda connection: connection.used).say_goodbye()
        return True

    def stop_accepting(self) -> None:
        """No more connections; those that there are go on."""
        if self._server is not None:
            self._server.close()

    async def close_connections(self, seconds: float) -> None:
        """What is written already is sent first; a client that does not read it has so long."""
        for transport in list(self.transports):
            transport.close()
        try:
            async with asyncio.timeout(seconds):
                await self.wait_closed()
                while self.transports:
                    await asyncio.sleep(0.01)
        except TimeoutError:
            for transport in list(self.transports):
                transport.abort()


class _Handler(Handler):
    """A task that is cancelled before its first step never comes to grpclib's ``finally``, which forgets its call."""

    def accept(self, stream: HttpStream, headers: Any, release_stream: Callable[[], Any]) -> None:
        """A call's headers are there."""
        super().accept(stream, headers, release_stream)
        self._tasks[stream].add_done_callback(lambda _: release_stream())


class _Processor(EventsProcessor):
    """Tells ``ended(answered)`` when a call has ended."""

    def __init__(self, handler: Any, connection: Any, ended: Callable[[bool], None]) -> None:
        super().__init__(handler, connection)
        self._ended = ended

    def register(self, stream: HttpStream) -> Callable[[], None]:
        """A call begins; what is returned ends it, and does nothing when it has ended."""
        release = super().register(stream)

        def once() -> None:
            if self.streams.get(cast(int, stream.id)) is stream:
                wrapper = stream.wrapper
                self._ended(wrapper is None or not wrapper.cancelled)
                release()

        return once


class Connection(H2Protocol):
    """One connection. Whatever comes in on it that is no HTTP/2 ends it, and nothing else."""

    def __init__(self, handler: Any, config: Any, h2_config: Any, server: Connections) -> None:
        super().__init__(handler, config, h2_config)
        self.server = server
        self.client = ""
        self.used = 0.0
        self._frames = Frames()
        self._unread: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether there is no call on it."""
        return not self.processor.streams

    def connection_made(self, transport: BaseTransport) -> None:
        """As many calls at a time as its client may have, where HTTP/2's usual number is 100."""
        client = client_at(transport)
        if not self.server.admits(client):
            log.warning("%r: too many connections, one more refused", client)
            transport.close()
            return
        self.client, self.used = client, time.monotonic()
        self.transport = cast(Transport, transport)
        self.server.transports[self.transport] = self
        end = transport.get_extra_info("socket")
        if end is not None and end.family != socket.AF_UNIX:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_SECONDS)
        super().connection_made(transport)
        self.processor = _Processor(self.handler, self.connection, self._call_ended)
        wanted: dict[SettingCodes | int, int] = {
            SettingCodes.MAX_CONCURRENT_STREAMS: self.server.of_client,
            SettingCodes.MAX_FRAME_SIZE: FRAME,
            SettingCodes.MAX_HEADER_LIST_SIZE: HEADERS,
        }
        h2 = self.connection._connection
        h2.update_settings(wanted)
        # before the client has agreed: h2 would refuse the frames that come in one read with its agreement
        h2.max_inbound_frame_size = FRAME
        h2.decoder.max_header_list_size = HEADERS
        self.connection.flush()

    def data_received(self, data: bytes) -> None:
        """Bytes from a client."""
        if not self.client or self.transport.is_closing():
            return
        try:
            self._frames.take(data)
            super().data_received(data)
        except Exception as error:  # of h2 and hpack, for frames and headers they know no name for
            log.warning("%r: a connection ended: %s", self.client, type(error).__name__)
            self.processor.close("Protocol error")

    def say_goodbye(self) -> None:
        """Close it while there is no call; one that is on its way is made again by its client."""
        self.connection._connection.close_connection()
        self.connection.flush()
        self.processor.close("Idle")
        self.server.transports.pop(self.transport, None)

    def pause_writing(self) -> None:
        """The client does not read: nothing is read of it either, since that would be answered, too."""
        super().pause_writing()
        self.transport.pause_reading()
        loop = asyncio.get_running_loop()
        self._unread = loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        self._read_again()
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Its calls are cancelled."""
        self._read_again()
        if self.client:
            self.server.transports.pop(self.transport, None)
            super().connection_lost(exc)

    def _read_again(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _call_ended(self, answered: bool) -> None:
        self.used = time.monotonic()
        if answered:
            self._frames.answered()
