"""Copies between numpy arrays and the device through two pinned buffers.

An array's memory is pageable: the driver would copy it at 8 GB/s and wait. Here host threads fill one
buffer (one thread 6 GB/s, eight 31) while the device reads the other (pinned: 55 GB/s). A buffer is used
again only after the event that follows its last copy. Small results that are fetched while other work is
queued have buffers of their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.backends.cuda.driver import Driver
from cuzk.errors import KernelError

Waiting = Callable[[str], AbstractContextManager[None]]
"""waiting(what): entered where the host waits."""

FETCH_BYTES = 256 << 10  # of a fetched result
SLOT_BYTES = 32 << 20  # two of them: 64 MiB cost 30 ms to pin, once per stream
COPIERS = 8  # threads that fill or empty a buffer: 31 GiB/s, 12 and 16 are no quicker
PIECES, SHORTEST_PIECE = 6, 4 << 20  # starting the threads takes as long as they need for 3 MiB
DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING


class _Slot:
    """A pinned buffer and the event of its last copy."""

    def __init__(self, driver: Driver, nbytes: int) -> None:
        self.event = driver.make(driver.cuEventDestroy, "cuEventCreate", DISABLE_TIMING)
        try:
            self.address = int(driver.make(driver.cuMemFreeHost, "cuMemAllocHost", nbytes))
        except BaseException:
            driver.cuEventDestroy(self.event)
            raise
        memory = (ctypes.c_uint8 * nbytes).from_address(self.address)
        self.array: NDArray[np.uint8] = np.asarray(memory)
        self.recorded = True  # the event is behind the last copy; an interrupt comes in between


class _Fetched:
    """A result on its way; its buffer serves again when it was taken, or when nobody wants it any more."""

    def __init__(self, staging: Staging, slot: _Slot, target: NDArray[np.uint8]) -> None:
        self._staging, self._target = staging, target
        self._slot: _Slot | None = slot

    def __call__(self) -> None:
        """Once filled, the array stays as it is."""
        if self._slot:
            try:
                self._staging.take(self._slot, self._target)
            finally:
                self._release()

    def __del__(self) -> None:
        self._release()

    def _release(self) -> None:
        slot, self._slot = self._slot, None
        if slot:
            self._staging.release(slot)


class Staging:
    """The two buffers of a stream; made at the first copy."""

    def __init__(self, driver: Driver, stream: Any) -> None:
        self._driver = driver
        self._stream = stream
        self._slots: list[_Slot] = []
        self._next = 0
        self._small: list[_Slot] = []  # all buffers of fetched results
        self._idle: list[_Slot] = []  # those that nothing is in

    def upload(self, address: int, source: NDArray[np.uint8], waiting: Waiting) -> None:
        """Returns when ``source`` has been read."""
        for start, stop in _pieces(source.nbytes):
            with waiting("a buffer"):
                slot = self._take()
            copy(slot.array[: stop - start], source[start:stop])
            self._driver.cuMemcpyHtoDAsync(
                address + start, slot.address, stop - start, self._stream
            )
            self._record(slot)

    def download(self, address: int, target: NDArray[np.uint8]) -> None:
        """Returns when ``target`` is filled."""
        waiting: list[tuple[_Slot, int, int]] = []
        for start, stop in _pieces(target.nbytes):
            if len(waiting) == 2:
                self._unpack(*waiting.pop(0), target)
            slot = self._take()
            self._driver.cuMemcpyDtoHAsync(
                slot.address, address + start, stop - start, self._stream
            )
            self._record(slot)
            waiting.append((slot, start, stop))
        for piece in waiting:
            self._unpack(*piece, target)

    def fetch(self, address: int, target: NDArray[np.uint8]) -> Callable[[], None]:
        """Queue a copy; the function waits for it and fills ``target``."""
        if target.nbytes > FETCH_BYTES:
            raise KernelError(
                f"cuda: fetch: expected at most {FETCH_BYTES} bytes, found {target.nbytes}"
            )
        if not self._idle:
            self._small.append(_Slot(self._driver, FETCH_BYTES))
            self._idle.append(self._small[-1])
        slot = self._idle.pop()
        fetched = _Fetched(self, slot, target)
        self._driver.cuMemcpyDtoHAsync(slot.address, address, target.nbytes, self._stream)
        self._driver.cuEventRecord(slot.event, self._stream)
        return fetched

    def take(self, slot: _Slot, target: NDArray[np.uint8]) -> None:
        """Wait for a fetched result."""
        self._unpack(slot, 0, target.nbytes, target)

    def release(self, slot: _Slot) -> None:
        """A later copy into it comes after the one that may be under way: both are in the stream."""
        self._idle.append(slot)

    def close(self) -> None:
        """Unpin; the stream must be idle."""
        for slot in self._slots + self._small:
            self._driver.cuEventDestroy(slot.event)
            self._driver.cuMemFreeHost(slot.address)
        self._slots, self._small, self._idle = [], [], []

    def _take(self) -> _Slot:
        """The buffer used longest ago, its last copy done."""
        if len(self._slots) < 2:
            self._slots.append(_Slot(self._driver, SLOT_BYTES))
            self._slots[-1].recorded = False
            return self._slots[-1]
        slot = self._slots[self._next]
        self._next = 1 - self._next
        if slot.recorded:
            self._driver.cuEventSynchronize(slot.event)
        else:
            self._driver.cuStreamSynchronize(self._stream)
        slot.recorded = False
        return slot

    def _record(self, slot: _Slot) -> None:
        self._driver.cuEventRecord(slot.event, self._stream)
        slot.recorded = True

    def _unpack(self, slot: _Slot, start: int, stop: int, target: NDArray[np.uint8]) -> None:
        self._driver.cuEventSynchronize(slot.event)
        copy(target[start:stop], slot.array[: stop - start])


def copy(target: NDArray[np.uint8], source: NDArray[np.uint8]) -> None:
    """Of the same length; by several threads where that is worth starting them."""
    _core.copy_bytes(target, source, COPIERS)


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    """Short ones where there is little to copy, so that the device reads one while the next is filled."""
    step = min(SLOT_BYTES, max(SHORTEST_PIECE, nbytes // PIECES))
    for start in range(0, nbytes, step):
        yield start, min(start + step, nbytes)
