"""A stream of a machine with what it owns: memory in its order, pinned buffers, marks."""

from __future__ import annotations

from typing import Any

from cuzk.backends.cuda.card import Card
from cuzk.backends.cuda.clock import Origin
from cuzk.backends.cuda.driver import quietly
from cuzk.backends.cuda.queues import TIMED, Queue
from cuzk.backends.cuda.staging import Staging
from cuzk.errors import KernelError


class Stream:
    """Lives until the last memory of its machine is dropped.

    The addresses are kept here, each with the other streams that were given work with it: of objects that refer
    to one another in a ring and are dropped together, the stream may be told first, and no memory may be freed
    in a stream that is gone.
    """

    def __init__(self, card: Card, queue: Queue) -> None:
        self.card = card
        self.queue = queue
        self.handle = queue.handle
        self._guests: dict[int, set[Queue]] = {}
        self._staging: Staging | None = None  # until then, dropping this gives the queue back
        self._staging = Staging(card.driver, queue.handle)

    @property
    def staging(self) -> Staging:
        """Its pinned memory."""
        if self._staging is None:
            raise KernelError(
                f"{self.card.driver.name}: expected a stream in use, found one that ended"
            )
        return self._staging

    def allocate(self, nbytes: int) -> Block:
        """Memory in this stream's order."""
        address = self.card.allocate(nbytes, self.queue)
        guests = self._guests[address] = set()
        return Block(self, address, guests)

    def free(self, address: int) -> None:
        """Behind all work that is queued here, and in the streams that were its guests."""
        self.card.enter()
        guests = self._guests.pop(address, None)  # first: the address is given again at once
        if guests is not None:
            self.card.queues.free(address, self.queue, guests)

    def __del__(self) -> None:
        quietly(self._close)

    def _close(self) -> None:
        for address in list(self._guests):
            self.free(address)
        self.card.enter()
        self.queue.finish_last()
        staging, self._staging = self._staging, None
        if staging:
            staging.close()
        if self.card.queues.close(self.queue):
            self.card.trim()


class Block:
    """Allocated memory; freed behind all work that was queued when the last reference is dropped."""

    def __init__(self, stream: Stream, address: int, guests: set[Queue]) -> None:
        self.address = address
        self.stream = stream
        self._guests = guests

    def lend(self, stream: Stream) -> None:
        """That stream is given work with it."""
        if stream is not self.stream:
            self._guests.add(stream.queue)

    def __del__(self) -> None:
        quietly(lambda: self.stream.free(self.address))


class Mark:
    """A moment in a stream, which it outlives."""

    def __init__(self, card: Card, event: Any, origin: Origin, track: str) -> None:
        self._card = card
        self.track = track
        self._origin = origin
        self.event = event

    @classmethod
    def of(cls, stream: Stream, origin: Origin, track: str) -> Mark:
        """Now; its time will be known from the origin's."""
        mark = cls(stream.card, stream.card.queues.events.take(TIMED), origin, track)
        stream.card.driver.cuEventRecord(mark.event, stream.handle)
        return mark

    def passed(self) -> bool:
        """Whether all work before it is done; asks, and does not wait."""
        return self._card.driver.passed(self.event)

    def moment(self) -> float:
        """The host's time when it was passed; it must have been."""
        return self._origin.moment(self.event)

    def __del__(self) -> None:
        quietly(self._give)

    def _give(self) -> None:
        try:
            self._card.enter()
        finally:  # an event that is kept needs no context
            self._card.queues.events.give(self.event, TIMED)
