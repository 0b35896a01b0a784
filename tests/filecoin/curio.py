"""Requests as Curio's Go client makes them: fields set and unset, ids, kinds, priorities; sent by plain gRPC.

    task           request_id                                 kind  priority  also set
    PoRep          porep-MINER-SECTOR                         1     2         vanilla_proof, sector_number
    Snap           snap-MINER-SECTOR                          2     2         vanilla_proofs, sector_number, commitments
    PSProve Snap   ps-snap-MINER-SECTOR-TASK                  2     2         the same, no sector_size
    WindowPoSt     wdpost-MINER-PARTITION-[8 bytes, decimal]  3     3         vanilla_proofs, randomness, partition_index
    WinningPoSt    winpost-MINER-8 bytes in hexadecimal       4     4         vanilla_proofs, randomness

All have registered_proof and miner_id, and sector_size but for the one. Numbers that are 0 are not on the wire.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import grpc

from cuzk.filecoin.registered import RegisteredProof
from cuzk.server import proving_pb2 as pb

MINER = 1000
SERVICE = "/cuzk.v1.ProvingEngine/"
LARGEST = 256 << 20
OPTIONS = [("grpc.max_send_message_length", LARGEST), ("grpc.max_receive_message_length", LARGEST)]


class Curio:
    """One long-lived connection in plain text: ``host:port`` becomes ``dns:///host:port``, ``unix:///path`` stays."""

    def __init__(self, address: str, *, seconds: float = 120) -> None:
        target = address if "://" in address else f"dns:///{address}"
        self._channel = grpc.insecure_channel(target, options=OPTIONS)
        self._seconds = seconds

    def call(self, method: str, message: Any, answer: Any) -> Any:
        """A unary call with a deadline, as of ProveTimeout."""
        made = self._channel.unary_unary(
            SERVICE + method,
            request_serializer=type(message).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return made(message, timeout=self._seconds)

    def prove(self, submit: pb.SubmitProofRequest) -> pb.AwaitProofResponse:
        """The blocking call."""
        found = self.call("Prove", pb.ProveRequest(submit=submit), pb.ProveResponse).result
        assert found.job_id == submit.request_id
        result: pb.AwaitProofResponse = found
        return result

    def completed(self) -> int:
        """Proofs since the daemon's start."""
        status = self.call("GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse)
        return int(status.total_proofs_completed)

    def preload(self, circuit: str) -> pb.PreloadSrsResponse:
        """PreloadSRS."""
        asked = pb.PreloadSrsRequest(circuit_id=circuit)
        answer: pb.PreloadSrsResponse = self.call("PreloadSRS", asked, pb.PreloadSrsResponse)
        return answer

    def evict(self, circuit: str) -> pb.EvictSrsResponse:
        """EvictSRS."""
        asked = pb.EvictSrsRequest(circuit_id=circuit)
        answer: pb.EvictSrsResponse = self.call("EvictSRS", asked, pb.EvictSrsResponse)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()


def porep(proof: RegisteredProof, phase1_out: bytes, sector: int) -> pb.SubmitProofRequest:
    """``phase1_out``: the C1 output in serde's JSON, which goes into a wrapper of JSON."""
    size = proof.shape.sector_bytes
    wrapper = {
        "SectorNum": sector,
        "Phase1Out": base64.b64encode(phase1_out).decode(),
        "SectorSize": size,
    }
    return pb.SubmitProofRequest(
        request_id=f"porep-{MINER}-{sector}",
        proof_kind=pb.ProofKind.POREP_SEAL_COMMIT,
        sector_size=size,
        registered_proof=proof.number,
        priority=pb.Priority.NORMAL,
        vanilla_proof=json.dumps(wrapper, separators=(",", ":")).encode(),
        sector_number=sector,
        miner_id=MINER,
    )


def snap(
    proof: RegisteredProof, partitions: Sequence[bytes], sector: int, commitments: Sequence[bytes]
) -> pb.SubmitProofRequest:
    """``commitments``: comm_r_old, comm_r_new, comm_d_new."""
    old, new, data = commitments
    return pb.SubmitProofRequest(
        request_id=f"snap-{MINER}-{sector}",
        proof_kind=pb.ProofKind.SNAP_DEALS_UPDATE,
        sector_size=proof.shape.sector_bytes,
        registered_proof=proof.number,
        priority=pb.Priority.NORMAL,
        vanilla_proofs=partitions,
        sector_number=sector,
        miner_id=MINER,
        comm_r_old=old,
        comm_r_new=new,
        comm_d_new=data,
    )


def window(
    proof: RegisteredProof, sectors: Sequence[bytes], randomness: bytes, partition: int = 0
) -> pb.SubmitProofRequest:
    """Go prints eight bytes as a list of decimal numbers."""
    shown = " ".join(str(byte) for byte in randomness[:8])
    return pb.SubmitProofRequest(
        request_id=f"wdpost-{MINER}-{partition}-[{shown}]",
        proof_kind=pb.ProofKind.WINDOW_POST_PARTITION,
        sector_size=proof.shape.sector_bytes,
        registered_proof=proof.number,
        priority=pb.Priority.HIGH,
        vanilla_proofs=sectors,
        miner_id=MINER,
        randomness=randomness,
        partition_index=partition,
    )


def winning(proof: RegisteredProof, sector: bytes, randomness: bytes) -> pb.SubmitProofRequest:
    """Of one sector."""
    return pb.SubmitProofRequest(
        request_id=f"winpost-{MINER}-{randomness[:8].hex()}",
        proof_kind=pb.ProofKind.WINNING_POST,
        sector_size=proof.shape.sector_bytes,
        registered_proof=proof.number,
        priority=pb.Priority.CRITICAL,
        vanilla_proofs=[sector],
        miner_id=MINER,
        randomness=randomness,
    )
