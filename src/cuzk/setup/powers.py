"""Phase 1: powers of tau in the exponent, and what phase 2 takes from them.

A .ptau holds tau^i, alpha tau^i, beta tau^i times the generators; prepared for phase 2, also the Lagrange
basis of every domain of 2^k points. The NTT over points makes one from the other where a file is not
prepared.
"""

from __future__ import annotations

import numpy as np

from cuzk import _core
from cuzk.curves import Curve
from cuzk.errors import FormatError
from cuzk.groth16 import Lagrange, PowersOfTau
from cuzk.r1cs import SparseMatrix
from cuzk.setup import scalars
from cuzk.setup.scalars import combine, multiple, multiples
from cuzk.setup.secrets import Secrets
from cuzk.vectors import Points, Scalars


def make_powers_of_tau(
    curve: Curve, power: int, secrets: Secrets | None = None, *, threads: int = 1
) -> PowersOfTau:
    """Prepared powers for circuits up to 2^power rows, straight from a secret tau.

    The secrets come from the operating system and are forgotten, unless given (then delta and gamma are
    not used). No ceremony was held: whoever ran this is trusted to have kept nothing. For tests,
    demonstrations, and circuits whose only verifier is the one who ran it.
    """
    most = curve.two_adicity - 1
    if not 0 <= power <= most:
        raise FormatError(f"power of tau: expected 0 to {most} on {curve.title}, found {power}")
    secrets = (secrets or Secrets.drawn(curve)).checked(curve, power)
    n, tau, alpha, beta = 1 << power, secrets.tau, secrets.alpha, secrets.beta

    def g1(values: Scalars, factor: int = 1) -> Points:
        return multiples(combine([values], [factor], threads), "g1", threads)

    tau_powers = scalars.powers(curve, 1, tau, 2 * n - 1, threads)
    levels = _concatenated([_level(curve, k, tau, threads) for k in range(power + 1)])
    return PowersOfTau(
        curve=curve,
        power=power,
        ceremony_power=power,
        tau_g1=g1(tau_powers),
        tau_g2=multiples(tau_powers[:n], "g2", threads),
        alpha_tau_g1=g1(tau_powers[:n], alpha),
        beta_tau_g1=g1(tau_powers[:n], beta),
        beta_g2=multiple(curve, "g2", beta),
        contributions=0,
        levels=_cut(
            g1(levels), multiples(levels, "g2", threads), g1(levels, alpha), g1(levels, beta), power
        ),
        top_tau_g1=g1(_top_level(curve, power + 1, tau, threads)),
        source="powers of tau made here",
    )


def _level(curve: Curve, log_n: int, tau: int, threads: int) -> Scalars:
    return scalars.lagrange(curve, curve.root_of_unity(log_n), tau, log_n, threads)


def _top_level(curve: Curve, log_n: int, tau: int, threads: int) -> Scalars:
    """The last level counts the power n - 1, which phase 1 does not have, as zero."""
    n, r, root = 1 << log_n, curve.r, curve.root_of_unity(log_n)
    # The coefficient of X^(n-1) in L_i is w^(-i(n-1)) / n = w^i / n.
    missing = pow(tau, n - 1, r) * pow(n, -1, r)
    roots = scalars.powers(curve, 1, root, n, threads)
    return combine([_level(curve, log_n, tau, threads), roots], [1, -missing], threads)


def _concatenated(parts: list[Scalars]) -> Scalars:
    words = np.concatenate([part.words for part in parts])
    return Scalars(parts[0].curve, words, montgomery=True)


def _cut(
    tau: Points, tau_g2: Points, alpha: Points, beta: Points, power: int
) -> tuple[Lagrange, ...]:
    """Level k is points 2^k - 1 to 2^(k+1) - 1."""
    spans = [slice((1 << k) - 1, (2 << k) - 1) for k in range(power + 1)]
    return tuple(Lagrange(tau[s], tau_g2[s], alpha[s], beta[s]) for s in spans)


def lagrange_basis(ptau: PowersOfTau, log_n: int, threads: int) -> Lagrange:
    """The four bases of the domain of 2^log_n points: the file's level, or the NTT over its powers."""
    if ptau.levels:
        return ptau.levels[log_n]
    n = 1 << log_n
    return Lagrange(
        *(
            _inverse_ntt(points[:n], log_n, threads)
            for points in (ptau.tau_g1, ptau.tau_g2, ptau.alpha_tau_g1, ptau.beta_tau_g1)
        )
    )


def quotient_basis(ptau: PowersOfTau, log_n: int, multiples_of_z: Points, threads: int) -> Points:
    """snarkjs' H before delta: L_(2i+1)(tau) over the 2n-th roots of unity; ``multiples_of_z`` as below."""
    if ptau.levels:
        fine = ptau.levels[log_n + 1].tau_g1 if log_n < ptau.power else ptau.top_tau_g1
        n = 1 << log_n
        odd = slice(1, None, 2) if log_n < ptau.curve.two_adicity else slice(n, None)
        return Points(ptau.curve, "g1", np.ascontiguousarray(fine.words[odd]))
    return _quotient_basis(multiples_of_z, log_n, threads)


def _quotient_basis(multiples_of_z: Points, log_n: int, threads: int) -> Points:
    # L_(2i+1)(tau) = L_i(tau / g) Z(tau) / Z(g) and L_i(x) = sum_j w^(-ij) x^j / n: an inverse NTT of
    # g^-j Z(tau) tau^j / Z(g).
    curve, n = multiples_of_z.curve, 1 << log_n
    g = curve.coset_shift(log_n)
    inverse = pow(pow(g, n, curve.r) - 1, -1, curve.r)
    factors = scalars.powers(curve, inverse, pow(g, -1, curve.r), n, threads)
    numbers = np.arange(n, dtype=np.uint32)
    diagonal = SparseMatrix(np.arange(n + 1, dtype=np.uint64), numbers, numbers, factors)
    return _inverse_ntt(product_points(diagonal, multiples_of_z, threads), log_n, threads)


def multiples_of_z(ptau: PowersOfTau, log_n: int, threads: int) -> Points:
    """tau^i Z(tau) = tau^(n+i) - tau^i for i < n; tau^(2n-1), where the file ends before it, counts as 0."""
    curve, n = ptau.curve, 1 << log_n
    high = np.arange(n, min(2 * n, len(ptau.tau_g1)), dtype=np.uint32)
    low = np.arange(n, dtype=np.uint32)
    row_ptr = np.concatenate(([0], np.cumsum(1 + (low < len(high))))).astype(np.uint64)
    wires = np.empty(n + len(high), dtype=np.uint32)
    signs = np.zeros(n + len(high), dtype=np.uint32)
    lows = row_ptr[:-1].astype(np.int64)
    wires[lows], signs[lows] = low, 1
    wires[lows[: len(high)] + 1] = high
    units = Scalars.from_ints(curve, [1, -1], montgomery=True)
    return product_points(SparseMatrix(row_ptr, wires, signs, units), ptau.tau_g1, threads)


def product_points(matrix: SparseMatrix, points: Points, threads: int) -> Points:
    """sum over each row of coefficient * points[wire]."""
    curve, group = points.curve, points.group
    out = np.empty((matrix.rows, curve.point_words(group)), dtype=np.uint64)
    _core.product_points(
        curve.name,
        group,
        matrix.row_ptr,
        matrix.wires,
        matrix.coefficients,
        matrix.values.words,
        points.words,
        out,
        threads,
    )
    return Points(curve, group, out)


def scaled(points: Points, scalar: int, threads: int) -> Points:
    """scalar * every point."""
    curve = points.curve
    out = np.empty_like(points.words)
    word = Scalars.from_ints(curve, [scalar]).words
    _core.scale_points(curve.name, points.group, points.words, word, out, threads)
    return Points(curve, points.group, out)


def _inverse_ntt(points: Points, log_n: int, threads: int) -> Points:
    curve = points.curve
    words = np.array(points.words, dtype=np.uint64, order="C")
    root = Scalars.from_ints(curve, [curve.root_of_unity(log_n)], montgomery=True).words
    _core.group_ntt(curve.name, points.group, words, root, True, threads)
    return Points(curve, points.group, words)
