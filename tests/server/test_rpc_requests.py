"""A request's fields as the engine gets them, and messages that are none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from scripted_engine import Running, channel_to, circuit, method, prove, refused, running

from cuzk.engine.request import Priority
from cuzk.server import proving_pb2 as pb


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("rpc")) as server:
        yield server


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with channel_to(server.target()) as channel:
        yield channel


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


def test_compression_is_refused_in_words(channel: grpc.Channel) -> None:
    call = method(channel, "Prove")
    asked = pb.ProveRequest(submit=circuit("gz", b"w" * 5000))
    answer = refused(call, asked, compression=grpc.Compression.Gzip)
    assert answer == (
        grpc.StatusCode.UNIMPLEMENTED,
        "expected a message that is not compressed, found a compressed one",
        "refused",
    )
