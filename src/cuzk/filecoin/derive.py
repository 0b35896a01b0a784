"""Identifiers of a sector and of who seals it: what the challenges and the labels hang on.

    prover id   = actor id in LEB128, zeros behind it
    replica id  = SHA-256(prover id, sector number (u64, big-endian), ticket, comm_d, PoRep id)

each 32 bytes; of a digest that is to be a field element the two top bits are cleared, so that its bytes, read
little-endian, are below r. The PoRep id is :meth:`cuzk.filecoin.registered.RegisteredProof.porep_id`.

Definitions: filecoin-ffi (prover id), storage-proofs-porep::stacked (replica id).
"""

from __future__ import annotations

from hashlib import sha256

from cuzk.curves import BLS12_381
from cuzk.errors import FormatError
from cuzk.filecoin.shapes import NODE_BYTES

MOST_ACTOR_ID = (1 << 63) - 1  # the actor ids of Filecoin's chain are that long


def prover_id(actor_id: int) -> bytes:
    """Of the storage provider "f0<actor id>"."""
    if not 0 <= actor_id <= MOST_ACTOR_ID:
        raise FormatError(f"actor id: expected 0 to {MOST_ACTOR_ID}, found {actor_id}")
    groups = []
    rest = actor_id
    while rest >= 0x80:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*groups, rest)).ljust(NODE_BYTES, b"\0")


def replica_id(prover: bytes, sector: int, ticket: bytes, comm_d: bytes, porep_id: bytes) -> bytes:
    """Of one sealing of one sector."""
    for name, value in (
        ("prover id", prover),
        ("ticket", ticket),
        ("comm_d", comm_d),
        ("PoRep id", porep_id),
    ):
        expect_bytes(value, name)
    if not 0 <= sector < 1 << 64:
        raise FormatError(f"sector number: expected 0 to 2^64 - 1, found {sector}")
    message = prover + sector.to_bytes(8, "big") + ticket + comm_d + porep_id
    return truncated(sha256(message).digest())


def truncated(digest: bytes) -> bytes:
    """The digest with its two top bits cleared."""
    return digest[:-1] + bytes([digest[-1] & 0x3F])


def expect_bytes(value: bytes, name: str) -> None:
    """FormatError unless these are 32 bytes."""
    if len(value) != NODE_BYTES:
        raise FormatError(f"{name}: expected {NODE_BYTES} bytes, found {len(value)}")


def field_element(node: bytes, name: str) -> int:
    """The value of a node's 32 bytes; FormatError where it is not below r."""
    expect_bytes(node, name)
    value = int.from_bytes(node, "little")
    if value >= BLS12_381.r:
        raise FormatError(f"{name}: expected a value below r, found {node.hex()} (little-endian)")
    return value
