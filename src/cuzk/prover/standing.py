"""Where a Prover's key is, and what it and each proof take of which memory."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.prover.placement import Placed
from cuzk.prover.plan import key_bytes, vector_bytes


@dataclass(frozen=True)
class Standing:
    """Bytes. ``key_host`` and ``key_device`` are taken from proof to proof, the others by each proof in work.

    ``streamed`` are those of points that did not fit the device, and are copied in every proof.
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
    """As it is now: maps that a device makes in its first proof are among that proof's bytes until then."""
    key, matrices = placed.resident.key, placed.resident.matrices
    backend, lanes = placed.backend, placed.order.places
    resident = backend.resident_bytes()
    witness = 8 * key.curve.fr_words * matrices.wires
    return Standing(
        device=backend.name,
        title=backend.title,
        lanes=lanes,
        key_host=key_bytes(key, matrices),
        proof_host=witness if placed.planned_bytes else vector_bytes(key, matrices),
        key_device=resident,
        proof_device=-(-max(placed.planned_bytes - resident, 0) // lanes),
        streamed=backend.streamed_bytes(),
    )
