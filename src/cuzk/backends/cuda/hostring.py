"""Pinned memory of the host that a stream copies from, used in a circle.

Room is taken in order, filled, and copied from in the same order; it is free again when the event behind its copy
has passed. Room that was taken and not yet copied from is nobody's but the taker's. Every piece of it comes with
its event, of which there are EVENTS.
"""

from __future__ import annotations

import ctypes
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.backends.cuda.driver import Driver

DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING
EVENTS = 16


class PinnedBytes:
    """Allocated by the driver, until it is told to free them: 0.5 ms a MiB."""

    def __init__(self, driver: Driver, nbytes: int) -> None:
        self.address = int(driver.make(driver.cuMemFreeHost, "cuMemAllocHost", nbytes))
        memory = (ctypes.c_uint8 * nbytes).from_address(self.address)
        self.array: NDArray[np.uint8] = np.asarray(memory)


@dataclass(frozen=True)
class Copied:
    """Everything before ``end`` is free when the event has passed."""

    end: int
    event: Any


class HostRing:
    """Positions count on for ever; one lies at ``position % size`` of the memory, which is made at first use."""

    def __init__(self, driver: Driver, stream: Any) -> None:
        self._driver = driver
        self._stream = stream
        self._pinned: PinnedBytes | None = None
        self._events: list[Any] = []  # all
        self._idle: list[Any] = []  # those that nobody waits for
        self._copied = deque[Copied]()
        self._free = self._sent = self._next = 0  # in use from, copied from up to, taken up to

    @property
    def size(self) -> int:
        """Bytes."""
        return self._pinned.array.nbytes if self._pinned else 0

    @property
    def array(self) -> NDArray[np.uint8]:
        """All of it."""
        return self._pinned.array if self._pinned else np.empty(0, np.uint8)

    def grow(self, nbytes: int) -> None:
        """To so many bytes; waits for copies from it where there were fewer."""
        if nbytes > self.size:
            self.drain()
            self._free_memory()
            self._pinned = PinnedBytes(self._driver, nbytes)
        while len(self._events) < EVENTS:
            destroy = self._driver.cuEventDestroy
            event = self._driver.make(destroy, "cuEventCreate", DISABLE_TIMING)
            self._events.append(event)
            self._idle.append(event)

    def take(self, nbytes: int) -> tuple[int, Any] | None:
        """Where so many bytes that lie together are free, and an event; None where not yet. Asks the device, and does
        not wait.
        """
        start = self._placed(nbytes)
        while not self._idle or start + nbytes - self._free > self.size:
            if not self._copied or not self._driver.passed(self._copied[0].event):
                return None
            self._retire()
            start = self._placed(nbytes)
        self._next = start + nbytes
        return start % self.size, self._idle.pop()

    def wait(self) -> None:
        """Until room comes free that is copied from."""
        self._driver.cuEventSynchronize(self._copied[0].event)
        self._retire()

    def send(self, address: int, place: int, nbytes: int, event: Any) -> None:
        """Copy to the device what was taken longest ago, in one or more pieces that lie together."""
        to = self._address + place
        self._driver.cuMemcpyHtoDAsync(address, to, nbytes, self._stream)
        self._driver.cuEventRecord(event, self._stream)
        skipped = place < self._sent % self.size  # the rest of the circle was too short for it
        begin = self._sent - self._sent % self.size + (self.size if skipped else 0)
        self._sent = begin + place + nbytes
        self._copied.append(Copied(self._sent, event))

    def receive(self, place: int, address: int, nbytes: int) -> Any:
        """Copy from the device; gives the event behind it. The ring must be idle: the caller keeps the books."""
        self._driver.cuMemcpyDtoHAsync(self._address + place, address, nbytes, self._stream)
        event = self._idle.pop()
        self._driver.cuEventRecord(event, self._stream)
        return event

    def give(self, event: Any) -> None:
        """It has passed, or was not recorded."""
        self._idle.append(event)

    def drain(self) -> None:
        """Wait for all copies from it."""
        while self._copied:
            self.wait()

    def reset(self) -> None:
        """Nothing is taken, whatever was; waits for the stream."""
        if self.size:
            self._driver.cuStreamSynchronize(self._stream)
        self._copied.clear()
        self._idle = [*self._events]
        self._free = self._sent = self._next = 0

    def close(self) -> None:
        """Unpin; the stream must be idle."""
        self._copied.clear()
        self._idle = []
        while self._events:
            self._driver.cuEventDestroy(self._events.pop())
        self._free_memory()

    @property
    def _address(self) -> int:
        return self._pinned.address if self._pinned else 0

    def _placed(self, nbytes: int) -> int:
        """The next position from which so many bytes lie together."""
        if self._free == self._next:  # all is free
            self._free = self._sent = self._next = 0
        at = self._next % self.size
        return self._next if at + nbytes <= self.size else self._next - at + self.size

    def _retire(self) -> None:
        copied = self._copied.popleft()
        self._free = copied.end
        self._idle.append(copied.event)

    def _free_memory(self) -> None:
        pinned, self._pinned = self._pinned, None
        if pinned:
            self._driver.cuMemFreeHost(pinned.address)
