"""A bellman key made ready for four transforms per proof instead of six.

With g the coset's shift, z = g^n - 1 and [i] the i-th value, the sum of the quotient's coefficients with
H_i = tau^i Z(tau)/delta (H_(n-1) = 0: the quotient never reaches it) is linear in A B on the coset and in C:

    sum_i h_i H_i = sum_j (A B)(g w^j) H'_j + sum_k C(w^k) M_k
    H'_j =  1/z 1/n sum_i w^(-ij) g^-i H_i        one inverse transform of points
    M_k  = -1/z 1/n sum_i w^(-ik) H_i             another
    sum_k C(w^k) M_k = sum_wires w_i N_i,   N_i = sum_k C_ki M_k

N_i joins L_i: the query then covers every wire, the public ones with N_i alone. The proof is the same
group element for the same r and s. Cost, once per key: n log2 n scalings of points, of which a core
does 10,000 a second; whoever has a device for them gives it (``on``).
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np

from cuzk import _core
from cuzk.errors import CircuitError
from cuzk.groth16 import BELLMAN, PREPARED, ProvingKey, Query
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.setup.insecure import with_c
from cuzk.setup.powers import product_points
from cuzk.setup.scalars import powers
from cuzk.vectors import Points, Scalars


class PointWork(Protocol):
    """Who scales and adds points: the native core here, or a device."""

    def transform(self, points: Points, factors: Scalars, root: int) -> Points:
        """out_j = sum_i root^(ij) factors_i points_i; ``factors`` (Montgomery) are one for all or one each."""
        ...

    def combine(self, matrix: SparseMatrix, points: Points, more: Points) -> Points:
        """matrix * points, and ``more`` added to as many rows at the end."""
        ...


def prepare(
    key: ProvingKey, circuit: Matrices, *, threads: int = 1, on: PointWork | None = None
) -> ProvingKey:
    """The key with H on the coset and C folded into L; ``circuit`` must be the key's own, with C.

    CircuitError where the key is not bellman's or the circuit is another's. A witness that breaks the
    circuit is then found by the proof's own verification only, or by the circuit given to the Prover.
    Points are worked on by ``on``, by default ``threads`` threads of the CPU.
    """
    check_own_circuit(key, circuit)
    curve, n = key.curve, 1 << key.log_domain
    c, work = with_c(circuit).transposed(circuit.wires), on or CoreWork(threads)
    root = curve.root_of_unity(key.log_domain, key.generator)
    g = curve.coset_shift(key.log_domain, key.generator)
    scale = pow((pow(g, n, curve.r) - 1) * n, -1, curve.r)
    points = np.zeros((n, curve.point_words("g1")), np.uint64)
    points[: len(key.h)] = key.h.words

    def transformed(factors: Scalars) -> Points:
        back = pow(root, -1, curve.r)
        return work.transform(Points(curve, "g1", points), factors, back)

    h = transformed(powers(curve, scale, pow(g, -1, curve.r), n, threads))
    m = transformed(Scalars.from_ints(curve, [-scale], montgomery=True))
    l = work.combine(c, m, key.l.points)  # noqa: E741
    return dataclasses.replace(key, h=h, l=Query(l, range(key.wires)), recipe=PREPARED)


def check_own_circuit(key: ProvingKey, circuit: Matrices) -> None:
    """CircuitError where the key is not bellman's on a real curve or the circuit is another's."""
    curve = key.curve
    if key.recipe != BELLMAN or curve.is_toy:
        raise CircuitError(
            f"{key.source}: expected a key with powers of tau in H (bellman's), found {key.recipe}'s "
            f"on {curve.title}"
        )
    own = (curve.title, key.wires, key.vk.public)
    found = (circuit.curve.title, circuit.wires, circuit.public)
    if own != found or circuit.log_domain > key.log_domain:
        raise CircuitError(
            f"{key.source}: expected its own circuit (curve, wires, public, at most so many rows: "
            f"{(*own, 1 << key.log_domain)}), found {(*found, circuit.rows)}"
        )


@dataclasses.dataclass(frozen=True)
class CoreWork:
    """The native core, in so many threads."""

    threads: int

    def transform(self, points: Points, factors: Scalars, root: int) -> Points:
        """Scaled by a diagonal matrix, then transformed in place."""
        n = len(points)
        each = np.arange(n, dtype=np.uint32)
        numbers = each if len(factors) == n else np.zeros_like(each)
        diagonal = SparseMatrix(np.arange(n + 1, dtype=np.uint64), each, numbers, factors)
        scaled = product_points(diagonal, points, self.threads)
        word = Scalars.from_ints(points.curve, [root], montgomery=True).words
        _core.group_ntt(points.curve.name, points.group, scaled.words, word, False, self.threads)
        return scaled

    def combine(self, matrix: SparseMatrix, points: Points, more: Points) -> Points:
        """The product, then rows of two terms; of one where there is nothing to add."""
        folded = product_points(matrix, points, self.threads)
        rows, first = len(folded), len(folded) - len(more)
        ends = np.arange(rows + 1) + np.maximum(np.arange(rows + 1) - first, 0)
        terms = np.empty(int(ends[-1]), np.uint32)
        terms[ends[:-1]] = np.arange(rows)
        terms[ends[first:-1] + 1] = np.arange(rows, rows + len(more))
        ones = Scalars.from_ints(points.curve, [1, -1], montgomery=True)
        sums = SparseMatrix(ends.astype(np.uint64), terms, np.zeros_like(terms), ones)
        return product_points(sums, Points.concatenate([folded, more]), self.threads)
