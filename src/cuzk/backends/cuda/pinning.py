"""Which pages of the host's memory are locked so that the device copies from them by itself.

Of one GiB, on one thread: locking 0.040 s, unlocking 0.016 and the copy 0.020, of which the thread sees none; copied
through buffers 0.18 s of processor time, over as many threads as there are, up to eight (0.034). A vector that is
copied once is therefore locked where fewer than COPIERS threads are there to copy it. Points that stay in host
memory are copied in every proof, and locked once.

No more than one part in MARGIN of the memory that the host has left is ever locked: the kernel cannot take
such pages back from anybody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from cuzk.backends.cpu import available_bytes
from cuzk.backends.cuda.machine import Machine, Pin
from cuzk.errors import PinningRefused

COPIERS = 4
MARGIN = 2
PAGES = 1 << 13  # bytes that hold a whole page wherever they begin
WORTH = 1 << 20  # bytes of a vector below which either way takes some 100 us

Note = Callable[[str], None]


class Pinning:
    """Rule and books of one device, for all its lanes. ``how``: "auto", "always" or "never"."""

    def __init__(
        self, how: str, threads: int, available: Callable[[], int] = available_bytes
    ) -> None:
        self._how = how
        self._threads = threads
        self._available = available
        self._lock = threading.Lock()
        self.locked_bytes = 0

    def vector(self, machine: Machine, array: NDArray[Any], note: Note) -> HeldPages | None:
        """The pages of an array that is copied once; None where they are to be copied through buffers."""
        worth = self._how == "always" or (array.nbytes >= WORTH and self._threads < COPIERS)
        return self._pin(machine, array, "a vector", note) if worth else None

    def points(self, machine: Machine, array: NDArray[Any], note: Note) -> HeldPages | None:
        """The pages of an array that is copied in every proof."""
        return self._pin(machine, array, "points in host memory", note)

    def _pin(
        self, machine: Machine, array: NDArray[Any], what: str, note: Note
    ) -> HeldPages | None:
        if self._how == "never" or array.nbytes < PAGES:
            return None
        try:
            return HeldPages(self, machine, array)
        except PinningRefused as error:
            note(f"{what} ({array.nbytes} bytes): copied through buffers: {error}")
            return None

    def reserve(self, nbytes: int) -> None:
        """PinningRefused where too little would be left to the host."""
        with self._lock:
            room = (self._available() - self.locked_bytes) // MARGIN
            if nbytes > room:
                raise PinningRefused(
                    f"{self.locked_bytes} bytes are locked, {room} more may be, at most one part in "
                    f"{MARGIN} of what the host has left"
                )
            self.locked_bytes += nbytes

    def give_back(self, nbytes: int) -> None:
        """They are not locked any more."""
        with self._lock:
            self.locked_bytes -= nbytes


class HeldPages:
    """:class:`~cuzk.backends.cuda.machine.Pin` in the books; ``machine`` locks the pages."""

    def __init__(self, pinning: Pinning, machine: Machine, array: NDArray[Any]) -> None:
        self.nbytes = array.nbytes
        self._pinning: Pinning | None = None
        self._pin: Pin | None = None
        pinning.reserve(array.nbytes)
        self._pinning = pinning  # from here on, dropping it undoes what was done
        self._pin = machine.pin(array)

    def release(self) -> None:
        """Let go of the pages; waits for copies from them."""
        pin, self._pin = self._pin, None
        if pin:
            pin.release()
        self._leave_books()

    def __del__(self) -> None:
        self._pin = None
        self._leave_books()

    def _leave_books(self) -> None:
        pinning, self._pinning = self._pinning, None
        if pinning:
            pinning.give_back(self.nbytes)
