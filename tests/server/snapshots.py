"""Snapshots of an engine that nobody runs: empty, busy as a real one, with many jobs, with hostile names."""

from __future__ import annotations

import random
from dataclasses import replace

from cuzk.engine.snapshot import (
    JobView,
    KeyView,
    KindTotals,
    MemoryView,
    PartitionView,
    QueueView,
    Snapshot,
    SpanView,
    WaitTotals,
    WorkerView,
)

GIB = 1 << 30
NOW = 1_790_000_000.0
HOSTILE = "<script>alert('x')</script>\n\u202e]drowssap[\u0000\"'&"
ENDED = {"done", "failed", "cancelled"}


class Scripted:
    """Stands in for the engine: ``moment`` is what it shows next."""

    def __init__(self, moment: Snapshot) -> None:
        self.moment = moment
        self.asked = 0

    def snapshot(self, *, ended: int = 50, spans_since: float | None = None) -> Snapshot:
        self.asked += 1
        open_jobs = [job for job in self.moment.jobs if job.state not in ENDED]
        over = [job for job in self.moment.jobs if job.state in ENDED]
        spans = [s for s in self.moment.spans if spans_since is not None and s.end >= spans_since]
        failed = tuple(job for job in self.moment.jobs if job.state == "failed")
        jobs = (*open_jobs, *over[:ended])
        return replace(self.moment, jobs=jobs, spans=tuple(spans), failures=failed)


def idle(now: float = NOW) -> Snapshot:
    worker = WorkerView("cpu", "cpu", "AMD EPYC 9354, 64 threads", True, 4243, 3 * GIB // 10)
    return Snapshot(
        now=now, started=now - 42, version="0.6.0", process=4242, draining=False, queue_limit=1000,
        jobs=(), queues=(), workers=(worker,), keys=(), totals=(), rss=80 << 20, journal_bytes=4096,
        memories=(MemoryView("host", 8 * GIB, 0, 8 * GIB),),
    )  # fmt: skip


def parts(
    count: int, done: int, proving: dict[int, str], now: float, seconds: float = 41.0
) -> tuple[PartitionView, ...]:
    """The first ``done`` are proved, two at a time; those of ``proving`` are in work on a worker each."""
    spent = {"witness": 9000.0, "evaluate": 2100.0, "quotient": 7400.0, "commit": 21900.0}
    found = []
    for number in range(count):
        if number < done:
            start = now - (1 + (done - 1 - number) // 2) * seconds - 13
            worker = f"cuda:{number % 2}"
            view = PartitionView(number, "done", worker, start, start + seconds, spent)
        elif number in proving:
            view = PartitionView(number, "proving", proving[number], now - 9 - 6 * number % 17)
        else:
            view = PartitionView(number, "pending")
        found.append(view)
    return tuple(found)


def queued(number: int, kind: str, circuit: str, priority: str, age: float, now: float) -> JobView:
    count = {"porep-c2": 10, "snap-update": 16}.get(kind, 1)
    prefix = {"porep-c2": "porep", "snap-update": "snap", "window-post": "wdpost"}.get(kind, "job")
    return JobView(
        id=f"{prefix}-1000-{5200 + number}", number=number, kind=kind, circuit=circuit,
        priority=priority, state="queued", accepted=now - age, started=0.0, ended=0.0, age=age,
        payload_bytes=51 << 20, client="10.20.0.7", partitions=parts(count, 0, {}, now),
    )  # fmt: skip


def open_jobs(now: float) -> list[JobView]:
    base = queued(0, "porep-c2", "porep-32GiB", "normal", 0, now)
    return [
        replace(
            queued(61, "winning-post", "winning-32GiB", "critical", 2.1, now),
            id="winpost-1000-9f3ab2c1", state="verifying", started=now - 1.9,
            partitions=(PartitionView(0, "done", "cuda:1", now - 1.9, now - 0.3, {"prove": 1600.0}),),
        ),
        replace(
            queued(57, "window-post", "window-32GiB", "high", 67, now),
            id="wdpost-1000-4-[83 201 7 44 120 9 230 61]", state="proving", started=now - 31,
            partitions=(PartitionView(0, "proving", "cuda:1", now - 31),), deadline=now + 1380,
        ),
        replace(
            base, id="porep-1000-5188", number=52, state="proving", accepted=now - 405, age=405,
            started=now - 288, partitions=parts(10, 7, {7: "cuda:0"}, now),
        ),
        replace(
            base, id="porep-1000-5190", number=53, state="proving", accepted=now - 322, age=322,
            started=now - 60, partitions=parts(10, 1, {1: "cuda:0"}, now),
        ),
        replace(
            queued(54, "snap-update", "update-32GiB", "normal", 240, now),
            state="preparing", started=now - 6, id="snap-1000-9914",
        ),
        *(queued(62 + i, "porep-c2", "porep-32GiB", "normal", 214 - 31 * i, now) for i in range(5)),
        queued(67, "circuit", "membership20", "low", 44, now),
        queued(68, "snap-update", "update-32GiB", "low", 702, now),
    ]  # fmt: skip


def ended(
    number: int, state: str, ago: float, now: float, code: str = "", message: str = ""
) -> JobView:
    base = queued(number, "porep-c2", "porep-32GiB", "normal", 0, now)
    whole = {"queue": 31000.0, "load": 0.0, "prepare": 5200.0, "prove": 215000.0, "verify": 800.0,
             "total": 252000.0, "work": 404000.0}  # fmt: skip
    return replace(
        base, id=f"porep-1000-{5100 + number}", state=state, accepted=now - ago - 252,
        started=now - ago - 221, ended=now - ago, age=252, code=code, message=message,
        partitions=parts(10, 10 if state == "done" else 3, {}, now - ago),
        milliseconds=whole if state == "done" else {},
    )  # fmt: skip


def ended_jobs(now: float) -> list[JobView]:
    unsatisfied = (
        "porep-1000-5149: partition 3: constraint 81,204,117 is not satisfied: this sector's proof "
        "does not belong to comm_r; seal the sector again"
    )
    return [
        ended(51, "done", 25, now),
        ended(50, "done", 141, now),
        ended(49, "failed", 380, now, "unsatisfied", unsatisfied),
        ended(48, "done", 402, now),
        ended(47, "cancelled", 700, now, "cancelled", "porep-1000-5147: cancelled by its client"),
        ended(
            46, "failed", 4310, now, "worker-lost", "cuda:1: its process died (signal 7) 3 times"
        ),
        *(ended(45 - i, "done", 800 + 140 * i, now) for i in range(12)),
    ]


def memories() -> tuple[MemoryView, ...]:
    cuda0 = {"key porep-32GiB on cuda:0": 47 * GIB, "job porep-1000-5188 partition 7": 38 * GIB,
             "job porep-1000-5190 partition 1": 38 * GIB}  # fmt: skip
    cuda1 = {"key window-32GiB on cuda:1": 45 * GIB, "key winning-32GiB on cuda:1": 190 << 20,
             "job wdpost-1000-4 partition 0": 36 * GIB}  # fmt: skip
    host = {"job porep-1000-5188": 9 * GIB, "job porep-1000-5190": 9 * GIB,
            "job snap-1000-9914": 4 * GIB, "key update-32GiB on cuda:1": 33 * GIB}  # fmt: skip
    pinned = {"staging of cuda:0": 4 * GIB, "staging of cuda:1": 4 * GIB}
    rows = [
        ("cuda:0", 139, cuda0),
        ("cuda:1", 139, cuda1),
        ("host", 240, host),
        ("pinned", 64, pinned),
    ]
    return tuple(
        MemoryView(name, limit * GIB, sum(own.values()), limit * GIB - sum(own.values()), own)
        for name, limit, own in rows
    )


def keys(now: float) -> tuple[KeyView, ...]:
    where = "/data/zk/params/v28-"
    missing = f"{where}stacked-64.params: no such file: fetch it or name another in [[circuit]]"
    return (
        KeyView("porep-32GiB", "porep-c2", f"{where}porep32.params", "hot", "cuda:0", 47 * GIB, 2, now),
        KeyView("window-32GiB", "window-post", f"{where}window32.params", "hot", "cuda:1", 45 * GIB, 1, now),
        KeyView("winning-32GiB", "winning-post", f"{where}win32.params", "hot", "cuda:1", 190 << 20, 1, now - 1),
        KeyView("update-32GiB", "snap-update", f"{where}update32.params", "loading", "cuda:1", 33 * GIB, 1, now - 6),
        KeyView("membership20", "circuit", "/data/keys/membership20.zkey", "cold", bytes=19 << 20),
        KeyView("porep-64GiB", "porep-c2", f"{where}stacked-64.params", "not ready", fault=missing),
    )  # fmt: skip


def spans(now: float) -> tuple[SpanView, ...]:
    """Five minutes of two devices: partitions of 41 s, two lanes each, their phases on host and device."""
    found = []
    for worker, lane in (("cuda:0", 0), ("cuda:0", 1), ("cuda:1", 0)):
        start = now - 300 + 17 * lane + (8 if worker == "cuda:1" else 0)
        number = 0
        while start + 41 < now:
            job = f"porep-1000-{5188 + number % 3}"
            host = f"prove-{lane}"
            times = [
                ("witness", 0, 11),
                ("evaluate", 11, 13),
                ("quotient", 13, 20),
                ("commit", 20, 40),
            ]
            found += [SpanView(worker, host, n, start + a, start + b, job) for n, a, b in times]
            found.append(SpanView(worker, host, "verify", start + 40, start + 41, job))
            device = f"{worker} compute" if lane == 0 else f"{worker} compute 2"
            inner = [("sparse", 11, 13), ("ntt", 13.2, 20), ("msm a", 20, 23), ("msm b1", 23, 26),
                     ("msm b2", 26, 32), ("msm l", 32, 35), ("msm h", 35.2, 39.8)]  # fmt: skip
            found += [SpanView(worker, device, n, start + a, start + b, job) for n, a, b in inner]
            upload = f"{worker} upload"
            found.append(SpanView(worker, upload, "copy witness", start + 10, start + 11.6, job))
            start, number = start + 43, number + 1
    return tuple(found)


def busy(now: float = NOW) -> Snapshot:
    """Two GPUs with as much as they can do."""
    jobs = open_jobs(now)
    waiting = [job for job in jobs if job.state == "queued"]
    jobs = [replace(j, place=waiting.index(j)) if j in waiting else j for j in jobs]
    kinds = sorted({job.kind for job in jobs})
    queues = tuple(
        QueueView(
            kind,
            sum(j.kind == kind and j.state == "queued" for j in jobs),
            sum(j.kind == kind and j.state != "queued" for j in jobs),
        )
        for kind in kinds
    )
    drawn = random.Random(6)
    minute = now - now % 60 - 59 * 60
    done = [0 if 20 <= i < 24 else drawn.choice([0, 1, 1, 2, 2, 3]) for i in range(60)]
    return Snapshot(
        now=now, started=now - 3 * 86400 - 4 * 3600, version="0.6.0", process=4242, draining=False,
        queue_limit=1000, jobs=(*jobs, *ended_jobs(now)), queues=queues, keys=keys(now),
        workers=(
            WorkerView("cuda:0", "cuda:0", "NVIDIA H200", True, 4310, 21 * GIB, 140 * GIB, 16 * GIB,
                       "porep-1000-5188", "porep-c2", (("porep-1000-5188", 7), ("porep-1000-5190", 1))),
            WorkerView("cuda:1", "cuda:1", "NVIDIA H200", True, 4977, 18 * GIB, 140 * GIB, 57 * GIB,
                       jobs[1].id, "window-post", ((jobs[1].id, 0),), restarts=3),
        ),
        memories=memories(),
        totals=(
            KindTotals("porep-c2", 3120, 3098, 11, 4, 798000.0, 3116, 96000.0),
            KindTotals("snap-update", 410, 405, 3, 0, 121000.0, 409, 21000.0),
            KindTotals("window-post", 166, 165, 0, 0, 11800.0, 166, 1020.0),
            KindTotals("winning-post", 48, 47, 0, 0, 93.0, 48, 6.1),
        ),
        waits=(
            WaitTotals("porep-c2", "low", 16, 29800.0, 5210.0),
            WaitTotals("porep-c2", "normal", 3100, 66200.0, 412.0),
            WaitTotals("snap-update", "normal", 409, 21000.0, 390.0),
            WaitTotals("window-post", "high", 166, 1020.0, 39.0),
            WaitTotals("winning-post", "critical", 48, 6.1, 1.4),
        ),
        throughput=tuple((minute + 60 * i, count) for i, count in enumerate(done)),
        spans=spans(now), rss=212 << 20, journal_bytes=731 << 20,
    )  # fmt: skip


def many(count: int, now: float = NOW, partitions: int = 10) -> Snapshot:
    """``count`` jobs, all but four of them waiting."""
    priorities = ["critical"] * 3 + ["high"] * 97 + ["normal"] * 600 + ["low"] * count
    jobs = []
    for i in range(count):
        job = queued(i, "porep-c2", "porep-32GiB", priorities[i], float(3 * (count - i)), now)
        cells = parts(partitions, 0, {}, now)
        if i < 4:
            job = replace(job, state="proving", started=now - 50)
            cells = parts(partitions, 2 * i, {2 * i: "cuda:0"}, now)
        jobs.append(replace(job, partitions=cells, place=i - 4 if i >= 4 else -1))
    queues = (QueueView("porep-c2", count - 4, 4),)
    return replace(busy(now), jobs=tuple(jobs), queues=queues)


def hostile(now: float = NOW) -> Snapshot:
    """Every text that comes from outside says HOSTILE."""
    moment = busy(now)
    failed = ended(70, "failed", 5, now, "unsatisfied", f"{HOSTILE}: constraint 7 is not satisfied")
    running = replace(open_jobs(now)[2], id=HOSTILE, client=HOSTILE, circuit=HOSTILE)
    key = KeyView(HOSTILE, "circuit", HOSTILE, "not ready", fault=HOSTILE)
    memory = MemoryView("host", 10 * GIB, GIB, 9 * GIB, {f"job {HOSTILE}": GIB})
    worker = replace(moment.workers[0], job=HOSTILE, partitions=((HOSTILE, 0),), fault=HOSTILE)
    span = SpanView("cuda:0", HOSTILE, HOSTILE, now - 20, now - 5, HOSTILE)
    return replace(
        moment, jobs=(running, replace(failed, id=HOSTILE)), keys=(key,), memories=(memory,),
        workers=(worker,), spans=(span,),
    )  # fmt: skip
