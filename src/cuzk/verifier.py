"""Is this proof a proof? The pairing equation of Groth16, for one proof or for many under one key.

    e(A, B) = e(alpha, beta) e(IC_0 + sum public_i IC_i, gamma) e(C, delta)

Many proofs are checked at once by the random combination sum z_i (equation i) with secret 128-bit z_i: a
batch that holds a wrong proof passes with probability below 2^-127. Points of keys and proofs are always
checked first: coordinates below p, on the curve, in the subgroup of order r.

A proof is not a unique name of its statement: (-A, -B, C), (s A, B / s, C) and full re-randomisations of a
valid proof are valid too. What must be unique is derived from the public inputs, never from proof bytes.

Reference: Groth, "On the Size of Pairing-based Non-interactive Arguments", 2016, section 3.2.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from cuzk import _core
from cuzk.curves import Curve
from cuzk.errors import CircuitError, FormatError, InsecureKeyError
from cuzk.groth16 import Proof, VerifyingKey, insecurity, weaknesses
from cuzk.membership import FOUND, first_bad
from cuzk.prover.devices import thread_count
from cuzk.vectors import Points, Scalars, pack, unpack

Public: TypeAlias = Sequence[int] | Scalars
Statement: TypeAlias = tuple[Public, Proof]

EQUATION = "the pairing equation does not hold"


class Verifier:
    """A verifying key, checked once, for any number of proofs.

    Raises FormatError naming the element of the key that is malformed, and InsecureKeyError for a key
    under which anyone can forge (:func:`cuzk.groth16.insecurity`) unless ``insecure_key``.
    """

    def __init__(self, vk: VerifyingKey, *, insecure_key: bool = False, threads: int = 1) -> None:
        threads = thread_count(threads)
        _check_key(vk, threads)
        reason = insecurity(vk)
        if reason and not insecure_key:
            raise InsecureKeyError(
                f"verifying key: {reason}: anyone can forge its proofs; "
                "allow it only for tests (insecure key)"
            )
        self.vk = vk
        self.threads = threads

    def check(self, public: Public, proof: Proof) -> str:
        """Why the proof is not valid, or "" when it is.

        Raises FormatError for a public input that is not an integer in [0, r), CircuitError for a wrong
        number of them or a proof on another curve.
        """
        values = _public_values(self.vk, public)
        _expect_shape(proof, self.vk.curve)
        for name, points in (("pi_a", proof.a), ("pi_b", proof.b), ("pi_c", proof.c)):
            _, reason = first_bad(points, threads=self.threads)
            if reason:
                return f"{name}: {FOUND[reason]}"
        return "" if self._holds([values], [proof], [1]) else EQUATION

    def verify(self, public: Public, proof: Proof) -> bool:
        """Is the proof valid? Raises as :meth:`check`."""
        return not self.check(public, proof)

    def verify_batch(self, statements: Iterable[Statement]) -> bool:
        """Are all proofs valid? True for none; raises as :meth:`check`."""
        statements = list(statements)  # zip(publics, proofs) can be walked only once
        publics = [_public_values(self.vk, public) for public, _ in statements]
        proofs = [proof for _, proof in statements]
        for proof in proofs:
            _expect_shape(proof, self.vk.curve)
        if not proofs:
            return True
        for vector in _columns(proofs):
            if first_bad(vector, threads=self.threads)[1]:
                return False
        weights = [secrets.randbelow(2**128 - 1) + 1 for _ in proofs]
        return self._holds(publics, proofs, weights)

    def failing(self, statements: Iterable[Statement]) -> list[tuple[int, str]]:
        """(index, reason) of every statement that fails, by halving the batch; empty when all hold."""
        statements = list(statements)
        if len(statements) == 1:
            reason = self.check(*statements[0])
            return [(0, reason)] if reason else []
        if self.verify_batch(statements):
            return []
        half = len(statements) // 2
        right = self.failing(statements[half:])
        return self.failing(statements[:half]) + [(half + i, reason) for i, reason in right]

    def _holds(self, publics: list[list[int]], proofs: list[Proof], weights: list[int]) -> bool:
        """sum weights[i] * (equation i), for points that were checked."""
        if self.vk.curve.is_toy:
            return all(map(self._holds_on_toy, publics, proofs))
        vk, curve = self.vk, self.vk.curve
        a, b, c = _columns(proofs)
        total = sum(weights) % curve.r
        columns = zip(*publics, strict=True)
        ic_scalars = [sum(map(operator.mul, weights, column)) % curve.r for column in columns]
        right = [
            self._sum(vk.alpha_g1, [total]),
            self._sum(vk.ic, [total, *ic_scalars]),
            self._sum(c, weights),
        ]
        g1 = Points.concatenate([self._scaled(a, weights), *map(_negated, right)])
        g2 = Points.concatenate([b, vk.beta_g2, vk.gamma_g2, vk.delta_g2])
        return _core.pairing_product_is_one(curve.name, g1.words, g2.words, self.threads)

    def _holds_on_toy(self, public: list[int], proof: Proof) -> bool:
        """The same on TOY, where points are scalars and e(a, b) = a b."""

        def value(points: Points, index: int = 0) -> int:
            return (points.affine(index) or (0,))[0]

        vk = self.vk
        ic = sum(value(vk.ic, i) * w for i, w in enumerate([1, *public]))
        right = (
            value(vk.alpha_g1) * value(vk.beta_g2)
            + ic * value(vk.gamma_g2)
            + value(proof.c) * value(vk.delta_g2)
        )
        return (value(proof.a) * value(proof.b) - right) % vk.curve.r == 0

    def _sum(self, points: Points, scalars: list[int]) -> Points:
        """sum scalars[i] * points[i]; a sum of one point taken once is that point."""
        curve = points.curve
        if scalars == [1]:
            return points
        out = np.zeros((1, curve.point_words(points.group)), dtype=np.uint64)
        bases = np.ascontiguousarray(points.words)
        words = pack(scalars, curve.fr_words)
        _core.msm(curve.name, points.group, bases, words, None, out, self.threads)
        return Points(curve, points.group, out)

    def _scaled(self, points: Points, scalars: list[int]) -> Points:
        """scalars[i] * points[i]."""
        return Points.concatenate(
            [self._sum(points[i : i + 1], [scalar]) for i, scalar in enumerate(scalars)]
        )


def verify(
    vk: VerifyingKey,
    public: Public,
    proof: Proof,
    *,
    insecure_key: bool = False,
    threads: int = 1,
) -> bool:
    """Is the proof valid for these public inputs? Raises as :class:`Verifier` and its ``check``."""
    return Verifier(vk, insecure_key=insecure_key, threads=threads).verify(public, proof)


def check(
    vk: VerifyingKey,
    public: Public,
    proof: Proof,
    *,
    insecure_key: bool = False,
    threads: int = 1,
) -> str:
    """Why the proof is not valid, or "" when it is; raises as :func:`verify`."""
    return Verifier(vk, insecure_key=insecure_key, threads=threads).check(public, proof)


def verify_batch(
    vk: VerifyingKey,
    statements: Iterable[Statement],
    *,
    insecure_key: bool = False,
    threads: int = 1,
) -> bool:
    """Are all proofs valid under one key? Raises as :func:`verify`."""
    return Verifier(vk, insecure_key=insecure_key, threads=threads).verify_batch(statements)


def failing(
    vk: VerifyingKey,
    statements: Iterable[Statement],
    *,
    insecure_key: bool = False,
    threads: int = 1,
) -> list[tuple[int, str]]:
    """(index, reason) of every statement that fails; raises as :func:`verify`."""
    return Verifier(vk, insecure_key=insecure_key, threads=threads).failing(statements)


def warnings(vk: VerifyingKey) -> list[str]:
    """What a person should know of a well-formed key: insecure, or public inputs that bind nothing.

    Public input k (from 1) is the factor of IC[k]: where that is infinity, any value passes.
    """
    found = [reason] if (reason := insecurity(vk)) else []
    return found + weaknesses(vk)


def _check_key(vk: VerifyingKey, threads: int) -> None:
    for name, points, group in (
        ("alpha", vk.alpha_g1, "g1"),
        ("beta", vk.beta_g2, "g2"),
        ("gamma", vk.gamma_g2, "g2"),
        ("delta", vk.delta_g2, "g2"),
        ("IC", vk.ic, "g1"),
    ):
        where = f"verifying key: {name}"
        if points.curve is not vk.curve or points.group != group:
            raise FormatError(
                f"{where}: expected points of {vk.curve.title} {group}, "
                f"found {points.curve.title} {points.group}"
            )
        if len(points) != 1 and (name != "IC" or len(points) == 0):
            wanted = "at least 1 point" if name == "IC" else "1 point"
            raise FormatError(f"{where}: expected {wanted}, found {len(points)}")
        index, reason = first_bad(points, threads=threads)
        if reason:
            raise FormatError(f"{where}{f'[{index}]' if name == 'IC' else ''}: {FOUND[reason]}")


def _expect_shape(proof: Proof, curve: Curve) -> None:
    for name, points, group in (
        ("pi_a", proof.a, "g1"),
        ("pi_b", proof.b, "g2"),
        ("pi_c", proof.c, "g1"),
    ):
        if points.curve is not curve:
            raise CircuitError(
                f"{name}: expected a point of {curve.title}, the verifying key's curve, "
                f"found {points.curve.title}"
            )
        if points.group != group or len(points) != 1:
            raise FormatError(
                f"{name}: expected 1 point of {group}, found {len(points)} of {points.group}"
            )


def _public_values(vk: VerifyingKey, public: Public) -> list[int]:
    """Plain integers below r, as many as the key has."""
    r = vk.curve.r
    ordered = isinstance(public, Sequence | Scalars)
    if not ordered and (not isinstance(public, np.ndarray) or public.ndim != 1):
        raise FormatError(
            f"public inputs: expected a sequence of integers, found {type(public).__name__}"
        )
    if len(public) != vk.public:
        raise CircuitError(
            f"public inputs: expected {vk.public}, as the verifying key has, found {len(public)}"
        )
    if isinstance(public, Scalars):
        if public.curve is not vk.curve:
            raise CircuitError(
                f"public inputs: expected scalars of {vk.curve.title}, found {public.curve.title}"
            )
        raw: Sequence[int] = unpack(public.words)
    else:
        raw = public
    values = []
    for number, item in enumerate(raw, start=1):
        try:
            if isinstance(item, bool):
                raise TypeError
            value = operator.index(item)
        except TypeError:
            raise FormatError(
                f"public input {number}: expected an integer, found {type(item).__name__}"
            ) from None
        if not 0 <= value < r:
            shown = value if value.bit_length() <= 512 else f"{value.bit_length()} bits"
            raise FormatError(f"public input {number}: expected a value below r, found {shown}")
        values.append(value)
    return public.ints() if isinstance(public, Scalars) else values


def _columns(proofs: Sequence[Proof]) -> tuple[Points, Points, Points]:
    """All A, all B, all C."""
    return (
        Points.concatenate([proof.a for proof in proofs]),
        Points.concatenate([proof.b for proof in proofs]),
        Points.concatenate([proof.c for proof in proofs]),
    )


def _negated(point: Points) -> Points:
    """-P of a vector of one point."""
    curve, affine = point.curve, point.affine()
    if affine is None:
        return point
    half = len(affine) // 2  # 0 on TOY, where the value itself changes sign
    return Points.from_affine(
        curve, point.group, [(*affine[:half], *(-c % curve.p for c in affine[half:]))]
    )
