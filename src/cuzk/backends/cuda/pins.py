"""Pages of the host's memory that a card may copy from by itself, at the rate of the bus.

Whole pages are locked, of an array those that lie inside it: neighbours (sections of one mapped file) share a
page at their ends and would be refused. What is left at the ends is less than two pages and goes through the
driver's own buffer. An array that is pinned twice, or a part of one that is pinned, is locked once.

Pages are unlocked when the last who holds them lets go, and when the copies that were queued from them are done:
letting go waits for those, wherever an error or an interrupt made it come early.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from cuzk.backends.cuda.driver import Driver, quietly
from cuzk.backends.cuda.queues import UNTIMED, Events, Queue
from cuzk.errors import BackendError, KernelError, PinningRefused

PORTABLE, READ_ONLY = 1, 8  # CU_MEMHOSTREGISTER_*

Key = tuple[int, int]  # address and bytes of an array


class Pinned:
    """Locked pages [start, end) of the array [first, last), for ``holders`` Pins."""

    def __init__(self, first: int, nbytes: int) -> None:
        page = mmap.PAGESIZE
        self.first, self.last = first, first + nbytes
        self.start, self.end = -(-first // page) * page, self.last // page * page
        self.holders: set[object] = set()
        self.tried = self.locked = False  # tried: they may be locked
        self.copies: dict[Queue, Any] = {}  # the event behind the last; None: not known

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Of bytes [first, last): what lies before the locked pages, in them, and behind."""
        cuts = [first, *(min(max(cut, first), last) for cut in (self.start, self.end)), last]
        yield from ((a, b) for a, b in pairwise(cuts) if a < b)


class Pins:
    """All pinned arrays of one card. Looking one up waits for no page that is being locked."""

    def __init__(self, driver: Driver, enter: Callable[[], None], events: Events) -> None:
        self._driver = driver
        self._enter = enter
        self._events = events
        self._known: dict[Key, Pinned] = {}
        self._lock = threading.RLock()  # a dropped pin may come in between

    @property
    def nbytes(self) -> int:
        """Bytes of locked pages."""
        return sum(p.end - p.start for p in list(self._known.values()) if p.locked)

    def pin(self, array: NDArray[Any]) -> HeldPin:
        """PinningRefused where the system does not let the pages be locked."""
        if not array.flags.c_contiguous:
            raise KernelError("cuda: pin: expected a C-contiguous array")
        with self._lock:
            self._unlock_forgotten()
            here = array.ctypes.data, array.nbytes
            pinned = self._around(array) or self._known.get(here) or Pinned(*here)
            key = (pinned.first, pinned.last - pinned.first)
            held = HeldPin(self, key, array)  # from here on, dropping it undoes what was done
            pinned.holders.add(held.token)
            self._known[key] = pinned
            if not pinned.locked:
                self._register(pinned, read_only=not array.flags.writeable)
        return held

    def send(self, array: NDArray[Any], queue: Queue, copy: Callable[[int, int], None]) -> None:
        """``copy(start, end)`` of the pieces of an array, each pinned or short; KernelError where it is not pinned."""
        pinned = self._around(array)
        if pinned is None:
            raise KernelError("cuda: send: expected an array that is pinned")
        event = pinned.copies.get(queue) or self._events.take(UNTIMED)
        pinned.copies[queue] = None
        first = array.ctypes.data
        try:
            for start, end in pinned.pieces(first, first + array.nbytes):
                copy(start, end)
            self._driver.cuEventRecord(event, queue.handle)
        except BaseException:
            self._events.give(event, UNTIMED)
            raise
        pinned.copies[queue] = event

    def release(self, key: Key, token: object) -> None:
        """One holder less; the last one's pages are unlocked. Said again after an interrupt, it goes on."""
        quietly(self._enter)
        with self._lock:
            pinned = self._known.get(key)
            if pinned is None or pinned.holders - {token}:
                if pinned:
                    pinned.holders.discard(token)
                return
        quietly(lambda: self._await(pinned))  # not under the lock: it may take a while
        with self._lock:
            pinned.holders.discard(token)
            if not pinned.holders and self._known.get(key) is pinned:
                self._unlock(pinned)
                if not pinned.tried:
                    del self._known[key]

    def _around(self, array: NDArray[Any]) -> Pinned | None:
        """What was pinned with all of the array in it."""
        first = array.ctypes.data
        for pinned in list(self._known.values()):
            if pinned.first <= first and first + array.nbytes <= pinned.last and pinned.locked:
                return pinned
        return None

    def _await(self, pinned: Pinned) -> None:
        for queue, event in list(pinned.copies.items()):
            if event is None:
                queue.finish()
            else:
                self._driver.cuEventSynchronize(event)

    def _unlock(self, pinned: Pinned) -> None:
        quietly(lambda: self._await(pinned))
        pinned.locked = False
        if pinned.tried:
            quietly(lambda: self._unregister(pinned))
        while pinned.copies:
            _, event = pinned.copies.popitem()
            if event is not None:
                quietly(lambda event=event: self._events.give(event, UNTIMED))  # type: ignore[misc]

    def _unregister(self, pinned: Pinned) -> None:
        self._driver.cuMemHostUnregister(pinned.start)
        pinned.tried = False

    def _unlock_forgotten(self) -> None:
        """Pages that the driver did not unlock when it was told to."""
        for key, pinned in list(self._known.items()):
            if pinned.tried and not pinned.holders:
                self._unlock(pinned)
                if not pinned.tried:
                    del self._known[key]

    def _register(self, pinned: Pinned, *, read_only: bool) -> None:
        """Of an array that is not to be written the pages may be, and a card need not know of such that may not."""
        nbytes = pinned.end - pinned.start
        if nbytes <= 0:
            raise PinningRefused(
                f"{self._driver.name}: {pinned.last - pinned.first} bytes hold no whole page"
            )
        if pinned.tried:  # by a holder that was interrupted and is not gone
            quietly(lambda: self._unregister(pinned))
        pinned.tried = True  # an interrupt comes after the call
        try:
            self._register_as(pinned.start, nbytes, [READ_ONLY, 0] if read_only else [0])
        except BackendError as error:
            pinned.tried = False
            if self._driver.lost:
                raise
            raise PinningRefused(str(error)) from error
        pinned.locked = True

    def _register_as(self, start: int, nbytes: int, modes: list[int]) -> None:
        try:
            self._driver.cuMemHostRegister(start, nbytes, PORTABLE | modes[0])
        except BackendError:
            if not modes[1:]:
                raise
            self._register_as(start, nbytes, modes[1:])


class HeldPin:
    """:class:`~cuzk.backends.cuda.machine.Pin`; keeps its array alive."""

    def __init__(self, pins: Pins, key: Key, array: NDArray[Any]) -> None:
        self.nbytes = array.nbytes
        self.token = object()
        self._pins: Pins | None = pins
        self._key = key
        self._array: NDArray[Any] | None = array

    def release(self) -> None:
        """Once; waits for copies that were queued from it."""
        if self._pins:
            self._pins.release(self._key, self.token)
        self._pins = self._array = None

    def __del__(self) -> None:
        quietly(self.release)
