"""Vectors of scalars in Montgomery form: the native core's loops, or Python integers on TOY.

With n = 2^log_n and w a primitive n-th root of unity, L_i is the polynomial of degree below n that is 1
at w^i and 0 at the other powers of w.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuzk import _core
from cuzk.curves import Curve
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Affine, Points, Scalars, Words


def _word(curve: Curve, *values: int) -> Words:
    return Scalars.from_ints(curve, values, montgomery=True).words


def _empty(curve: Curve, count: int) -> Words:
    return np.empty((count, curve.fr_words), dtype=np.uint64)


def lagrange(curve: Curve, root: int, tau: int, log_n: int, threads: int) -> Scalars:
    """L_i(tau) for i < n over the powers of ``root``; tau is none of them."""
    n, r = 1 << log_n, curve.r
    if curve.is_toy:
        share = (pow(tau, n, r) - 1) * pow(n, -1, r)
        points = [pow(root, i, r) for i in range(n)]
        values = [share * point * pow(tau - point, -1, r) for point in points]
        return Scalars.from_ints(curve, values, montgomery=True)
    out = _empty(curve, n)
    _core.lagrange(curve.name, _word(curve, root), _word(curve, tau), out, threads)
    return Scalars(curve, out, montgomery=True)


def powers(curve: Curve, first: int, base: int, count: int, threads: int) -> Scalars:
    """first * base^i for i < count."""
    if curve.is_toy:
        values = [first * pow(base, i, curve.r) for i in range(count)]
        return Scalars.from_ints(curve, values, montgomery=True)
    out = _empty(curve, count)
    _core.powers(curve.name, _word(curve, base), _word(curve, first), out, threads)
    return Scalars(curve, out, montgomery=True)


def combine(vectors: Sequence[Scalars], factors: Sequence[int], threads: int) -> Scalars:
    """sum_k factors[k] * vectors[k]."""
    curve = vectors[0].curve
    if curve.is_toy:
        columns = zip(*(vector.ints() for vector in vectors), strict=True)
        values = [sum(f * x for f, x in zip(factors, column, strict=True)) for column in columns]
        return Scalars.from_ints(curve, values, montgomery=True)
    out = _empty(curve, len(vectors[0]))
    words = [vector.words for vector in vectors]
    _core.combine(curve.name, words, _word(curve, *factors), out, threads)
    return Scalars(curve, out, montgomery=True)


def plain(vector: Scalars, threads: int) -> Words:
    """The values as plain words."""
    curve = vector.curve
    if curve.is_toy:
        return Scalars.from_ints(curve, vector.ints()).words
    out = np.empty_like(vector.words)
    _core.from_montgomery(curve.name, "fr", vector.words, out, threads)
    return out


def product(matrix: SparseMatrix, vector: Scalars, threads: int) -> Scalars:
    """matrix * vector."""
    curve = vector.curve
    if curve.is_toy:
        values = vector.ints()
        sums = [sum(c * values[i] for c, i in matrix.row(row)) for row in range(matrix.rows)]
        return Scalars.from_ints(curve, sums, montgomery=True)
    out = _empty(curve, matrix.rows)
    _core.product(
        curve.name,
        matrix.row_ptr,
        matrix.wires,
        matrix.coefficients,
        matrix.values.words,
        plain(vector, threads),
        out,
        False,
        threads,
    )
    return Scalars(curve, out, montgomery=True)


def multiples(vector: Scalars, group: str, threads: int) -> Points:
    """Every scalar times the group's generator."""
    curve = vector.curve
    if curve.is_toy:
        return Points.from_affine(curve, group, [(x,) if x else None for x in vector.ints()])
    generator: Affine = getattr(curve, group)
    base = Points.from_affine(curve, group, [generator])
    out = np.empty((len(vector), curve.point_words(group)), dtype=np.uint64)
    _core.fixed_base(curve.name, group, base.words, plain(vector, threads), out, threads)
    return Points(curve, group, out)


def multiple(curve: Curve, group: str, scalar: int) -> Points:
    """One scalar times the group's generator."""
    return multiples(Scalars.from_ints(curve, [scalar], montgomery=True), group, 1)
