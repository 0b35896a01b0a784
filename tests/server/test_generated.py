"""The committed messages are those of the .proto, and those are what Curio's client speaks."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

import cuzk.server
from cuzk.server import proving_pb2

SOURCE = Path(cuzk.server.__file__).resolve().parents[2]

MESSAGES = {
    "SubmitProofRequest": {
        "request_id": (1, "string"), "proof_kind": (2, "ProofKind"), "sector_size": (3, "uint64"),
        "registered_proof": (4, "uint64"), "priority": (5, "Priority"), "vanilla_proof": (10, "bytes"),
        "vanilla_proofs": (11, "bytes*"), "sector_number": (20, "uint64"), "miner_id": (21, "uint64"),
        "randomness": (22, "bytes"), "partition_index": (23, "uint32"), "comm_r_old": (30, "bytes"),
        "comm_r_new": (31, "bytes"), "comm_d_new": (32, "bytes"),
    },
    "SubmitProofResponse": {
        "job_id": (1, "string"), "queue_position": (2, "uint32"), "assigned_gpu": (3, "string"),
    },
    "AwaitProofRequest": {"job_id": (1, "string"), "timeout_ms": (2, "uint64")},
    "AwaitProofResponse": {
        "job_id": (1, "string"), "status": (2, "Status"), "proof": (3, "bytes"), "error_message": (4, "string"),
        "queue_wait_ms": (10, "uint64"), "srs_load_ms": (11, "uint64"), "synthesis_ms": (12, "uint64"),
        "gpu_compute_ms": (13, "uint64"), "total_ms": (14, "uint64"),
    },
    "ProveRequest": {"submit": (1, "SubmitProofRequest")},
    "ProveResponse": {"result": (1, "AwaitProofResponse")},
    "CancelProofRequest": {"job_id": (1, "string")},
    "CancelProofResponse": {"was_running": (1, "bool")},
    "GetStatusRequest": {},
    "GetStatusResponse": {
        "gpus": (1, "GPUStatus*"), "loaded_srs": (2, "SRSStatus*"), "queues": (3, "QueueStatus*"),
        "total_proofs_completed": (4, "uint64"), "total_proofs_failed": (5, "uint64"),
        "uptime_seconds": (6, "uint64"), "pinned_memory_bytes": (7, "uint64"),
        "pinned_memory_limit_bytes": (8, "uint64"),
    },
    "GPUStatus": {
        "ordinal": (1, "uint32"), "name": (2, "string"), "vram_total_bytes": (3, "uint64"),
        "vram_free_bytes": (4, "uint64"), "current_job_id": (5, "string"), "current_proof_kind": (6, "string"),
    },
    "SRSStatus": {
        "circuit_id": (1, "string"), "tier": (2, "Tier"), "size_bytes": (3, "uint64"), "ref_count": (4, "uint32"),
    },
    "QueueStatus": {"proof_kind": (1, "string"), "pending": (2, "uint32"), "in_progress": (3, "uint32")},
    "GetMetricsRequest": {},
    "GetMetricsResponse": {"prometheus_text": (1, "string")},
    "PreloadSrsRequest": {"circuit_id": (1, "string")},
    "PreloadSrsResponse": {"already_loaded": (1, "bool"), "load_time_ms": (2, "uint64")},
    "EvictSrsRequest": {"circuit_id": (1, "string")},
    "EvictSrsResponse": {"was_loaded": (1, "bool"), "freed_bytes": (2, "uint64")},
}  # fmt: skip
ADDED = {
    "SubmitProofRequest": {"circuit_id": (100, "string"), "witness": (101, "bytes"), "deadline_ms": (102, "uint64")},
    "AwaitProofResponse": {"public_signals": (100, "bytes"), "error_code": (101, "string")},
    "GetStatusResponse": {"status_json": (100, "bytes")},
}  # fmt: skip
ENUMS = {
    "ProofKind": {
        "PROOF_KIND_UNSPECIFIED": 0, "POREP_SEAL_COMMIT": 1, "SNAP_DEALS_UPDATE": 2,
        "WINDOW_POST_PARTITION": 3, "WINNING_POST": 4, "CIRCUIT": 100,
    },
    "Priority": {"PRIORITY_UNSPECIFIED": 0, "LOW": 1, "NORMAL": 2, "HIGH": 3, "CRITICAL": 4},
    "AwaitProofResponse.Status": {"UNKNOWN": 0, "COMPLETED": 1, "FAILED": 2, "CANCELLED": 3, "TIMEOUT": 4},
    "SRSStatus.Tier": {"HOT": 0, "WARM": 1, "COLD": 2},
}  # fmt: skip
METHODS = {
    "SubmitProof": ("SubmitProofRequest", "SubmitProofResponse"),
    "AwaitProof": ("AwaitProofRequest", "AwaitProofResponse"),
    "Prove": ("ProveRequest", "ProveResponse"),
    "CancelProof": ("CancelProofRequest", "CancelProofResponse"),
    "GetStatus": ("GetStatusRequest", "GetStatusResponse"),
    "GetMetrics": ("GetMetricsRequest", "GetMetricsResponse"),
    "PreloadSRS": ("PreloadSrsRequest", "PreloadSrsResponse"),
    "EvictSRS": ("EvictSrsRequest", "EvictSrsResponse"),
}
SCALARS = {4: "uint64", 8: "bool", 9: "string", 12: "bytes", 13: "uint32"}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> FileDescriptorSet:
    """The .proto as the compiler reads it now."""
    out = tmp_path_factory.mktemp("proto") / "set"
    well_known = resources.files("grpc_tools") / "_proto"
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", f"-I{SOURCE}", f"-I{well_known}"),
            *(f"--descriptor_set_out={out}", "cuzk/server/proving.proto"),
        ],
        check=True,
        timeout=60,
    )
    return FileDescriptorSet.FromString(out.read_bytes())


def test_the_committed_module_is_the_compiled_proto(compiled: FileDescriptorSet) -> None:
    (file,) = compiled.file
    committed = FileDescriptorProto.FromString(proving_pb2.DESCRIPTOR.serialized_pb)
    wanted = FileDescriptorProto.FromString(file.SerializeToString())
    for message in wanted.message_type:
        for entry in message.field:
            entry.ClearField("json_name")  # which generated modules leave out
    assert committed == wanted


def test_the_stub_names_what_the_module_has() -> None:
    stub = (SOURCE / "cuzk" / "server" / "proving_pb2.pyi").read_text()
    for name, message in proving_pb2.DESCRIPTOR.message_types_by_name.items():
        body = stub.partition(f"class {name}(")[2].partition("\nclass ")[0]
        for entry in message.fields:
            assert f"\n    {entry.name}: " in body, f"{name}.{entry.name}"


def test_every_name_and_number_of_curio(compiled: FileDescriptorSet) -> None:
    (file,) = compiled.file
    assert (file.package, file.syntax) == ("cuzk.v1", "proto3")
    found = {
        message.name: {
            field.name: (
                field.number,
                SCALARS.get(field.type, field.type_name.rpartition(".")[2])
                + "*" * (field.label == 3),
            )
            for field in message.field
        }
        for message in file.message_type
    }
    wanted = {name: fields | ADDED.get(name, {}) for name, fields in MESSAGES.items()}
    assert found == wanted
    assert all(number >= 100 for fields in ADDED.values() for number, _ in fields.values())


def test_every_enum_of_curio(compiled: FileDescriptorSet) -> None:
    (file,) = compiled.file
    enums = {enum.name: enum for enum in file.enum_type}
    enums |= {f"{m.name}.{enum.name}": enum for m in file.message_type for enum in m.enum_type}
    assert {name: {v.name: v.number for v in e.value} for name, e in enums.items()} == ENUMS


def test_every_method_of_curio(compiled: FileDescriptorSet) -> None:
    (file,) = compiled.file
    (service,) = file.service
    assert service.name == "ProvingEngine"
    found = {
        m.name: (m.input_type.removeprefix(".cuzk.v1."), m.output_type.removeprefix(".cuzk.v1."))
        for m in service.method
    }
    assert found == METHODS
    assert not any(m.client_streaming or m.server_streaming for m in service.method)
