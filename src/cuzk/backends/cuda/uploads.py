"""How one lane's vectors get to the device, and what it has to say about it."""

from __future__ import annotations

from cuzk.backends.cuda.arrivals import Feeder
from cuzk.backends.cuda.machine import Machine
from cuzk.backends.cuda.pinning import Pinning
from cuzk.backends.cuda.staged import Ahead, Inside, Staged
from cuzk.backends.cuda.transfers import Transfers
from cuzk.vectors import Scalars


class Uploads:
    """Beside the stream ``compute``: two more, of which neither waits for it."""

    def __init__(self, compute: Machine, transfers: Transfers, pinning: Pinning) -> None:
        self._compute = compute
        self._transfers = transfers
        self._pinning = pinning
        self._notes: list[str] = []
        if transfers.vectors == "ahead":
            self._feeder = Feeder(compute, "upload")
            self._reader = compute.beside("check")

    def stage(self, values: Scalars) -> Staged:
        """Begin to copy, or make ready for it."""
        if self._transfers.vectors == "inside":
            return Inside(self._compute, values)
        return Ahead(self._compute, self._reader, self._feeder, values, self._pinning, self.note)

    def note(self, text: str) -> None:
        """To be told by ``notes``."""
        if text not in self._notes:
            self._notes.append(text)

    def notes(self) -> list[str]:
        """Since the last call, each once."""
        notes, self._notes = self._notes, []
        return notes
