"""Where a proof's time and memory went, and what exactly made it."""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cuzk.backends import Backend
from cuzk.timeline import Timeline

STATUS = Path("/proc/self/status")
ON_THE_DEVICE = ("evaluate", "quotient", "commit")


@dataclass(frozen=True)
class Report:
    """``milliseconds`` has "load" (reading the key, not part of "total"), the phases "evaluate",
    "quotient", "commit", "assemble" and "verify", each sum of "commit" as "commit.a" and so on, "check"
    (reading the witness and what is known of the circuit), "wait" (for other proofs' turns), and "total", the
    whole call. They are times of the host. A device with a queue only queues in "evaluate" and "quotient" and is waited for in "commit":
    "commit.a" has what was left of those two, every other sum the time from the one before to it. What the
    device itself took for the three is in ``device_milliseconds``.
    """

    device: str  # "cpu", "cuda:0"
    device_title: str  # "NVIDIA H200"
    reason: str  # why this device
    arithmetic: str  # "adx" or "portable"
    threads: int
    milliseconds: dict[str, float]
    device_milliseconds: dict[str, float]
    lanes: int  # proofs that may be in work on the device at once
    transfers: list[str]  # what went another way than the best, and why: copies, turns
    retries: int  # proofs that failed their own verification before this one
    planned_bytes: int  # what the proof was expected to need, the key included
    peak_bytes: int  # the process's largest resident size so far
    device_planned_bytes: int  # of the device's own memory, at most; 0 where it has none
    device_resident_bytes: int  # of that, what the key and the circuit take from proof to proof
    key: str
    key_digest: str
    key_bytes: int
    key_checked: bool  # the file had the digest that was asked for
    circuit_digest: str
    curve: str
    recipe: str
    constraints: int
    wires: int
    public: int
    domain: int
    versions: dict[str, str]

    @property
    def total_ms(self) -> float:
        """Milliseconds from the call of ``prove`` to its return."""
        return self.milliseconds["total"]

    @property
    def load_ms(self) -> float:
        """Milliseconds for reading the key, spent once per Prover."""
        return self.milliseconds["load"]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Stopwatch:
    """Adds up milliseconds by name, each time a span of ``timeline``; ``on_phase`` hears each name when it begins."""

    def __init__(self, timeline: Timeline, on_phase: Callable[[str], None] | None = None) -> None:
        self.milliseconds: dict[str, float] = {}
        self._timeline = timeline
        self._on_phase = on_phase
        self._marks: list[tuple[str, Backend, Any, Any]] = []

    def add(self, name: str, milliseconds: float) -> None:
        """What was spent on a phase before, and is a span already."""
        self.milliseconds[name] = self.milliseconds.get(name, 0.0) + milliseconds

    def on(self, backend: Backend) -> Callable[[str], AbstractContextManager[None]]:
        """Phases on a device; those that it does are timed by its clock as well."""

        @contextmanager
        def phase(name: str) -> Iterator[None]:
            with self(name):
                if name not in ON_THE_DEVICE:
                    yield
                    return
                start = backend.mark()
                yield
                self._marks.append((name, backend, start, backend.mark()))

        return phase

    def device_milliseconds(self, backend: Backend) -> dict[str, float]:
        """What that device took for the phases that it ended (another may be lost)."""
        found: dict[str, float] = {}
        for name, on, start, end in self._marks:
            if on is backend:
                found[name] = found.get(name, 0.0) + backend.milliseconds(start, end)
        return found

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """A phase of the prover."""
        if self._on_phase:
            self._on_phase(name)
        with self.adding(name):
            yield

    @contextmanager
    def adding(self, name: str) -> Iterator[None]:
        """More of a phase, or what is none: nobody hears of it."""
        start = perf_counter()
        try:
            yield
        finally:
            end = perf_counter()
            self.add(name, 1000 * (end - start))
            self._timeline.over(name, start, end)


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    if STATUS.exists():  # getrusage would count what the process was before exec, too
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def versions() -> dict[str, str]:
    """What to name in a bug report."""
    from cuzk import __version__

    return {"cuzk": __version__, "numpy": np.__version__, "python": platform.python_version()}
