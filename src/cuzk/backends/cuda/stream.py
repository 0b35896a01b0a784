"""A stream of the driver with what it owns: memory in its order, pinned buffers, marks."""

from __future__ import annotations

from typing import Any

from cuzk.backends.cuda.card import Card
from cuzk.backends.cuda.clock import Origin
from cuzk.backends.cuda.driver import quietly
from cuzk.backends.cuda.staging import DISABLE_TIMING, Staging
from cuzk.errors import KernelError


class Stream:
    """Lives until the last memory of its machine is dropped.

    The addresses are kept here: of objects that refer to one another in a ring and are dropped together,
    the stream may be told first, and no memory may be freed in a stream that is gone.
    """

    def __init__(self, card: Card, handle: Any) -> None:
        self.card = card
        self.handle = handle
        self.staging = Staging(card.driver, handle)
        self._addresses: set[int] = set()

    def allocate(self, nbytes: int) -> Block:
        """Memory in this stream's order."""
        address = self.card.allocate(nbytes, self.handle)
        self._addresses.add(address)
        return Block(self, address)

    def free(self, address: int) -> None:
        """Behind all work that is queued here."""
        if address in self._addresses:
            self._addresses.remove(address)
            self.card.enter()
            self.card.driver.cuMemFreeAsync(address, self.handle)

    def await_all_of(self, other: Stream) -> None:
        """What is queued here from now on comes after all that is queued there now."""
        mark = Mark(other)
        self.card.driver.cuStreamWaitEvent(self.handle, mark.event, 0)

    def __del__(self) -> None:
        quietly(self._close)

    def _close(self) -> None:
        for address in list(self._addresses):
            self.free(address)
        self.card.enter()
        self.card.driver.cuStreamSynchronize(self.handle)
        self.staging.close()
        self.card.driver.cuStreamDestroy(self.handle)
        self.card.trim()


class Block:
    """Allocated memory; freed behind all work that was queued when the last reference is dropped.

    ``guests`` are the other streams that were given work with it.
    """

    def __init__(self, stream: Stream, address: int) -> None:
        self.address = address
        self.stream = stream
        self.guests: set[Stream] = set()

    def __del__(self) -> None:
        quietly(self._free)

    def _free(self) -> None:
        self.stream.card.enter()
        for guest in self.guests:
            self.stream.await_all_of(guest)
        self.stream.free(self.address)


class Mark:
    """An event recorded in a stream, now; with an ``origin`` its time is known once it was passed."""

    def __init__(self, stream: Stream, origin: Origin | None = None, track: str = "") -> None:
        self._stream = stream
        self.track = track
        self.origin = origin
        flags = 0 if origin else DISABLE_TIMING
        self.event = stream.card.driver.cuEventCreate(flags)
        stream.card.driver.cuEventRecord(self.event, stream.handle)

    def passed(self) -> bool:
        """Whether all work before it is done; asks, and does not wait."""
        return self._stream.card.driver.passed(self.event)

    def moment(self) -> float:
        """The host's time when it was passed; it must have been."""
        if self.origin is None:
            raise KernelError("cuda: moment: expected a mark with a time")
        return self.origin.moment(self.event)

    def __del__(self) -> None:
        quietly(lambda: self._stream.card.driver.cuEventDestroy(self.event))
