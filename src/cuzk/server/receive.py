"""One message of a unary call, read in pieces: into memory where it is small, else into a file of the journal.

    prefix = compressed (1 byte)  length (4 bytes, big-endian)     then the message

The prefix says the size, so that what is too large is refused before it is read and the connection stays usable.
A piece is 128 KiB: between two of them the event loop answers others (with whole messages of 256 MiB from 8 clients
the 99th percentile of a status call is 6.1 s, with pieces 34 ms; 2 cores).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from grpclib.server import Stream

from cuzk.engine.request import Payload
from cuzk.errors import DeadlineExceeded, EngineError, FormatError
from cuzk.server.codes import TooMuch, Unsupported
from cuzk.server.streams import SLOWEST, client_of, ignore_rest, read_piece

PREFIX = 5
PIECE = 128 << 10
IN_MEMORY = 1 << 20
PATIENCE = 60.0  # seconds that any message may take, and one more for each SLOWEST bytes: 256 MiB may take 18 minutes


class Spool(Protocol):
    """A file for one message on its way in, as the journal makes them: EngineError where the disk is full."""

    def write(self, chunk: bytes) -> None:
        """Append."""

    def payload(self, offset: int, size: int) -> Payload:
        """A range of it."""

    def discard(self) -> None:
        """Close it; delete it unless a job was accepted with it. Again: nothing."""


def drop(spool: Spool) -> None:
    """Discard it in a thread: to delete 256 MiB takes 16 ms, and waits for the disk."""
    asyncio.get_running_loop().run_in_executor(None, spool.discard)


@dataclass(frozen=True)
class Message:
    """The bytes of one message, in ``data`` or in ``spool``."""

    size: int
    data: bytes = b""
    spool: Spool | None = None

    def view(self) -> memoryview:
        """All of them."""
        if self.spool is None:
            return memoryview(self.data)
        return self.spool.payload(0, self.size).view()

    def payload(self, start: int, end: int) -> Payload:
        """Some of them, for a request to keep."""
        if self.spool is None:
            return Payload.of(self.data[start:end])
        return self.spool.payload(start, end - start)

    def discard(self) -> None:
        """The call is over: a job that was accepted with it keeps what it needs."""
        if self.spool is not None:
            drop(self.spool)


class Arrivals:
    """Bytes that are on their way in, of all clients: at most ``limit``, and of one with several messages three quarters of it:
    who announces much and sends it slowly keeps nobody else out."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.of: Counter[str] = Counter()

    @property
    def nbytes(self) -> int:
        """Of all."""
        return self.of.total()

    @contextmanager
    def reserve(self, size: int, client: str) -> Iterator[None]:
        """While a message comes in; TooMuch where there is no room for it."""
        own = self.of[client]
        if size > self.limit - self.nbytes or (own and own + size > self.limit * 3 // 4):
            raise TooMuch(
                f"a message of {size:,} bytes: expected at most {self.limit:,} bytes to arrive at a time,"
                f" found {self.nbytes:,} of others, {own:,} of them this client's; try again later"
            )
        self.of[client] += size
        try:
            yield
        finally:
            self.of[client] -= size
            if not self.of[client]:
                del self.of[client]


@dataclass(frozen=True)
class Receiver:
    """Reads messages. ``limit``: bytes of the largest."""

    limit: int
    arrivals: Arrivals
    spool: Callable[[int], Spool] | None = None
    """Where those over 1 MiB go, given their size; without it there are none."""

    async def receive(self, stream: Stream[Any, Any]) -> Message:
        """A call's message; FormatError, TooMuch, Unsupported, DeadlineExceeded. To be discarded by the caller."""
        message = await self.next(stream)
        if message is None:
            raise FormatError("expected a message, found none")
        ignore_rest(stream)
        return message

    async def next(self, stream: Stream[Any, Any]) -> Message | None:
        """The next message of a call, None after the last; errors as of ``receive``."""
        size = await self._size(stream)
        if size is None:
            return None
        seconds = PATIENCE + size / SLOWEST
        with self.arrivals.reserve(size, client_of(stream.peer)):
            try:
                async with asyncio.timeout(seconds):
                    return await self._read(stream, size)
            except TimeoutError:
                raise DeadlineExceeded(
                    f"a message of {size:,} bytes: expected all of it within {seconds:.0f} s, found less"
                ) from None

    async def _size(self, stream: Stream[Any, Any]) -> int | None:
        try:
            async with asyncio.timeout(PATIENCE):
                prefix = await read_piece(stream, PREFIX)
        except TimeoutError:
            raise DeadlineExceeded(
                f"expected a message within {PATIENCE:.0f} s, found none"
            ) from None
        if not prefix:
            return None
        size = int.from_bytes(prefix[1:], "big")
        if prefix[0]:
            raise Unsupported("expected a message that is not compressed, found a compressed one")
        if size > self.limit:
            raise TooMuch(
                f"expected a message of at most {self.limit:,} bytes, found one of {size:,}"
            )
        return size

    async def _read(self, stream: Stream[Any, Any], size: int) -> Message:
        if size <= IN_MEMORY or self.spool is None:
            return Message(size, data=await read_piece(stream, size))
        try:
            spool = self.spool(size)
        except EngineError as error:  # the disk is full
            raise TooMuch(str(error)) from None
        try:
            for start in range(0, size, PIECE):
                spool.write(await read_piece(stream, min(PIECE, size - start)))
        except EngineError as error:
            drop(spool)
            raise TooMuch(str(error)) from None
        except BaseException:  # CancelledError too: the client is gone
            drop(spool)
            raise
        return Message(size, spool=spool)
