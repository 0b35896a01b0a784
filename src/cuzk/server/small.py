"""Messages that fit in memory, read with a bound: our own small ones, and those of grpclib's health and reflection.

grpclib's own way of reading a message takes whatever size it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message
from grpclib.const import Handler
from grpclib.server import Stream

from cuzk.errors import FormatError
from cuzk.server.receive import Receiver

SMALL = 64 << 10
M = TypeVar("M", bound=Message)


class Service(Protocol):
    """As grpclib wants them."""

    def __mapping__(self) -> Mapping[str, Handler]:
        """What answers which method."""


async def read_small(receiver: Receiver, stream: Stream[Any, Any], kind: type[M]) -> M:
    """A call's one message; errors as of ``Receiver.receive``."""
    return _parse((await receiver.receive(stream)).data, kind)


def _parse(data: bytes, kind: type[M]) -> M:
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise FormatError(f"expected a {kind.DESCRIPTOR.name}: {error}") from None


class Bounded:
    """A service of somebody else's, whose messages are read by a receiver of ours."""

    def __init__(self, service: Service, receiver: Receiver) -> None:
        self.service = service
        self.receiver = receiver

    def __mapping__(self) -> dict[str, Handler]:
        return {
            name: handler._replace(func=partial(self._answer, handler))
            for name, handler in self.service.__mapping__().items()
        }

    async def _answer(self, handler: Handler, stream: Stream[Any, Any]) -> None:
        await handler.func(_BoundedStream(stream, self.receiver, handler))


class _BoundedStream:
    """What those services use of a stream."""

    def __init__(self, stream: Stream[Any, Any], receiver: Receiver, handler: Handler) -> None:
        self.stream = stream
        self.receiver = receiver
        self.handler = handler
        self.send_message = stream.send_message
        self.send_trailing_metadata = stream.send_trailing_metadata

    async def recv_message(self) -> Message:
        """A unary call's."""
        return await read_small(self.receiver, self.stream, self.handler.request_type)

    def __aiter__(self) -> _BoundedStream:
        return self

    async def __anext__(self) -> Message:
        message = await self.receiver.next(self.stream)
        if message is None:
            raise StopAsyncIteration
        parsed: Message = _parse(message.data, self.handler.request_type)
        return parsed
