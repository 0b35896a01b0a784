"""Two clocks for every case: the wall's, and that of what did the work.

On a CPU the second is processor time, all threads together, which moves less where other programs run; on
a GPU it is the time between two events in the stream around the work, so without the host's tail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple, Protocol, TypeVar

from cuzk.backends import Backend
from cuzk.backends.cuda.machine import Machine
from cuzk.bench.stages import TimedMachine
from cuzk.errors import KernelError

T = TypeVar("T")
Wait = Callable[[], T]
"""What is left of queued work: waits for it and gives the result."""


class Clock(Protocol):
    """Marks moments of the work and tells what lay between them."""

    measures: str  # "processor" or "device"

    def mark(self) -> Any:
        """Now, in the order of the work."""
        ...

    def milliseconds(self, start: Any, end: Any) -> float:
        """Milliseconds of work between two marks."""
        ...

    def begin(self) -> None:
        """A sample starts: nothing queued before it is left undone."""
        ...


class ProcessorClock:
    """User and system time of this process."""

    measures = "processor"

    def mark(self) -> float:
        """Seconds so far."""
        return time.process_time()

    def milliseconds(self, start: float, end: float) -> float:
        """Their difference."""
        return 1e3 * (end - start)

    def begin(self) -> None:
        """A CPU backend's calls return when the work is done."""


class DeviceClock:
    """Events in a machine's stream."""

    measures = "device"

    def __init__(self, machine: Machine) -> None:
        self.mark = machine.mark
        self.milliseconds = machine.milliseconds
        self.begin = machine.begin if isinstance(machine, TimedMachine) else machine.finish


def clock_of(backend: Backend) -> Clock:
    """Events of the backend's machine; processor time where it works on none."""
    machine = getattr(backend, "machine", None)
    if isinstance(machine, Machine):
        return DeviceClock(machine)
    if machine is not None or backend.name.startswith("cuda"):
        raise KernelError(f"{backend.name}: expected a machine with events to time, found none")
    return ProcessorClock()


class Figure(NamedTuple):
    """Milliseconds over the repetitions."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, samples: list[float]) -> Figure:
        """At least one sample."""
        return cls(*(round(f(samples), 4) for f in (median, min, max)))


@dataclass(frozen=True)
class Times:
    """``work`` is what the clock ``measures``."""

    wall: Figure
    work: Figure
    measures: str
    reps: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON: wall_ms and processor_ms or device_ms, each median, least, most."""
        return {
            "reps": self.reps,
            f"{self.measures}_ms": self.work._asdict(),
            "wall_ms": self.wall._asdict(),
        }


class Meter:
    """Samples of named stretches of work; an instance is what :func:`cuzk.prover.prove` takes as ``phase``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: list[tuple[str, float, Any, Any]] = []
        self._wall: dict[str, list[float]] = {}
        self._work: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """One sample, of what happens inside; read later, so that reading it delays nothing.

        A part ("commit.a") of a phase on a device is waited for, not queued, inside: its wall time counts.
        """
        queued = "." not in name or self._clock.measures == "processor"
        start, wall = self._clock.mark() if queued else None, time.perf_counter()
        yield
        spent = time.perf_counter() - wall
        self._open.append((name, spent, start, self._clock.mark() if queued else None))

    def run(self, name: str, queue: Callable[[], Wait[T]]) -> T:
        """One sample from idle to result.

        A device's work ends with what ``queue`` has queued, a CPU's and the wall time with the result.
        """
        self._clock.begin()
        wall, start = time.perf_counter(), self._clock.mark()
        wait = queue()
        end = self._clock.mark()
        result = wait()
        spent = time.perf_counter() - wall
        if self._clock.measures == "processor":
            end = self._clock.mark()
        self._open.append((name, spent, start, end))
        self._settle()
        return result

    def times(self, name: str) -> Times:
        """Of a stretch that was sampled."""
        self._settle()
        wall, work = (Figure.of(s[name]) for s in (self._wall, self._work))
        return Times(wall, work, self._clock.measures, len(self._wall[name]))

    def names(self) -> list[str]:
        """In the order of their first sample."""
        self._settle()
        return list(self._wall)

    def _settle(self) -> None:
        for name, wall, start, end in self._open:
            self._wall.setdefault(name, []).append(1e3 * wall)
            work = 1e3 * wall if start is None else self._clock.milliseconds(start, end)
            self._work.setdefault(name, []).append(work)
        self._open.clear()


def done(value: T) -> Wait[T]:
    """Work that was finished before it was asked for."""
    return lambda: value
