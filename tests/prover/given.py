"""A circuit with its keys and with A w, B w, C w made by Python integers from its rows."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from circuits import tangle
from cuzk import Evaluations
from cuzk.circuit import Circuit
from cuzk.curves import Curve
from cuzk.groth16 import BELLMAN, PREPARED, SNARKJS, ProvingKey
from cuzk.r1cs import SparseMatrix
from cuzk.setup import Secrets, insecure_setup, prepare
from cuzk.vectors import Scalars

SECRETS = Secrets(tau=0xACE, alpha=0xBEE, beta=0xCAFE, delta=0xD00D, gamma=0xFADE)


@cache
def circuit_of(curve: Curve) -> Circuit:
    """Random, of a few tens of rows."""
    return tangle(curve, 4)


@cache
def key_of(curve: Curve, recipe: str = SNARKJS) -> ProvingKey:
    """Without C, as a .zkey."""
    matrices = circuit_of(curve).matrices()
    key = insecure_setup(matrices, SECRETS, BELLMAN if recipe == PREPARED else recipe)
    if recipe == PREPARED:
        key = prepare(key, matrices)
    return replace(key, matrices=replace(matrices, c=None))


def values_of(curve: Curve) -> dict[str, list[int]]:
    """All rows: the constraints', then one for wire 0 and each public signal."""
    matrices, w = circuit_of(curve).matrices(), circuit_of(curve).witness().ints()
    assert matrices.c is not None

    def times_w(matrix: SparseMatrix) -> list[int]:
        rows = [matrix.row(i) for i in range(matrices.constraints)]
        return [sum(c * w[wire] for c, wire in row) % curve.r for row in rows]

    a, b, c = (times_w(m) for m in (matrices.a, matrices.b, matrices.c))
    assert all(x * y % curve.r == z for x, y, z in zip(a, b, c, strict=True))
    zeros = [0] * (matrices.public + 1)
    return {"a": a + w[: len(zeros)], "b": b + zeros, "c": c + zeros}


def evaluations(
    curve: Curve, names: str = "abc", montgomery: str = "abc", spare: int = 0
) -> Evaluations:
    values = values_of(curve)
    return Evaluations(
        **{
            name: Scalars.from_ints(
                curve, values[name] + [0] * spare, montgomery=name in montgomery
            )
            for name in names
        }
    )
