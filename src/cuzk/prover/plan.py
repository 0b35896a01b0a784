"""What a proof needs in memory, known before it starts."""

from __future__ import annotations

from cuzk.groth16 import ProvingKey
from cuzk.r1cs import Matrices

# Interpreter, numpy, native core and the multi-scalar multiplication's slices. Measured: peaks of
# 2^14 and 2^17 constraints on both curves lie 2 to 9 % below the plan (x86-64, Python 3.11, 2 threads).
PROCESS_BYTES = 40 << 20


def plan_bytes(key: ProvingKey, matrices: Matrices) -> int:
    """Largest resident size of a process that proves with this key and does nothing else.

    Three vectors over the domain while h is made (later one, its copies and the sums' buckets, which are
    less), the witness, and the key's file as far as it is mapped or copied.
    """
    scalar = 8 * key.curve.fr_words
    vectors = 3 * scalar << key.log_domain
    witness = scalar * matrices.wires
    return PROCESS_BYTES + key.file_bytes + vectors + witness
