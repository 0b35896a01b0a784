"""A client that knows nothing of our messages asks for them, and proves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from scripted_engine import proof_of, running

TOKEN = "0123456789abcdef"
CLIENT = """
import json, sys
import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

class Token(grpc.UnaryUnaryClientInterceptor, grpc.StreamStreamClientInterceptor):
    def add(self, go, details, request):
        with_token = details._replace(metadata=[("authorization", f"Bearer {sys.argv[2]}")])
        return go(with_token, request)
    intercept_unary_unary = intercept_stream_stream = add

with grpc.insecure_channel(sys.argv[1]) as plain:
    channel = grpc.intercept_channel(plain, Token())
    database = ProtoReflectionDescriptorDatabase(channel)
    pool = DescriptorPool(database)
    service = pool.FindServiceByName("cuzk.v1.ProvingEngine")
    method = service.FindMethodByName("Prove")
    request = GetMessageClass(method.input_type)()
    request.submit.request_id = "generic"
    request.submit.proof_kind = pool.FindEnumTypeByName("cuzk.v1.ProofKind").values_by_name["CIRCUIT"].number
    request.submit.circuit_id = "c"
    request.submit.witness = b"w" * 2000000
    prove = channel.unary_unary(
        f"/{service.full_name}/{method.name}",
        request.__class__.SerializeToString,
        GetMessageClass(method.output_type).FromString,
    )
    result = prove(request).result
    print(json.dumps([sorted(database.get_services()), result.job_id, result.status, result.proof.hex(),
                      [m.name for m in service.methods]]))
"""


def client(address: str, token: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: its messages have the names of grpclib's."""
    command = [sys.executable, "-c", CLIENT, address, token]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_generic_client_proves(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with running(tmp_path, token_file=token) as server:
        run = client(server.address, TOKEN)
        assert run.returncode == 0, run.stderr
        services, job, status, proof, methods = json.loads(run.stdout)
        assert services == ["cuzk.v1.ProvingEngine", "grpc.health.v1.Health"]
        assert (job, status, proof) == ("generic", 1, proof_of(b"w" * 2000000).hex())
        assert methods == [
            "SubmitProof", "AwaitProof", "Prove", "CancelProof", "GetStatus", "GetMetrics", "PreloadSRS",
            "EvictSRS",
        ]  # fmt: skip
        refused = client(server.address, "another-token-16")
        assert refused.returncode == 1
        assert "PERMISSION_DENIED" in refused.stderr


def test_reflection_v1(tmp_path: Path) -> None:
    """The version that newer clients ask for first."""
    from grpclib.reflection.v1.reflection_pb2 import (
        ServerReflectionRequest,
        ServerReflectionResponse,
    )
    from scripted_engine import channel_to

    with running(tmp_path) as server, channel_to(server.target()) as channel:
        ask = channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            ServerReflectionRequest.SerializeToString,
            ServerReflectionResponse.FromString,
        )
        questions = [
            ServerReflectionRequest(list_services=""),
            ServerReflectionRequest(file_containing_symbol="cuzk.v1.ProvingEngine"),
            ServerReflectionRequest(file_containing_symbol="no.such"),
        ]
        listed, file, none = ask(iter(questions), timeout=120)
        assert [s.name for s in listed.list_services_response.service] == ["cuzk.v1.ProvingEngine", "grpc.health.v1.Health"]  # fmt: skip
        assert b"SubmitProofRequest" in file.file_descriptor_response.file_descriptor_proto[0]
        assert none.error_response.error_code == 5
