"""What happened: spans of the last minutes, proofs done by the minute, totals of each kind since the start."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from cuzk.engine.catalogue import PartProof
from cuzk.engine.job import Job, Outcome, State
from cuzk.engine.snapshot import KindTotals, SpanView, WaitTotals

MINUTES = 60  # of throughput
SPAN_SECONDS = 600.0
SPANS = 20_000  # at most: 10 a proof, 3 proofs a second


@dataclass
class _Waits:
    """Of the jobs of one kind and priority that began."""

    jobs: int = 0
    seconds: float = 0.0
    longest: float = 0.0


class History:
    """Times are seconds of the epoch."""

    def __init__(self) -> None:
        self._spans: deque[SpanView] = deque(maxlen=SPANS)
        self._minutes: deque[tuple[float, int]] = deque(maxlen=MINUTES)
        self._totals: dict[str, KindTotals] = {}
        self._waits: dict[tuple[str, str], _Waits] = {}

    def submitted(self, job: Job) -> None:
        """It was accepted, or taken up from the journal."""
        total = self._total(job)
        self._totals[total.kind] = replace(total, submitted=total.submitted + 1)

    def began(self, job: Job, now: float) -> None:
        """Its first partition."""
        wait = max(0.0, now - job.accepted)
        total = self._total(job)
        self._totals[total.kind] = replace(
            total, begun=total.begun + 1, wait_seconds=total.wait_seconds + wait
        )
        waits = self._waits.setdefault((total.kind, job.priority.name.lower()), _Waits())
        waits.jobs += 1
        waits.seconds += wait
        waits.longest = max(waits.longest, wait)

    def ended(self, job: Job, outcome: Outcome, now: float) -> None:
        """One way or another."""
        total = self._total(job)
        if outcome.state is State.DONE:
            seconds = total.seconds + max(0.0, now - job.accepted)
            total = replace(total, done=total.done + 1, seconds=seconds)
            minute = now - now % 60
            if self._minutes and self._minutes[-1][0] == minute:
                self._minutes[-1] = (minute, self._minutes[-1][1] + 1)
            else:
                self._minutes.append((minute, 1))
        elif outcome.state is State.FAILED:
            total = replace(total, failed=total.failed + 1)
        else:
            total = replace(total, cancelled=total.cancelled + 1)
        self._totals[total.kind] = total

    def _total(self, job: Job) -> KindTotals:
        kind = job.request.kind
        return self._totals.get(kind) or KindTotals(kind=kind)

    def span(self, span: SpanView) -> None:
        """Something took a while; the oldest are forgotten."""
        self._spans.append(span)
        while self._spans and self._spans[0].end < span.end - SPAN_SECONDS:
            self._spans.popleft()

    def partition(self, worker: str, job: str, proof: PartProof) -> None:
        """A partition's own spans."""
        for track, name, start, end in proof.spans:
            self.span(SpanView(worker, track, name, start, end, job))

    def spans(self, since: float) -> tuple[SpanView, ...]:
        """Those that ended at or after ``since``."""
        return tuple(span for span in self._spans if span.end >= since)

    def throughput(self, now: float) -> tuple[tuple[float, int], ...]:
        """(start of a minute, proofs done in it), of the last 60 minutes those with any."""
        return tuple(entry for entry in self._minutes if now - 60 * MINUTES < entry[0] <= now)

    def totals(self) -> tuple[KindTotals, ...]:
        """By kind."""
        return tuple(self._totals[kind] for kind in sorted(self._totals))

    def waits(self) -> tuple[WaitTotals, ...]:
        """By kind and priority."""
        return tuple(
            WaitTotals(kind, priority, waits.jobs, waits.seconds, waits.longest)
            for (kind, priority), waits in sorted(self._waits.items())
        )
