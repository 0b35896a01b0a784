"""Copies between numpy arrays and the device through pinned memory.

An array's memory is pageable: the driver would copy it at 8 GB/s and wait. Here host threads fill pinned memory
piece by piece (one thread 6 GB/s, eight 31) while the device reads the pieces before (55 GB/s): n bytes take n at
31 GB/s and one piece at 55. As many pieces are begun ahead as there is room for, and all that are filled by the time
this thread comes to it go to the device in one copy: it may come late, where others hold the interpreter's lock, by
what the memory takes to fill (64 MiB: 2 ms), and costs four calls that give up the lock for each time it comes.

The threads are those of a :class:`cuzk._core.Copier`: started by the first piece, ended 20 ms after the last or
with the stream. Small results that are fetched while other work is queued have buffers of their own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.backends.cuda.driver import Driver
from cuzk.backends.cuda.hostring import DISABLE_TIMING, HostRing, PinnedBytes
from cuzk.errors import KernelError

Waiting = Callable[[str], AbstractContextManager[None]]
"""waiting(what): entered where the host waits."""

FETCH_BYTES = 256 << 10  # of a fetched result
LEAST_BYTES, MOST_BYTES = (
    4 << 20,
    64 << 20,
)  # of pinned memory, as arrays need it: 64 MiB cost 30 ms, once
COPIERS = 8  # threads: 31 GB/s; 12 and 16 are no quicker
PIECES = 8  # of an array, and of the memory
SHORTEST_PIECE = 2 << 20  # takes as long to fill as to see to
ALIGNED = 64


class _Slot:
    """A pinned buffer and the event of its last copy."""

    def __init__(self, driver: Driver, nbytes: int) -> None:
        self.event = driver.make(driver.cuEventDestroy, "cuEventCreate", DISABLE_TIMING)
        try:
            pinned = PinnedBytes(driver, nbytes)
        except BaseException:
            driver.cuEventDestroy(self.event)
            raise
        self.address, self.array = pinned.address, pinned.array


class _Piece(NamedTuple):
    """``number`` is the copier's."""

    number: int
    start: int
    place: int
    nbytes: int
    event: Any


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
    """The pinned memory of a stream and the threads that fill it; made at the first copy."""

    def __init__(self, driver: Driver, stream: Any) -> None:
        self._driver = driver
        self._stream = stream
        self._ring = HostRing(driver, stream)
        self._copier = _core.Copier(min(COPIERS, processors()))
        self._whole = True  # False: an error or an interrupt left a copy in its middle
        self._small: list[_Slot] = []  # all buffers of fetched results
        self._idle: list[_Slot] = []  # those that nothing is in

    def upload(self, address: int, source: NDArray[np.uint8], waiting: Waiting) -> None:
        """Returns when ``source`` has been read."""
        step, ring = self._begin(source.nbytes), self._ring
        begun, start = deque[_Piece](), 0
        try:
            while begun or start < source.nbytes:
                nbytes = min(step, source.nbytes - start)
                taken = ring.take(nbytes) if nbytes else None
                if taken:
                    place, event = taken
                    target = ring.array[place : place + nbytes]
                    number = self._copier.begin(target, source[start : start + nbytes])
                    begun.append(_Piece(number, start, place, nbytes, event))
                    start += nbytes
                elif begun:
                    filled = self._filled(begun)
                    ring.send(address + filled.start, filled.place, filled.nbytes, filled.event)
                else:
                    with waiting("a buffer"):
                        ring.wait()
        except BaseException:
            self._copier.close()  # it reads and holds the source no longer
            raise
        self._whole = True

    def download(self, address: int, target: NDArray[np.uint8]) -> None:
        """Returns when ``target`` is filled."""
        step, ring = self._begin(target.nbytes), self._ring
        ring.drain()
        places = deque(range(0, ring.size - step + 1, step)) if step else deque[int]()
        under_way = deque[tuple[Any, int, int, int]]()
        start = 0
        while under_way or start < target.nbytes:
            nbytes = min(step, target.nbytes - start)
            if nbytes and places:
                place = places.popleft()
                event = ring.receive(place, address + start, nbytes)
                under_way.append((event, place, start, nbytes))
                start += nbytes
            else:
                event, place, at, length = under_way.popleft()
                self._driver.cuEventSynchronize(event)
                ring.give(event)
                self._copy(target[at : at + length], ring.array[place : place + length])
                places.append(place)
        self._whole = True

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
        self._unpack(slot, target)

    def release(self, slot: _Slot) -> None:
        """A later copy into it comes after the one that may be under way: both are in the stream."""
        self._idle.append(slot)

    def close(self) -> None:
        """Unpin, and end the threads; the stream must be idle."""
        self._copier.close()
        self._ring.close()
        for slot in self._small:
            self._driver.cuEventDestroy(slot.event)
            self._driver.cuMemFreeHost(slot.address)
        self._small, self._idle = [], []

    def _begin(self, nbytes: int) -> int:
        """Bytes of a piece; nothing of a copy before that went wrong is under way from here on."""
        if not self._whole:
            self._copier.close()
            self._ring.reset()
        self._whole = False
        room = min(MOST_BYTES, max(LEAST_BYTES, 1 << (nbytes - 1).bit_length()))
        if nbytes:
            self._ring.grow(room)
        step = max(SHORTEST_PIECE, -(-nbytes // PIECES // ALIGNED) * ALIGNED)
        return min(step, nbytes, max(1, self._ring.size // PIECES))

    def _filled(self, begun: deque[_Piece]) -> _Piece:
        """The oldest piece, and those behind it that lie next to it and are filled, too."""
        done = self._copier.wait(begun[0].number)
        first = begun.popleft()
        nbytes = first.nbytes
        while begun and begun[0].number <= done and begun[0].place == first.place + nbytes:
            piece = begun.popleft()
            nbytes += piece.nbytes
            self._ring.give(piece.event)
        return first._replace(nbytes=nbytes)

    def _unpack(self, slot: _Slot, target: NDArray[np.uint8]) -> None:
        self._driver.cuEventSynchronize(slot.event)
        self._copy(target, slot.array[: target.nbytes])

    def _copy(self, target: NDArray[np.uint8], source: NDArray[np.uint8]) -> None:
        self._copier.wait(self._copier.begin(target, source))


def processors() -> int:
    """That this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
