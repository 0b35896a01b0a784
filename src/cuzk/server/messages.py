"""What the engine answers, as messages: a job's outcome and the whole state.

Times are wall times in milliseconds, none a sum over partitions: ``queue_wait`` from acceptance to the first work,
``srs_load`` waiting for the key, ``synthesis`` reading the request (a partition's witness is made on its worker, as
part of the next), ``gpu_compute`` from the first partition's start to the last one's end, on whatever device,
``total`` from acceptance to the end, verification included.
"""

from __future__ import annotations

import re

from cuzk.engine.job import Outcome, State
from cuzk.engine.snapshot import JobView, KeyView, MemoryView, Snapshot, WorkerView
from cuzk.server.proving_pb2 import (
    AwaitProofResponse,
    GetStatusResponse,
    GPUStatus,
    QueueStatus,
    SRSStatus,
)

UINT32 = 2**32 - 1
STATUSES = {
    State.DONE: AwaitProofResponse.COMPLETED,
    State.FAILED: AwaitProofResponse.FAILED,
    State.CANCELLED: AwaitProofResponse.CANCELLED,
}
TIERS = {
    "hot": SRSStatus.HOT,
    "warm": SRSStatus.WARM,
    "cold": SRSStatus.COLD,
    "loading": SRSStatus.COLD,
}
GPU = re.compile(r"cuda:(\d+)")


def outcome_message(view: JobView, outcome: Outcome | None) -> AwaitProofResponse:
    """How a job ended; TIMEOUT, which is no end, where it has not."""
    if outcome is None:
        return AwaitProofResponse(
            job_id=view.id,
            status=AwaitProofResponse.TIMEOUT,
            error_message=f"{view.id}: {view.state}; its proof is not there yet",
            error_code="timeout",
        )
    spent = outcome.milliseconds
    return AwaitProofResponse(
        job_id=view.id,
        status=STATUSES[outcome.state],
        proof=outcome.proof,
        error_message=_text(outcome.message),
        queue_wait_ms=_whole(spent.get("queue")),
        srs_load_ms=_whole(spent.get("load")),
        synthesis_ms=_whole(spent.get("prepare")),
        gpu_compute_ms=_whole(spent.get("prove")),
        total_ms=_whole(spent.get("total")),
        public_signals=outcome.public,
        error_code=outcome.code,
    )


def status_message(state: Snapshot, status_json: bytes) -> GetStatusResponse:
    """GPUs (a CPU is in ``status_json`` only: it has no ordinal), keys, queues, totals."""
    pinned = next((m for m in state.memories if m.name == "pinned"), MemoryView("pinned", 0, 0, 0))
    return GetStatusResponse(
        gpus=[_gpu(worker) for worker in state.workers if GPU.fullmatch(worker.device)],
        loaded_srs=[_key(key) for key in state.keys if key.tier in TIERS],
        queues=[
            QueueStatus(
                proof_kind=queue.kind,
                pending=min(queue.pending, UINT32),
                in_progress=min(queue.in_progress, UINT32),
            )
            for queue in state.queues
        ],
        total_proofs_completed=sum(kind.done for kind in state.totals),
        total_proofs_failed=sum(kind.failed for kind in state.totals),
        uptime_seconds=max(0, int(state.now - state.started)),
        pinned_memory_bytes=pinned.reserved,
        pinned_memory_limit_bytes=pinned.limit,
        status_json=status_json,
    )


def _gpu(worker: WorkerView) -> GPUStatus:
    found = GPU.fullmatch(worker.device)
    return GPUStatus(
        ordinal=int(found[1]) if found else 0,
        name=_text(
            worker.title if worker.alive else f"{worker.title or worker.device}: {worker.fault}"
        ),
        vram_total_bytes=worker.device_total,
        vram_free_bytes=worker.device_free,
        current_job_id=worker.job,
        current_proof_kind=worker.kind,
    )


def _key(key: KeyView) -> SRSStatus:
    return SRSStatus(
        circuit_id=key.circuit,
        tier=TIERS[key.tier],
        size_bytes=key.bytes,
        ref_count=min(key.users, UINT32),
    )


def _text(message: str) -> str:
    """A file's name in it may have bytes that are no text, which a message cannot carry."""
    return message.encode("utf-8", "backslashreplace").decode()


def _whole(milliseconds: float | None) -> int:
    return max(0, round(milliseconds or 0))
