"""The endomorphism (x, y) -> (beta x, y) of both groups and the short lattice basis that halves scalars.

On points of order r it is multiplication by lambda, lambda^2 + lambda + 1 = 0 mod r. Vectors (a, b) with
a + b lambda = 0 mod r are a lattice of determinant r; the extended Euclidean algorithm on (r, lambda) passes by
two short ones (Gallant, Lambert and Vanstone, 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from cuzk import _core
from cuzk.constants import words
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.vectors import Affine, Points, Scalars, Words

QUOTIENT_BITS = 320  # of the fixed-point quotients |b| / r, as in native/gpu/endomorphism.hpp
HALF_BITS = 127  # what both halves of every scalar must be below

Vector = tuple[int, int]


@dataclass(frozen=True)
class Endomorphism:
    """k = c1 v1 + c2 v2 + (k1, k2) with c = round(k numerators / r): small k1, k2 for every k."""

    eigenvalue: int  # lambda
    vectors: tuple[Vector, Vector]
    numerators: tuple[int, int]  # |b2|, |b1|

    def halves(self, k: int, r: int) -> Vector:
        """k1, k2 with k1 + lambda k2 = k mod r; the kernels find the same."""
        c = [
            (k * ((m << QUOTIENT_BITS) // r) + (1 << (QUOTIENT_BITS - 1))) >> QUOTIENT_BITS
            for m in self.numerators
        ]
        (a1, b1), (a2, b2) = self.vectors
        return k - c[0] * a1 - c[1] * a2, -c[0] * b1 - c[1] * b2

    def words(self, r: int) -> Words:
        """As ``Lattice`` of native/gpu/endomorphism.hpp."""
        quotients = [words((m << QUOTIENT_BITS) // r, 4) for m in self.numerators]
        coordinates = [words(x % 2**192, 3) for vector in self.vectors for x in vector]
        return np.array([w for part in (*quotients, *coordinates) for w in part], np.uint64)


@cache
def endomorphism_of(curve: Curve) -> Endomorphism:
    """KernelError where a half could be too long for the kernels."""
    r = curve.r
    eigenvalue = next(root for g in range(2, r) if (root := pow(g, (r - 1) // 3, r)) != 1)
    first, second = _short_vectors(r, eigenvalue)
    determinant = first[0] * second[1] - second[0] * first[1]
    numerators = second[1] * determinant // r, -first[1] * determinant // r  # determinant = +-r
    first = _negated(first) if numerators[0] < 0 else first
    second = _negated(second) if numerators[1] < 0 else second
    found = Endomorphism(eigenvalue, (first, second), (abs(numerators[0]), abs(numerators[1])))
    for coordinate in range(2):
        bound = (abs(first[coordinate]) + abs(second[coordinate])) // 2 + 2
        if bound >> HALF_BITS or abs(determinant) != r:
            raise KernelError(f"cuda: {curve.title}: expected halves of {HALF_BITS} bits")
    return found


def beta_words(curve: Curve, group: str) -> Words:
    """beta in Montgomery form, from lambda times the generator."""
    generator: Affine = getattr(curve, group)
    base = Points.from_affine(curve, group, [generator])
    turned = np.empty_like(base.words)
    eigenvalue = Scalars.from_ints(curve, [endomorphism_of(curve).eigenvalue]).words
    _core.scale_points(curve.name, group, base.words, eigenvalue, turned, 1)
    before, after = base.affine(), Points(curve, group, turned).affine()
    if before is None or after is None:
        raise KernelError(f"cuda: {curve.title}: expected a generator, found infinity")
    beta = after[0] * pow(before[0], -1, curve.p) % curve.p  # c0 of x, in G2 as well: beta is in Fp
    point = Points.from_affine(curve, "g1", [(beta, 0)])
    return np.ascontiguousarray(point.words[0, : curve.fp_words])


def _short_vectors(r: int, eigenvalue: int) -> tuple[Vector, Vector]:
    """The first remainder below sqrt(r), and the shorter of its neighbours."""
    rows = [(r, 0), (eigenvalue, -1)]  # (a, b): a + b lambda = 0 mod r
    while rows[-2][0] ** 2 >= r:
        quotient = rows[-2][0] // rows[-1][0]
        rows.append(tuple(x - quotient * y for x, y in zip(rows[-2], rows[-1], strict=True)))  # type: ignore[arg-type]
    before, first, after = rows[-3], rows[-2], rows[-1]
    return first, min(before, after, key=lambda vector: max(map(abs, vector)))


def _negated(vector: Vector) -> Vector:
    return -vector[0], -vector[1]
