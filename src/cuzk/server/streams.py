"""What we need of a call of grpclib's that it does not offer: a message in pieces, an end to waiting, the client's name.

All uses of its private names are here and in :mod:`connections`; tests/server/test_receive.py fails where a version
changes one.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import BaseTransport
from typing import Any, cast

from google.protobuf.message import Message
from grpclib.protocol import Buffer, Peer
from grpclib.server import Stream
from h2.errors import ErrorCodes

from cuzk.errors import DeadlineExceeded, FormatError
from cuzk.server.listen import other_end

UNREAD_SECONDS = 60.0  # for an answer to be read, and one more for each SLOWEST bytes of it
SLOWEST = 256 << 10


async def read_piece(stream: Stream[Any, Any], size: int) -> bytes:
    """The next ``size`` bytes of a call's body; b"" where it has ended; FormatError where it ends within them."""
    try:
        return await stream._stream.recv_data(size)
    except AssertionError:  # grpclib's word for it
        raise FormatError(f"message: expected {size:,} bytes more, found its end") from None


def ignore_rest(stream: Stream[Any, Any]) -> None:
    """A call's message is there, and there is no other: what else comes on it is dropped, and its client's window is not
    opened again, or it could send 4 MiB that nobody reads with every call that waits."""
    call = stream._stream
    call.buffer = cast(Buffer, _Ignored(call.buffer.unacked_size()))


class _Ignored:
    """In the place of grpclib's buffer: counts what it is given, for the connection's window when the call has ended."""

    def __init__(self, size: int) -> None:
        self.size = size

    def add(self, data: bytes, ack_size: int) -> None:  # noqa: ARG002
        """Something came."""
        self.size += ack_size

    def eof(self) -> None:
        """As it should."""

    def unacked_size(self) -> int:
        """Bytes that came."""
        return self.size


def answer_in_time(stream: Stream[Any, Any]) -> None:
    """Have all answers of a call end it where its client opens no window for them: DeadlineExceeded."""
    send = stream.send_message

    async def send_in_time(message: Message, **options: Any) -> None:
        seconds = UNREAD_SECONDS + message.ByteSize() / SLOWEST
        try:
            async with asyncio.timeout(seconds):
                await send(message, **options)
        except TimeoutError:
            if stream._stream.closable:
                stream._stream.reset_nowait(ErrorCodes.CANCEL)
            raise DeadlineExceeded(f"an answer was not read within {seconds:.0f} s") from None

    setattr(stream, "send_message", send_in_time)  # noqa: B010 (a method, to mypy)


def client_of(peer: Peer) -> str:
    """Whose limits a call counts for: "uid 1000" at a Unix socket, an address without its port at TCP."""
    return client_at(peer._transport)


def client_at(transport: BaseTransport) -> str:
    """As ``client_of``."""
    end = transport.get_extra_info("socket")
    if end is not None and end.family == socket.AF_UNIX:
        known = other_end(end)
        return f"uid {known[1]}" if known else "unix"
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else "unknown"
