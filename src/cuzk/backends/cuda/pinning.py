"""Which pages of the host's memory are locked so that the device copies from them by itself.

Points that stay in host memory are copied in every proof: locked once, when they are put (40 ms a GiB), and
until they are dropped. A vector is copied once, and is not locked unless all is to be ("always"): unlocking waits
for all work of the device, other streams' too (74 ms beside 75 ms of it), where nothing else in a proof does. On a
quiet H200 locking, copying and unlocking take as long as copying through buffers by eight threads takes anyway
(34 MB 2.7 ms against 3.2 with threads started for every piece, 134 MB 8.7 against 5.0, 512 MB 34 against 23).

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

MARGIN = 2
PAGES = 1 << 13  # bytes that hold a whole page wherever they begin

Note = Callable[[str], None]


class Pinning:
    """Rule and books of one device, for all its lanes. ``how``: "auto", "always" or "never"."""

    def __init__(self, how: str, available: Callable[[], int] = available_bytes) -> None:
        self._how = how
        self._available = available
        self._lock = threading.Lock()
        self.locked_bytes = 0

    def vector(self, machine: Machine, array: NDArray[Any], note: Note) -> HeldPages | None:
        """The pages of an array that is copied once; None where they are to be copied through buffers."""
        return self._pin(machine, array, "a vector", note) if self._how == "always" else None

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
