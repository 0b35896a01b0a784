"""Where a Prover's key is, and what it and each proof take of which memory."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.prover.placement import Placed
from cuzk.prover.plan import key_bytes, vector_bytes


@dataclass(frozen=True)
class Standing:
    """Bytes. ``key_host`` and ``key_device`` are taken from proof to proof, the others by each proof in work.

    ``streamed`` are those of points that did not fit the device, and are copied in every proof. What a proof only
    takes where it is free is nowhere here.
    """

    device: str  # "cpu", "cuda:0"
    title: str
    lanes: int  # proofs at a time
    key_host: int
    proof_host: int
    key_device: int
    proof_device: int
    streamed: int


def standing_of(placed: Placed) -> Standing:
    """As it is now; maps and tables that a device makes in its first proof count from the beginning."""
    key, matrices = placed.resident.key, placed.resident.matrices
    backend = placed.backend
    stays, proof = backend.shares()
    witness = 8 * key.curve.fr_words * matrices.wires
    return Standing(
        device=backend.name,
        title=backend.title,
        lanes=placed.order.at_once,
        key_host=key_bytes(key, matrices),
        proof_host=witness if placed.planned_bytes else vector_bytes(key, matrices),
        key_device=max(stays, backend.resident_bytes()),
        proof_device=proof,
        streamed=backend.streamed_bytes(),
    )
