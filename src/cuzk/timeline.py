"""What happened when: spans of host threads and device streams on one clock, cheap enough to be always kept.

A *track* is whatever does one thing at a time: a host thread, a stream of a device. Host spans are measured
where they happen (some 3 us each). A stream's are two events each, read by ``collect`` once the device has passed
them, or dropped: nothing waits for them but who asks for all. Times are seconds of ``time.perf_counter``.
Old spans make way: memory and events are bounded. A stream's track begins with its device's name; a copy has the
facts ``bytes`` and ``how`` ("pinned", "staged"); a wait's name is "wait" or begins with "wait for".
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import NamedTuple

from cuzk.errors import CuzkError

KEPT = 1 << 14  # spans; a proof makes some 100, a streamed one some 1000
PENDING = 1 << 10  # spans of devices that were not read yet, two events each

Fact = str | int | float
NONE: Mapping[str, Fact] = MappingProxyType({})


class Span(NamedTuple):
    """``name`` on ``track`` from ``start`` to ``end``; ``facts`` such as bytes."""

    track: str
    name: str
    start: float
    end: float
    facts: Mapping[str, Fact] = NONE

    @property
    def seconds(self) -> float:
        """How long."""
        return self.end - self.start

    @property
    def device(self) -> str:
        """ "cuda:0" of its streams, nothing of the host's threads."""
        first = self.track.partition(" ")[0]
        return first if first.startswith("cuda:") else ""


Resolve = Callable[[bool], Span | None]
"""resolve(wait): a device's span, None where it is not over and is not to be waited for."""


@dataclass(frozen=True)
class _Scope:
    """What spans are about, and those that were."""

    facts: Mapping[str, Fact]
    found: deque[Span]


_scope: ContextVar[_Scope | None] = ContextVar("scope", default=None)


class Timeline:
    """Spans of all threads and streams of a prover, the last ``kept`` of them.

    Devices' spans that are not read are ``pending`` at most; ``dropped`` counts those that never were.
    """

    def __init__(self, kept: int = KEPT, pending: int = PENDING) -> None:
        self.dropped = 0
        self._kept, self._most = kept, pending
        self._found: deque[Span] = deque(maxlen=kept)
        self._pending: deque[tuple[Resolve, _Scope | None]] = deque()
        self._lock = threading.RLock()  # what is dropped while it is held may record, too

    @contextmanager
    def about(self, **facts: Fact) -> Iterator[deque[Span]]:
        """Spans recorded inside have these facts and are in what this gives, too, complete when it is left.

        Inside is this thread and what runs in a copy of its context (``contextvars``): a thread that does
        another's work records it in that one's context.
        """
        outer = _scope.get()
        known = {**outer.facts, **facts} if outer else facts
        scope = _Scope(known, deque(maxlen=self._kept))
        token = _scope.set(scope)
        try:
            yield scope.found
        finally:
            _scope.reset(token)
            self.collect()

    def span(self, name: str, **facts: Fact) -> AbstractContextManager[None]:
        """Record what happens inside, on the calling thread's track."""
        return _Open(self, name, facts)

    def over(self, name: str, start: float, end: float, facts: Mapping[str, Fact] = NONE) -> None:
        """What the calling thread did from ``start`` to ``end``."""
        self.add(Span(threading.current_thread().name, name, start, end, facts))

    def add(self, span: Span) -> None:
        """A span that is over."""
        self._keep(span, _scope.get())

    def later(self, resolve: Resolve) -> None:
        """A span of a device, read when it is over."""
        if len(self._pending) >= self._most:
            self.collect()
            while len(self._pending) > self._most * 3 // 4:  # or the rest is asked again at once
                self._drop()
        self._pending.append((resolve, _scope.get()))

    def collect(self, *, wait: bool = False) -> None:
        """Read the devices' spans: those that are over, or all. What a lost device cannot tell is dropped."""
        with self._lock:
            for _ in range(len(self._pending)):
                if not self._pending:
                    return
                resolve, scope = self._pending.popleft()
                try:
                    span = resolve(wait)
                except CuzkError:
                    self.dropped += 1
                    continue
                if span:
                    self._keep(span, scope)
                else:
                    self._pending.append((resolve, scope))

    def spans(self, since: float = 0.0) -> list[Span]:
        """All that ended after ``since``, in order; waits for the devices'."""
        self.collect(wait=True)
        return ordered(span for span in list(self._found) if span.end > since)

    def close(self) -> None:
        """Hold no event of a device any more."""
        self.collect()
        while self._pending:
            self._drop()

    def _keep(self, span: Span, scope: _Scope | None) -> None:
        if scope:
            span = span._replace(facts={**scope.facts, **span.facts})
            scope.found.append(span)
        self._found.append(span)

    def _drop(self) -> None:
        with self._lock:
            if self._pending:
                self._pending.popleft()
                self.dropped += 1


class _Open:
    """A span that is not over; a class, as what a generator takes to be one would be most of the cost."""

    __slots__ = ("_facts", "_name", "_start", "_timeline")

    def __init__(self, timeline: Timeline, name: str, facts: Mapping[str, Fact]) -> None:
        self._timeline, self._name, self._facts = timeline, name, facts

    def __enter__(self) -> None:
        self._start = perf_counter()

    def __exit__(self, *_: object) -> None:
        self._timeline.over(self._name, self._start, perf_counter(), self._facts)


def ordered(spans: Iterable[Span]) -> list[Span]:
    """By their start, what holds others before them."""
    return sorted(spans, key=lambda span: (span.start, -span.end))
