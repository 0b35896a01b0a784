"""What a way of proving did in its turns, as figures: for JSON, and as lines for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from cuzk.bench.clocks import Figure
from cuzk.bench.idle import Batches, Copies, Use, batches, computing, copies, sums, uses
from cuzk.bench.intervals import length
from cuzk.prover.session import Result
from cuzk.timeline import Span

MINUTE = 60
SUMS = ("a", "b_g1", "b_g2", "l", "h")  # in the order in which a proof starts them


@dataclass(frozen=True)
class Turn:
    """Some proofs, from the start of the first to the end of the last, in seconds of the timeline."""

    start: float
    end: float
    results: list[Result]
    spans: list[Span]

    @property
    def per_minute(self) -> float:
        """Proofs."""
        return MINUTE * len(self.results) / (self.end - self.start)


@dataclass
class Series:
    """The turns of one way; ``fields`` say which."""

    name: str
    fields: Mapping[str, Any]
    turns: list[Turn] = field(default_factory=list)

    @property
    def results(self) -> list[Result]:
        """Of all turns."""
        return [result for turn in self.turns for result in turn.results]

    @property
    def spans(self) -> list[Span]:
        """Of all turns."""
        return [span for turn in self.turns for span in turn.spans]

    @property
    def wall(self) -> Figure:
        """Milliseconds of a call."""
        return Figure.of([result.report.total_ms for result in self.results])

    @property
    def per_minute(self) -> float:
        """Proofs, of the turn in the middle."""
        return median(turn.per_minute for turn in self.turns)

    @property
    def device_idle(self) -> float | None:
        """The part of all turns in which no stream of the device computed; None without a device."""
        if not any(span.device for span in self.spans):
            return None
        whole = sum(turn.end - turn.start for turn in self.turns)
        busy = sum(length(computing(turn.spans, (turn.start, turn.end))) for turn in self.turns)
        return 1 - busy / whole

    @property
    def lanes(self) -> int:
        """Proofs at a time that the device had room for."""
        return self.results[0].report.lanes

    def phases(self, *, device: bool = False) -> dict[str, float]:
        """Median milliseconds of each, by the host's clock or the device's."""
        reports = [result.report for result in self.results]
        every = [r.device_milliseconds if device else r.milliseconds for r in reports]
        names = [name for name in every[0] if name not in ("load", "total")]
        return {name: round(median(each.get(name, 0.0) for each in every), 4) for name in names}

    def sums(self) -> dict[str, float] | None:
        """Median milliseconds of each of SUMS on the device; None without one, or where spans were dropped."""
        found = [sums(result.spans) for result in self.results]
        if {len(of_one) for of_one in found} != {len(SUMS)}:
            return None
        medians = [round(1e3 * median(of_all), 4) for of_all in zip(*found, strict=True)]
        return dict(zip(SUMS, medians, strict=True))

    def uses(self) -> list[Use]:
        """Of each track over all turns, put end to end."""
        found: dict[str, Use] = {}
        for turn in self.turns:
            for use in uses(turn.spans, (turn.start, turn.end)):
                before = found.get(use.track, Use(use.track, 0.0, 0.0, 0.0, 0.0))
                found[use.track] = Use(
                    use.track,
                    0.0,
                    before.end + use.seconds,
                    before.work + use.work,
                    before.waiting + use.waiting,
                )
        return list(found.values())

    def copies(self) -> list[Copies]:
        """Of each kind."""
        return copies(self.spans)

    def batches(self) -> list[Batches]:
        """Of the streamed sums, all of a device together."""
        found: dict[str, Batches] = {}
        for each in (b for turn in self.turns for b in batches(turn.spans)):
            before = found.get(each.device, Batches(each.device, 0, each.start, 0.0, 0.0))
            found[each.device] = Batches(
                each.device,
                before.count + each.count,
                before.start,
                before.seconds + each.seconds,
                before.between + each.between,
            )
        return list(found.values())

    def notes(self) -> list[str]:
        """What was done otherwise than best, each once."""
        return list(dict.fromkeys(note for r in self.results for note in r.report.transfers))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; milliseconds."""
        idle = self.device_idle
        return {
            "bench": "phases",
            "name": self.name,
            "device": self.results[0].report.device,
            **self.fields,
            "lanes_used": self.lanes,
            "turns": len(self.turns),
            "proofs": len(self.results),
            "wall_ms": self.wall._asdict(),
            "proofs_per_minute": round(self.per_minute, 2),
            "host_ms": self.phases(),
            "device_ms": self.phases(device=True),
            "sums_ms": self.sums(),
            "device_idle_percent": None if idle is None else round(100 * idle, 3),
            "streams": [use.as_dict() for use in self.uses()],
            "copies": [kind.as_dict() for kind in self.copies()],
            "batches": [each.as_dict() for each in self.batches()],
            "notes": self.notes(),
        }
