"""Phase 2: from a circuit and powers of tau to a key, and a contribution to its delta.

With the Lagrange bases of the .ptau, column i of a matrix is the sum of its coefficients times the rows'
points:

    A_i = sum A[j,i] L_j(tau)      B_i = sum B[j,i] L_j(tau)  in G1 and G2
    K_i = sum A[j,i] beta L_j(tau) + B[j,i] alpha L_j(tau) + C[j,i] L_j(tau)

IC is the public K, L the private K, H the odd points of the next level; gamma = delta = 1 at first. A
contribution multiplies delta by a secret x and divides L and H by it; its record proves that x was known.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from cuzk.curves import Curve
from cuzk.errors import CircuitError, FormatError
from cuzk.groth16 import (
    SNARKJS,
    Ceremony,
    Contribution,
    PowersOfTau,
    ProvingKey,
    Query,
    VerifyingKey,
)
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.setup.insecure import with_c
from cuzk.setup.intact import expect_intact
from cuzk.setup.powers import (
    lagrange_basis,
    multiples_of_z,
    product_points,
    quotient_basis,
    scaled,
)
from cuzk.setup.scalars import multiple
from cuzk.setup.secrets import random_scalar
from cuzk.setup.transcript import challenge_point, circuit_hash, transcript_of
from cuzk.vectors import Points

NAME, LONGEST_NAME = 1, 64


def setup(matrices: Matrices, ptau: PowersOfTau, *, name: str = "", threads: int = 1) -> ProvingKey:
    """The circuit's key with one contribution from the operating system's randomness.

    CircuitError where circuit and powers do not fit (curve, size, no C), FormatError where the powers are
    damaged. The secret of the contribution is
    forgotten; the key is sound if that is so or the powers' ceremony and later contributions are honest.
    """
    return contribute(initial_key(matrices, ptau, threads=threads), name=name, threads=threads)


def initial_key(matrices: Matrices, ptau: PowersOfTau, *, threads: int = 1) -> ProvingKey:
    """The key before any contribution: delta is the generator, so anyone can forge. For contributing to.

    CircuitError as in :func:`setup`; FormatError where the file's Lagrange points are not those of its powers.
    """
    _expect_fit(matrices, ptau)
    curve, wires, public, log_n = ptau.curve, matrices.wires, matrices.public, matrices.log_domain
    basis = lagrange_basis(ptau, log_n, threads)
    z_powers = multiples_of_z(ptau, log_n, threads)
    h = quotient_basis(ptau, log_n, z_powers, threads)
    expect_intact(ptau, basis, h, z_powers[:1], log_n, threads)
    a, b = matrices.a.transposed(wires), matrices.b.transposed(wires)
    bases = Points.concatenate([basis.beta_tau_g1, basis.alpha_tau_g1, basis.tau_g1])
    k = product_points(_stacked(matrices, 1 << log_n).transposed(wires), bases, threads)
    every = range(wires)
    one_g1, one_g2 = multiple(curve, "g1", 1), multiple(curve, "g2", 1)
    vk = VerifyingKey(
        curve, ptau.alpha_tau_g1[:1], ptau.beta_g2, one_g2, one_g2, ic=k[: public + 1]
    )
    key = ProvingKey(
        vk=vk,
        beta_g1=ptau.beta_tau_g1[:1],
        delta_g1=one_g1,
        a=Query(product_points(a, basis.tau_g1, threads), every),
        b_g1=Query(product_points(b, basis.tau_g1, threads), every),
        b_g2=Query(product_points(b, basis.tau_g2, threads), every),
        l=Query(k[public + 1 :], range(public + 1, wires)),
        h=h,
        recipe=SNARKJS,
        log_domain=log_n,
        generator=curve.generator,
        matrices=matrices,
        ceremony=None,
        source=f"key from {ptau.source}",
        file_bytes=0,
    )
    ceremony = Ceremony(circuit_hash(key, z_powers, ptau), ())
    return dataclasses.replace(key, ceremony=ceremony)


def contribute(
    key: ProvingKey, *, x: int | None = None, name: str = "", threads: int = 1
) -> ProvingKey:
    """The key with delta multiplied by a secret x, drawn here and forgotten.

    A known ``x`` makes the contribution worthless: for tests only. ``name`` (up to 64 bytes) goes into the
    record. FormatError where the key has no record to continue.
    """
    ceremony, curve = key.ceremony, key.curve
    if ceremony is None or key.matrices is None:
        raise FormatError(
            f"{key.source}: expected a record of contributions to continue, found none"
        )
    secret = random_scalar(curve) if x is None else x % curve.r
    inverse = pow(secret, -1, curve.r)
    delta_g1 = scaled(key.delta_g1, secret, 1)
    step = _proof_of_knowledge(ceremony, delta_g1, secret, name)
    vk = dataclasses.replace(key.vk, delta_g2=scaled(key.vk.delta_g2, secret, 1))
    return dataclasses.replace(
        key,
        vk=vk,
        delta_g1=delta_g1,
        l=Query(scaled(key.l.points, inverse, threads), key.l.wires),
        h=scaled(key.h, inverse, threads),
        ceremony=Ceremony(ceremony.circuit_hash, (*ceremony.contributions, step)),
    )


def _proof_of_knowledge(
    ceremony: Ceremony, delta_after: Points, secret: int, name: str
) -> Contribution:
    """g1_sx = x g1_s and g2_spx = x g2_sp, g2_sp drawn from the transcript."""
    curve = delta_after.curve
    encoded = name.encode()
    if len(encoded) > LONGEST_NAME:
        raise FormatError(
            f"contribution's name: expected at most {LONGEST_NAME} bytes, found {len(encoded)}"
        )
    g1_s = multiple(curve, "g1", random_scalar(curve))
    g1_sx = scaled(g1_s, secret, 1)
    transcript = transcript_of(ceremony.circuit_hash, ceremony.contributions, g1_s, g1_sx)
    return Contribution(
        delta_after=delta_after,
        g1_s=g1_s,
        g1_sx=g1_sx,
        g2_spx=scaled(challenge_point(transcript, curve), secret, 1),
        transcript=transcript,
        kind=0,
        parameters=bytes([NAME, len(encoded)]) + encoded if encoded else b"",
    )


def _expect_fit(matrices: Matrices, ptau: PowersOfTau) -> None:
    curve: Curve = ptau.curve
    with_c(matrices)
    if curve.is_toy:
        raise FormatError("setup: expected powers of tau on BN254 or BLS12-381, found TOY")
    if matrices.curve != curve:
        raise CircuitError(
            f"{ptau.source}: expected powers of tau on the circuit's curve {matrices.curve.title}, "
            f"found {curve.title}"
        )
    if matrices.log_domain > ptau.power:
        raise CircuitError(
            f"{ptau.source}: expected power {matrices.log_domain} or more for {matrices.constraints} "
            f"constraints + {matrices.public} public signals + 1 = {matrices.rows} rows, found power "
            f"{ptau.power}, which holds {1 << ptau.power} rows: take a larger .ptau"
        )


def _stacked(matrices: Matrices, n: int) -> SparseMatrix:
    """A over B over C, each filled up to n rows."""
    parts = (matrices.a, matrices.b, with_c(matrices))
    ends, start = [np.zeros(1, dtype=np.uint64)], 0
    for part in parts:
        filling = np.full(n - part.rows, part.terms, dtype=np.uint64)
        ends.append(np.concatenate([part.row_ptr[1:], filling]) + np.uint64(start))
        start += part.terms
    return SparseMatrix(
        np.concatenate(ends),
        np.concatenate([part.wires for part in parts]),
        np.concatenate([part.coefficients for part in parts]),
        matrices.a.values,
    )
