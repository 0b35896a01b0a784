"""What a client asks for, as messages: Filecoin's vanilla proofs and witnesses of a configuration's circuits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuzk.errors import FormatError
from cuzk.server.proving_pb2 import Priority, ProofKind, SubmitProofRequest

KINDS = {
    "circuit": ProofKind.CIRCUIT,
    "porep-c2": ProofKind.POREP_SEAL_COMMIT,
    "snap-update": ProofKind.SNAP_DEALS_UPDATE,
    "window-post": ProofKind.WINDOW_POST_PARTITION,
    "winning-post": ProofKind.WINNING_POST,
}
PRIORITIES = {
    "": Priority.PRIORITY_UNSPECIFIED,
    "low": Priority.LOW,
    "normal": Priority.NORMAL,
    "high": Priority.HIGH,
    "critical": Priority.CRITICAL,
}


def filecoin_request(
    kind: str,
    vanilla: Sequence[bytes],
    *,
    registered_proof: int,
    miner: int,
    sector: int | None = None,
    sector_size: int = 0,
    randomness: bytes = b"",
    partition: int = 0,
    comm_r_old: bytes = b"",
    comm_r_new: bytes = b"",
    comm_d_new: bytes = b"",
    id: str | None = None,
    priority: str = "",
    deadline: float | None = None,
) -> SubmitProofRequest:
    """The message of a Filecoin request: ``kind`` is "porep-c2" (one C1), "snap-update", "window-post" or "winning-post".

    ``registered_proof`` is Filecoin's number of the seal, update or PoSt proof; commitments and randomness are 32 bytes.
    """
    if kind not in KINDS or kind == "circuit":
        known = ", ".join(sorted(KINDS.keys() - {"circuit"}))
        raise FormatError(f"kind: expected one of {known}, found {kind!r}")
    request = SubmitProofRequest(
        request_id=id or "",
        proof_kind=KINDS[kind],
        priority=_priority(priority),
        deadline_ms=_milliseconds(deadline),
        registered_proof=registered_proof,
        miner_id=miner,
        sector_number=sector or 0,
        sector_size=sector_size,
        randomness=randomness,
        partition_index=partition,
        comm_r_old=comm_r_old,
        comm_r_new=comm_r_new,
        comm_d_new=comm_d_new,
    )
    if kind != "porep-c2":
        request.vanilla_proofs.extend(vanilla)
    elif len(vanilla) == 1:
        request.vanilla_proof = vanilla[0]
    else:
        raise FormatError(f"porep-c2: expected one C1, found {len(vanilla)}")
    return request


def circuit_request(
    circuit: str, witness: bytes | Path | str, id: str, priority: str, deadline: float | None
) -> SubmitProofRequest:
    """The message of a witness (a .wtns: bytes or a file) of a circuit; ``id`` "": it has none."""
    return SubmitProofRequest(
        request_id=id,
        proof_kind=KINDS["circuit"],
        circuit_id=circuit,
        witness=witness if isinstance(witness, bytes) else Path(witness).read_bytes(),
        priority=_priority(priority),
        deadline_ms=_milliseconds(deadline),
    )


def _priority(name: str) -> Priority:
    if name not in PRIORITIES:
        known = ", ".join(sorted(PRIORITIES.keys() - {""}))
        raise FormatError(f"priority: expected one of {known}, found {name!r}")
    return PRIORITIES[name]


def _milliseconds(deadline: float | None) -> int:
    if deadline is None:
        return 0
    if not deadline > 0:
        raise FormatError(f"deadline: expected more than 0 seconds, found {deadline:g}")
    return max(1, round(1000 * deadline))
