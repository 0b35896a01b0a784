"""Streams and events of one card: their order, and memory that several streams used.

Memory that only its own stream used is freed there. Where others used it too, it is freed in a stream of its
own behind all of them, so that none that works waits for another: the stream that copies ahead would be held
up by the one that computes. An event that nobody needs any more is recorded again (making one costs as much
as two records); whoever waits for an earlier record of it does so still.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from cuzk.backends.cuda.driver import Driver, quietly
from cuzk.errors import BackendError

NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: no order with the legacy default stream
TIMED, UNTIMED = 0, 2  # CU_EVENT_DISABLE_TIMING


class Events:
    """Events to record; kept when they are given back, as long as there is a stream."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._idle: dict[int, list[Any]] = {TIMED: [], UNTIMED: []}
        self.keep = False

    def take(self, flags: int) -> Any:
        """One that nobody else has."""
        try:
            return self._idle[flags].pop()
        except IndexError:
            return self._driver.make(self._driver.cuEventDestroy, "cuEventCreate", flags)

    def give(self, event: Any, flags: int) -> None:
        """Nobody asks for its last record any more."""
        if self.keep:
            self._idle[flags].append(event)
        else:
            self._driver.cuEventDestroy(event)

    def drop(self) -> None:
        """Keep none."""
        self.keep = False
        for idle in self._idle.values():
            while idle:
                self._driver.cuEventDestroy(idle.pop())


class Queue:
    """A stream of the driver; what is queued here comes one after the other."""

    def __init__(self, driver: Driver, events: Events) -> None:
        self._driver = driver
        self._events = events
        self.handle = driver.make(driver.cuStreamDestroy, "cuStreamCreate", NON_BLOCKING)

    def follow(self, other: Queue) -> None:
        """What is queued here from now on comes after all that is queued there now."""
        event = self._events.take(UNTIMED)
        try:
            self._driver.cuEventRecord(event, other.handle)
            self._driver.cuStreamWaitEvent(self.handle, event, 0)
        finally:
            self._events.give(event, UNTIMED)

    def finish(self) -> None:
        """Wait for what is queued."""
        self._driver.cuStreamSynchronize(self.handle)

    def finish_last(self) -> None:
        """The same before it is let go of: an error of work that was queued is told once, and no reason to keep it."""
        try:
            self.finish()
        except BackendError:
            self.finish()

    def destroy(self) -> None:
        """Once idle, and nobody refers to it."""
        self._driver.cuStreamDestroy(self.handle)


class Queues:
    """All streams of a card.

    One that its machine is done with serves the next: memory may still name it among its users, when it is idle.
    With the last machine all go. Machines end, and memory is freed, in finalisers, which come between any two
    lines of any thread: neither waits for a lock. A free that failed (no event to be had) is made up for by the
    next one.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.events = Events(driver)
        self._lock = threading.Lock()
        self._working: set[Queue] = set()
        self._idle: list[Queue] = []
        self._frees: Queue | None = None
        self._owed: deque[tuple[int, Queue, frozenset[Queue]]] = deque()

    def open(self) -> Queue:
        """For a new machine."""
        with self._lock:
            self.events.keep = True
            try:
                if not self._idle:
                    self._idle.append(Queue(self._driver, self.events))
                if self._frees is None:
                    self._frees = Queue(self._driver, self.events)
                queue = self._idle.pop()
                self._working.add(queue)
            except BaseException:
                if not self._working:
                    self._drop()
                raise
        return queue

    def close(self, queue: Queue) -> bool:
        """It is idle; true where it was the last, and nothing is left."""
        self._idle.append(queue)
        self._working.discard(queue)
        last = False
        while not self._working and self._idle and self._lock.acquire(blocking=False):
            try:
                if not self._working:
                    self._drop()
                    last = True
            finally:
                self._lock.release()
        return last

    def free(self, address: int, owner: Queue, guests: Iterable[Queue]) -> None:
        """Memory of ``owner``, behind all that is queued there and in the guests now."""
        self._owed.append((address, owner, frozenset(guests)))
        self.free_owed()

    def free_owed(self) -> None:
        """All that was to be freed and is not."""
        for _ in range(len(self._owed)):
            try:
                address, owner, guests = self._owed.popleft()
            except IndexError:  # another thread was here
                return
            try:
                self._free(address, owner, guests)
            except BackendError:
                self._owed.append((address, owner, guests))
                raise

    def _free(self, address: int, owner: Queue, users: frozenset[Queue]) -> None:
        queue = owner
        if users and self._frees:
            queue = self._frees
            for user in (owner, *users):
                queue.follow(user)
        self._driver.cuMemFreeAsync(address, queue.handle)

    def finish(self) -> None:
        """Wait for all streams: memory that they free is free then."""
        with self._lock:
            for queue in [*self._working, *([self._frees] if self._frees else [])]:
                queue.finish()

    def _drop(self) -> None:
        quietly(self.free_owed)
        if self._frees:
            self._frees.finish_last()
            self._idle.append(self._frees)
            self._frees = None
        while self._idle:
            self._idle.pop().destroy()
        self.events.drop()
