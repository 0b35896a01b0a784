"""The eight methods as Curio's client and others call them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from scripted_engine import (
    PATIENCE,
    Running,
    channel_to,
    circuit,
    method,
    proof_of,
    prove,
    refused,
    running,
)

from cuzk.server import proving_pb2 as pb


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("rpc")) as server:
        yield server


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with channel_to(server.target()) as channel:
        yield channel


def test_prove_answers_with_the_proof_and_wall_times(channel: grpc.Channel) -> None:
    result = prove(channel, circuit("a-1", b"witness"))
    assert result == pb.AwaitProofResponse(
        job_id="a-1", status="COMPLETED", proof=proof_of(b"witness"), public_signals=b'["1"]',
        queue_wait_ms=1, srs_load_ms=3, synthesis_ms=3, gpu_compute_ms=40, total_ms=52,
    )  # fmt: skip


def test_submit_then_await(server: Running, channel: grpc.Channel) -> None:
    answer = method(channel, "SubmitProof")(circuit("", b"later"))
    assert answer.queue_position == 7
    assert server.engine.requests[answer.job_id].named, "its client has the id"
    result = method(channel, "AwaitProof")(pb.AwaitProofRequest(job_id=answer.job_id))
    assert (result.status, result.proof) == (1, proof_of(b"later"))
    again = method(channel, "AwaitProof")(pb.AwaitProofRequest(job_id=answer.job_id))
    assert again == result


def test_await_honours_its_timeout(server: Running, channel: grpc.Channel) -> None:
    method(channel, "SubmitProof")(circuit("hold-await", b"w"))
    call = method(channel, "AwaitProof")
    start = time.monotonic()
    result = call(pb.AwaitProofRequest(job_id="hold-await", timeout_ms=150))
    assert time.monotonic() - start >= 0.15
    assert (result.job_id, result.status, result.proof) == ("hold-await", 4, b"")
    assert result.error_message == "hold-await: proving; its proof is not there yet"
    status, _, _ = refused(call, pb.AwaitProofRequest(job_id="hold-await"), timeout=0.15)
    assert status is grpc.StatusCode.DEADLINE_EXCEEDED
    server.tell("hold-await")
    huge = call(pb.AwaitProofRequest(job_id="hold-await", timeout_ms=2**64 - 1))
    assert huge.status == 1


def test_a_proof_that_cannot_be_made_is_an_answer(channel: grpc.Channel) -> None:
    result = prove(channel, circuit("fail-1", b"w"))
    assert (result.job_id, result.status) == ("fail-1", 2)
    assert (result.error_message, result.error_code) == ("row 3", "unsatisfied")


def test_cancel(channel: grpc.Channel) -> None:
    call = method(channel, "CancelProof")
    method(channel, "SubmitProof")(circuit("hold-cancel", b"w"))
    method(channel, "SubmitProof")(circuit("ended", b"w"))
    assert call(pb.CancelProofRequest(job_id="hold-cancel")).was_running
    assert not call(pb.CancelProofRequest(job_id="ended")).was_running
    result = method(channel, "AwaitProof")(pb.AwaitProofRequest(job_id="hold-cancel"))
    assert (result.status, result.error_code, result.error_message) == (3, "cancelled", "by you")
    for name in ("CancelProof", "AwaitProof"):
        asked = getattr(pb, f"{name}Request")(job_id="who?\n")
        assert refused(method(channel, name), asked) == (
            grpc.StatusCode.NOT_FOUND, r"'who?\n': no request has this id", "unknown-job",
        )  # fmt: skip


def test_status(channel: grpc.Channel) -> None:
    status = method(channel, "GetStatus")(pb.GetStatusRequest())
    gib = 1 << 30
    assert status == pb.GetStatusResponse(
        gpus=[
            pb.GPUStatus(ordinal=1, name="NVIDIA H200", vram_total_bytes=140 * gib, vram_free_bytes=90 * gib, current_job_id="p-1", current_proof_kind="porep-c2"),
            pb.GPUStatus(ordinal=3, name="cuda:3: no device"),
        ],
        loaded_srs=[
            pb.SRSStatus(circuit_id="porep-32GiB", tier="HOT", size_bytes=44 * gib, ref_count=2),
            pb.SRSStatus(circuit_id="winning-32GiB", tier="WARM", size_bytes=gib),
            pb.SRSStatus(circuit_id="window-32GiB", tier="COLD"),
        ],
        queues=[
            pb.QueueStatus(proof_kind="porep-c2", pending=3, in_progress=2),
            pb.QueueStatus(proof_kind="winning-post", in_progress=1),
            pb.QueueStatus(proof_kind="circuit"),
        ],
        total_proofs_completed=7, total_proofs_failed=4, uptime_seconds=599,
        pinned_memory_bytes=20, pinned_memory_limit_bytes=70, status_json=b'{"now": 1000}',
    )  # fmt: skip


def test_metrics_preload_evict(channel: grpc.Channel) -> None:
    metrics = method(channel, "GetMetrics")(pb.GetMetricsRequest())
    assert metrics.prometheus_text == "cuzk_queue_limit 1000\n"
    preload, evict = method(channel, "PreloadSRS"), method(channel, "EvictSRS")
    there, loaded = (preload(pb.PreloadSrsRequest(circuit_id=c)) for c in ("porep-32g", "c"))
    assert (there.already_loaded, there.load_time_ms) == (True, 0)
    assert (loaded.already_loaded, loaded.load_time_ms) == (False, 1234)
    assert preload(pb.PreloadSrsRequest(circuit_id="set-back")).load_time_ms == 0
    freed, none = (evict(pb.EvictSrsRequest(circuit_id=c)) for c in ("porep-32g", "c"))
    assert (freed.was_loaded, freed.freed_bytes) == (True, 44 << 30)
    assert (none.was_loaded, none.freed_bytes) == (False, 0)


def test_each_of_many_proves_at_a_time_gets_its_own_answer(channel: grpc.Channel) -> None:
    """One connection, as Curio's."""

    def one(n: int) -> bool:
        witness = random.Random(n).randbytes(n * 50_000)
        result = prove(channel, circuit(f"many-{n}", witness))
        return bool(result.job_id == f"many-{n}" and result.proof == proof_of(witness))

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(one, range(1, 65)))


def test_waiting_proves_leave_room_for_other_calls(server: Running, channel: grpc.Channel) -> None:
    """HTTP/2's usual 100 calls at a time would let nothing else through the connection."""
    call = method(channel, "Prove")
    futures = [
        call.future(pb.ProveRequest(submit=circuit(f"hold-room-{n}", b"w"))) for n in range(120)
    ]
    server.wait(lambda: server.engine.waiting == 120)
    assert (
        method(channel, "GetStatus")(pb.GetStatusRequest(), timeout=PATIENCE).uptime_seconds == 599
    )
    for n in range(120):
        server.tell(f"hold-room-{n}")
    assert [future.result(PATIENCE).result.job_id for future in futures] == [
        f"hold-room-{n}" for n in range(120)
    ]
