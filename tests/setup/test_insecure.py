"""insecure_setup against the paper's definitions in Python integers (reference_setup.py)."""

from __future__ import annotations

import dataclasses

import pytest

import circuits
import reference_setup
from cuzk.circuit import Circuit
from cuzk.curves import BN254, TOY, Curve
from cuzk.errors import CircuitError, FormatError
from cuzk.groth16 import BELLMAN, SNARKJS
from cuzk.setup import Secrets, insecure_setup, random_scalar
from cuzk.vectors import Points
from keys import expect_equal

SECRETS = Secrets(**dataclasses.asdict(reference_setup.TOXIC))


def empty(curve: Curve, public: int = 0) -> Circuit:
    circuit = Circuit(curve)
    for value in range(public):
        circuit.public(value)
    return circuit


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("arithmetic")
def test_every_point_follows_its_formula(curve: Curve, recipe: str, threads: int) -> None:
    matrices = circuits.cubic(curve).matrices()
    expect_equal(
        insecure_setup(matrices, SECRETS, recipe, threads=threads),
        reference_setup.key_from(matrices, recipe=recipe),
    )


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
@pytest.mark.parametrize("constraints", [1, 2, 5, 6, 7, 60, 61, 62])
def test_toy_keys_at_every_filling_of_the_domain(recipe: str, constraints: int) -> None:
    matrices = circuits.chain(TOY, constraints).matrices()
    expected = reference_setup.key_from(matrices, recipe=recipe)
    expect_equal(insecure_setup(matrices, SECRETS, recipe), expected)


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
@pytest.mark.parametrize("public", [0, 1, 3])
def test_no_constraints(recipe: str, public: int) -> None:
    for curve in (TOY, BN254):
        matrices = empty(curve, public).matrices()
        expected = reference_setup.key_from(matrices, recipe=recipe)
        expect_equal(insecure_setup(matrices, SECRETS, recipe), expected)


def test_the_largest_domain_has_no_finer_roots() -> None:
    # 2^S rows: the quotient's coset is shifted by generator^2
    matrices = circuits.chain(TOY, (1 << TOY.two_adicity) - 2).matrices()
    assert matrices.log_domain == TOY.two_adicity
    found = insecure_setup(matrices, SECRETS)
    toxic = reference_setup.TOXIC
    logs = reference_setup.quotient_bases(TOY, TOY.two_adicity, toxic, SNARKJS, TOY.generator)
    assert [int(x) for x in found.h.words[:, 0]] == [
        int(x) for x in Points.from_affine(TOY, "g1", [(x,) for x in logs]).words[:, 0]
    ]


def test_bellman_leaves_out_wires_that_do_not_occur() -> None:
    circuit = Circuit("bn254")
    x, y = circuit.private(3), circuit.private(5)
    circuit.private(7)  # in no matrix at all
    circuit.enforce(x, y, 15)
    key = insecure_setup(circuit.matrices(), SECRETS, BELLMAN)
    assert list(key.a.wires) == [0, 1]
    assert list(key.b_g1.wires) == list(key.b_g2.wires) == [2]
    assert len(key.l.points) == 3
    assert list(key.l.points.is_infinity()) == [False, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": 0}, "secret tau: .* found 0"),
        ({"delta": BN254.r}, "secret delta: .* found 0"),
        ({"gamma": 0}, "secret gamma: .* found 0"),
        ({"tau": 1}, "secret tau: expected no root of unity"),
        (
            {"tau": BN254.root_of_unity(4)},
            "secret tau: expected no root of unity of order up to 2\\^4",
        ),
    ],
)
def test_secrets_that_give_no_key_are_refused(change: dict[str, int], message: str) -> None:
    matrices = circuits.chain(BN254, 6).matrices()
    with pytest.raises(FormatError, match=message):
        insecure_setup(matrices, dataclasses.replace(SECRETS, **change))


def test_c_is_needed() -> None:
    matrices = dataclasses.replace(circuits.cubic(BN254).matrices(), c=None)
    with pytest.raises(CircuitError, match=r"no C .*take the \.r1cs"):
        insecure_setup(matrices, SECRETS)
    with pytest.raises(FormatError, match="recipe: expected snarkjs or bellman, found 'plonk'"):
        insecure_setup(circuits.cubic(BN254).matrices(), SECRETS, "plonk")


def test_drawn_secrets_differ_and_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Secrets.drawn(BN254), Secrets.drawn(BN254)
    assert len({first.tau, first.alpha, first.beta, first.delta, second.tau, second.delta}) == 6
    assert str(first.tau) not in repr(first)
    limits: list[int] = []

    def largest(limit: int) -> int:
        limits.append(limit)
        return limit - 1

    monkeypatch.setattr("secrets.randbelow", largest)
    assert random_scalar(BN254) == BN254.r - 1
    monkeypatch.setattr("secrets.randbelow", lambda _: 0)
    assert random_scalar(BN254) == 1
    assert limits == [BN254.r - 1]
