"""The snapshot as Prometheus text (format 0.0.4): made anew for every scrape, so that nothing is counted twice.

Names that dashboards of this service know are kept (``cuzk_proofs_completed_total``, ``cuzk_proofs_completed``,
``cuzk_proof_duration_seconds``, ...); labels ``proof_kind`` have underscores: "porep_c2". Counters begin at zero when the
daemon starts. What users send is never a label: a circuit's id is the configuration's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.registry import Collector

from cuzk.engine.overhead import shared
from cuzk.engine.snapshot import JobView, KindTotals, Snapshot, WaitTotals

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TIERS = ("hot", "warm", "cold", "loading", "not ready")
ENDED = frozenset({"done", "failed", "cancelled"})
Rows = Iterable[tuple[Sequence[str], float]]


def metrics_text(snapshot: Snapshot) -> str:
    """All metrics of one moment."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Moment(snapshot))
    return generate_latest(registry).decode()


class _Moment(Collector):
    """A snapshot as the library asks for it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Everything."""
        yield from _daemon(self._snapshot)
        yield from _totals(self._snapshot.totals)
        yield from _waits(self._snapshot.waits)
        yield from _queue(self._snapshot)
        yield from _devices(self._snapshot)
        yield from _memories(self._snapshot)


def _label(kind: str) -> str:
    return kind.replace("-", "_")


def _gauge(name: str, text: str, labels: Sequence[str], rows: Rows) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in rows:
        family.add_metric(values, number)
    return family


def _counter(name: str, text: str, labels: Sequence[str], rows: Rows) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in rows:
        family.add_metric(values, number)
    return family


def _daemon(snapshot: Snapshot) -> Iterator[Metric]:
    yield InfoMetricFamily("cuzk", "The daemon.", value={"version": snapshot.version})
    alone: list[tuple[str, str, float]] = [
        (
            "cuzk_uptime_seconds",
            "Since the daemon started.",
            max(0.0, snapshot.now - snapshot.started),
        ),
        ("cuzk_draining", "1 while it stops and takes nothing more.", float(snapshot.draining)),
        ("cuzk_resident_bytes", "Resident memory of the daemon's own process.", snapshot.rss),
        ("cuzk_journal_bytes", "The journal on disk, requests included.", snapshot.journal_bytes),
    ]
    for name, text, number in alone:
        yield GaugeMetricFamily(name, text, value=number)


def _totals(totals: Sequence[KindTotals]) -> Iterator[Metric]:
    kind = ("proof_kind",)
    done = sum(total.done for total in totals)
    failed = sum(total.failed for total in totals)
    yield CounterMetricFamily("cuzk_proofs_completed", "Proofs made, of all kinds.", value=done)
    yield CounterMetricFamily("cuzk_proofs_failed", "Jobs that failed, of all kinds.", value=failed)
    by_kind = [
        ("cuzk_proofs_completed", "Proofs made (a counter).", [t.done for t in totals]),
        ("cuzk_proofs_failed", "Jobs that failed (a counter).", [t.failed for t in totals]),
    ]
    for name, text, numbers in by_kind:
        kept = UnknownMetricFamily(name, text, labels=kind)  # their names lack a counter's "_total"
        for total, number in zip(totals, numbers, strict=True):
            kept.add_metric([_label(total.kind)], number)
        yield kept
    for name, text, numbers in [
        ("cuzk_jobs_submitted", "Jobs accepted.", [t.submitted for t in totals]),
        ("cuzk_jobs_begun", "Jobs whose first partition began.", [t.begun for t in totals]),
        ("cuzk_jobs_cancelled", "Jobs cancelled.", [t.cancelled for t in totals]),
    ]:
        rows = [((_label(t.kind),), n) for t, n in zip(totals, numbers, strict=True)]
        yield _counter(name, text, kind, rows)
    took = SummaryMetricFamily(
        "cuzk_proof_duration_seconds", "From acceptance to the proof.", labels=kind
    )
    for total in totals:
        took.add_metric([_label(total.kind)], total.done, total.seconds)
    yield took


def _waits(waits: Sequence[WaitTotals]) -> Iterator[Metric]:
    labels, text = ("proof_kind", "priority"), "From acceptance to the first partition."
    all_of_them = SummaryMetricFamily("cuzk_proof_wait_seconds", text, labels=labels)
    for wait in waits:
        all_of_them.add_metric([_label(wait.kind), wait.priority], wait.jobs, wait.seconds)
    yield all_of_them
    longest = [((_label(wait.kind), wait.priority), wait.longest) for wait in waits]
    yield _gauge("cuzk_proof_wait_longest_seconds", "The longest of them.", labels, longest)


def _queue(snapshot: Snapshot) -> Iterator[Metric]:
    waiting = sum(queue.pending for queue in snapshot.queues)
    running = sum(queue.in_progress for queue in snapshot.queues)
    yield GaugeMetricFamily("cuzk_queue_depth", "Jobs that have not begun.", value=waiting)
    yield GaugeMetricFamily("cuzk_queue_limit", "How many may wait.", value=snapshot.queue_limit)
    yield GaugeMetricFamily("cuzk_running_jobs", "Jobs begun and not ended.", value=running)
    here: Counter[tuple[str, str, str]] = Counter(
        (_label(job.kind), job.priority, job.state) for job in snapshot.jobs if _open(job)
    )
    labels = ("proof_kind", "priority", "state")
    yield _gauge("cuzk_queue_jobs", "Jobs that have not ended.", labels, sorted(here.items()))
    ages: dict[str, float] = {}
    for job in snapshot.jobs:
        if job.state == "queued":
            ages[job.priority] = max(job.age, ages.get(job.priority, 0.0))
    rows = [((priority,), age) for priority, age in sorted(ages.items())]
    yield _gauge("cuzk_queue_oldest_seconds", "Age of the oldest that waits.", ("priority",), rows)


def _open(job: JobView) -> bool:
    return job.state not in ENDED


def _devices(snapshot: Snapshot) -> Iterator[Metric]:
    workers = snapshot.workers
    alive = sum(worker.alive for worker in workers)
    yield GaugeMetricFamily("cuzk_gpu_workers", "Workers alive, of any device.", value=alive)
    labels = ("worker", "device")
    gauges: list[tuple[str, str, Sequence[float]]] = [
        ("cuzk_worker_up", "1 while its process lives.", [float(w.alive) for w in workers]),
        ("cuzk_worker_resident_bytes", "Resident memory.", [w.resident_bytes for w in workers]),
        ("cuzk_worker_partitions", "In work.", [len(w.partitions) for w in workers]),
    ]
    for name, text, numbers in gauges:
        rows = [((w.name, w.device), n) for w, n in zip(workers, numbers, strict=True)]
        yield _gauge(name, text, labels, rows)
    own = [w for w in workers if w.device_total]
    totals = [((w.name, w.device), w.device_total) for w in own]
    yield _gauge("cuzk_device_memory_bytes", "A GPU's memory.", labels, totals)
    free = [((w.name, w.device), w.device_free) for w in own if w.alive]
    yield _gauge("cuzk_device_free_bytes", "What of it is free, where known.", labels, free)
    restarts = [((w.name, w.device), w.restarts) for w in workers]
    yield _counter(
        "cuzk_worker_restarts", "Times its process died and began anew.", labels, restarts
    )


def _memories(snapshot: Snapshot) -> Iterator[Metric]:
    label = ("memory",)
    for name, text, numbers in [
        ("cuzk_memory_limit_bytes", "A ledger's limit.", [m.limit for m in snapshot.memories]),
        ("cuzk_memory_reserved_bytes", "Reserved of it.", [m.reserved for m in snapshot.memories]),
        (
            "cuzk_memory_free_bytes",
            "Not reserved; below 0: over the limit.",
            [m.free for m in snapshot.memories],
        ),
    ]:
        rows = [((m.name,), n) for m, n in zip(snapshot.memories, numbers, strict=True)]
        yield _gauge(name, text, label, rows)
    shares = [
        ((memory.name, what), nbytes)
        for memory in snapshot.memories
        for what, nbytes in sorted(shared(memory.owners).items())
    ]
    text = "Reserved by keys, jobs, and each process and context."
    yield _gauge("cuzk_memory_owner_bytes", text, ("memory", "owner"), shares)
    tiers = Counter(key.tier for key in snapshot.keys)
    rows_of_tiers = [((tier.replace(" ", "_"),), float(tiers[tier])) for tier in TIERS]
    yield _gauge("cuzk_keys", "Keys by where they are.", ("tier",), rows_of_tiers)
    held = [
        ((key.circuit, key.worker), key.bytes)
        for key in snapshot.keys
        if key.tier in ("hot", "warm")
    ]
    yield _gauge("cuzk_key_bytes", "Of each key that is loaded.", ("circuit", "worker"), held)
