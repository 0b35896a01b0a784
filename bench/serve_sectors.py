"""A client that asks for PoReps of sparse sectors as Curio does: ``Prove`` with its fields, all at a time.

Its C1s are made before it is ready, one for each sector number, and handed over as serde's JSON in Curio's wrapper.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from bench.c1_writer import c1_json, wrapped
from bench.sparse_sector import Owner, seal_of, sparse_c1
from cuzk.filecoin.registered import RegisteredProof
from cuzk.filecoin.statement import SealStatement
from cuzk.server.proving_pb2 import (
    AwaitProofResponse,
    Priority,
    ProofKind,
    ProveRequest,
    ProveResponse,
    SubmitProofRequest,
)

MINER = 1000
LARGEST = 256 << 20
OPTIONS = [("grpc.max_send_message_length", LARGEST), ("grpc.max_receive_message_length", LARGEST)]
PUBLIC = ("replica_id", "comm_d", "comm_r", "seed", "porep_id")
Answer = dict[str, Any]


def sector_request(proof: RegisteredProof, sector: int, vanilla: bytes) -> SubmitProofRequest:
    """Fields as Curio's PoRep task sets them."""
    return SubmitProofRequest(
        request_id=f"porep-{MINER}-{sector}",
        proof_kind=ProofKind.POREP_SEAL_COMMIT,
        sector_size=proof.shape.sector_bytes,
        registered_proof=proof.number,
        priority=Priority.NORMAL,
        vanilla_proof=vanilla,
        sector_number=sector,
        miner_id=MINER,
    )


def porep(given: Answer) -> Callable[[float], Answer]:
    """Given ``address``, ``size``, ``sectors`` (numbers) and ``threads``; works for so many seconds a call at most."""
    proof, asked = seal_of(given["size"]), []
    for sector in given["sectors"]:
        began = time.perf_counter()
        owner = Owner(MINER, sector)
        c1 = sparse_c1(proof, seed=sector, owner=owner, threads=given["threads"])
        vanilla = wrapped(c1_json(c1), sector, proof.shape.sector_bytes)
        public = {name: getattr(c1, name).hex() for name in PUBLIC[:4]}
        public["porep_id"] = proof.porep_id().hex()
        made = {"public": public, "bytes": len(vanilla), "made_s": time.perf_counter() - began}
        asked.append((sector_request(proof, sector, vanilla), made))
    call = grpc.insecure_channel(given["address"], options=OPTIONS).unary_unary(
        "/cuzk.v1.ProvingEngine/Prove",
        request_serializer=ProveRequest.SerializeToString,
        response_deserializer=ProveResponse.FromString,
    )

    def work(seconds: float) -> Answer:
        def one(pair: tuple[SubmitProofRequest, Answer]) -> Answer:
            sent = time.time()
            result = call(ProveRequest(submit=pair[0]), timeout=seconds).result
            return {**pair[1], "sent": sent, "answered": time.time(), **_row(result)}

        with ThreadPoolExecutor(len(asked)) as pool:
            return {"sectors": list(pool.map(one, asked))}

    return work


def _row(result: AwaitProofResponse) -> Answer:
    return {
        "job": result.job_id,
        "status": AwaitProofResponse.Status.Name(result.status),
        "message": result.error_message,
        "proof": result.proof.hex(),
        "queue_ms": result.queue_wait_ms,
        "synthesis_ms": result.synthesis_ms,
        "prove_ms": result.gpu_compute_ms,
        "total_ms": result.total_ms,
    }


def stated(proof: RegisteredProof, public: dict[str, str]) -> SealStatement:
    """What a sector's proof must be a proof of."""
    replica_id, comm_d, comm_r, seed, porep_id = (bytes.fromhex(public[name]) for name in PUBLIC)
    return SealStatement(proof, replica_id, comm_d, comm_r, seed, porep_id)
