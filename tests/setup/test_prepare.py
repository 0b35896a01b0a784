"""A prepared key makes the very proofs of the bellman key it came from, with four transforms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from circuits import chain, cubic, tangle
from cuzk.backends import Buffer
from cuzk.backends.cpu import CpuBackend
from cuzk.circuit import Circuit
from cuzk.curves import BLS12_381, BN254, TOY, Curve
from cuzk.errors import CircuitError, ProofError
from cuzk.groth16 import BELLMAN, PREPARED, SNARKJS
from cuzk.prover import prove, reside
from cuzk.prover.session import Prover
from cuzk.setup import Secrets, insecure_setup, prepare
from cuzk.vectors import Scalars
from cuzk.verifier import verify

SECRETS = Secrets(tau=0xACE, alpha=0xBEE, beta=0xCAFE, delta=0xD00D, gamma=0xFADE)


class CountingBackend(CpuBackend):
    transforms = 0

    def ntt(self, values: Buffer, root: int, *, inverse: bool = False, shift: int = 1) -> Buffer:
        self.transforms += 1
        return super().ntt(values, root, inverse=inverse, shift=shift)


def public_in_c(curve: Curve) -> Circuit:
    """Public wires and the constant stand in C: their N_i have no slot in L."""
    circuit = Circuit(curve)
    out, also = circuit.public(35), circuit.public(6)
    x = circuit.private(3)
    square = circuit.product(x, x)
    circuit.enforce(square, x, out - x - 5)
    circuit.enforce(x, 2, also)
    circuit.enforce(also, 1, also)
    return circuit


@pytest.mark.parametrize(
    "make", [cubic, public_in_c, lambda c: chain(c, 13), lambda c: tangle(c, 5)]
)
def test_same_proof_with_four_transforms(curve: Curve, make: object) -> None:
    circuit: Circuit = make(curve)  # type: ignore[operator]
    matrices, witness = circuit.matrices(), circuit.witness()
    key = insecure_setup(matrices, SECRETS, BELLMAN)
    prepared = prepare(key, matrices, threads=2)
    assert prepared.recipe == PREPARED
    assert prepared.digest == key.digest
    made = []
    for each, transforms in ((key, 6), (prepared, 4)):
        backend = CountingBackend(curve, threads=2)
        proof = prove(reside(each, matrices, backend), witness, backend, r=1234, s=5678)
        assert backend.transforms == transforms
        made.append([part.affine() for part in (proof.a, proof.b, proof.c)])
    assert made[0] == made[1]
    with Prover(prepared, circuit=matrices) as prover:
        result = prover.prove(witness)
    assert verify(key.vk, result.public, result.proof)


def test_a_broken_witness_is_withheld() -> None:
    circuit = cubic(BN254)
    matrices = circuit.matrices()
    prepared = prepare(insecure_setup(matrices, SECRETS, BELLMAN), matrices)
    values = circuit.witness().ints()
    wrong = Scalars.from_ints(BN254, [*values[:-1], values[-1] ^ 1])
    without_c = replace(matrices, c=None)
    with Prover(prepared, circuit=without_c) as prover, pytest.raises(ProofError):
        prover.prove(wrong)


def test_only_bellman_keys_with_their_circuit() -> None:
    matrices = cubic(BN254).matrices()
    key = insecure_setup(matrices, SECRETS, SNARKJS)
    with pytest.raises(CircuitError, match="expected a key with powers of tau"):
        prepare(key, matrices)
    toy = cubic(TOY).matrices()
    with pytest.raises(CircuitError, match=f"on {TOY.title}"):
        prepare(insecure_setup(toy, SECRETS, BELLMAN), toy)
    key = insecure_setup(matrices, SECRETS, BELLMAN)
    with pytest.raises(CircuitError, match="its own circuit"):
        prepare(key, chain(BN254, 9).matrices())
    with pytest.raises(CircuitError, match="found no C"):
        prepare(key, replace(matrices, c=None))
    bls = insecure_setup(cubic(BLS12_381).matrices(), SECRETS, BELLMAN)
    with pytest.raises(CircuitError, match="BN254"):
        prepare(bls, matrices)
