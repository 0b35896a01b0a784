"""What streams did with their time, and copies with theirs: pure functions over spans of a timeline.

A stream *works* while a span of its track is open, *waits* while a span named "wait" is (that counts before work
around it), and has *nothing* to do else, between the start of the first span and the end of the last. Spans inside
spans count once, in any order, at n log n for n of them. Copies are spans that tell their ``bytes``, batches those
that tell the ``batch`` of a sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cuzk.bench.intervals import Interval, common, length, union, without
from cuzk.timeline import Fact, Span

WAIT = "wait"  # and "wait for ...": a stream behind a mark of another, a thread behind anything
SUM = "sum "  # "sum g1": of resident points, whole


@dataclass(frozen=True)
class Use:
    """Seconds of one track; the three are the whole of its window."""

    track: str
    start: float
    end: float
    work: float
    waiting: float

    @property
    def seconds(self) -> float:
        """The window."""
        return self.end - self.start

    @property
    def nothing(self) -> float:
        """What is left."""
        return self.seconds - self.work - self.waiting

    @property
    def idle(self) -> float:
        """The part of the window without work, 0 to 1."""
        return 1 - self.work / self.seconds if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, str | float]:
        """For JSON, milliseconds and percent."""
        return {
            "track": self.track,
            "ms": round(1e3 * self.seconds, 4),
            "work_ms": round(1e3 * self.work, 4),
            "waiting_ms": round(1e3 * self.waiting, 4),
            "nothing_ms": round(1e3 * self.nothing, 4),
            "idle_percent": round(100 * self.idle, 3),
        }


@dataclass(frozen=True)
class Copies:
    """All copies of one kind on one track; ``seconds`` counts time with two of them open once."""

    track: str
    name: str
    how: str  # "pinned", "staged", "pageable" or "" where they do not tell
    count: int
    nbytes: int
    seconds: float
    hidden: float  # of it, while other streams of the device worked

    @property
    def gigabytes_per_second(self) -> float:
        """0 where they took no time."""
        return self.nbytes / self.seconds / 1e9 if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, str | float]:
        """For JSON."""
        return {
            "track": self.track,
            "name": self.name,
            "how": self.how,
            "count": self.count,
            "bytes": self.nbytes,
            "ms": round(1e3 * self.seconds, 4),
            "gb_per_s": round(self.gigabytes_per_second, 3),
            "hidden_ms": round(1e3 * self.hidden, 4),
        }


@dataclass(frozen=True)
class Batches:
    """The batches of one streamed sum: from the first's start to the last's end, and how much of it none computed."""

    device: str
    count: int
    start: float
    seconds: float
    between: float

    def as_dict(self) -> dict[str, str | float]:
        """For JSON."""
        part = self.between / self.seconds if self.seconds > 0 else 0.0
        return {
            "device": self.device,
            "count": self.count,
            "ms": round(1e3 * self.seconds, 4),
            "between_ms": round(1e3 * self.between, 4),
            "between_percent": round(100 * part, 3),
        }


def uses(spans: Iterable[Span], window: Interval | None = None) -> list[Use]:
    """Of every track, by name; within ``window`` where one is given, else each between its own first and last."""
    return [_use(track, of_track, window) for track, of_track in _by_track(spans).items()]


def copies(spans: Iterable[Span]) -> list[Copies]:
    """Of every track, name and way."""
    tracks = _by_track(spans)
    work = {
        track: union((s.start, s.end) for s in found if not is_wait(s) and "bytes" not in s.facts)
        for track, found in tracks.items()
    }
    kinds: dict[tuple[str, str, str], list[Span]] = {}
    for track, found in tracks.items():
        for span in found:
            if "bytes" in span.facts:
                key = track, span.name, str(span.facts.get("how", ""))
                kinds.setdefault(key, []).append(span)
    result = []
    for (track, name, how), found in sorted(kinds.items()):
        busy = union((s.start, s.end) for s in found)
        device = found[0].device
        others = union(
            part
            for other, parts in work.items()
            if device and other != track and tracks[other][0].device == device
            for part in parts
        )
        nbytes = sum(int(s.facts["bytes"]) for s in found)
        hidden = length(common(busy, others))
        result.append(Copies(track, name, how, len(found), nbytes, length(busy), hidden))
    return result


def batches(spans: Iterable[Span]) -> list[Batches]:
    """Of every streamed sum, in the order of their starts.

    What a sum does for a batch are spans of different names, all with the batch's number. One whose number is not above
    that of the last one of its name, of the same device and ``proof``, begins another sum. They may alternate
    between tracks.
    """
    sums: dict[tuple[str, Fact], list[list[Span]]] = {}
    last: dict[tuple[str, Fact], dict[str, int]] = {}
    waits: dict[str, list[Interval]] = {}
    for span in sorted(spans, key=lambda s: (s.start, s.end, s.name)):
        if is_wait(span):
            waits.setdefault(span.track, []).append((span.start, span.end))
        elif "batch" in span.facts:
            key, number = (span.device, span.facts.get("proof", "")), int(span.facts["batch"])
            if key not in sums or number <= last[key].get(span.name, -1):
                sums.setdefault(key, []).append([])
                last[key] = {}
            last[key][span.name] = number
            sums[key][-1].append(span)
    still = {track: union(found) for track, found in waits.items()}
    found = sorted((s for of_one in sums.values() for s in of_one), key=lambda s: s[0].start)
    return [_batches(s, still) for s in found]


def sums(spans: Iterable[Span]) -> list[float]:
    """Seconds of each sum of one proof in the order of their starts, over resident points or streamed.

    On the device, from the first that is queued for it to the last; those on several streams may overlap.
    """
    streamed: list[Span] = []
    whole: list[tuple[float, float]] = []
    for span in spans:
        if "batch" in span.facts:
            streamed.append(span)
        elif span.device and span.name.startswith(SUM):
            whole.append((span.start, span.seconds))
    whole += [(each.start, each.seconds) for each in batches(streamed)]
    return [seconds for _, seconds in sorted(whole)]


def computing(spans: Iterable[Span], window: Interval) -> list[Interval]:
    """When any stream of a device did work that is no copy, within ``window``.

    A copy in a stream's own order, inside a phase of it, is a time in which the device computes nothing, as a wait is.
    """
    found: list[Interval] = []
    for of_track in _by_track(s for s in spans if s.device).values():
        inside = [(max(s.start, window[0]), min(s.end, window[1]), s) for s in of_track]
        still = union((a, b) for a, b, s in inside if is_wait(s) or "bytes" in s.facts)
        work = union((a, b) for a, b, s in inside if not (is_wait(s) or "bytes" in s.facts))
        found += without(work, still)
    return union(found)


def is_wait(span: Span) -> bool:
    """Whether a stream or a thread stood still in it."""
    return span.name == WAIT or span.name.startswith(WAIT + " ")


def _by_track(spans: Iterable[Span]) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda s: (s.track, s.start, s.end, s.name)):
        found.setdefault(span.track, []).append(span)
    return found


def _use(track: str, spans: list[Span], window: Interval | None) -> Use:
    start, end = window or (min(s.start for s in spans), max(s.end for s in spans))
    inside = [(max(s.start, start), min(s.end, end), is_wait(s)) for s in spans]
    waits = union((a, b) for a, b, wait in inside if wait)
    work = union((a, b) for a, b, wait in inside if not wait)
    waiting = length(waits)
    return Use(track, start, end, length(work) - length(common(work, waits)), waiting)


def _batches(spans: list[Span], still: dict[str, list[Interval]]) -> Batches:
    """``still``: when each track waited."""
    busy: list[Interval] = []
    for track, own in _by_track(spans).items():
        busy += without(union((s.start, s.end) for s in own), still.get(track, []))
    whole = max(s.end for s in spans) - spans[0].start
    count = max(Counter(s.name for s in spans).values())  # what is done once for all is there once
    return Batches(spans[0].device, count, spans[0].start, whole, whole - length(union(busy)))
