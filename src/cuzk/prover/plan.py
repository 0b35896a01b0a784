"""What a proof needs in memory, known before it starts."""

from __future__ import annotations

import os

from cuzk.groth16 import BELLMAN, ProvingKey
from cuzk.r1cs import ConstraintSystem
from cuzk.vectors import Points

# Interpreter, numpy, native core. Measured, peak over plan: 0.87 to 1.10 from 2^12 to 2^18 constraints, both
# curves and recipes (x86-64, Python 3.11, 2 threads, 2026-11-30); tests/prover/test_memory.py
PROCESS_BYTES = 38 << 20
# What sums work with beyond 48 bytes a scalar, where scalars have full length. A sum in G2 on BLS12-381 took 4, 8, 14,
# 31 MiB for 2^12, 14, 16, 18 scalars (the same machine): more than the vectors that are gone by then leave room for
SUM_BYTES, SUM_BYTES_A_ROW = 12 << 20, 200


def plan_bytes(key: ProvingKey, circuit: ConstraintSystem, lanes: int = 1) -> int:
    """Largest resident size of a process that proves with this key and does nothing else.

    The key's file as far as it is mapped or copied (bellman's points are converted, and the mapped file given
    back), the matrices, the witness, and four vectors over the domain: while h is made three and a transform's
    constants, half of one, which stay; then h, its plain copy, and what its sum has of scalars and sorted digits: 48
    bytes a scalar, measured at 2^22, and what small sums take more. Each of ``lanes`` proofs at a time has its own.
    """
    each = vector_bytes(key, circuit) + sum_bytes(key.log_domain)
    return PROCESS_BYTES + key_bytes(key, circuit) + lanes * each


def sum_bytes(log_domain: int) -> int:
    """What sums of one proof work with beyond the room of its vectors."""
    return min(SUM_BYTES, SUM_BYTES_A_ROW << log_domain)


def key_bytes(key: ProvingKey, circuit: ConstraintSystem) -> int:
    """The part that stays from proof to proof: the key's file, points that are no part of it, matrices."""
    queries = (key.a, key.b_g1, key.b_g2, key.l)
    points = sum(map(_points_bytes, [key.h, *(query.points for query in queries)]))
    file = points if key.recipe == BELLMAN else max(points, key.file_bytes)
    known = {id(m): m for m in (key.matrices, circuit) if m is not None}
    return file + sum(map(_matrices_bytes, known.values()))


def vector_bytes(key: ProvingKey, circuit: ConstraintSystem) -> int:
    """The part that cannot be dropped and read again: four vectors over the domain, and the witness."""
    return 8 * key.curve.fr_words * ((4 << key.log_domain) + circuit.wires)


def installed_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _points_bytes(points: Points) -> int:
    return 8 * points.curve.point_words(points.group) * len(points)


def _matrices_bytes(matrices: ConstraintSystem) -> int:
    return sum(m.nbytes for m in (matrices.a, matrices.b, matrices.c) if m is not None)
