"""What a sum over known points and what a transform must be, at the price of one product an element.

With points k_(i mod m) G the sum of s_i P_i is (sum_j k_j sum_(i = j mod m) s_i) G: n additions and m
products of scalars, one multiplication of the generator.

A polynomial X of degree below n with the values y_j at g w^j has, at any z outside that coset,

    X(z) = sum_j y_j L_j(z / g),    L_j the Lagrange basis of the powers of w:

at a random z a vector y that differs anywhere passes with probability below n / r.
"""

from __future__ import annotations

import numpy as np

from cuzk import _core
from cuzk.bench.inputs import DISTINCT
from cuzk.curves import Curve
from cuzk.setup.scalars import lagrange, powers
from cuzk.vectors import Scalars, Words, unpack


def dot(values: Scalars, logarithms: Scalars, first: int, threads: int) -> int:
    """sum_i values_i k_((first + i) mod m) mod r; ``values`` plain, ``logarithms`` Montgomery."""
    curve, m = values.curve, len(logarithms)
    folded = combined(curve, values.words, [1] * -(-len(values) // m), m, threads)
    turned = np.roll(logarithms.words, -first, axis=0)
    _core.pointwise(curve.name, folded, turned, None, _one(curve), folded, threads)
    return sum(unpack(folded)) % curve.r


def evaluation(coefficients: Scalars, z: int, threads: int) -> int:
    """sum_i coefficients_i z^i mod r, Montgomery coefficients: Horner's rule on blocks of 2^16."""
    curve, n = coefficients.curve, len(coefficients)
    m, r = max(1, min(n, DISTINCT)), curve.r
    factors = [pow(z, m * block, r) for block in range(-(-n // m))]
    folded = combined(curve, coefficients.words, factors, m, threads)
    table = powers(curve, 1, z, m, threads).words
    _core.pointwise(curve.name, folded, table, None, _one(curve), folded, threads)
    return sum(Scalars(curve, folded, montgomery=True).ints()) % r


def interpolation(values: Scalars, root: int, shift: int, z: int, threads: int) -> int:
    """X(z) from X(shift * root^j) = values_j in natural order, Montgomery."""
    curve, n = values.curve, len(values)
    at = z * pow(shift, -1, curve.r) % curve.r
    terms = lagrange(curve, root, at, n.bit_length() - 1, threads).words
    _core.pointwise(curve.name, terms, values.words, None, _one(curve), terms, threads)
    m = max(1, min(n, DISTINCT))
    folded = combined(curve, terms, [1] * -(-n // m), m, threads)
    return sum(Scalars(curve, folded, montgomery=True).ints()) % curve.r


def combined(curve: Curve, words: Words, factors: list[int], m: int, threads: int) -> Words:
    """sum_b factors_b words[b m : (b + 1) m], m rows, in the form of ``words``; a short last block counts as zeros."""
    blocks = [words[start : start + m] for start in range(0, len(words), m)]
    if blocks and len(blocks[-1]) < m:
        last = np.zeros((m, curve.fr_words), np.uint64)
        last[: len(blocks[-1])] = blocks[-1]
        blocks[-1] = last
    out = np.zeros((m, curve.fr_words), np.uint64)
    if blocks:
        table = Scalars.from_ints(curve, factors, montgomery=True).words
        _core.combine(curve.name, blocks, table, out, threads)
    return out


def _one(curve: Curve) -> Words:
    return Scalars.from_ints(curve, [1], montgomery=True).words
