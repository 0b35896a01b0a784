"""A key from secrets that the caller knows: every point is a known multiple of a generator.

With u_i, v_i, w_i the column polynomials of A, B, C at tau, and Z(X) = X^n - 1:

    A_i = u_i    B_i = v_i    K_i = beta u_i + alpha v_i + w_i
    IC_i = K_i / gamma  (public)      L_i = K_i / delta  (private)
    snarkjs   H_i = L_(2i+1)(tau) / delta over the 2n-th roots of unity
                  = L_i(tau / g) Z(tau) / (Z(g) delta),  g the coset's shift
    bellman   H_i = tau^i Z(tau) / delta,  i < n - 1

For tests and benchmarks, and for keys of a size that no ceremony was held for. Source: Groth, "On the
Size of Pairing-based Non-interactive Arguments", 2016, section 3.2.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from cuzk.curves import Curve
from cuzk.errors import CircuitError, FormatError
from cuzk.groth16 import BELLMAN, SNARKJS, ProvingKey, Query, VerifyingKey
from cuzk.r1cs import ConstraintSystem, Matrices, Matrix, SparseMatrix
from cuzk.setup import scalars
from cuzk.setup.scalars import combine, multiple, multiples
from cuzk.setup.secrets import Secrets
from cuzk.vectors import Scalars


def insecure_setup(
    matrices: ConstraintSystem, secrets: Secrets, recipe: str = SNARKJS, *, threads: int = 1
) -> ProvingKey:
    """A key for the circuit, with snarkjs' or bellman's H and roots of unity.

    The matrices must have C (CircuitError); the key holds them where they are in memory. Every wire has its point in snarkjs' queries; bellman's A and
    B hold those of wires that occur in the matrix only.
    """
    if recipe not in (SNARKJS, BELLMAN):
        raise FormatError(f"recipe: expected {SNARKJS} or {BELLMAN}, found {recipe!r}")
    curve, public = matrices.curve, matrices.public
    secrets = secrets.checked(curve, matrices.log_domain)
    generator = curve.generator if recipe == SNARKJS else curve.bellman_generator
    u, v, w = columns(matrices, secrets.tau, generator, threads)

    def over(divisor: int, wires: slice) -> Scalars:
        factors = [secrets.beta, secrets.alpha, 1]
        inverse = pow(divisor, -1, curve.r)
        return combine([u[wires], v[wires], w[wires]], [f * inverse for f in factors], threads)

    def query(matrix: Matrix, values: Scalars, group: str) -> Query:
        if recipe == SNARKJS:
            return Query(multiples(values, group, threads), range(matrices.wires))
        used = np.flatnonzero(matrix.used(matrices.wires)).astype(np.uint32)
        dense = Scalars(curve, values.words[used], montgomery=True)
        return Query(multiples(dense, group, threads), used)

    vk = VerifyingKey(
        curve,
        alpha_g1=multiple(curve, "g1", secrets.alpha),
        beta_g2=multiple(curve, "g2", secrets.beta),
        gamma_g2=multiple(curve, "g2", secrets.gamma),
        delta_g2=multiple(curve, "g2", secrets.delta),
        ic=multiples(over(secrets.gamma, slice(public + 1)), "g1", threads),
    )
    private = over(secrets.delta, slice(public + 1, None))
    return ProvingKey(
        vk=vk,
        beta_g1=multiple(curve, "g1", secrets.beta),
        delta_g1=multiple(curve, "g1", secrets.delta),
        a=query(matrices.a, u, "g1"),
        b_g1=query(matrices.b, v, "g1"),
        b_g2=query(matrices.b, v, "g2"),
        l=Query(multiples(private, "g1", threads), range(public + 1, matrices.wires)),
        h=multiples(
            quotient_bases(curve, matrices.log_domain, secrets, recipe, threads), "g1", threads
        ),
        recipe=recipe,
        log_domain=matrices.log_domain,
        generator=generator,
        matrices=matrices if isinstance(matrices, Matrices) else None,
        ceremony=None,
        source="key from known secrets",
        file_bytes=0,
    )


@overload
def with_c(matrices: Matrices) -> SparseMatrix: ...


@overload
def with_c(matrices: ConstraintSystem) -> Matrix: ...


def with_c(matrices: ConstraintSystem) -> Matrix:
    """C, or CircuitError: a .zkey has none."""
    if matrices.c is None:
        raise CircuitError(
            "circuit: expected the matrices A, B and C, found no C (a .zkey leaves it out): take the .r1cs"
        )
    return matrices.c


def columns(
    matrices: ConstraintSystem, tau: int, generator: int, threads: int
) -> tuple[Scalars, Scalars, Scalars]:
    """u_i(tau), v_i(tau), w_i(tau) for every wire."""
    curve, log_n = matrices.curve, matrices.log_domain
    root = curve.root_of_unity(log_n, generator)
    at_tau = scalars.lagrange(curve, root, tau, log_n, threads)

    def product(matrix: Matrix) -> Scalars:
        if isinstance(matrix, SparseMatrix):
            return scalars.product(matrix.transposed(matrices.wires), at_tau, threads)
        vector = Scalars(curve, scalars.plain(at_tau, threads))
        return matrix.transposed_product(vector, threads=threads)

    return product(matrices.a), product(matrices.b), product(with_c(matrices))


def quotient_bases(
    curve: Curve, log_n: int, secrets: Secrets, recipe: str, threads: int
) -> Scalars:
    """H as multiples of the generator."""
    n, r, tau = 1 << log_n, curve.r, secrets.tau
    share = (pow(tau, n, r) - 1) * pow(secrets.delta, -1, r)
    if recipe == BELLMAN:
        return scalars.powers(curve, share, tau, n - 1, threads)
    g = curve.coset_shift(log_n)
    at = tau * pow(g, -1, r) % r
    if pow(at, n, r) == 1:
        raise FormatError(
            "secret tau: expected a scalar outside the quotient's coset, found one in it"
        )
    values = scalars.lagrange(curve, curve.root_of_unity(log_n), at, log_n, threads)
    return combine([values], [share * pow(pow(g, n, r) - 1, -1, r)], threads)
