"""Spans of a proof on the clock of the world."""

from __future__ import annotations

import time
from collections.abc import Iterable

from cuzk.timeline import Span

EpochSpan = tuple[str, str, float, float]


def on_epoch(spans: Iterable[Span]) -> tuple[EpochSpan, ...]:
    """(track, name, start, end), seconds of the epoch; ``time.perf_counter`` has a beginning of its own."""
    offset = time.time() - time.perf_counter()
    return tuple((s.track, s.name, s.start + offset, s.end + offset) for s in spans)
