"""Keys from known secrets, straight from the paper's definitions, in Python integers.

Column polynomials are taken at tau by Lagrange's formula L_i(tau) = Z(tau) x_i / (n (tau - x_i)); every
point is a multiple of the group's generator. Slow: for circuits of some tens of wires.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk.curves import Curve
from cuzk.groth16 import BELLMAN, SNARKJS, ProvingKey, Query, VerifyingKey
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.vectors import Affine, Points
from reference import sum_points


@dataclass(frozen=True)
class Toxic:
    """What a ceremony throws away."""

    tau: int = 12345
    alpha: int = 271
    beta: int = 314
    gamma: int = 577
    delta: int = 1618


TOXIC = Toxic()


def lagrange_at(tau: int, points: list[int], z: int, r: int) -> list[int]:
    """L_i(tau) over the coset ``points`` of the n-th roots of unity with x^n = z."""
    n = len(points)
    vanishing = (pow(tau, n, r) - z) % r
    # L_i(X) = (X^n - z) / (n x_i^(n-1) (X - x_i)), and x_i^(n-1) = z / x_i
    return [vanishing * x * pow(n * z * (tau - x), -1, r) % r for x in points]


def columns_at(matrix: SparseMatrix, wires: int, lagrange: list[int], r: int) -> list[int]:
    """The column polynomials' values at tau: sum over rows of coefficient * L_row(tau)."""
    values = [0] * wires
    for i in range(matrix.rows):
        for coefficient, wire in matrix.row(i):
            values[wire] = (values[wire] + coefficient * lagrange[i]) % r
    return values


def quotient_bases(
    curve: Curve, log_n: int, toxic: Toxic, recipe: str, generator: int
) -> list[int]:
    """Logarithms of the H points."""
    r, n, tau = curve.r, 1 << log_n, toxic.tau
    vanishing = (pow(tau, n, r) - 1) % r
    over_delta = pow(toxic.delta, -1, r)
    if recipe == BELLMAN:
        return [vanishing * pow(tau, i, r) * over_delta % r for i in range(n - 1)]
    root = curve.root_of_unity(log_n, generator)
    if log_n < curve.two_adicity:
        # snarkjs' own definition: L_(2i+1)(tau) over all 2n-th roots of unity
        fine = curve.root_of_unity(log_n + 1, generator)
        all_points = [pow(fine, i, r) for i in range(2 * n)]
        odd = lagrange_at(tau, all_points, 1, r)[1::2]
        return [value * over_delta % r for value in odd]
    shift = generator * generator % r
    z = pow(shift, n, r)
    coset = lagrange_at(tau, [shift * pow(root, i, r) % r for i in range(n)], z, r)
    return [value * vanishing * pow((z - 1) * toxic.delta, -1, r) % r for value in coset]


def key_from(matrices: Matrices, toxic: Toxic = TOXIC, recipe: str = SNARKJS) -> ProvingKey:
    """The proving key; bellman's leaves out A and B points at infinity, as bellman does."""
    curve, r = matrices.curve, matrices.curve.r
    generator = curve.generator if recipe == SNARKJS else curve.bellman_generator
    log_n = matrices.log_domain
    root = curve.root_of_unity(log_n, generator)
    lagrange = lagrange_at(toxic.tau, [pow(root, i, r) for i in range(1 << log_n)], 1, r)
    if matrices.c is None:
        raise ValueError("a setup needs C")
    u, v, w = (
        columns_at(m, matrices.wires, lagrange, r) for m in (matrices.a, matrices.b, matrices.c)
    )
    k = [(toxic.beta * a + toxic.alpha * b + c) % r for a, b, c in zip(u, v, w, strict=True)]
    split = matrices.public + 1

    def points(group: str, logs: list[int]) -> Points:
        base: Affine = getattr(curve, group)
        return Points.from_affine(
            curve, group, [sum_points(curve, group, [base], [x % r]) for x in logs]
        )

    def query(group: str, logs: list[int]) -> Query:
        if recipe == SNARKJS:
            return Query(points(group, logs), range(len(logs)))
        wires = [i for i, x in enumerate(logs) if x]
        return Query(points(group, [logs[i] for i in wires]), np.array(wires, dtype=np.uint32))

    def over(values: list[int], divisor: int) -> list[int]:
        return [x * pow(divisor, -1, r) % r for x in values]

    return ProvingKey(
        vk=VerifyingKey(
            curve,
            alpha_g1=points("g1", [toxic.alpha]),
            beta_g2=points("g2", [toxic.beta]),
            gamma_g2=points("g2", [toxic.gamma]),
            delta_g2=points("g2", [toxic.delta]),
            ic=points("g1", over(k[:split], toxic.gamma)),
        ),
        beta_g1=points("g1", [toxic.beta]),
        delta_g1=points("g1", [toxic.delta]),
        a=query("g1", u),
        b_g1=query("g1", v),
        b_g2=query("g2", v),
        l=Query(points("g1", over(k[split:], toxic.delta)), range(split, matrices.wires)),
        h=points("g1", quotient_bases(curve, log_n, toxic, recipe, generator)),
        recipe=recipe,
        log_domain=log_n,
        generator=generator,
        matrices=matrices,
        ceremony=None,
        source=f"{curve.name} test key",
        file_bytes=0,
    )
