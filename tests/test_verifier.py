"""The verifier on other projects' proofs, on proofs simulated from known secrets, and on what is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import BLS12_381, BN254, TOY, Curve, curve_named
from cuzk.errors import CircuitError, FormatError, InsecureKeyError
from cuzk.groth16 import Proof, VerifyingKey, insecurity
from cuzk.vectors import Affine, Points, Scalars, pack
from cuzk.verifier import (
    EQUATION,
    Verifier,
    check,
    failing,
    verify,
    verify_batch,
    warnings,
)
from outside import on_curve
from reference import sum_points

PROOFS = [
    "co-snarks/bn254/multiplier2",
    "co-snarks/bn254/poseidon",
    "co-snarks/bls12_381/multiplier2",
    "co-snarks/bls12_381/poseidon",
]
WITHOUT_CONTRIBUTION = "co-snarks/bn254/poseidon"


@pytest.fixture(params=["bn254", "bls12_381", "toy"])
def any_curve(request: pytest.FixtureRequest) -> Curve:
    return {"bn254": BN254, "bls12_381": BLS12_381, "toy": TOY}[request.param]


# Points from snarkjs' JSON, without any check.


def g1(curve: Curve, value: Sequence[str]) -> Points:
    return Points.from_affine(curve, "g1", [(int(value[0]), int(value[1]))])


def g2(curve: Curve, value: Sequence[Sequence[str]]) -> Points:
    return Points.from_affine(curve, "g2", [tuple(int(c) for pair in value[:2] for c in pair)])


def key_of(data: dict[str, Any]) -> VerifyingKey:
    curve = curve_named(data["curve"])
    return VerifyingKey(
        curve,
        g1(curve, data["vk_alpha_1"]),
        g2(curve, data["vk_beta_2"]),
        g2(curve, data["vk_gamma_2"]),
        g2(curve, data["vk_delta_2"]),
        Points.concatenate([g1(curve, point) for point in data["IC"]]),
    )


def proof_of(curve: Curve, data: dict[str, Any]) -> Proof:
    return Proof(g1(curve, data["pi_a"]), g2(curve, data["pi_b"]), g1(curve, data["pi_c"]))


def load(folder: Path) -> tuple[VerifyingKey, list[int], Proof]:
    vk = key_of(json.loads((folder / "verification_key.json").read_text()))
    public = [int(value) for value in json.loads((folder / "public.json").read_text())]
    return vk, public, proof_of(vk.curve, json.loads((folder / "circom.proof").read_text()))


# Proofs from known secrets: C = (a b - alpha beta - gamma sum public_i ic_i) / delta.


@cache
def multiple(curve: Curve, group: str, k: int) -> Points:
    base = curve.g1 if group == "g1" else curve.g2
    return Points.from_affine(curve, group, [sum_points(curve, group, [base], [k % curve.r])])


@dataclass(frozen=True)
class Secrets:
    curve: Curve
    alpha: int = 271
    beta: int = 314
    gamma: int = 577
    delta: int = 1618
    ic: tuple[int, ...] = (5, 70, 900)

    def key(self) -> VerifyingKey:
        return VerifyingKey(
            self.curve,
            multiple(self.curve, "g1", self.alpha),
            multiple(self.curve, "g2", self.beta),
            multiple(self.curve, "g2", self.gamma),
            multiple(self.curve, "g2", self.delta),
            Points.concatenate([multiple(self.curve, "g1", k) for k in self.ic]),
        )

    def proof(self, public: Sequence[int], a: int = 8191, b: int = 4095) -> Proof:
        ic = sum(k * value for k, value in zip(self.ic, [1, *public], strict=True))
        c = (a * b - self.alpha * self.beta - self.gamma * ic) * pow(self.delta, -1, self.curve.r)
        return Proof(
            multiple(self.curve, "g1", a),
            multiple(self.curve, "g2", b),
            multiple(self.curve, "g1", c),
        )


def combination(parts: Sequence[tuple[Points, int]]) -> Points:
    """sum k * P over vectors of one point, on integers."""
    curve, group = parts[0][0].curve, parts[0][0].group
    points = [point.affine() for point, _ in parts]
    return Points.from_affine(
        curve, group, [sum_points(curve, group, points, [k % curve.r for _, k in parts])]
    )


def single(curve: Curve, group: str, point: Affine) -> Points:
    return Points.from_affine(curve, group, [point])


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("folder", PROOFS)
def test_proofs_of_others(fixtures: Path, folder: str) -> None:
    vk, public, proof = load(fixtures / folder)
    insecure = folder == WITHOUT_CONTRIBUTION
    verifier = Verifier(vk, insecure_key=insecure)
    assert verifier.check(public, proof) == ""
    assert verify(vk, Scalars.from_ints(vk.curve, public), proof, insecure_key=insecure)
    in_montgomery = Scalars.from_ints(vk.curve, public, montgomery=True)
    assert verify(vk, in_montgomery, proof, insecure_key=insecure, threads=3)
    for i in range(len(public)):
        for wrong in ((public[i] + 1) % vk.curve.r, 0, vk.curve.r - 1):
            assert not verifier.verify([*public[:i], wrong, *public[i + 1 :]], proof)
    for name in ("a", "c"):
        other = single(vk.curve, "g1", vk.curve.g1)
        assert verifier.check(public, replace(proof, **{name: other})) == EQUATION
    assert verifier.check(public, replace(proof, b=single(vk.curve, "g2", vk.curve.g2))) == EQUATION
    assert verifier.check(public, Proof(proof.c, proof.b, proof.a)) == EQUATION


def test_zorch(fixtures: Path) -> None:
    folder = fixtures / "groth16-zorch"
    data = (folder / "multiplier_3.zkey").read_bytes()
    sections, at = {}, 12
    for _ in range(int.from_bytes(data[8:12], "little")):
        size = int.from_bytes(data[at + 4 : at + 12], "little")
        sections[int.from_bytes(data[at : at + 4], "little")] = data[at + 12 : at + 12 + size]
        at += 12 + size
    header = np.frombuffer(sections[2][84:], dtype="<u8").astype(np.uint64)

    def at_word(offset: int, group: str) -> Points:
        size = BN254.point_words(group)
        return Points(BN254, group, header[offset : offset + size].reshape(1, size))

    ic = np.frombuffer(sections[3], dtype="<u8").astype(np.uint64).reshape(-1, 8)
    vk = VerifyingKey(
        BN254,
        at_word(0, "g1"),
        at_word(16, "g2"),
        at_word(32, "g2"),
        at_word(56, "g2"),
        Points(BN254, "g1", ic),
    )
    public = [int(value) for value in json.loads((folder / "multiplier_3_public.json").read_text())]
    proof = proof_of(BN254, json.loads((folder / "multiplier_3_proof.json").read_text()))
    reason = insecurity(vk)
    assert verify(vk, public, proof, insecure_key=bool(reason))
    assert not verify(vk, [public[0] + 1], proof, insecure_key=bool(reason))


@pytest.mark.usefixtures("arithmetic")
def test_simulated_proofs(any_curve: Curve) -> None:
    secrets = Secrets(any_curve)
    vk = secrets.key()
    for public in ([0, 1], [any_curve.r - 1, 1], [12345, 12345]):  # CASES C17
        proof = secrets.proof(public)
        assert verify(vk, public, proof)
        assert check(vk, public[::-1], proof) == ("" if public[0] == public[1] else EQUATION)
        assert check(vk, [public[0], public[1] ^ 2], proof) == EQUATION
    none = Secrets(any_curve, ic=(42,))
    assert verify(none.key(), [], none.proof([]))  # CASES C1
    assert check(none.key(), [], secrets.proof([1, 2])) == EQUATION


def test_toy_by_hand() -> None:
    """alpha 2, beta 3, gamma 5, delta 7, IC 11 and 13, public 4: 17 * 19 = 6 + 5 (11 + 52) + 7 c."""
    one = {name: Points.from_affine(TOY, group, [(value,)]) for name, group, value in (
        ("alpha", "g1", 2), ("beta", "g2", 3), ("gamma", "g2", 5), ("delta", "g2", 7),
        ("a", "g1", 17), ("b", "g2", 19), ("c", "g1", 2 * pow(7, -1, TOY.r) % TOY.r),
    )}  # fmt: skip
    ic = Points.from_affine(TOY, "g1", [(11,), (13,)])
    vk = VerifyingKey(TOY, one["alpha"], one["beta"], one["gamma"], one["delta"], ic)
    assert 17 * 19 - 6 - 5 * (11 + 52) == 2
    assert verify(vk, [4], Proof(one["a"], one["b"], one["c"]))
    assert check(vk, [5], Proof(one["a"], one["b"], one["c"])) == EQUATION
    high = Points(TOY, "g1", np.full((1, 1), TOY.p, np.uint64))
    assert "not below p" in check(vk, [4], Proof(high, one["b"], one["c"]))


def test_public_input_not_below_r(any_curve: Curve) -> None:  # CASES V1, V2
    secrets = Secrets(any_curve)
    vk, proof = secrets.key(), secrets.proof([7, 8])
    values = [8 + any_curve.r, any_curve.r, any_curve.p - 1, any_curve.p, -1, 1 << 20000]
    for value in values:
        if 0 <= value < any_curve.r:
            continue  # p - 1 on TOY, where p = r
        with pytest.raises(
            FormatError, match=r"public input 2: expected a value below r, found"
        ) as e:
            verify(vk, [7, value], proof)
        assert len(str(e.value)) < 250
    with pytest.raises(FormatError, match="public input 1"):
        verify_batch(vk, [([7, 8], proof), ([7 + any_curve.r, 8], proof)])
    for montgomery in (False, True):
        words = pack([any_curve.r, 8], any_curve.fr_words)
        with pytest.raises(FormatError, match="public input 1: expected a value below r"):
            verify(vk, Scalars(any_curve, words, montgomery), proof)
    wrong: Any = [7, 8.0]
    with pytest.raises(FormatError, match="public input 2: expected an integer, found float"):
        verify(vk, wrong, proof)


def test_count_of_public_inputs(any_curve: Curve) -> None:  # CASES V3
    secrets = Secrets(any_curve)
    vk, proof = secrets.key(), secrets.proof([7, 0])
    for public in ([7], [7, 0, 0], []):
        with pytest.raises(CircuitError, match=rf"expected 2, .* found {len(public)}"):
            verify(vk, public, proof)
        with pytest.raises(CircuitError, match="expected 2"):
            verify_batch(vk, [(public, proof)])


def test_outside_the_subgroup(curve: Curve) -> None:  # CASES V5
    secrets = Secrets(curve)
    vk, proof = secrets.key(), secrets.proof([1, 2])
    outside = single(curve, "g2", on_curve(curve, "g2", 1))
    assert check(vk, [1, 2], replace(proof, b=outside)) == "pi_b: not in the subgroup"
    torsion = combination([(outside, curve.r - 1), (outside, 1)])  # r * outside is not infinity
    mixed = combination([(proof.b, 1), (torsion, 1)])
    assert check(vk, [1, 2], replace(proof, b=mixed)) == "pi_b: not in the subgroup"
    assert not verify_batch(vk, [([1, 2], proof), ([1, 2], replace(proof, b=mixed))])
    if curve is BLS12_381:
        point = single(curve, "g1", on_curve(curve, "g1", 1))
        assert check(vk, [1, 2], replace(proof, a=point)) == "pi_a: not in the subgroup"
        assert check(vk, [1, 2], replace(proof, c=point)) == "pi_c: not in the subgroup"


def test_off_curve_and_out_of_range(curve: Curve) -> None:  # CASES V6
    secrets = Secrets(curve)
    vk, proof = secrets.key(), secrets.proof([1, 2])
    for name in ("a", "b", "c"):
        points: Points = getattr(proof, name)
        affine = points.affine()
        assert affine is not None
        off = single(curve, points.group, (*affine[:-1], affine[-1] + 1))
        assert check(vk, [1, 2], replace(proof, **{name: off})) == f"pi_{name}: not on the curve"
        words = points.words.copy()
        held = sum(int(w) << 64 * i for i, w in enumerate(words[0, : curve.fp_words]))
        words[0, : curve.fp_words] = pack([held + curve.p], curve.fp_words)[0]
        high = Points(curve, points.group, words)
        found = check(vk, [1, 2], replace(proof, **{name: high}))
        assert found == f"pi_{name}: a coordinate is not below p"
        assert not verify(vk, [1, 2], replace(proof, **{name: high}))


def test_infinity_in_a_proof(any_curve: Curve) -> None:
    secrets = Secrets(any_curve)
    vk, proof = secrets.key(), secrets.proof([1, 2])
    for name in ("a", "b", "c"):
        nothing = single(any_curve, getattr(proof, name).group, None)
        assert check(vk, [1, 2], replace(proof, **{name: nothing})) == EQUATION


def test_other_proofs_of_the_same_statement(any_curve: Curve) -> None:  # CASES V8
    secrets = Secrets(any_curve)
    vk, public, r = secrets.key(), [3, 4], any_curve.r
    a, b, c = (lambda p: (p.a, p.b, p.c))(secrets.proof(public))
    s, t = 987654321 % r, 55555
    inverse = pow(s, -1, r)
    assert verify(vk, public, Proof(combination([(a, -1)]), combination([(b, -1)]), c))
    assert verify(vk, public, Proof(combination([(a, s)]), combination([(b, inverse)]), c))
    assert not verify(vk, public, Proof(combination([(a, s)]), combination([(b, s)]), c))
    rerandomised = Proof(
        combination([(a, inverse)]),
        combination([(b, s), (vk.delta_g2, s * t)]),
        combination([(c, 1), (a, t)]),
    )
    assert verify(vk, public, rerandomised)
    assert not verify(vk, [3, 5], rerandomised)


def test_insecure_keys(any_curve: Curve) -> None:  # CASES V9
    cases = {
        "delta = gamma": Secrets(any_curve, gamma=577, delta=577),
        "delta = -gamma": Secrets(any_curve, gamma=577, delta=any_curve.r - 577),
        "delta = 1": Secrets(any_curve, delta=1),
        "delta = -1": Secrets(any_curve, delta=any_curve.r - 1),
        "gamma is the point at infinity": Secrets(any_curve, gamma=0),
        "alpha is the point at infinity": Secrets(any_curve, alpha=0),
        "beta is the point at infinity": Secrets(any_curve, beta=0),
    }
    for reason, secrets in cases.items():
        vk, proof = secrets.key(), secrets.proof([1, 2])
        assert reason in insecurity(vk)
        assert reason in warnings(vk)[0]
        for call in (verify, check):
            with pytest.raises(InsecureKeyError, match=reason):
                call(vk, [1, 2], proof)
        with pytest.raises(InsecureKeyError, match=reason):
            verify_batch(vk, [([1, 2], proof)])
        assert verify(vk, [1, 2], proof, insecure_key=True)
        assert not verify(vk, [1, 3], proof, insecure_key=True) or reason.startswith("gamma")
    nothing = replace(Secrets(any_curve).key(), delta_g2=single(any_curve, "g2", None))
    assert insecurity(nothing) == "delta is the point at infinity"
    usual = Secrets(any_curve, gamma=1)  # every key of snarkjs and bellman
    assert insecurity(usual.key()) == ""
    assert verify(usual.key(), [1, 2], usual.proof([1, 2]))


def test_a_real_key_without_contribution(fixtures: Path) -> None:  # CASES V9
    vk, public, proof = load(fixtures / WITHOUT_CONTRIBUTION)
    with pytest.raises(InsecureKeyError, match=r"delta = gamma.*anyone can forge"):
        verify(vk, public, proof)
    # why: C = -(IC sum) turns A = alpha, B = beta into a proof of any statement
    ic = [(vk.ic[i : i + 1], k) for i, k in enumerate([1, *[666] * len(public)])]
    forged = Proof(vk.alpha_g1, vk.beta_g2, combination([(point, -k) for point, k in ic]))
    assert verify(vk, [666] * len(public), forged, insecure_key=True)


def test_unbound_public_input(any_curve: Curve) -> None:  # CASES V11
    secrets = Secrets(any_curve, ic=(0, 70, 0, 900))
    vk = secrets.key()
    assert warnings(vk) == [
        "IC[0] is the point at infinity: anyone can forge a proof for public inputs that are all 0",
        "public input 2 is not bound: IC[2] is the point at infinity",
    ]
    nothing = single(any_curve, "g1", None)
    assert verify(vk, [0, 0, 0], Proof(vk.alpha_g1, vk.beta_g2, nothing))
    proof = secrets.proof([1, 2, 3])
    assert verify(vk, [1, 99, 3], proof)
    assert not verify(vk, [1, 2, 4], proof)
    assert warnings(Secrets(any_curve).key()) == []


def test_another_circuits_key(any_curve: Curve) -> None:  # CASES V13
    first, second = Secrets(any_curve), Secrets(any_curve, ic=(5, 70, 901))
    assert verify(first.key(), [1, 2], first.proof([1, 2]))
    assert check(second.key(), [1, 2], first.proof([1, 2])) == EQUATION
    assert check(first.key(), [1, 2], second.proof([1, 2])) == EQUATION


def test_swapped_g2_coordinates(fixtures: Path) -> None:  # CASES V15
    for folder in PROOFS:
        vk, public, proof = load(fixtures / folder)
        b = proof.b.affine()
        assert b is not None
        swapped = replace(proof, b=single(vk.curve, "g2", (b[1], b[0], b[3], b[2])))
        assert check(vk, public, swapped, insecure_key=True) == "pi_b: not on the curve"


def test_malformed_keys(curve: Curve) -> None:
    secrets = Secrets(curve)
    vk, proof = secrets.key(), secrets.proof([1, 2])
    x, y = curve.g1
    off = single(curve, "g1", (x, y + 1))
    outside = single(curve, "g2", on_curve(curve, "g2", 2))
    cases = {
        r"alpha: not on the curve": replace(vk, alpha_g1=off),
        r"IC\[1\]: not on the curve": replace(
            vk, ic=Points.concatenate([vk.ic[:1], off, vk.ic[2:]])
        ),
        r"beta: not in the subgroup": replace(vk, beta_g2=outside),
        r"gamma: not in the subgroup": replace(vk, gamma_g2=outside),
        r"delta: not in the subgroup": replace(vk, delta_g2=outside),
        r"delta: expected 1 point, found 0": replace(vk, delta_g2=vk.delta_g2[:0]),
        r"IC: expected at least 1 point": replace(vk, ic=vk.ic[:0]),
        r"gamma: expected points of .* g2, found .* g1": replace(vk, gamma_g2=vk.alpha_g1),
    }
    for message, bad in cases.items():
        with pytest.raises(FormatError, match=f"verifying key: {message}"):
            verify(bad, [1, 2], proof, insecure_key=True)


def test_other_curve() -> None:
    ours, theirs = Secrets(BN254), Secrets(BLS12_381)
    with pytest.raises(CircuitError, match=r"pi_a: expected a point of BN254.*found BLS12-381"):
        verify(ours.key(), [1, 2], theirs.proof([1, 2]))
    with pytest.raises(CircuitError, match=r"expected scalars of BN254, found BLS12-381"):
        verify(ours.key(), Scalars.from_ints(BLS12_381, [1, 2]), ours.proof([1, 2]))
    proof = ours.proof([1, 2])
    with pytest.raises(FormatError, match="pi_b: expected 1 point of g2"):
        verify(ours.key(), [1, 2], replace(proof, b=proof.a))


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("threads", [1, 3])
def test_batches(any_curve: Curve, threads: int) -> None:
    secrets, rng = Secrets(any_curve), random.Random(1)
    vk = secrets.key()
    good = [
        (public, secrets.proof(public, a=3 + i, b=5))
        for i, public in enumerate([rng.randrange(1000), i] for i in range(9))
    ]
    assert verify_batch(vk, [], threads=threads)
    assert verify_batch(vk, good[:1], threads=threads)
    assert verify_batch(vk, good, threads=threads)
    assert failing(vk, good, threads=threads) == []
    assert failing(vk, [], threads=threads) == []
    for bad in ([0], [8], [3, 4], [1, 5, 6]):
        mixed = [([p[0] + 1, p[1]], q) if i in bad else (p, q) for i, (p, q) in enumerate(good)]
        assert not verify_batch(vk, mixed, threads=threads)
        assert failing(vk, mixed, threads=threads) == [(i, EQUATION) for i in bad]


def test_errors_that_cancel_do_not_pass_a_batch(curve: Curve) -> None:
    """Two wrong proofs whose errors are opposite: the plain sum of the equations holds."""
    secrets = Secrets(curve)
    vk, public = secrets.key(), [1, 2]
    proof = secrets.proof(public)
    shift = multiple(curve, "g1", 1)
    plus = replace(proof, c=combination([(proof.c, 1), (shift, 1)]))
    minus = replace(proof, c=combination([(proof.c, 1), (shift, -1)]))
    statements = [(public, plus), (public, minus)]
    assert not verify_batch(vk, statements)
    assert failing(vk, statements) == [(0, EQUATION), (1, EQUATION)]


def test_a_hundred_thousand_public_inputs() -> None:  # CASES C7
    count, rng, r = 100_000, random.Random(7), BN254.r
    ic = [rng.randrange(r) for _ in range(count + 1)]
    words = np.zeros((count + 1, 8), dtype=np.uint64)
    base = multiple(BN254, "g1", 1).words
    _core.fixed_base("bn254", "g1", base, pack(ic, 4), words, 2)
    public = [rng.randrange(r) for _ in range(count)]
    secrets = Secrets(BN254, ic=tuple(ic))
    vk = replace(Secrets(BN254).key(), ic=Points(BN254, "g1", words))
    proof = secrets.proof(public)
    verifier = Verifier(vk, threads=2)
    assert verifier.verify(public, proof)
    assert not verifier.verify([*public[:-1], public[-1] ^ 1], proof)
