"""Whole proofs: the CPU's equal the reference's to the last bit, for equal r and s."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from circuits import chain, cubic
from cuzk.backends.cpu import CpuBackend
from cuzk.circuit import Circuit
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.groth16 import BELLMAN, SNARKJS, Proof, ProvingKey
from cuzk.prover import prove, reside
from cuzk.vectors import Affine
from independent import accepts
from reference import ReferenceBackend
from reference_setup import key_from

RECIPES = [SNARKJS, BELLMAN]


def mixed(curve: Curve) -> Circuit:
    """Two public signals, a wire in no constraint, a wire twice in one combination, a constant B."""
    circuit = Circuit(curve)
    out = circuit.public(curve.r - 1)
    x = circuit.private(7)
    circuit.private(123456789)  # used nowhere
    two = circuit.public(49 * 3 + 1)
    square = circuit.product(x, x)
    circuit.enforce(square + square + square + 1, 1, two)
    circuit.enforce(out, out, 1)
    circuit.enforce(0, 0, 0)
    return circuit


def five(curve: Curve) -> Circuit:
    return chain(curve, 5)


CIRCUITS: dict[str, Callable[[Curve], Circuit]] = {"cubic": cubic, "mixed": mixed, "five": five}


@cache
def key_of(curve: Curve, name: str, recipe: str) -> ProvingKey:
    return key_from(CIRCUITS[name](curve).matrices(), recipe=recipe)


@cache
def reference_proof(curve: Curve, name: str, recipe: str, r: int, s: int) -> Proof:
    key, backend = key_of(curve, name, recipe), ReferenceBackend(curve)
    circuit = CIRCUITS[name](curve)
    return prove(reside(key, circuit.matrices(), backend), circuit.witness(), backend, r, s)


def coordinates(proof: Proof) -> tuple[Affine, Affine, Affine]:
    return proof.a.affine(), proof.b.affine(), proof.c.affine()


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize(("r", "s"), [(0, 0), (2**200 + 17, 2**240 + 99)])
def test_cpu_equals_reference(
    curve: Curve, arithmetic: str, recipe: str, name: str, r: int, s: int
) -> None:
    key, circuit = key_of(curve, name, recipe), CIRCUITS[name](curve)
    backend = CpuBackend(curve, threads=2)
    proof = prove(reside(key, circuit.matrices(), backend), circuit.witness(), backend, r, s)
    assert coordinates(proof) == coordinates(reference_proof(curve, name, recipe, r, s)), arithmetic


@pytest.mark.parametrize(("curve_", "recipe"), [(BN254, SNARKJS), (BLS12_381, BELLMAN)])
def test_another_implementation_accepts(curve_: Curve, recipe: str) -> None:
    key, circuit = key_of(curve_, "mixed", recipe), mixed(curve_)
    backend = CpuBackend(curve_, threads=1)
    proof = prove(reside(key, circuit.matrices(), backend), circuit.witness(), backend, 12, 34)
    first, second = circuit.public_values()
    assert accepts(key.vk, [first, second], proof)
    assert not accepts(key.vk, [first, second + 1], proof)
