"""A whole proof of Filecoin's: the proofs of its partitions, 192 bytes each, one after the other.

    PoRep 1 or 10 (192, 1920 bytes), SnapDeals 1, 4 or 16, PoSt one for each partition of sectors

No length stands before them, so the registered proof type must say how many they are. Non-interactive PoRep is
the exception on the chain: its partitions are aggregated (SnarkPack), which is not read here; bare partition
proofs of it, before aggregation, are.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.errors import FormatError
from cuzk.filecoin.registered import Challenges, RegisteredProof
from cuzk.formats.bellman import PROOF_BYTES, read_partition_proofs, write_proof_bytes
from cuzk.groth16 import Proof

MOST_BYTES = 1 << 17
"""More than any proof has: 126 partitions take 24 KB, an aggregate as much."""


def read_proofs(data: bytes, proof: RegisteredProof, where: str = "proof") -> list[Proof]:
    """The proofs of all partitions, in order; every point checked (range, curve, subgroup, not infinity)."""
    expected = proof.partitions * PROOF_BYTES
    if len(data) != expected:
        aggregated = proof.challenges is Challenges.NON_INTERACTIVE and len(data) % PROOF_BYTES
        advice = ": an aggregated proof? Only bare partition proofs are read" if aggregated else ""
        raise FormatError(
            f"{where}: expected {expected} bytes ({proof.partitions} partitions of {PROOF_BYTES}) "
            f"of {proof.name}, found {len(data)}{advice}"
        )
    return read_partition_proofs(data, proof.partitions, where)


def write_proofs(proofs: Sequence[Proof], proof: RegisteredProof) -> bytes:
    """The bytes of a whole proof."""
    if len(proofs) != proof.partitions:
        raise FormatError(
            f"proof bytes: expected {proof.partitions} partitions of {proof.name}, found {len(proofs)}"
        )
    return b"".join(write_proof_bytes(partition) for partition in proofs)
