"""What the stand-in for the driver is made of: streams with what waits in them, events, device memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(eq=False)
class Stream:
    waiting: list[Callable[[], None] | Wait] = field(default_factory=list)
    recorded: list[Event] = field(default_factory=list)  # events that it has not passed yet
    follows: dict[Stream, int] = field(default_factory=dict)  # to what places it waits for others
    done: int = 0
    open: bool = True
    busy: bool = False  # it does not run ahead for a while

    def run(self, until: int | None = None) -> None:
        """Up to that place; where it waits for another stream, that one runs as far as it must."""
        while self.waiting and (until is None or self.done < until):
            step = self.waiting[0]
            if isinstance(step, Wait):
                step.stream.run(step.place)
            self._take()

    def run_ahead(self, steps: int) -> None:
        """As far as it can by itself."""
        while self.waiting and steps:
            step = self.waiting[0]
            if isinstance(step, Wait) and step.stream.done < step.place:
                return
            self._take()
            steps -= 1

    def run_frees(self) -> None:
        """And no work."""
        while self.waiting and isinstance(self.waiting[0], Free | Wait):
            step = self.waiting[0]
            if isinstance(step, Wait) and step.stream.done < step.place:
                return
            self._take()

    def _take(self) -> None:
        step = self.waiting.pop(0)
        if not isinstance(step, Wait):
            step()
        self.done += 1
        self.pass_events()

    def pass_events(self) -> None:
        while self.recorded and self.recorded[0].place <= self.done:
            self.recorded.pop(0).passed = time.perf_counter()

    @property
    def queued(self) -> int:
        return self.done + len(self.waiting)


@dataclass(frozen=True)
class Free:
    """A stream's step that gives memory back."""

    make: Callable[[], None]

    def __call__(self) -> None:
        self.make()


@dataclass(frozen=True)
class Wait:
    """A stream's step that is done when another has come to a place."""

    stream: Stream
    place: int


@dataclass(eq=False)
class Event:
    timing: bool
    stream: Stream | None = None
    place: int = 0
    passed: float = 0.0


@dataclass(eq=False)
class Piece:
    """Device memory; ``pending`` counts frees that its streams have not come to."""

    array: NDArray[np.uint8]
    nbytes: int
    pending: int = 0
    live: bool = True
    freed: Wait | None = None  # the last time

    @property
    def address(self) -> int:
        return (int(self.array.ctypes.data) + 255) // 256 * 256

    def is_there_for(self, stream: Stream) -> bool:
        """Freed by now, in the stream's own order, or at a place that it waits for."""
        if not self.pending or self.freed is None or self.freed.stream is stream:
            return True
        return stream.follows.get(self.freed.stream, 0) >= self.freed.place

    def fill(self, byte: int) -> None:
        self.array[:] = byte
