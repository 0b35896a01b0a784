"""Writing a .zkey as snarkjs lays it out: sections 1 to 10 in order, the last only with a ceremony record."""

from __future__ import annotations

import os
import struct

import numpy as np

from cuzk.errors import FormatError
from cuzk.formats.iden3.ceremony import ceremony_bytes
from cuzk.formats.iden3.coefficients import coefficient_bytes
from cuzk.formats.iden3.fields import prime_bytes
from cuzk.formats.iden3.frame import frame_chunks
from cuzk.formats.iden3.zkey_header import (
    B1,
    B2,
    COEFFICIENTS,
    CONTRIBUTIONS,
    GROTH16,
    HEADER,
    IC,
    PROTOCOL,
    VERSION,
    A,
    H,
    L,
)
from cuzk.formats.source import Chunk, octets, write_atomically
from cuzk.groth16 import SNARKJS, ProvingKey, Query
from cuzk.r1cs import Matrices


def write_zkey(path: str | os.PathLike[str], key: ProvingKey) -> None:
    """Write a key that has its matrices and snarkjs' H; the old file stays until the new one is complete."""
    if key.recipe != SNARKJS or key.generator != key.curve.generator or key.matrices is None:
        raise FormatError(
            f"{path}: expected a key with snarkjs' H and its matrices, found {key.recipe}'s"
        )
    wires, first = key.matrices.wires, key.matrices.public + 1
    sections: list[tuple[int, list[Chunk]]] = [
        (PROTOCOL, [struct.pack("<I", GROTH16)]),
        (HEADER, [_header_bytes(key, key.matrices)]),
        (IC, [octets(key.vk.ic.words)]),
        (COEFFICIENTS, [coefficient_bytes(key.matrices).data]),
        (A, [_dense(key.a, range(wires))]),
        (B1, [_dense(key.b_g1, range(wires))]),
        (B2, [_dense(key.b_g2, range(wires))]),
        (L, [_dense(key.l, range(first, wires))]),
        (H, [octets(key.h.words)]),
    ]
    if key.ceremony is not None:
        sections.append((CONTRIBUTIONS, [ceremony_bytes(key.ceremony)]))
    write_atomically(path, frame_chunks("zkey", VERSION, sections))


def _header_bytes(key: ProvingKey, matrices: Matrices) -> bytes:
    curve, vk = key.curve, key.vk
    points = (vk.alpha_g1, key.beta_g1, vk.beta_g2, vk.gamma_g2, key.delta_g1, vk.delta_g2)
    return b"".join(
        (
            prime_bytes(curve.p, curve.fp_words),
            prime_bytes(curve.r, curve.fr_words),
            struct.pack("<III", matrices.wires, matrices.public, 1 << key.log_domain),
            *(octets(point.words) for point in points),
        )
    )


def _dense(query: Query, wires: range) -> memoryview:
    """One point for each of ``wires``: infinity where the query skips one."""
    if isinstance(query.wires, range) and query.wires == wires:
        return octets(query.points.words)
    words = np.zeros((len(wires), query.points.words.shape[1]), dtype=np.uint64)
    words[np.asarray(query.wires, dtype=np.int64) - wires.start] = query.points.words
    return octets(words)
