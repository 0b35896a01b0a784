"""Is a whole proof one of a statement? Every partition is checked against public inputs that are derived here.

All partitions at once, by a random combination; where that fails, the first one that is wrong is named.
"""

from __future__ import annotations

from cuzk.errors import CircuitError
from cuzk.filecoin.proof_bytes import read_proofs
from cuzk.filecoin.statement import Statement
from cuzk.verifier import Verifier


def check_proof(verifier: Verifier, statement: Statement, data: bytes, where: str = "proof") -> str:
    """Why the proof is not valid, or "". FormatError where its bytes are none, CircuitError for another's key."""
    proofs = read_proofs(data, statement.proof, where)
    inputs = [statement.inputs(partition) for partition in range(len(proofs))]
    if len(inputs[0]) != verifier.vk.public:
        raise CircuitError(
            f"verifying key: expected one with {len(inputs[0])} public inputs, as {statement.proof.circuit} has, "
            f"found {verifier.vk.public}"
        )
    failing = verifier.failing(zip(inputs, proofs, strict=True))
    if not failing:
        return ""
    partition, reason = failing[0]
    return f"partition {partition}: {reason}" if len(proofs) > 1 else reason


def verify(verifier: Verifier, statement: Statement, data: bytes) -> bool:
    """Is the proof valid? Raises as :func:`check_proof`."""
    return not check_proof(verifier, statement, data)
