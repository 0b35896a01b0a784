"""The nouns of Groth16 (Groth, "On the Size of Pairing-based Non-interactive Arguments", 2016).

    A = alpha + sum w_i A_i(tau) + r delta
    B = beta  + sum w_i B_i(tau) + s delta
    C = sum_private w_i L_i + h(tau) Z(tau) / delta + s A + r B - r s delta
    valid:  e(A, B) = e(alpha, beta) e(IC_0 + sum public_i IC_i, gamma) e(C, delta)

Points are written additively; tau, alpha, beta, gamma, delta are the secrets that a setup forgets.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import Curve
from cuzk.r1cs import Matrices
from cuzk.vectors import Affine, Points

SNARKJS = "snarkjs"  # H: Lagrange points of the odd coset; scalars: A B - C evaluated there
BELLMAN = "bellman"  # H: powers of tau times Z; scalars: the coefficients of the quotient
PREPARED = (
    "prepared"  # bellman's with H on the coset and C in L (setup/prepare.py); scalars: A B there
)


@dataclass(frozen=True)
class Query:
    """Points of a key and the wires whose values multiply them: points[k] goes with w[wires[k]]."""

    points: Points
    wires: range | NDArray[np.uint32]


@dataclass(frozen=True)
class VerifyingKey:
    """The five group elements of the pairing equation's right side; all vectors of length one but ``ic``."""

    curve: Curve
    alpha_g1: Points
    beta_g2: Points
    gamma_g2: Points
    delta_g2: Points
    ic: Points  # public + 1 points in G1, the constant's first

    @property
    def public(self) -> int:
        """How many public signals a statement has."""
        return len(self.ic) - 1


def insecurity(vk: VerifyingKey) -> str:
    """Why anyone can forge proofs under this key, or "".

    With S = IC_0 + sum public_i IC_i and k = 1 or -1, these are proofs of any statement:

        delta = k gamma    A = alpha, B = beta, C = -k S
        beta = k gamma     A = k alpha + S, B = gamma, C = 0
        beta = k delta     A = S, B = gamma, C = -k alpha
        alpha = k          A = k beta_1 + S, B = gamma = 1, C = 0 (proving keys have beta_1, beta in G1)
        S = 0              A = alpha, B = beta, C = 0

    gamma is the generator in every key of snarkjs and bellman; so is delta where nobody contributed, alpha
    and beta where nobody contributed to the powers of tau. Other known multiples cannot be seen.
    """
    for name, point in (
        ("alpha", vk.alpha_g1),
        ("beta", vk.beta_g2),
        ("gamma", vk.gamma_g2),
        ("delta", vk.delta_g2),
    ):
        if point.affine() is None:
            return f"{name} is the point at infinity"
    if vk.ic.is_infinity().all():
        return "every point of IC is the point at infinity"
    alpha, beta, gamma, delta = (
        point.affine() for point in (vk.alpha_g1, vk.beta_g2, vk.gamma_g2, vk.delta_g2)
    )
    for pair, left, right, cause in (
        (("delta", "gamma"), delta, gamma, " (a key without a contribution)"),
        (("delta", "1"), delta, vk.curve.g2, " (a key without a contribution)"),
        (("beta", "gamma"), beta, gamma, " (powers of tau without a contribution)"),
        (("beta", "delta"), beta, delta, ""),
        (("alpha", "1"), alpha, vk.curve.g1, " (powers of tau without a contribution)"),
    ):
        if left == right:
            return f"{pair[0]} = {pair[1]}{cause}"
        if _are_opposite(left, right, vk.curve.p):
            return f"{pair[0]} = -{pair[1]}"
    return ""


def weaknesses(vk: VerifyingKey) -> list[str]:
    """What points of IC at infinity do: any value of the public input passes, or a statement has a free proof."""
    return [
        f"public input {k} is not bound: IC[{k}] is the point at infinity"
        if k
        else "IC[0] is the point at infinity: anyone can forge a proof for public inputs that are all 0"
        for k in np.flatnonzero(vk.ic.is_infinity())
    ]


def _are_opposite(a: Affine, b: Affine, p: int) -> bool:
    """Is b = -a? The second half of the coordinates changes sign (on TOY the only one)."""
    if a is None or b is None:
        return a == b
    half = len(a) // 2
    return a[:half] == b[:half] and all(
        (s + t) % p == 0 for s, t in zip(a[half:], b[half:], strict=True)
    )


@dataclass(frozen=True)
class Contribution:
    """One step of a .zkey's phase 2: delta' = delta * x, with a proof of knowledge of x."""

    delta_after: Points
    g1_s: Points
    g1_sx: Points
    g2_spx: Points
    transcript: bytes  # 64
    kind: int  # 0 text, 1 beacon
    parameters: bytes  # as stored: (1, length, name), (2, iterations), (3, length, beacon hash)


@dataclass(frozen=True)
class Ceremony:
    """Section 10 of a .zkey."""

    circuit_hash: bytes  # 64: BLAKE2b-512 of the key before any contribution
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True)
class Lagrange:
    """Level k of a prepared .ptau: points times L_i(tau) over the domain of 2^k, natural order."""

    tau_g1: Points
    tau_g2: Points
    alpha_tau_g1: Points
    beta_tau_g1: Points


@dataclass(frozen=True)
class PowersOfTau:
    """Phase 1: powers of a secret tau in both groups, alone and times alpha and beta."""

    curve: Curve
    power: int
    ceremony_power: int
    tau_g1: Points  # 2^(power + 1) - 1
    tau_g2: Points  # 2^power
    alpha_tau_g1: Points  # 2^power
    beta_tau_g1: Points  # 2^power
    beta_g2: Points  # 1
    contributions: int
    levels: tuple[Lagrange, ...]  # k = 0..power; empty before `prepare phase2`
    top_tau_g1: Points  # level power + 1 of tau_g1 (2^(power + 1) points); empty before preparation
    source: str


@dataclass(frozen=True)
class ProvingKey:
    """Everything a prover needs but the witness.

    Points may be views of a mapped file: keep the key alive while they are used. ``matrices`` is None
    where the file has none (bellman's .params): a circuit must then be given apart, and the queries'
    wires follow from its columns.
    """

    vk: VerifyingKey
    beta_g1: Points
    delta_g1: Points
    a: Query
    b_g1: Query
    b_g2: Query
    l: Query  # private wires (PREPARED: all wires), already over delta  # noqa: E741
    h: Points
    recipe: str  # SNARKJS, BELLMAN or PREPARED
    log_domain: int
    generator: int  # the roots of unity are generator^((r - 1) / 2^k)
    matrices: Matrices | None
    ceremony: Ceremony | None  # a .zkey's record of contributions
    source: str  # what to call it in messages: a file name
    file_bytes: int

    @property
    def curve(self) -> Curve:
        """The curve all points lie on."""
        return self.vk.curve

    @property
    def wires(self) -> int:
        """The constant, the public and the private ones."""
        return len(self.l.points) + (0 if self.recipe == PREPARED else len(self.vk.ic))

    @cached_property
    def digest(self) -> str:
        """Hex BLAKE2b-256 of the content of a .zkey's sections 2 and 3, whatever file the key is from.

        Primes and counts, the points that bind alpha, beta, gamma and delta, and IC: no two keys share it.
        """
        curve, vk = self.curve, self.vk
        state = hashlib.blake2b(digest_size=32)
        for prime, words in ((curve.p, curve.fp_words), (curve.r, curve.fr_words)):
            state.update((8 * words).to_bytes(4, "little") + prime.to_bytes(8 * words, "little"))
        state.update(struct.pack("<III", self.wires, vk.public, 1 << self.log_domain))
        points = (vk.alpha_g1, self.beta_g1, vk.beta_g2, vk.gamma_g2, self.delta_g1, vk.delta_g2)
        for vector in (*points, vk.ic):
            state.update(np.ascontiguousarray(vector.words).data)
        return state.hexdigest()


@dataclass(frozen=True)
class Proof:
    """A and C in G1, B in G2; vectors of length one."""

    a: Points
    b: Points
    c: Points

    @property
    def curve(self) -> Curve:
        """The curve the points lie on."""
        return self.a.curve
