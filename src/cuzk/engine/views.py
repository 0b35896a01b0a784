"""The snapshot, made from the state when somebody asks. Texts from outside (faults, paths, titles) are legible in it:
protobuf, JSON and labels take no bytes that are no text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from cuzk import __version__
from cuzk.engine.catalogue import CircuitEntry
from cuzk.engine.failure import legible
from cuzk.engine.jobs import Live
from cuzk.engine.limits import resident_bytes
from cuzk.engine.snapshot import (
    JobView,
    KeyView,
    MemoryView,
    PartitionView,
    QueueView,
    Snapshot,
    WorkerView,
)
from cuzk.engine.state import State
from cuzk.engine.stations import Phase, Station


def job_view(live: Live, state: State, place: int = -1) -> JobView:
    """One job, as it is."""
    job = live.job
    outcome = job.outcome
    now = state.clock()
    return JobView(
        id=job.id,
        number=job.number,
        kind=job.request.kind,
        circuit=job.circuit,
        priority=job.priority.name.lower(),
        state=job.state.value,
        accepted=job.accepted,
        started=job.started,
        ended=job.ended if outcome else 0.0,
        age=max(0.0, (job.ended if outcome else now) - job.accepted),
        place=place,
        payload_bytes=job.request.nbytes,
        deadline=job.request.deadline or 0.0,
        client=job.request.client,
        partitions=partition_views(live),
        code=outcome.code if outcome else "",
        message=legible(outcome.message if outcome else state.jobs.away.get(job.circuit, "")),
        milliseconds=dict(outcome.milliseconds) if outcome else {},
    )


def partition_views(live: Live) -> tuple[PartitionView, ...]:
    """In order."""
    ahead = (
        {}
        if live.ending
        else {**dict.fromkeys(live.staged, "staged"), **dict.fromkeys(live.staging, "staging")}
    )
    return tuple(
        PartitionView(
            number=part.number,
            state=ahead.get(part.number, part.state),
            worker=part.worker,
            started=part.started,
            ended=part.ended,
            milliseconds=part.milliseconds,
        )
        for part in live.job.partitions
    )


def live_views(state: State) -> Iterable[JobView]:
    """Of those that have not ended: begun ones, the oldest first, then those that wait, in their order; at the end those
    whose circuit is away."""
    for live in state.jobs.begun.values():
        yield job_view(live, state)
    now = state.clock()
    for place, live in enumerate(state.jobs.waiting(state.policy.scheduler, now)):
        yield _waiting_view(live, state, place, now)
    for live in state.jobs.held():
        yield _waiting_view(live, state, -1, now)


def _waiting_view(live: Live, state: State, place: int, now: float) -> JobView:
    """Of a job that nothing was begun of nothing changes but its place, its age and whether its circuit is away: with a
    thousand of 10 partitions a snapshot takes 3 ms of the event loop, and 25 where all is made anew."""
    if live.unbegun_view is None:
        live.unbegun_view = job_view(live, state)
    view = object.__new__(JobView)  # dataclasses.replace takes as long as to make it
    vars(view).update(
        vars(live.unbegun_view),
        place=place,
        age=max(0.0, now - live.job.accepted),
        message=legible(state.jobs.away.get(live.job.circuit, "")),
    )
    return view


def queue_views(state: State) -> tuple[QueueView, ...]:
    """By kind: only those of which there is something."""
    waiting = Counter[str]()
    begun = Counter(live.job.request.kind for live in state.jobs.begun.values())
    for group in state.jobs.groups.values():
        for live in group.values():
            waiting[live.job.request.kind] += 1
    return tuple(QueueView(kind, waiting[kind], begun[kind]) for kind in sorted(waiting | begun))


def worker_view(station: Station) -> WorkerView:
    """One worker and what it does."""
    health = station.worker.health()
    works = [*station.partitions.values(), *station.preparing.values()]
    works += [live for live in station.prepared.values() if live.finishing]
    oldest = min(works, key=lambda live: live.job.number, default=None)
    return WorkerView(
        name=station.name,
        device=station.worker.device,
        title=legible(health.title),
        alive=station.alive,
        process=health.process,
        resident_bytes=health.resident_bytes,
        device_total=health.total.get(station.worker.device, 0),
        device_free=health.free.get(station.worker.device, 0),
        job=oldest.job.id if oldest else "",
        kind=oldest.job.request.kind if oldest else "",
        partitions=tuple(station.partitions),
        restarts=health.restarts,
        fault=legible(station.fault or health.fault),
    )


def key_views(state: State) -> tuple[KeyView, ...]:
    """Every circuit on every worker that has it or failed to; once, without a worker, where none does."""
    views: list[KeyView] = []
    for found_entry in state.catalogue.entries():
        entry = replace(found_entry, key=legible(found_entry.key), fault=legible(found_entry.fault))
        found = [
            _held_view(entry, station)
            for station in state.stations.values()
            if entry.id in station.keys or entry.id in station.faults
        ]
        tier = "not ready" if entry.fault else "cold"
        views += found or [
            KeyView(entry.id, entry.kind, entry.key, tier, bytes=entry.key_bytes, fault=entry.fault)
        ]
    return tuple(views)


def _held_view(entry: CircuitEntry, station: Station) -> KeyView:
    held = station.keys.get(entry.id)
    fault = station.faults.get(entry.id)
    message = entry.fault or legible(fault.message if fault else "")
    if held is None:
        return KeyView(
            entry.id, entry.kind, entry.key, "not ready", station.name,
            bytes=entry.key_bytes, fault=message,
        )  # fmt: skip
    loading = "not ready" if held.stalled else "loading"
    return KeyView(
        entry.id, entry.kind, entry.key,
        tier=held.tier if held.phase is not Phase.LOADING else loading,
        worker=station.name,
        bytes=held.key_bytes,
        users=station.users(entry.id),
        last_used=held.used,
        fault=message,
    )  # fmt: skip


def memory_views(state: State) -> tuple[MemoryView, ...]:
    """Every ledger."""
    return tuple(
        MemoryView(
            name=ledger.name,
            limit=ledger.limit,
            reserved=ledger.reserved,
            free=ledger.free,
            owners=ledger.owners(),
        )
        for ledger in state.ledgers.all()
    )


def snapshot(
    state: State,
    ended: Iterable[JobView],
    failures: Iterable[JobView],
    *,
    started: float,
    spans_since: float | None,
) -> Snapshot:
    """All of it, at this moment; spans those that ended since then, none where it is None."""
    now = state.clock()
    return Snapshot(
        now=now,
        started=started,
        version=__version__,
        process=os.getpid(),
        draining=state.draining,
        queue_limit=state.policy.queue_limit,
        jobs=(*live_views(state), *ended),
        queues=queue_views(state),
        workers=tuple(worker_view(station) for station in state.stations.values()),
        keys=key_views(state),
        memories=memory_views(state),
        totals=state.history.totals(),
        waits=state.history.waits(),
        failures=tuple(failures),
        throughput=state.history.throughput(now),
        spans=() if spans_since is None else state.history.spans(spans_since),
        rss=resident_bytes(),
        journal_bytes=state.journal.nbytes(),
    )
