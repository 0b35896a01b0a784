"""A bellman key made ready for four transforms per proof instead of six.

With g the coset's shift, z = g^n - 1 and [i] the i-th value, the sum of the quotient's coefficients with
H_i = tau^i Z(tau)/delta (H_(n-1) = 0: the quotient never reaches it) is linear in A B on the coset and in C:

    sum_i h_i H_i = sum_j (A B)(g w^j) H'_j + sum_k C(w^k) M_k
    H'_j =  1/z 1/n sum_i w^(-ij) g^-i H_i        one inverse transform of points
    M_k  = -1/z 1/n sum_i w^(-ik) H_i             another
    sum_k C(w^k) M_k = sum_wires w_i N_i,   N_i = sum_k C_ki M_k

N_i joins L_i: the query then covers every wire, the public ones with N_i alone. The proof is the same
group element for the same r and s. Cost, once per key: n log2 n scalings of points.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cuzk import _core
from cuzk.errors import CircuitError
from cuzk.groth16 import BELLMAN, PREPARED, ProvingKey, Query
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.setup.insecure import with_c
from cuzk.setup.scalars import powers
from cuzk.vectors import Points, Scalars


def prepare(key: ProvingKey, circuit: Matrices, *, threads: int = 1) -> ProvingKey:
    """The key with H on the coset and C folded into L; ``circuit`` must be the key's own, with C.

    CircuitError where the key is not bellman's or the circuit is another's. A witness that breaks the
    circuit is then found by the proof's own verification only, or by the circuit given to the Prover.
    """
    curve, n = key.curve, 1 << key.log_domain
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
            f"{(*own, n)}), found {(*found, circuit.rows)}"
        )
    root = curve.root_of_unity(key.log_domain, key.generator)
    g = curve.coset_shift(key.log_domain, key.generator)
    z_inverse = pow(pow(g, n, curve.r) - 1, -1, curve.r)

    def transformed(first: int, base: int) -> Points:
        factors = powers(curve, first, base, n, threads)
        points = np.zeros((n, curve.point_words("g1")), np.uint64)
        points[: len(key.h)] = key.h.words
        diagonal = SparseMatrix(
            np.arange(n + 1, dtype=np.uint64),
            np.arange(n, dtype=np.uint32),
            np.arange(n, dtype=np.uint32),
            factors,
        )
        scaled = _product(diagonal, Points(curve, "g1", points), threads)
        word = Scalars.from_ints(curve, [root], montgomery=True).words
        _core.group_ntt(curve.name, "g1", scaled.words, word, True, threads)
        return scaled

    h = transformed(z_inverse, pow(g, -1, curve.r))
    m = transformed(-z_inverse % curve.r, 1)
    folded = _product(with_c(circuit).transposed(circuit.wires), m, threads)
    return dataclasses.replace(
        key, h=h, l=Query(_sum(folded, key.l, threads), range(key.wires)), recipe=PREPARED
    )


def _product(matrix: SparseMatrix, points: Points, threads: int) -> Points:
    out = np.empty((matrix.rows, points.words.shape[1]), np.uint64)
    _core.product_points(
        points.curve.name,
        points.group,
        matrix.row_ptr,
        matrix.wires,
        matrix.coefficients,
        np.ascontiguousarray(matrix.values.words),
        points.words,
        out,
        threads,
    )
    return Points(points.curve, points.group, out)


def _sum(folded: Points, query: Query, threads: int) -> Points:
    """N_i + L_i: rows of two terms, one for wires without L."""
    wires, first = len(folded), len(folded) - len(query.points)
    ends = np.arange(wires + 1) + np.maximum(np.arange(wires + 1) - first, 0)
    terms = np.empty(int(ends[-1]), np.uint32)
    terms[ends[:-1]] = np.arange(wires)
    terms[ends[first:-1] + 1] = np.arange(wires, wires + len(query.points))
    ones = Scalars.from_ints(folded.curve, [1, -1], montgomery=True)
    matrix = SparseMatrix(ends.astype(np.uint64), terms, np.zeros_like(terms), ones)
    return _product(matrix, Points.concatenate([folded, query.points]), threads)
