"""Device memory that batches of points land in, one after the other, used again and again.

Two slots: one is computed on while the other is filled. A slot is filled again only behind the mark that
follows the last kernel that read it; the copying stream waits for that mark, the host for nothing. The slots
stay from sum to sum, so that the next sum's first batch is copied while the last one's is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuzk.backends.cuda.arrivals import Arrival, Feeder
from cuzk.backends.cuda.machine import Machine, Memory, Pin
from cuzk.vectors import Words

SLOTS = 2


@dataclass(eq=False)
class Slot:
    """``guard`` is passed when nothing reads the memory any more."""

    memory: Memory | None = None
    guard: Any = None


@dataclass(frozen=True)
class Landing:
    """A batch on its way to a slot."""

    slot: Slot
    points: Memory
    arrival: Arrival

    def before(self, machine: Machine) -> None:
        """What ``machine`` is given from now on finds the points there."""
        self.arrival.before(machine)

    def leave(self, machine: Machine) -> None:
        """``machine`` was given all that reads the points."""
        self.slot.guard = machine.mark()


class Ring:
    """Slots that one feeder fills in turn."""

    def __init__(self, feeder: Feeder, slots: int = SLOTS) -> None:
        self._feeder = feeder
        self._slots = [Slot() for _ in range(slots)]
        self._next = 0

    def __len__(self) -> int:
        return len(self._slots)

    def send(self, words: Words, pin: Pin | None, room: int) -> Landing:
        """Copy points to the next slot, which has ``room`` bytes or more, behind all that reads it now."""
        slot = self._slots[self._next]
        self._next = (self._next + 1) % len(self._slots)
        if slot.guard is not None:
            self._feeder.after(slot.guard)
            slot.guard = None
        if slot.memory is None or slot.memory.nbytes < room:
            slot.memory = None
            slot.memory = self._feeder.alloc(room)
        points = slot.memory.part(0, words.nbytes)
        return Landing(slot, points, self._feeder.send(points, words, pin))

    def drop(self) -> None:
        """Give all memory back, each slot's behind what was queued with it."""
        self._slots = [Slot() for _ in self._slots]
