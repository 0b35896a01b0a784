"""A timeline as a file: the Trace Event Format, which ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from cuzk.timeline import Span, ordered


def chrome_trace(spans: Iterable[Span]) -> bytes:
    """The spans as JSON in UTF-8, times in microseconds from the start of the first one.

    The host is process 0 and its threads' rows; each device is a process with its streams' rows, compute first.
    Spans of a row nest; where two of a track overlap without nesting (threads of one name), it gets further rows.
    """
    given = ordered(spans)
    devices = ["", *sorted({span.device for span in given} - {""})]
    tracks = sorted(
        {(devices.index(span.device), "compute" not in span.track, span.track) for span in given}
    )
    origin = given[0].start if given else 0.0
    events: list[dict[str, Any]] = []
    for pid, device in enumerate(devices):
        events += _named("process", pid, 0, device or "host", pid)
    for position, (pid, _, track) in enumerate(tracks):
        own = [span for span in given if (span.device, span.track) == (devices[pid], track)]
        for extra, row in enumerate(_rows(own, origin)):
            tid = 1000 * position + extra + 1
            name = f"{track} ({extra + 1})" if extra else track
            events += _named("thread", pid, tid, name, tid)
            events += [{"ph": "X", "pid": pid, "tid": tid, **event} for event in row]
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, allow_nan=False).encode()


def _named(what: str, pid: int, tid: int, name: str, place: int) -> list[dict[str, Any]]:
    """Metadata events: a process's or thread's name and where it stands."""
    event = {"ph": "M", "pid": pid, "tid": tid}
    return [
        {**event, "name": f"{what}_name", "args": {"name": name}},
        {**event, "name": f"{what}_sort_index", "args": {"sort_index": place}},
    ]


def _rows(spans: list[Span], origin: float) -> list[list[dict[str, Any]]]:
    """Complete events, each in the first row where it follows or lies within what is there; whole nanoseconds."""
    rows: list[tuple[list[int], list[dict[str, Any]]]] = []  # ends of spans that are open, events
    for span in spans:
        start, end = (round(1e9 * (at - origin)) for at in (span.start, span.end))
        for ends, _ in rows:
            while ends and ends[-1] <= start:
                ends.pop()
        free = [row for row in rows if not row[0] or end <= row[0][-1]]
        if not free:
            free = [([], [])]
            rows += free
        ends, events = free[0]
        ends.append(end)
        times = {"ts": start / 1000, "dur": (end - start) / 1000}
        events.append({"name": span.name, **times, "args": dict(span.facts)})
    return [events for _, events in rows]
