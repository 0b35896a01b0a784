"""Phase 1: the values of A w, B w and C w on the domain, one per row, zero past the last row.

A satisfied constraint has (C w)_i = (A w)_i (B w)_i, so C is that product and its matrix is not needed
(a .zkey does not even hold it). The public rows are part of A; B and C are zero there. A witness that
does not satisfy the circuit gives a proof that does not verify, which the caller's self-check finds.
A prepared key holds C in its L points: there is no C to evaluate. Where the rows were checked, A w and B w are there.
"""

from __future__ import annotations

from cuzk.backends import Backend, Buffer
from cuzk.groth16 import PREPARED
from cuzk.prover.resident import ResidentKey


def evaluate(key: ResidentKey, w: Buffer, backend: Backend) -> tuple[Buffer, Buffer, Buffer | None]:
    """Montgomery vectors as long as the domain."""
    n = 1 << key.key.log_domain
    a = backend.product(key.matrix_a, w, n)
    b = backend.product(key.matrix_b, w, n)
    return a, b, None if key.key.recipe == PREPARED else backend.pointwise(a, b)


class Evaluated:
    """A w and B w on the domain as the check of the rows left them, in the same turn."""

    def __init__(self, a: Buffer, b: Buffer) -> None:
        self._vectors = [a, b]

    def taken(self, key: ResidentKey, backend: Backend) -> tuple[Buffer, Buffer, Buffer | None]:
        """What :func:`evaluate` would find, once: nothing else holds them."""
        b, a = self._vectors.pop(), self._vectors.pop()
        return a, b, None if key.key.recipe == PREPARED else backend.pointwise(a, b)
