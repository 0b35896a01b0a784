"""What we need of grpclib that it does not offer: a message in pieces, a socket's other end, connections counted.

All uses of its private names are here, and tests/server/test_receive.py fails where a version changes one.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from asyncio import BaseTransport, Transport
from collections import Counter
from typing import Any, cast

from grpclib.protocol import H2Protocol, Peer
from grpclib.server import Server, Stream
from h2.exceptions import FrameTooLargeError
from h2.settings import SettingCodes

from cuzk.errors import FormatError

CONNECTIONS = 1024  # of all clients: each can hold 8 MiB that nobody has read yet
FRAME = (
    128 << 10
)  # bytes of HTTP/2's largest frame: an eighth as many to handle as with the usual 16 KiB
HEADER = 9
PROBE_SECONDS = 60  # of silence, after which TCP asks whether the other end is there
log = logging.getLogger(__name__)


async def read_piece(stream: Stream[Any, Any], size: int) -> bytes:
    """The next ``size`` bytes of a call's body; b"" where it has ended; FormatError where it ends within them."""
    try:
        return await stream._stream.recv_data(size)
    except AssertionError:  # grpclib's word for it
        raise FormatError(f"message: expected {size:,} bytes more, found its end") from None


def client_of(peer: Peer) -> str:
    """Whose limits a call counts for: "uid 1000" at a Unix socket, an address without its port at TCP."""
    return _client(peer._transport)


def _client(transport: BaseTransport) -> str:
    end = transport.get_extra_info("socket")
    if end is not None and end.family == socket.AF_UNIX:
        try:
            size = struct.calcsize("3i")
            credentials = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        except (AttributeError, OSError):  # another system than Linux
            return "unix"
        return f"uid {struct.unpack('3i', credentials)[1]}"
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else "unknown"


class Connections(Server):
    """A gRPC server that knows its connections: at most so many of a client, all closed at its end."""

    def __init__(self, *args: Any, of_client: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.of_client = of_client
        self.transports: dict[Transport, str] = {}

    def _protocol_factory(self) -> H2Protocol:
        made = super()._protocol_factory()
        return Connection(made.handler, made.config, made.h2_config, self)

    def admits(self, client: str) -> bool:
        """Whether this client may have one more."""
        count = Counter(self.transports.values())
        return len(self.transports) < CONNECTIONS and count[client] < self.of_client

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


class Connection(H2Protocol):
    """One connection. Whatever comes in on it that is no HTTP/2 ends it, and nothing else."""

    def __init__(self, handler: Any, config: Any, h2_config: Any, server: Connections) -> None:
        super().__init__(handler, config, h2_config)
        self.server = server
        self.client = ""

    def connection_made(self, transport: BaseTransport) -> None:
        """As many calls at a time as its client may have, where HTTP/2's usual number is 100."""
        self.client = _client(transport)
        if not self.server.admits(self.client):
            log.warning("%r: too many connections, one more refused", self.client)
            self.client = ""
            transport.close()
            return
        self.transport = cast(Transport, transport)
        self.server.transports[self.transport] = self.client
        end = transport.get_extra_info("socket")
        if end is not None and end.family != socket.AF_UNIX:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_SECONDS)
        super().connection_made(transport)
        wanted: dict[SettingCodes | int, int] = {
            SettingCodes.MAX_CONCURRENT_STREAMS: self.server.of_client,
            SettingCodes.MAX_FRAME_SIZE: FRAME,
        }
        h2 = self.connection._connection
        h2.update_settings(wanted)
        # before the client has agreed: h2 would refuse the frames that come in one read with its agreement
        h2.max_inbound_frame_size = FRAME
        self.connection.flush()

    def data_received(self, data: bytes) -> None:
        """Bytes from a client."""
        if not self.client:
            return
        try:
            super().data_received(data)
            self._bound()
        except Exception as error:  # of h2 and hpack, for frames and headers they know no name for
            log.warning("%r: a connection ended: %s", self.client, type(error).__name__)
            self.processor.close("Protocol error")

    def _bound(self) -> None:
        """h2 looks at a frame's length when all of it is there, up to 16 MiB of it."""
        h2 = self.connection._connection
        if len(h2.incoming_buffer._data) > FRAME + HEADER:
            raise FrameTooLargeError(f"a frame of more than {FRAME:,} bytes")

    def connection_lost(self, exc: BaseException | None) -> None:
        """Its calls are cancelled."""
        if self.client:
            self.server.transports.pop(self.transport, None)
            super().connection_lost(exc)
