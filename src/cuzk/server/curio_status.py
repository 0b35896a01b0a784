"""The objects that Curio's status page of a prover reads, under their names there.

memory        {total_bytes, used_bytes, available_bytes}: the host's ledger; available is never below 0
synthesis     {max_concurrent, active}: workers, or what is active where that is more (a worker reads several); jobs
              whose request is being read
pipelines     [{job_id, proof_kind, started_secs_ago, total_partitions, partitions_done, partitions [...]}]:
              jobs that have begun, ended ones for 30 seconds; a partition is {index, state, synth_ms, gpu_ms},
              its state "pending", "synthesizing", "synth_done" (staged), "gpu", "done" or "failed"
gpu_workers   [{worker_id, gpu_ordinal, state, current_job, current_partition, busy_secs}]
allocations   {srs, pce}: [{circuit_id, bytes, last_used_secs_ago, evictable}]; circuits are part of their keys
              here, so that pce is empty
counters      {total_completed, total_failed, completed_by_kind, failed_by_kind, queue_depth}
buffers       {synth_in_flight, provers_in_flight}: counted from the jobs, as all of it is
"""

from __future__ import annotations

from typing import Any

from cuzk.engine.snapshot import JobView, KeyView, PartitionView, Snapshot, WorkerView

SHOWN_AFTER_END = 30.0
STATES = {
    "pending": "pending", "staging": "synthesizing", "staged": "synth_done", "proving": "gpu", "done": "done",
}  # fmt: skip
LOADED = ("hot", "warm")
ON_DEVICE = ("evaluate", "quotient", "commit")


def curio_status(snapshot: Snapshot) -> dict[str, Any]:
    """What is described above."""
    reading = sum(job.state == "preparing" for job in snapshot.jobs)
    proving = sum(len(worker.partitions) for worker in snapshot.workers)
    host = next((memory for memory in snapshot.memories if memory.name == "host"), None)
    numbered = enumerate(snapshot.workers)
    return {
        "uptime_secs": _since(snapshot.started, snapshot.now),
        "memory": {
            "total_bytes": host.limit if host else 0,
            "used_bytes": host.reserved if host else 0,
            "available_bytes": max(0, host.free) if host else 0,
        },
        "synthesis": {"max_concurrent": max(len(snapshot.workers), reading), "active": reading},
        "pipelines": [
            _pipeline(job, snapshot.now) for job in snapshot.jobs if _shown(job, snapshot)
        ],
        "gpu_workers": [_worker(number, worker, snapshot) for number, worker in numbered],
        "allocations": {
            "srs": [_allocation(key, snapshot.now) for key in snapshot.keys if key.tier in LOADED],
            "pce": [],
        },
        "counters": {
            "total_completed": sum(total.done for total in snapshot.totals),
            "total_failed": sum(total.failed for total in snapshot.totals),
            "completed_by_kind": {total.kind: total.done for total in snapshot.totals},
            "failed_by_kind": {total.kind: total.failed for total in snapshot.totals},
            "queue_depth": sum(queue.pending + queue.in_progress for queue in snapshot.queues),
        },
        "buffers": {"synth_in_flight": reading, "provers_in_flight": proving},
    }


def _since(moment: float, now: float) -> float:
    """Seconds; none where the system's clock was set back."""
    return round(max(0.0, now - moment), 3)


def _shown(job: JobView, snapshot: Snapshot) -> bool:
    return bool(job.started) and (not job.ended or snapshot.now - job.ended < SHOWN_AFTER_END)


def _pipeline(job: JobView, now: float) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "proof_kind": job.kind,
        "started_secs_ago": _since(job.started, now),
        "total_partitions": len(job.partitions),
        "partitions_done": sum(part.state == "done" for part in job.partitions),
        "partitions": [_partition(part, job) for part in job.partitions],
    }


def _partition(part: PartitionView, job: JobView) -> dict[str, Any]:
    spent = part.milliseconds
    on_device = sum(spent.get(phase, 0.0) for phase in ON_DEVICE)
    failed = job.state == "failed" and part.state != "done"
    return {
        "index": part.number,
        "state": "failed" if failed else STATES[part.state],
        "synth_ms": round(spent.get("witness", 0.0)),
        "gpu_ms": round(on_device or spent.get("prove", 0.0)),
    }


def _worker(number: int, worker: WorkerView, snapshot: Snapshot) -> dict[str, Any]:
    job, partition = worker.partitions[0] if worker.partitions else (worker.job, None)
    began = [
        part.started
        for view in snapshot.jobs
        for part in view.partitions
        if view.id == job and part.number == partition and part.state == "proving"
    ]
    kind, _, ordinal = worker.device.partition(":")
    return {
        "worker_id": number,
        "gpu_ordinal": int(ordinal) if kind == "cuda" and ordinal.isdecimal() else None,
        "state": "proving" if worker.partitions else "idle",
        "current_job": job or None,
        "current_partition": partition,
        "busy_secs": _since(min(began), snapshot.now) if began else 0.0,
    }


def _allocation(key: KeyView, now: float) -> dict[str, Any]:
    return {
        "circuit_id": key.circuit,
        "bytes": key.bytes,
        "last_used_secs_ago": _since(key.last_used, now) if key.last_used else None,
        "evictable": key.users == 0,
    }
