"""The Python client against a server that answers as it is told."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from cuzk import errors
from cuzk.server.client import Client
from cuzk.server.proving_pb2 import (
    AwaitProofResponse,
    CancelProofResponse,
    EvictSrsResponse,
    GetMetricsResponse,
    GetStatusResponse,
    PreloadSrsResponse,
    Priority,
    ProofKind,
    ProveResponse,
    SubmitProofResponse,
)
from cuzk.server.requests import filecoin_request
from one_answer import Script, refuse, serving

DONE = AwaitProofResponse(
    job_id="j-1",
    status=AwaitProofResponse.COMPLETED,
    proof=b"a proof",
    public_signals=b'["35"]\n',
    queue_wait_ms=1,
    srs_load_ms=2,
    synthesis_ms=3,
    gpu_compute_ms=4,
    total_ms=11,
)


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def client(script: Script) -> Iterator[Client]:
    with serving(script) as address, Client(address, timeout=120) as made:
        yield made


def ends(status: Any, **more: Any) -> Callable[[Any, Any], AwaitProofResponse]:
    return lambda request, _context: AwaitProofResponse(
        job_id=request.job_id, status=status, **more
    )


def test_a_proof_and_its_request(script: Script, client: Client, tmp_path: Path) -> None:
    script.answers["Prove"] = lambda _request, _context: ProveResponse(result=DONE)
    witness = tmp_path / "w.wtns"
    witness.write_bytes(b"wtns of a file")
    result = client.prove_circuit("cubic", witness, id="mine", priority="high", deadline=1.5)
    assert (result.job, result.proof, result.public) == ("j-1", b"a proof", b'["35"]\n')
    assert result.milliseconds == {"queue": 1, "load": 2, "prepare": 3, "prove": 4, "total": 11}
    sent = script.seen[0].submit
    assert (sent.request_id, sent.circuit_id, sent.witness) == ("mine", "cubic", b"wtns of a file")
    assert (sent.proof_kind, sent.priority) == (ProofKind.CIRCUIT, Priority.HIGH)
    assert sent.deadline_ms == 1500


def test_a_call_without_an_id_sends_none_and_a_submission_makes_one(
    script: Script, client: Client
) -> None:
    """So that the first ends with its caller and the second can be waited for."""
    script.answers["Prove"] = lambda _request, _context: ProveResponse(result=DONE)
    script.answers["SubmitProof"] = lambda request, _context: SubmitProofResponse(
        job_id=request.request_id, queue_position=7
    )
    client.prove_circuit("cubic", b"w")
    first, second = (client.submit_circuit("cubic", b"w") for _ in range(2))
    assert script.seen[0].submit.request_id == ""
    assert first.job == script.seen[1].request_id
    assert first.place == 7
    assert first.job != second.job


def test_filecoin_requests_have_the_fields_of_their_kind(script: Script, client: Client) -> None:
    script.answers["Prove"] = lambda _request, _context: ProveResponse(result=DONE)
    client.prove_filecoin("porep-c2", [b"c1"], registered_proof=8, miner=1000, sector=7)
    client.prove_filecoin(
        "window-post", [b"a", b"b"], registered_proof=13, miner=1, randomness=b"r" * 32, partition=2
    )
    porep, post = (request.submit for request in script.seen)
    assert porep.proof_kind == ProofKind.POREP_SEAL_COMMIT
    assert (porep.vanilla_proof, list(porep.vanilla_proofs)) == (b"c1", [])
    assert (porep.registered_proof, porep.miner_id, porep.sector_number) == (8, 1000, 7)
    assert (post.vanilla_proof, list(post.vanilla_proofs)) == (b"", [b"a", b"b"])
    assert (post.randomness, post.partition_index) == (b"r" * 32, 2)


def test_what_no_request_can_be_made_of() -> None:
    with pytest.raises(errors.FormatError, match="expected one C1, found 2"):
        filecoin_request("porep-c2", [b"", b""], registered_proof=8, miner=1)
    with pytest.raises(errors.FormatError, match="found 'seal'"):
        filecoin_request("seal", [b""], registered_proof=8, miner=1)
    with Client() as client:
        with pytest.raises(errors.FormatError, match="found 'urgent'"):
            client.prove_circuit("c", b"", priority="urgent")
        with pytest.raises(errors.FormatError, match="more than 0 seconds, found 0"):
            client.prove_circuit("c", b"", deadline=0)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("unsatisfied", errors.UnsatisfiedError),
        ("out-of-memory", errors.OutOfMemory),
        ("deadline", errors.DeadlineExceeded),
        ("worker-lost", errors.WorkerLost),
        ("invalid-proof", errors.ProofError),
        ("a word of a later version", errors.EngineError),
    ],
)
def test_a_job_that_failed_raises_what_failed(
    script: Script, client: Client, code: str, kind: type[errors.CuzkError]
) -> None:
    failed = {"error_code": code, "error_message": f"why: {code}"}
    script.answers["AwaitProof"] = ends(AwaitProofResponse.FAILED, **failed)
    with pytest.raises(kind, match=f"^why: {code}$") as raised:
        client.wait("j")
    assert type(raised.value) is kind


def test_a_cancelled_job(script: Script, client: Client) -> None:
    script.answers["AwaitProof"] = ends(AwaitProofResponse.CANCELLED)
    with pytest.raises(errors.Cancelled, match=r"^j: cancelled$"):
        client.wait("j")


def test_waiting_ends_at_its_timeout_or_with_the_job(script: Script, client: Client) -> None:
    script.answers["AwaitProof"] = ends(AwaitProofResponse.TIMEOUT)
    assert client.poll("j", 0.25) is None
    assert script.seen[0].timeout_ms == 250
    with pytest.raises(errors.DeadlineExceeded, match=r"^j: not done after 0\.5 s; it goes on$"):
        client.wait("j", 0.5)
    answers = iter([AwaitProofResponse(status=AwaitProofResponse.TIMEOUT), DONE])
    script.answers["AwaitProof"] = lambda _request, _context: next(answers)
    assert client.wait("j").proof == b"a proof"
    assert script.seen[-1].timeout_ms == 0


def test_an_answer_without_a_status_is_no_proof(script: Script, client: Client) -> None:
    script.answers["AwaitProof"] = ends(AwaitProofResponse.UNKNOWN, proof=b"a proof")
    with pytest.raises(errors.EngineError, match="status 0"):
        client.wait("j")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, errors.FormatError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.QueueFull),
        (grpc.StatusCode.ALREADY_EXISTS, errors.RequestConflict),
        (grpc.StatusCode.NOT_FOUND, errors.UnknownJob),
        (grpc.StatusCode.FAILED_PRECONDITION, errors.NotReady),
        (grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
        (grpc.StatusCode.UNAUTHENTICATED, errors.Refused),
        (grpc.StatusCode.PERMISSION_DENIED, errors.Refused),
        (grpc.StatusCode.INTERNAL, errors.EngineError),
    ],
)
def test_a_refusal_is_the_error_that_was_raised_there(
    script: Script, client: Client, status: grpc.StatusCode, kind: type[errors.CuzkError]
) -> None:
    script.answers["SubmitProof"] = refuse(status, "w.wtns: what was wrong with it")
    with pytest.raises(kind, match=r"^w\.wtns: what was wrong with it$") as raised:
        client.submit_circuit("c", b"w")
    assert type(raised.value) is kind


def test_a_refusal_with_its_word_is_exactly_that_error(script: Script, client: Client) -> None:
    refused = refuse(grpc.StatusCode.INVALID_ARGUMENT, "another circuit's", "mismatch")
    script.answers["SubmitProof"] = refused
    with pytest.raises(errors.CircuitError, match=r"^another circuit's$") as raised:
        client.submit_circuit("c", b"w")
    assert type(raised.value) is errors.CircuitError


def test_the_other_calls(script: Script, client: Client) -> None:
    script.answers = {
        "CancelProof": lambda r, _: CancelProofResponse(was_running=r.job_id == "running"),
        "GetStatus": lambda *_: GetStatusResponse(status_json=json.dumps({"jobs": []}).encode()),
        "GetMetrics": lambda *_: GetMetricsResponse(prometheus_text="cuzk_up 1\n"),
        "PreloadSRS": lambda r, _: PreloadSrsResponse(already_loaded=r.circuit_id == "hot"),
        "EvictSRS": lambda *_: EvictSrsResponse(was_loaded=True, freed_bytes=1 << 40),
    }
    assert (client.cancel("running"), client.cancel("queued")) == (True, False)
    assert client.status() == {"jobs": []}
    assert client.metrics() == "cuzk_up 1\n"
    assert (client.preload("hot"), client.preload("cold")) == ((True, 0), (False, 0))
    assert client.evict("c") == (True, 1 << 40)


def test_a_token_is_sent_and_nothing_without_one(script: Script) -> None:
    script.answers["GetMetrics"] = lambda *_: GetMetricsResponse()
    with serving(script) as address:
        with Client(address, token="s3cret") as client:
            client.metrics()
        assert script.metadata["authorization"] == "Bearer s3cret"
        with Client(address) as client:
            client.metrics()
        assert "authorization" not in script.metadata


def test_a_unix_socket(script: Script, tmp_path: Path) -> None:
    script.answers["GetMetrics"] = lambda *_: GetMetricsResponse(prometheus_text="here")
    address = f"unix://{tmp_path}/s"
    with serving(script, address), Client(address) as client:
        assert client.metrics() == "here"


def test_tls_with_the_services_own_certificate(script: Script, tmp_path: Path) -> None:
    made: list[tuple[Path, Path]] = []
    for name in ("own", "other"):
        key, certificate = tmp_path / f"{name}.key", tmp_path / f"{name}.pem"
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ]
        command += ["-nodes", "-days", "2", "-subj", "/CN=localhost"]
        command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]  # type: ignore[list-item]
        subprocess.run(command, check=True, capture_output=True)
        made.append((key, certificate))
    pair = (made[0][0].read_bytes(), made[0][1].read_bytes())
    script.answers["GetMetrics"] = lambda *_: GetMetricsResponse(prometheus_text="sealed")
    with serving(script, "localhost:0", grpc.ssl_server_credentials([pair])) as address:
        with Client(address, certificate=made[0][1]) as client:
            assert client.metrics() == "sealed"
        with (
            Client(address, certificate=made[1][1]) as client,
            pytest.raises(errors.Unavailable, match="certificate is not the one expected"),
        ):
            client.metrics()
    with pytest.raises(errors.FormatError, match="expected a certificate in PEM form"):
        Client(address, certificate=made[0][0])


@pytest.mark.parametrize(
    "address", ["", "9820", "host", "http://host:1", "host:0", "host:65536", "unix://", "host:x"]
)
def test_an_address_of_another_form(address: str) -> None:
    with pytest.raises(errors.FormatError, match="expected host:port or unix:///path, found"):
        Client(address)


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        free = f"127.0.0.1:{reserved.getsockname()[1]}"
        for address in (free, f"unix://{tmp_path}/none"):
            with Client(address) as client, pytest.raises(errors.Unavailable) as raised:
                client.status()
            assert str(raised.value).startswith(f"{address}: no proving service listens there")


def test_something_else_listens() -> None:
    """Another gRPC service, and what is no gRPC at all."""
    with (
        serving(Script()) as address,
        Client(address) as client,
        pytest.raises(errors.EngineError, match="expected a proving service"),
    ):
        client.status()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b" " * 1000)

        thread = threading.Thread(target=answer)
        thread.start()
        with (
            Client(f"127.0.0.1:{server.getsockname()[1]}") as client,
            pytest.raises(errors.Unavailable, match="expected a proving service"),
        ):
            client.status()
        thread.join()


def test_a_message_of_129_mib_arrives(script: Script, client: Client) -> None:
    """More than gRPC's own limit of 4 MiB, and than others' 128."""
    sizes: list[int] = []

    def count(request: Any, _context: grpc.ServicerContext) -> SubmitProofResponse:
        sizes.append(len(request.witness))
        return SubmitProofResponse()

    script.answers["SubmitProof"] = count
    client.submit_circuit("c", bytes(129 << 20))
    assert sizes == [129 << 20]
