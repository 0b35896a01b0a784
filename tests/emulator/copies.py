"""The stand-in's host memory and copies: from and to pages that are locked, which must stay so, or pageable ones."""

# ruff: noqa: ARG002, N802 - names and parameters are the driver's
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.answers import Answer, status, void
from emulator.streams import Stream

SHORT = 64 << 10  # bytes of pageable memory that the driver keeps for the stream


class Copies:
    """``pinnable`` bytes may be registered; ``flips`` are the numbers of copies to the host in which one bit
    changes on the way.
    """

    def __init__(self) -> None:
        self.pinnable = 1 << 40
        self.registered: dict[int, int] = {}
        self._stamps: dict[int, object] = {}  # of the registrations: the same pages may get another
        self.pinned: dict[int, NDArray[np.uint8]] = {}
        self.flips: set[int] = set()
        self.downloads = 0
        self.violations: list[str] = []  # what a card would have faulted on
        self.sticky: Any = None

    def _cuMemAllocHost(self, nbytes: int) -> Answer:
        array = np.full(nbytes, 0xC7, np.uint8)
        self.pinned[array.ctypes.data] = array
        return (array.ctypes.data,)

    def _cuMemFreeHost(self, address: int) -> Answer:
        del self.pinned[address]
        return ()

    def _cuMemHostRegister(self, address: int, nbytes: int, flags: int) -> Any:
        if address % 4096 or nbytes % 4096 or not nbytes:
            return status("INVALID_VALUE")
        if any(address < a + n and a < address + nbytes for a, n in self.registered.items()):
            return status("HOST_MEMORY_ALREADY_REGISTERED")
        if sum(self.registered.values()) + nbytes > self.pinnable:
            return status("OUT_OF_MEMORY")
        self.registered[address], self._stamps[address] = nbytes, object()
        return ()

    def _cuMemHostUnregister(self, address: int) -> Any:
        """At once: whether copies still need the pages is for the caller to know."""
        if address not in self.registered:
            return status("HOST_MEMORY_NOT_REGISTERED")
        del self.registered[address], self._stamps[address]
        return ()

    def _locked(self, first: int, nbytes: int) -> object:
        """What holds these bytes in place, False where that is true of a part of them."""
        locked = [(a, n, self._stamps[a]) for a, n in self.registered.items()]
        locked += [(a, array.nbytes, array) for a, array in self.pinned.items()]
        for start, length, holder in locked:
            if start <= first and first + nbytes <= start + length:
                return holder
            if start < first + nbytes and first < start + length:
                return False
        return None

    def _cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: Stream) -> Any:
        """From pinned pages when the stream gets there. Pageable memory is read now: little of it is kept for
        that time, for more the stream is waited for.
        """
        holder = self._locked(source, nbytes)
        if holder is False:
            return status("INVALID_VALUE")
        if holder is None:
            taken = ctypes.string_at(source, nbytes)
            stream.waiting.append(lambda: void(ctypes.memmove(to, taken, nbytes)))
            if nbytes > SHORT:
                stream.run()
            return ()

        def copy() -> None:
            if self._locked(source, nbytes) is holder:
                ctypes.memmove(to, source, nbytes)
            else:
                self._violated(f"copy of {nbytes} bytes from pages that were let go")

        stream.waiting.append(copy)
        return ()

    def _violated(self, what: str) -> None:
        self.violations.append(what)
        self.sticky = status("ILLEGAL_ADDRESS")

    def _cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, stream: Stream) -> Answer:
        flip = self.downloads in self.flips
        self.downloads += 1

        holder = self._locked(to, nbytes)

        def copy() -> None:
            if holder is not None and self._locked(to, nbytes) is not holder:
                self._violated(f"copy of {nbytes} bytes to pages that were let go")
                return
            ctypes.memmove(to, source, nbytes)
            if flip:
                ctypes.c_uint8.from_address(to + nbytes // 3).value ^= 0x10

        stream.waiting.append(copy)
        return ()

    def _cuMemsetD8Async(self, to: int, byte: int, nbytes: int, stream: Stream) -> Answer:
        stream.waiting.append(lambda: void(ctypes.memset(to, byte, nbytes)))
        return ()
