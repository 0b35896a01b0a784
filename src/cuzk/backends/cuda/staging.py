"""Copies between numpy arrays and the device through two pinned buffers.

An array's memory is pageable: the driver would copy it at 8 GB/s and wait. Here the host fills one buffer
while the device reads the other (pinned: 55 GB/s). A buffer is used again only after the event that
follows its last copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.backends.cuda.driver import Driver

SLOT_BYTES = 32 << 20  # two of them: 64 MiB cost 30 ms to pin, once per stream
DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING


class _Slot:
    """A pinned buffer and the event of its last copy."""

    def __init__(self, driver: Driver) -> None:
        self.address = int(driver.cuMemAllocHost(SLOT_BYTES))
        memory = (ctypes.c_uint8 * SLOT_BYTES).from_address(self.address)
        self.array: NDArray[np.uint8] = np.asarray(memory)
        self.event = driver.cuEventCreate(DISABLE_TIMING)


class Staging:
    """The two buffers of a stream; made at the first copy."""

    def __init__(self, driver: Driver, stream: Any) -> None:
        self._driver = driver
        self._stream = stream
        self._slots: list[_Slot] = []
        self._next = 0

    def upload(self, address: int, source: NDArray[np.uint8]) -> None:
        """Returns when ``source`` has been read."""
        for start, stop in _pieces(source.nbytes):
            slot = self._take()
            slot.array[: stop - start] = source[start:stop]
            self._driver.cuMemcpyHtoDAsync(
                address + start, slot.address, stop - start, self._stream
            )
            self._driver.cuEventRecord(slot.event, self._stream)

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
            self._driver.cuEventRecord(slot.event, self._stream)
            waiting.append((slot, start, stop))
        for piece in waiting:
            self._unpack(*piece, target)

    def close(self) -> None:
        """Unpin; the stream must be idle."""
        for slot in self._slots:
            self._driver.cuEventDestroy(slot.event)
            self._driver.cuMemFreeHost(slot.address)
        self._slots = []

    def _take(self) -> _Slot:
        """The buffer used longest ago, its last copy done."""
        if len(self._slots) < 2:
            self._slots.append(_Slot(self._driver))
            return self._slots[-1]
        slot = self._slots[self._next]
        self._next = 1 - self._next
        self._driver.cuEventSynchronize(slot.event)
        return slot

    def _unpack(self, slot: _Slot, start: int, stop: int, target: NDArray[np.uint8]) -> None:
        self._driver.cuEventSynchronize(slot.event)
        target[start:stop] = slot.array[: stop - start]


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    for start in range(0, nbytes, SLOT_BYTES):
        yield start, min(start + SLOT_BYTES, nbytes)
