"""The snapshot as JSON: what the page draws, what scripts read, what Curio's own page of a prover reads.

One object. Times are seconds of the epoch, durations seconds (``milliseconds`` excepted), sizes bytes.

    now, started, uptime_secs, version, process, draining, rss_bytes, journal_bytes, queue_limit
    proofs_last_hour, throughput [[start of a minute, proofs done in it], ...]
    states, priorities {name: how many jobs that have not ended}
    queues, totals, waits, workers, keys, memories: as in engine.snapshot
    jobs [...]: those asked for, in the order in which they will be worked on, then ended ones, the last first;
                ``partitions_total`` of each, and in ``partitions`` those that are staging, staged, proving or done: others are pending
    jobs_known, jobs_found, jobs_from: how many there are, how many of them match, the place of the first one here
    failures [...]: the last jobs that failed, the last first, whatever was asked for
    lanes [{worker, track, spans [[name, start, end, job], ...]}, ...], spans_left_out
    partitions [[worker, job, partition, start, end], ...]: of all jobs here, those in work (end 0) or over since ``since``

and the objects of :mod:`cuzk.server.curio_status`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from cuzk.engine.snapshot import JobView, Snapshot, SpanView
from cuzk.server.curio_status import curio_status

ENDED = frozenset({"done", "failed", "cancelled"})
RECENT = 300.0  # seconds


@dataclass(frozen=True)
class Wanted:
    """Which part of the lists: ``jobs`` from the ``first`` of those whose id, kind, circuit or client has ``text``
    in it and that are in ``state`` (a state's name, "open", "ended" or nothing); the newest ``spans``."""

    jobs: int = 200
    first: int = 0
    text: str = ""
    state: str = ""
    spans: int = 2000
    since: float = 0.0
    """Spans that ended later, and partitions; of these not more than the last five minutes unless it is set."""

    def has(self, job: JobView) -> bool:
        """Whether a job is one of them."""
        if not self.state and not self.text:
            return True
        if self.state == "open" and job.state in ENDED:
            return False
        if self.state == "ended" and job.state not in ENDED:
            return False
        if self.state not in ("", "open", "ended", job.state):
            return False
        text = self.text.casefold()
        names = (job.id, job.kind, job.circuit, job.priority, job.client)
        return not text or any(text in name.casefold() for name in names)


def status_json(snapshot: Snapshot, wanted: Wanted | None = None) -> bytes:
    """ASCII: every other character is escaped."""
    return json.dumps(status(snapshot, wanted or Wanted()), separators=(",", ":")).encode()


def status(snapshot: Snapshot, wanted: Wanted) -> dict[str, Any]:
    """The object."""
    found = [job for job in snapshot.jobs if wanted.has(job)]
    return {
        **_daemon(snapshot),
        "queues": [vars(queue) for queue in snapshot.queues],
        "totals": [vars(total) for total in snapshot.totals],
        "waits": [vars(wait) for wait in snapshot.waits],
        "workers": [vars(worker) for worker in snapshot.workers],
        "keys": [vars(key) for key in snapshot.keys],
        "memories": [vars(memory) for memory in snapshot.memories],
        "jobs": [_job(job) for job in found[wanted.first : wanted.first + wanted.jobs]],
        "jobs_known": len(snapshot.jobs),
        "jobs_found": len(found),
        "jobs_from": wanted.first,
        "failures": _failures(snapshot),
        "lanes": _lanes(_newest(snapshot.spans, wanted.spans)),
        "partitions": _partitions(snapshot, wanted),
        "spans_left_out": max(0, len(snapshot.spans) - wanted.spans),
        **curio_status(snapshot),
    }


def _daemon(snapshot: Snapshot) -> dict[str, Any]:
    unended = [job for job in snapshot.jobs if job.state not in ENDED]
    return {
        "now": snapshot.now,
        "started": snapshot.started,
        "version": snapshot.version,
        "process": snapshot.process,
        "draining": snapshot.draining,
        "rss_bytes": snapshot.rss,
        "journal_bytes": snapshot.journal_bytes,
        "queue_limit": snapshot.queue_limit,
        "proofs_last_hour": sum(count for _, count in snapshot.throughput),
        "throughput": snapshot.throughput,
        "states": Counter(job.state for job in unended),
        "priorities": Counter(job.priority for job in unended),
    }


def _job(job: JobView) -> dict[str, Any]:
    begun = [vars(part) for part in job.partitions if part.state != "pending"]
    return {**vars(job), "partitions": begun, "partitions_total": len(job.partitions)}


def _failures(snapshot: Snapshot) -> list[dict[str, Any]]:
    names = ("id", "number", "kind", "circuit", "code", "message", "ended")
    return [{name: getattr(job, name) for name in names} for job in snapshot.failures]


def _partitions(snapshot: Snapshot, wanted: Wanted) -> list[tuple[str, str, int, float, float]]:
    since = wanted.since or snapshot.now - RECENT
    found = [
        (part.worker, job.id, part.number, part.started, part.ended)
        for job in snapshot.jobs
        if job.started and (not job.ended or job.ended > since)
        for part in job.partitions
        if part.state == "proving" or part.ended > since
    ]
    return sorted(found, key=lambda row: row[3])[-wanted.spans :] if wanted.spans else []


def _newest(spans: tuple[SpanView, ...], most: int) -> list[SpanView]:
    if len(spans) <= most:
        return list(spans)
    return sorted(spans, key=lambda span: span.end)[len(spans) - most :]


def _lanes(spans: list[SpanView]) -> list[dict[str, Any]]:
    lanes: dict[tuple[str, str], list[tuple[str, float, float, str]]] = {}
    for span in spans:
        lane = lanes.setdefault((span.worker, span.track), [])
        lane.append((span.name, round(span.start, 4), round(span.end, 4), span.job))
    return [
        {"worker": worker, "track": track, "spans": lane}
        for (worker, track), lane in sorted(lanes.items())
    ]
