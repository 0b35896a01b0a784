"""What these benchmarks share: clocks, statistics, sizes as options.

Wall time is what a person waits for; processor time (all threads, user and system) moves less where
other programs run on the same machine.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple


class Timing(NamedTuple):
    """Milliseconds."""

    wall: float
    cpu: float


def least(work: Callable[[], object], *, repeat: int = 3, seconds: float = 0.0) -> Timing:
    """The least of each clock over ``repeat`` calls, or as many more as ``seconds`` give time for."""
    wall = cpu = float("inf")
    end, calls = time.perf_counter() + seconds, 0
    while calls < repeat or time.perf_counter() < end:
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        work()
        wall = min(wall, time.perf_counter() - wall_start)
        cpu = min(cpu, time.process_time() - cpu_start)
        calls += 1
    return Timing(1e3 * wall, 1e3 * cpu)


class Meter:
    """Samples of named phases; an instance is what :func:`cuzk.prover.prove` takes as ``phase``."""

    def __init__(self) -> None:
        self._samples: dict[str, list[tuple[float, float, int]]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        before = _spent()
        yield
        wall, cpu, faults = (a - b for a, b in zip(_spent(), before, strict=True))
        self._samples.setdefault(name, []).append((1e3 * wall, 1e3 * cpu, int(faults)))

    def medians(self) -> dict[str, dict[str, float]]:
        """name -> wall_ms, cpu_ms, faults (pages touched for the first time), medians of the samples."""
        return {
            name: {
                "wall_ms": round(median(s[0] for s in samples), 3),
                "cpu_ms": round(median(s[1] for s in samples), 3),
                "faults": median(s[2] for s in samples),
            }
            for name, samples in self._samples.items()
        }


def _spent() -> tuple[float, float, int]:
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return time.perf_counter(), time.process_time(), faults


def sizes(text: str) -> list[int]:
    """An option: "12-17" or "12,15"."""
    try:
        low, dash, high = text.partition("-")
        found = list(range(int(low), int(high) + 1)) if dash else [int(k) for k in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"expected sizes as 12-17 or 12,15, found {text!r}")
    return found
