"""The eight methods as Curio's client and others call them."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from scripted_engine import Running, channel_to, circuit, method, proof_of, prove, running

from cuzk import errors
from cuzk.engine.request import Priority
from cuzk.server import CODE_KEY
from cuzk.server import proving_pb2 as pb

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("rpc")) as server:
        yield server


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with channel_to(server.target()) as channel:
        yield channel


def refused(call: Any, *arguments: Any, **keywords: Any) -> tuple[grpc.StatusCode, str, str]:
    """Status, text, and the error's word."""
    with pytest.raises(grpc.RpcError) as error:
        call(*arguments, **keywords)
    trailers = dict(error.value.trailing_metadata() or ())
    return error.value.code(), error.value.details(), trailers.get(CODE_KEY, "")


def test_prove_answers_with_the_proof_and_wall_times(channel: grpc.Channel) -> None:
    result = prove(channel, circuit("a-1", b"witness"))
    assert result == pb.AwaitProofResponse(
        job_id="a-1", status="COMPLETED", proof=proof_of(b"witness"), public_signals=b'["1"]',
        queue_wait_ms=1, srs_load_ms=3, synthesis_ms=3, gpu_compute_ms=40, total_ms=52,
    )  # fmt: skip


def test_a_request_as_curio_sends_it(server: Running, channel: grpc.Channel) -> None:
    proofs = [bytes([n]) * 900 for n in range(16)]
    prove(channel, pb.SubmitProofRequest(
        request_id="snap-1000-5", proof_kind=pb.SNAP_DEALS_UPDATE, sector_size=32 << 30, registered_proof=3, priority=pb.NORMAL,
        vanilla_proofs=proofs, sector_number=5, miner_id=1000,
        comm_r_old=b"o" * 32, comm_r_new=b"n" * 32, comm_d_new=b"d" * 32,
    ))  # fmt: skip
    request = server.engine.requests["snap-1000-5"]
    assert (request.kind, request.priority, request.named) == ("snap-update", Priority.NORMAL, True)
    assert [bytes(part.view()) for part in request.payload] == proofs
    assert dict(request.fields) == {
        "sector_size": 32 << 30, "registered_proof": 3, "sector_number": 5, "miner_id": 1000,
        "comm_r_old": b"o" * 32, "comm_r_new": b"n" * 32, "comm_d_new": b"d" * 32,
    }  # fmt: skip
    assert request.deadline is None


@pytest.mark.parametrize(
    ("kind", "name", "field", "priority"),
    [
        (1, "porep-c2", "vanilla_proof", Priority.NORMAL),
        (2, "snap-update", "vanilla_proofs", Priority.NORMAL),
        (3, "window-post", "vanilla_proofs", Priority.HIGH),
        (4, "winning-post", "vanilla_proofs", Priority.CRITICAL),
        (100, "circuit", "witness", Priority.NORMAL),
    ],
)
def test_every_kind_has_its_payload_and_its_priority(
    server: Running, channel: grpc.Channel, kind: int, name: str, field: str, priority: Priority
) -> None:
    payload: Any = [b"p"] if field == "vanilla_proofs" else b"p"
    for given, wanted in ((0, priority), (9, priority), (-1, priority), (1, Priority.LOW), (4, 4)):
        submit = pb.SubmitProofRequest(request_id=f"{name}{given}", proof_kind=kind, priority=given)  # type: ignore[arg-type]
        if field == "vanilla_proofs":
            submit.vanilla_proofs.extend(payload)
        else:
            setattr(submit, field, payload)
        prove(channel, submit)
        request = server.engine.requests[f"{name}{given}"]
        assert (request.kind, request.priority) == (name, wanted)
        assert [bytes(part.view()) for part in request.payload] == [b"p"]


def test_a_deadline_is_a_time(server: Running, channel: grpc.Channel) -> None:
    before = time.time()
    prove(channel, circuit("soon", b"w", deadline_ms=60_000))
    deadline = server.engine.requests["soon"].deadline
    assert deadline is not None
    assert before + 60 <= deadline <= time.time() + 60


@pytest.mark.parametrize(
    ("submit", "text"),
    [
        (pb.SubmitProofRequest(), "proof_kind: expected one of POREP_SEAL_COMMIT (1), SNAP_DEALS_UPDATE (2), WINDOW_POST_PARTITION (3), WINNING_POST (4), CIRCUIT (100), found 0"),
        (pb.SubmitProofRequest(proof_kind=77), "CIRCUIT (100), found 77"),  # type: ignore[arg-type]
        (pb.SubmitProofRequest(proof_kind=100), "witness: expected a payload for circuit, found none"),  # type: ignore[arg-type]
        (pb.SubmitProofRequest(proof_kind=100, vanilla_proof=b"v", witness=b"w"), "vanilla_proof: expected none for circuit, whose payload is witness"),  # type: ignore[arg-type]
        (pb.SubmitProofRequest(proof_kind=1, vanilla_proofs=[b"v"]), "vanilla_proofs: expected none for porep-c2, whose payload is vanilla_proof"),  # type: ignore[arg-type]
        (circuit("x" * 257, b"w"), "request_id: expected at most 256 bytes, found 257"),
        (circuit("é" * 129, b"w"), "request_id: expected at most 256 bytes, found 258"),
        (circuit("a\nb", b"w"), r"request_id: expected printable characters, found 'a\nb'"),
        (circuit("a\u202eb", b"w"), r"request_id: expected printable characters, found 'a\u202eb'"),
    ],
)  # fmt: skip
def test_a_request_that_is_none_is_refused(
    channel: grpc.Channel, submit: pb.SubmitProofRequest, text: str
) -> None:
    for answer in (
        refused(prove, channel, submit),
        refused(method(channel, "SubmitProof"), submit),
    ):
        assert answer[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert answer[1].endswith(text)
        assert answer[2] == "bad-format"


def test_bytes_that_are_no_message_are_refused(channel: grpc.Channel) -> None:
    call = method(channel, "Prove", raw=True)
    for data, text in (
        (b"", "submit: expected a request, found none"),
        (b"\x0a\x05abc", "message: byte 1: expected a protobuf field, found field 1 with 5 bytes where 3"),
        (b"\x0a\x03\x0a\x01\xff", "message: expected a SubmitProofRequest: "),
    ):  # fmt: skip
        status, details, word = refused(call, data)
        assert (status, word) == (grpc.StatusCode.INVALID_ARGUMENT, "bad-format")
        assert details.startswith(text)
    status, details, _ = refused(method(channel, "CancelProof", raw=True), b"\xff")
    assert status is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith("expected a CancelProofRequest: ")


def test_without_an_id_there_is_one_and_it_is_echoed(
    server: Running, channel: grpc.Channel
) -> None:
    first, second = (prove(channel, circuit("", b"w")).job_id for _ in range(2))
    assert len(first) == 36
    assert first != second
    assert not server.engine.requests[first].named


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
    assert 0.15 <= time.monotonic() - start < 5
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


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.FormatError("f"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.InsecureKeyError("f"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.CircuitError("c"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.QueueFull("q"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.RequestConflict("r"), grpc.StatusCode.ALREADY_EXISTS),
        (errors.UnknownJob("u"), grpc.StatusCode.NOT_FOUND),
        (errors.NotReady("n"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.Unavailable("v"), grpc.StatusCode.UNAVAILABLE),
        (errors.WorkerLost("w"), grpc.StatusCode.UNAVAILABLE),
        (errors.Refused("p"), grpc.StatusCode.PERMISSION_DENIED),
        (errors.EngineError("e"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.Cancelled("x"), grpc.StatusCode.CANCELLED),
        (errors.KernelError("k"), grpc.StatusCode.UNAVAILABLE),
        (errors.OutOfMemory("o"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.ProofError("b"), grpc.StatusCode.INTERNAL),
    ],
)
def test_every_error_has_its_status(
    server: Running, channel: grpc.Channel, error: errors.CuzkError, status: grpc.StatusCode
) -> None:
    name = f"refuse {error.code} {error}"
    server.engine.refusals[name] = error
    assert refused(prove, channel, circuit(name, b"w")) == (status, str(error), error.code)


def test_an_error_text_is_one_line_of_bounded_length(
    server: Running, channel: grpc.Channel
) -> None:
    server.engine.refusals["long"] = errors.FormatError("zeile\n\x00\x1b[31m é 漢" + "x" * 5000)
    _, details, _ = refused(prove, channel, circuit("long", b"w"))
    assert details == r"zeile\n\x00\x1b[31m é 漢" + "x" * (1000 - 26) + "..."
    assert len(details) == 1000


def test_an_error_of_our_own_is_named_and_tells_nothing(
    server: Running, channel: grpc.Channel
) -> None:
    server.engine.refusals["bug"] = ValueError("the witness is 17")  # type: ignore[assignment]
    status, details, _ = refused(prove, channel, circuit("bug", b"w"))
    assert status is grpc.StatusCode.INTERNAL
    assert details == "an error of the service's own, ValueError; its log says more"


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
    assert method(channel, "GetStatus")(pb.GetStatusRequest(), timeout=5).uptime_seconds == 599
    for n in range(120):
        server.tell(f"hold-room-{n}")
    assert [future.result(10).result.job_id for future in futures] == [
        f"hold-room-{n}" for n in range(120)
    ]


@pytest.mark.parametrize("mib", [5, 50, pytest.param(129, marks=pytest.mark.slow), pytest.param(255, marks=pytest.mark.slow)])  # fmt: skip
def test_large_requests(server: Running, channel: grpc.Channel, mib: int) -> None:
    witness = random.Random(mib).randbytes(MIB) * mib
    assert prove(channel, circuit(f"large-{mib}", witness)).proof == proof_of(witness)
    request = server.engine.requests[f"large-{mib}"]
    assert [part.size for part in request.payload] == [mib * MIB]
    assert request.payload[0].path is not None
    server.nothing_spooled()


def test_a_payload_before_the_other_fields_and_one_that_comes_twice(
    server: Running, channel: grpc.Channel
) -> None:
    """The last one counts, whatever is around it."""
    parts = [
        pb.SubmitProofRequest(witness=b"first" * MIB),
        pb.SubmitProofRequest(request_id="twice", circuit_id="d", witness=b"second" * MIB),
        pb.SubmitProofRequest(proof_kind=pb.CIRCUIT, circuit_id="c"),
    ]
    joined = b"".join(part.SerializeToString() for part in parts)
    inner = pb.SubmitProofRequest.FromString(joined)
    length = len(joined)
    prefix = b"\x0a" + bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14 & 127 | 128, length >> 21])  # fmt: skip
    assert method(channel, "Prove", raw=True)(prefix + joined).result.proof == proof_of(
        inner.witness
    )
    assert dict(server.engine.requests["twice"].fields) == {"circuit_id": "c"}


def test_too_large_is_refused_and_the_connection_goes_on(tmp_path: Path) -> None:
    with running(tmp_path, message_limit=MIB) as server, channel_to(server.target()) as channel:
        size = pb.ProveRequest(submit=circuit("big", bytes(20 * MIB))).ByteSize()
        for _ in range(3):
            assert refused(prove, channel, circuit("big", bytes(20 * MIB)))[:2] == (
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"expected a message of at most {2 * MIB:,} bytes, found one of {size:,}",
            )
            assert prove(channel, circuit("small", b"w")).status == 1
        small = pb.CancelProofRequest(job_id="x" * 100_000)
        assert (
            refused(method(channel, "CancelProof"), small)[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        )
        assert len(server.soon(lambda: list(server.server.server.transports))) == 1
        server.nothing_spooled()


def test_a_large_request_that_is_refused_leaves_nothing(
    server: Running, channel: grpc.Channel
) -> None:
    for submit in (circuit("no room", bytes(2 * MIB)), circuit("a\nb", bytes(2 * MIB))):
        refused(prove, channel, submit)
        refused(method(channel, "SubmitProof"), submit)
    server.nothing_spooled()


def test_compression_is_refused_in_words(channel: grpc.Channel) -> None:
    call = method(channel, "Prove")
    asked = pb.ProveRequest(submit=circuit("gz", b"w" * 5000))
    answer = refused(call, asked, compression=grpc.Compression.Gzip)
    assert answer == (
        grpc.StatusCode.UNIMPLEMENTED,
        "expected a message that is not compressed, found a compressed one",
        "refused",
    )


def test_a_client_that_goes_away(server: Running, channel: grpc.Channel) -> None:
    """A job with a name goes on, one without is nobody's; both by a cancelled call and by a deadline."""
    call = method(channel, "Prove")
    before = set(server.engine.requests)
    futures = [
        call.future(pb.ProveRequest(submit=circuit("hold-named", b"w"))),
        call.future(pb.ProveRequest(submit=circuit("hold-late", b"w")), timeout=0.3),
    ]
    server.wait(lambda: len(set(server.engine.requests) - before) == 2)
    futures[0].cancel()
    assert futures[1].exception(10).code() is grpc.StatusCode.DEADLINE_EXCEEDED
    server.wait(lambda: server.engine.waiting == 0)
    assert server.engine.gone == []
    server.tell("hold-named")
    asked = pb.AwaitProofRequest(job_id="hold-named")
    assert method(channel, "AwaitProof")(asked).proof == proof_of(b"w")


def test_a_job_without_a_name_is_left(
    server: Running, channel: grpc.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuzk.server.submission.uuid.uuid4", lambda: "hold-nobody")
    call = method(channel, "Prove")
    future = call.future(pb.ProveRequest(submit=circuit("", b"w")))
    server.wait(lambda: server.engine.waiting == 1)
    future.cancel()
    server.wait(lambda: server.engine.gone == ["hold-nobody"])
    server.engine.gone.clear()


def test_a_client_that_goes_away_while_its_job_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is accepted all the same; one without a name is left then."""
    monkeypatch.setattr("cuzk.server.submission.uuid.uuid4", lambda: "slow-nobody")
    with running(tmp_path) as server, channel_to(server.target()) as channel:
        futures = [
            method(channel, "Prove").future(pb.ProveRequest(submit=circuit(name, bytes(2 * MIB))))
            for name in ("slow-named", "")
        ]
        server.wait(lambda: server.engine.waiting == 2)
        for future in futures:
            future.cancel()
        server.soon(_calls_ended, server)
        assert server.engine.requests == {}
        server.soon(server.engine.gate.set)
        server.wait(lambda: set(server.engine.requests) == {"slow-named", "slow-nobody"})
        server.wait(lambda: server.engine.gone == ["slow-nobody"])
        server.nothing_spooled()


async def _calls_ended(server: Running) -> None:
    async with asyncio.timeout(10):
        while server.server.gatekeeper.tasks:
            await asyncio.sleep(0.001)


def test_close_answers_those_that_wait(tmp_path: Path) -> None:
    answers: list[Any] = []
    with running(tmp_path) as server, channel_to(server.target()) as channel:
        submit = circuit("hold-end", b"w")
        thread = threading.Thread(target=lambda: answers.append(refused(prove, channel, submit)))
        thread.start()
        server.wait(lambda: server.engine.waiting == 1)
        server.soon(server.server.close, 0.0)
        thread.join(10)
    ((status, text, word),) = answers
    assert (status, word) == (grpc.StatusCode.UNAVAILABLE, "unavailable")
    assert text.startswith("the service stops; a job whose request has an id goes on")


CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
from scripted_engine import channel_to, circuit, prove
with channel_to(sys.argv[2]) as channel:
    assert prove(channel, circuit("", bytes(255 << 20))).status == 1
"""


@pytest.mark.slow
def test_memory_is_flat_and_status_quick_while_messages_of_255_mib_come_in(tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    daemon = subprocess.Popen(
        [sys.executable, f"{here}/scripted_engine.py", "127.0.0.1:0", str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    clients: list[subprocess.Popen[Any]] = []

    def anonymous() -> int:
        status = Path(f"/proc/{daemon.pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) << 10

    try:
        assert daemon.stdin
        assert daemon.stdout
        address = daemon.stdout.readline().strip()
        with channel_to(address) as channel:
            call = method(channel, "GetStatus")
            call(pb.GetStatusRequest())
            base, peak, times = anonymous(), 0, []
            clients = [
                subprocess.Popen([sys.executable, "-c", CLIENT, here, address]) for _ in range(8)
            ]
            while any(client.poll() is None for client in clients):
                start = time.perf_counter()
                call(pb.GetStatusRequest())
                times.append(time.perf_counter() - start)
                peak = max(peak, anonymous())
                time.sleep(0.01)
        assert [client.returncode for client in clients] == [0] * 8
        assert peak - base < 64 * MIB
        print(f"p99 of {len(times)} calls: {sorted(times)[len(times) * 99 // 100] * 1e3:.1f} ms")
        assert sorted(times)[len(times) // 2] < 0.25, (
            "bench/serve.py has the number for a quiet machine"
        )
        daemon.stdin.close()
        assert daemon.wait(20) == 0
        assert list(tmp_path.iterdir()) == []
    finally:
        for process in [*clients, daemon]:
            if process.poll() is None:
                process.kill()
            process.wait()
        for pipe in (daemon.stdin, daemon.stdout):
            if pipe:
                pipe.close()
