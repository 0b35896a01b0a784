"""What happened when: spans of host threads and device streams on one clock, cheap enough to be always kept.

A *track* is whatever does one thing at a time: a host thread, a stream of a device. Host spans are measured
where they happen; a stream's are two events that are read when somebody looks, so that recording never waits.
Times are seconds of ``time.perf_counter``. Old spans make way: memory is bounded.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

KEPT = 1 << 14  # spans; a proof makes some 100, a streamed one some 1000

Fact = str | int | float


@dataclass(frozen=True)
class Span:
    """``name`` on ``track`` from ``start`` to ``end``; ``facts`` such as bytes."""

    track: str
    name: str
    start: float
    end: float
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long."""
        return self.end - self.start


class Timeline:
    """Spans of all threads and streams of a prover, the last ``kept`` of them."""

    def __init__(self, kept: int = KEPT) -> None:
        self._found: deque[Span] = deque(maxlen=kept)
        self._open: deque[Callable[[], Span]] = deque(maxlen=kept)
        self._lock = threading.Lock()

    @contextmanager
    def span(self, name: str, track: str | None = None, **facts: Fact) -> Iterator[None]:
        """Record what happens inside, on the calling thread's track if no other is named."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(
                Span(track or threading.current_thread().name, name, start, perf_counter(), facts)
            )

    def add(self, span: Span) -> None:
        """A span that is over."""
        self._found.append(span)

    def later(self, resolve: Callable[[], Span]) -> None:
        """A span of a device: ``resolve`` is called when the spans are read, and waits if it must."""
        self._open.append(resolve)

    def spans(self, since: float = 0.0) -> list[Span]:
        """All that ended after ``since``, by their start; waits for the device's."""
        with self._lock:
            while self._open:
                self._found.append(self._open.popleft()())
            found = list(self._found)
        return sorted((s for s in found if s.end > since), key=lambda s: (s.start, -s.end))
