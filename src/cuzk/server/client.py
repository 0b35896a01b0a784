"""A proving service's client: requests in, verified proofs out, errors as the library raises them.

    with Client("127.0.0.1:9820") as client:
        result = client.prove_circuit("membership", "witness.wtns")
        Path("proof.json").write_bytes(result.proof)

The service verified each proof before it gave it away; who does not trust the machine that it runs on, verifies again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import grpc
from google.protobuf.message import Message

from cuzk.errors import Cancelled, DeadlineExceeded, EngineError, FormatError
from cuzk.server.proving_pb2 import (
    AwaitProofRequest,
    AwaitProofResponse,
    CancelProofRequest,
    CancelProofResponse,
    EvictSrsRequest,
    EvictSrsResponse,
    GetMetricsRequest,
    GetMetricsResponse,
    GetStatusRequest,
    GetStatusResponse,
    PreloadSrsRequest,
    PreloadSrsResponse,
    ProveRequest,
    ProveResponse,
    SubmitProofRequest,
    SubmitProofResponse,
)
from cuzk.server.refusals import failure, refusal
from cuzk.server.requests import circuit_request, filecoin_request

DEFAULT_ADDRESS = "127.0.0.1:9820"
MESSAGE_LIMIT = 2**31 - 1  # bytes that protobuf can write; what a service takes is its own setting
RECEIVE_LIMIT = 256 << 20
OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", RECEIVE_LIMIT),
    ("grpc.enable_http_proxy", 0),  # the address is the service's own
    ("grpc.keepalive_time_ms", 60_000),  # a machine that vanished while a proof is waited for
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.enable_retries", 0),
    (
        "grpc.initial_reconnect_backoff_ms",
        100,
    ),  # a service that was restarted; else 1 s, up to 2 minutes
    ("grpc.min_reconnect_backoff_ms", 20_000),  # how long a try to connect may take: a busy machine
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


@dataclass(frozen=True)
class Submitted:
    """A job that was taken. ``place``: how many jobs will be worked on before it, as of then."""

    job: str
    place: int


@dataclass(frozen=True)
class ProofResult:
    """A proof. ``milliseconds``: wall time of "queue", "load", "prepare", "prove" and "total"."""

    job: str
    proof: bytes
    """Of a circuit a proof.json (snarkjs' form), of Filecoin 192 bytes for each partition."""
    public: bytes
    """A circuit's public signals, a public.json."""
    milliseconds: dict[str, int]


class Client:
    """A connection to one service, made when it is first needed; any number of threads may share it.

    ``address``: host:port or unix:///path. ``token``: of a service that asks for one; ``certificate``: a PEM file with
    the service's certificate or that of who signed it, for TLS. ``timeout``: seconds that a call may take, waiting for
    proofs not counted; None: no limit. FormatError for an address of another form; every method raises the error that
    the service answered with, and Unavailable where none answers.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        token: str | None = None,
        certificate: Path | str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.address = address
        self._timeout = timeout
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._channel = _channel(address, certificate)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Jobs go on, but for those of ``prove_...`` without an id."""
        self._channel.close()

    def prove_circuit(
        self,
        circuit: str,
        witness: bytes | Path | str,
        *,
        id: str | None = None,
        priority: str = "",
        deadline: float | None = None,
    ) -> ProofResult:
        """Prove a witness (a .wtns: bytes or a file) of a circuit of the service's configuration, and wait for it.

        With an ``id`` a repeat of the same request gets the same job or its proof; without one the job ends with this
        call. ``priority``: "low", "normal", "high", "critical", or "" for the kind's own. ``deadline``: seconds after
        which the job is given up: DeadlineExceeded. UnsatisfiedError, or ProofError where the service has no .r1cs of the
        circuit, where the witness breaks it.
        """
        return self.prove(circuit_request(circuit, witness, id or "", priority, deadline))

    def submit_circuit(
        self,
        circuit: str,
        witness: bytes | Path | str,
        *,
        id: str | None = None,
        priority: str = "",
        deadline: float | None = None,
    ) -> Submitted:
        """As ``prove_circuit``, without waiting: the proof is fetched by ``wait``. An id is made where none is given."""
        chosen = id or f"job-{uuid4()}"
        return self.submit(circuit_request(circuit, witness, chosen, priority, deadline))

    def prove_filecoin(self, kind: str, vanilla: Sequence[bytes], **fields: Any) -> ProofResult:
        """Prove vanilla proofs of Filecoin's and wait; see ``filecoin_request`` for what is given."""
        return self.prove(filecoin_request(kind, vanilla, **fields))

    def submit_filecoin(self, kind: str, vanilla: Sequence[bytes], **fields: Any) -> Submitted:
        """As ``prove_filecoin``, without waiting."""
        fields["id"] = fields.get("id") or f"job-{uuid4()}"
        return self.submit(filecoin_request(kind, vanilla, **fields))

    def prove(self, request: SubmitProofRequest) -> ProofResult:
        """A whole message, as it is, in one call."""
        answer = self._call("Prove", ProveRequest(submit=request), ProveResponse, waits=True)
        return _result(answer.result)

    def submit(self, request: SubmitProofRequest) -> Submitted:
        """A whole message, as it is."""
        answer = self._call("SubmitProof", request, SubmitProofResponse)
        return Submitted(answer.job_id, answer.queue_position)

    def poll(self, job: str, seconds: float) -> ProofResult | None:
        """A job's proof, or None where it is not there after this long; UnknownJob, or why there is no proof."""
        wanted = AwaitProofRequest(job_id=job, timeout_ms=max(1, round(1000 * seconds)))
        return self._awaited(wanted)

    def wait(self, job: str, timeout: float | None = None) -> ProofResult:
        """A job's proof; DeadlineExceeded where it is not there after ``timeout`` seconds: the job goes on."""
        found = None
        if timeout is not None:
            found = self.poll(job, timeout)
        while timeout is None and found is None:
            found = self._awaited(AwaitProofRequest(job_id=job))
        if found is None:
            raise DeadlineExceeded(f"{job}: not done after {timeout:g} s; it goes on")
        return found

    def cancel(self, job: str) -> bool:
        """Cancel a job: whether work on it had begun; False for one that has ended. UnknownJob."""
        request = CancelProofRequest(job_id=job)
        return bool(self._call("CancelProof", request, CancelProofResponse).was_running)

    def status(self) -> dict[str, Any]:
        """The service's whole state, as its page reads it."""
        answer = self._call("GetStatus", GetStatusRequest(), GetStatusResponse)
        state: dict[str, Any] = json.loads(answer.status_json)
        return state

    def metrics(self) -> str:
        """Counters and gauges in Prometheus' text form."""
        answer = self._call("GetMetrics", GetMetricsRequest(), GetMetricsResponse)
        return str(answer.prometheus_text)

    def preload(self, circuit: str) -> tuple[bool, int]:
        """Load a circuit's key now: whether it was loaded already, and milliseconds."""
        request = PreloadSrsRequest(circuit_id=circuit)
        answer = self._call("PreloadSRS", request, PreloadSrsResponse, waits=True)
        return bool(answer.already_loaded), int(answer.load_time_ms)

    def evict(self, circuit: str) -> tuple[bool, int]:
        """Unload a circuit's key: whether it was loaded, and the bytes that are free now."""
        answer = self._call("EvictSRS", EvictSrsRequest(circuit_id=circuit), EvictSrsResponse)
        return bool(answer.was_loaded), int(answer.freed_bytes)

    def _awaited(self, request: AwaitProofRequest) -> ProofResult | None:
        answer = self._call("AwaitProof", request, AwaitProofResponse, waits=True)
        return None if answer.status == AwaitProofResponse.TIMEOUT else _result(answer)

    def _call(
        self, method: str, request: Message, answer: type[Message], *, waits: bool = False
    ) -> Any:
        call = self._channel.unary_unary(
            f"/cuzk.v1.ProvingEngine/{method}",
            request_serializer=_serialized,
            response_deserializer=answer.FromString,
        )
        timeout = None if waits else self._timeout
        try:
            return call(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise refusal(error, self.address) from None


def _serialized(request: Message) -> bytes:
    if request.ByteSize() > MESSAGE_LIMIT:
        raise FormatError(f"request: expected at most {MESSAGE_LIMIT} bytes, found more")
    return request.SerializeToString()


def _result(answer: AwaitProofResponse) -> ProofResult:
    """The proof, or the reason why there is none as an error."""
    if answer.status == AwaitProofResponse.COMPLETED:
        spent = {
            "queue": answer.queue_wait_ms,
            "load": answer.srs_load_ms,
            "prepare": answer.synthesis_ms,
            "prove": answer.gpu_compute_ms,
            "total": answer.total_ms,
        }
        return ProofResult(answer.job_id, answer.proof, answer.public_signals, spent)
    if answer.status == AwaitProofResponse.FAILED:
        raise failure(answer.error_code, answer.error_message)
    if answer.status == AwaitProofResponse.CANCELLED:
        raise Cancelled(answer.error_message or f"{answer.job_id}: cancelled")
    if answer.status == AwaitProofResponse.TIMEOUT:
        raise DeadlineExceeded(f"{answer.job_id}: not done in time; it goes on")
    raise EngineError(f"{answer.job_id}: the service answered with status {answer.status}")


def _channel(address: str, certificate: Path | str | None) -> grpc.Channel:
    """A channel that connects when it is used. A Unix socket has no host's name that a certificate could be of."""
    host, _, port = address.rpartition(":")
    local = address.startswith("unix:///") and len(address) > len("unix:///")
    if not local and not (host and port.isdecimal() and 0 < int(port) < 65536 and "/" not in host):
        raise FormatError(f"address: expected host:port or unix:///path, found {address!r}")
    if certificate is None:
        options = (*OPTIONS, ("grpc.default_authority", "localhost")) if local else OPTIONS
        return grpc.insecure_channel(address, options)
    root = Path(certificate).read_bytes()
    if b"-----BEGIN CERTIFICATE-----" not in root:
        raise FormatError(
            f"{certificate}: expected a certificate in PEM form, found something else"
        )
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(root), OPTIONS)
