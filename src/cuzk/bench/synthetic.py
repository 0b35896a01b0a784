"""Dense circuits of any size, and keys for them in seconds: random points of known logarithms.

The circuit multiplies its way through W = 2^14 wires at a time, every value of full length:

    v_(i + W) = (v_i + 5 v_(i+1)) v_(i+2)      indices i + 1, i + 2 modulo W within their layer

2^k - 2 constraints, one public signal (the last value): the rows fill a domain of 2^k. A real key of that size
takes one multiplication of a generator a point. A synthetic key has the shape of a real one and points
k_(i mod m) G instead: sums cost the same, and what each must be is known; its proofs verify nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.bench.inputs import Known, distinct, known_points, uniform
from cuzk.bench.logarithms import dot
from cuzk.curves import Curve
from cuzk.groth16 import BELLMAN, PREPARED, SNARKJS, ProvingKey, Query, VerifyingKey
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.setup.scalars import combine, multiple
from cuzk.vectors import Points, Scalars, Words

FACTOR = 5
RECIPES = (SNARKJS, BELLMAN, PREPARED)
ALPHA, BETA, GAMMA, DELTA = 2**190 + 7, 2**180 + 11, 2**160 + 3, 2**170 + 13
OFFSETS = {"a": 0, "b_g1": 1, "l": 2, "h": 3, "b_g2": 0}  # queries start at different points


@lru_cache(maxsize=1)
def dense(curve: Curve, log_n: int, threads: int) -> tuple[Matrices, Scalars]:
    """Circuit and a witness that satisfies it, log_n from 4; the last one made is kept."""
    constraints = (1 << log_n) - 2
    width = min(1 << 14, 1 << (log_n - 2))
    values = _layers(curve, constraints, width, threads)
    row = np.arange(constraints, dtype=np.uint32)  # 2^28 rows and their wires stay below 2^32
    place = row & np.uint32(width - 1)
    layer = row - place

    def wire(index: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Value i is wire 2 + i; the last is the public one, wire 1."""
        last = np.uint32(constraints + width - 1)
        return np.where(index == last, np.uint32(1), index + np.uint32(2))

    first, second, third = (
        wire(layer + (place + np.uint32(k) & np.uint32(width - 1))) for k in range(3)
    )
    table = Scalars.from_ints(curve, [1, -1, FACTOR], montgomery=True)
    public = np.arange(2, dtype=np.uint32)
    ends, ones = np.arange(constraints + 1, dtype=np.uint64), np.zeros(constraints, np.uint32)
    a = SparseMatrix(
        np.concatenate([2 * ends, 2 * constraints + np.arange(1, 3, dtype=np.uint64)]),
        np.concatenate([np.stack([first, second], axis=1).reshape(-1), public]),
        np.concatenate([np.tile(np.array([0, 2], np.uint32), constraints), public - public]),
        table,
    )
    b = SparseMatrix(ends, third, ones, table)
    c = SparseMatrix(ends, wire(row + np.uint32(width)), ones, table)
    wires = constraints + width + 1
    words = np.empty((wires, curve.fr_words), np.uint64)
    words[0] = [1, 0, 0, 0]
    words[1], words[2:] = values[-1], values[:-1]
    digest = f"dense circuit of {constraints} constraints"
    return Matrices(curve, wires, 1, constraints, a, b, c, digest), Scalars(curve, words)


def _layers(curve: Curve, constraints: int, width: int, threads: int) -> Words:
    """Plain values: ``width`` inputs and what the constraints make of them."""
    values = np.empty((width + constraints, curve.fr_words), np.uint64)
    inputs = uniform(curve, width, 2, threads).words
    layer = Scalars(curve, inputs, montgomery=True)  # any word below r is some value's form
    one = Scalars.from_ints(curve, [1], montgomery=True).words
    for start in range(0, width + constraints, width):
        part = values[start : start + width]
        part[:] = layer.words[: len(part)]
        second, third = (Scalars(curve, np.roll(layer.words, -k, axis=0), True) for k in (1, 2))
        left = combine([layer, second], [1, FACTOR], threads)
        _core.pointwise(curve.name, left.words, third.words, None, one, left.words, threads)
        layer = left
    _core.from_montgomery(curve.name, "fr", values, values, threads)
    return values


@dataclass(frozen=True)
class SyntheticKey:
    """The key, and the logarithms behind its points."""

    key: ProvingKey
    g1: Known
    g2: Known

    def expected(self, w: Scalars, h: Scalars, r: int, s: int, threads: int) -> list[int]:
        """Logarithms of A, B, C for a witness, plain, and the scalars of H, plain.

        A = alpha + sum w_i a_i + r delta, B = beta + sum w_i b2_i + s delta,
        C = sum w_i l_i + sum h_i h'_i + s A + r (beta + sum w_i b1_i + s delta) - r s delta.
        """
        key, order = self.key, w.curve.r
        queries = {"a": key.a, "b_g1": key.b_g1, "b_g2": key.b_g2, "l": key.l}
        sums = {
            name: dot(_taken(w, query.wires), self._known(name), OFFSETS[name], threads)
            for name, query in queries.items()
        }
        sums["h"] = dot(h[: len(key.h)], self.g1.logarithms, OFFSETS["h"], threads)
        a = ALPHA + sums["a"] + r * DELTA
        b, b_g1 = (BETA + sums[name] + s * DELTA for name in ("b_g2", "b_g1"))
        c = sums["l"] + sums["h"] + s * a + r * b_g1 - r * s * DELTA
        return [value % order for value in (a, b, c)]

    def _known(self, query: str) -> Scalars:
        return (self.g2 if query == "b_g2" else self.g1).logarithms


def _taken(w: Scalars, wires: range | NDArray[np.uint32]) -> Scalars:
    if isinstance(wires, range):
        return w[wires.start : wires.stop]
    return Scalars(w.curve, w.words[wires])


def synthetic_key(
    matrices: Matrices, recipe: str, threads: int, *, apart: bool = False
) -> SyntheticKey:
    """A key of the shape that ``recipe`` gives this circuit, of points whose logarithms are known.

    ``apart``: every query has memory of its own, as a file's have, and its pages can be locked.
    """
    curve, public, n = matrices.curve, matrices.public, 1 << matrices.log_domain
    count = max(n, matrices.wires) + max(OFFSETS.values())
    g1, g2 = (known_points(curve, group, distinct(n), threads) for group in ("g1", "g2"))
    few = public + 1 if apart else count
    in_g1 = g1.repeated(few, threads)
    in_g2 = g2.repeated(0 if apart else matrices.wires, threads)

    def points(name: str, length: int) -> Points:
        start = OFFSETS[name]
        if apart:
            return (g2 if name == "b_g2" else g1).repeated(length, threads, start)
        return (in_g2 if name == "b_g2" else in_g1)[start : start + length]

    def query(name: str, matrix: SparseMatrix) -> Query:
        if recipe == SNARKJS:
            return Query(points(name, matrices.wires), range(matrices.wires))
        used = np.flatnonzero(matrix.used(matrices.wires)).astype(np.uint32)
        return Query(points(name, len(used)), used)

    private = range(0 if recipe == PREPARED else public + 1, matrices.wires)
    key = ProvingKey(
        vk=VerifyingKey(
            curve,
            alpha_g1=multiple(curve, "g1", ALPHA),
            beta_g2=multiple(curve, "g2", BETA),
            gamma_g2=multiple(curve, "g2", GAMMA),
            delta_g2=multiple(curve, "g2", DELTA),
            ic=in_g1[: public + 1],
        ),
        beta_g1=multiple(curve, "g1", BETA),
        delta_g1=multiple(curve, "g1", DELTA),
        a=query("a", matrices.a),
        b_g1=query("b_g1", matrices.b),
        b_g2=query("b_g2", matrices.b),
        l=Query(points("l", len(private)), private),
        h=points("h", n - 1 if recipe == BELLMAN else n),
        recipe=recipe,
        log_domain=matrices.log_domain,
        generator=curve.generator if recipe == SNARKJS else curve.bellman_generator,
        matrices=matrices,
        ceremony=None,
        source="synthetic key",
        file_bytes=0,
    )
    return SyntheticKey(key, g1, g2)
