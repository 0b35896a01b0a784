"""Pages of the host's memory that a card may copy from by itself, at the rate of the bus.

Whole pages are locked, of an array those that lie inside it: neighbours (sections of one mapped file) share a
page at their ends and would be refused. What is left at the ends is less than two pages and goes through the
driver's own buffer. An array that is pinned twice is locked once.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from cuzk.backends.cuda.driver import Driver, quietly
from cuzk.errors import BackendError, KernelError, PinningRefused

PORTABLE, READ_ONLY = 1, 8  # CU_MEMHOSTREGISTER_*


class Pinned:
    """Locked pages [start, end) of the array [first, last), for ``holders`` Pins."""

    def __init__(self, first: int, nbytes: int) -> None:
        page = mmap.PAGESIZE
        self.first, self.last = first, first + nbytes
        self.start, self.end = -(-first // page) * page, self.last // page * page
        self.holders = 0

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Of bytes [first, last): what lies before the locked pages, in them, and behind."""
        cuts = [first, *(min(max(cut, first), last) for cut in (self.start, self.end)), last]
        yield from ((a, b) for a, b in pairwise(cuts) if a < b)


class Pins:
    """All pinned arrays of one card."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._known: dict[tuple[int, int], Pinned] = {}
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of locked pages."""
        with self._lock:
            return sum(pinned.end - pinned.start for pinned in self._known.values())

    def pin(self, array: NDArray[Any]) -> HeldPin:
        """PinningRefused where the system does not let the pages be locked."""
        if not array.flags.c_contiguous:
            raise KernelError("cuda: pin: expected a C-contiguous array")
        address, key = array.ctypes.data, (array.ctypes.data, array.nbytes)
        with self._lock:
            pinned = self._known.get(key)
            if pinned is None:
                pinned = Pinned(address, array.nbytes)
                if pinned.start >= pinned.end:
                    raise PinningRefused(
                        f"{self._driver.name}: {array.nbytes} bytes are no whole page"
                    )
                self._register(pinned, read_only=not array.flags.writeable)
                self._known[key] = pinned
            pinned.holders += 1
        return HeldPin(self, key, array)

    def pinned(self, array: NDArray[Any]) -> Pinned:
        """What was pinned with all of the array in it; KernelError where nothing was."""
        first = array.ctypes.data
        with self._lock:
            for pinned in self._known.values():
                if pinned.first <= first and first + array.nbytes <= pinned.last:
                    return pinned
        raise KernelError("cuda: send: expected an array that is pinned")

    def release(self, key: tuple[int, int]) -> None:
        """One holder less; the last one's pages are unlocked."""
        with self._lock:
            pinned = self._known[key]
            pinned.holders -= 1
            if not pinned.holders:
                del self._known[key]
                self._driver.cuMemHostUnregister(pinned.start)

    def _register(self, pinned: Pinned, *, read_only: bool) -> None:
        flags = PORTABLE | (READ_ONLY if read_only else 0)
        try:
            self._driver.cuMemHostRegister(pinned.start, pinned.end - pinned.start, flags)
        except BackendError as error:
            if self._driver.lost:
                raise
            raise PinningRefused(str(error)) from error


class HeldPin:
    """:class:`~cuzk.backends.cuda.machine.Pin`; keeps its array alive."""

    def __init__(self, pins: Pins, key: tuple[int, int], array: NDArray[Any]) -> None:
        self.nbytes = array.nbytes
        self._pins: Pins | None = pins
        self._key = key
        self._array: NDArray[Any] | None = array

    def release(self) -> None:
        """Once."""
        pins, self._pins = self._pins, None
        if pins:
            pins.release(self._key)
        self._array = None

    def __del__(self) -> None:
        quietly(self.release)
