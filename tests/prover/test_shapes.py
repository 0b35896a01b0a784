"""Circuits of every shape through setup, proof and verification, on both curves and with both recipes."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from circuits import chain, tangle
from cuzk.circuit import Circuit
from cuzk.curves import BLS12_381, Curve
from cuzk.errors import ProofError
from cuzk.formats.snarkjs_json import public_json
from cuzk.groth16 import BELLMAN, SNARKJS, ProvingKey
from cuzk.prover.session import Prover, Result
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.setup import Secrets, insecure_setup
from cuzk.verifier import Verifier, verify

SECRETS = Secrets(tau=0xACE, alpha=0xBEE, beta=0xCAFE, delta=0xD00D, gamma=0xFADE)
RECIPES = [SNARKJS, BELLMAN]


def key_for(circuit: Circuit, recipe: str = SNARKJS) -> ProvingKey:
    """As from a file: C is not part of it."""
    matrices = circuit.matrices()
    key = insecure_setup(matrices, SECRETS, recipe, threads=2)
    return replace(key, matrices=replace(matrices, c=None))


def proved(circuit: Circuit, recipe: str = SNARKJS) -> Result:
    """Made, verified by the prover, verified again here, and refused for other public signals."""
    key = key_for(circuit, recipe)
    with Prover(key, threads=2) as prover:
        result = prover.prove(circuit.witness())
    assert result.public == circuit.public_values()
    assert verify(key.vk, result.public, result.proof)
    if result.public:
        wrong = [*result.public[:-1], (result.public[-1] + 1) % circuit.curve.r]
        assert not verify(key.vk, wrong, result.proof)
    return result


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_public_signal(curve: Curve, recipe: str) -> None:
    circuit = Circuit(curve)
    x = circuit.private(6)
    circuit.enforce(x, x - 5, 6)
    assert proved(circuit, recipe).public == []


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_private_wire(curve: Curve, recipe: str) -> None:
    """out = a b, all public: L is empty."""
    circuit = Circuit(curve)
    out, a, b = (circuit.public(v) for v in (42, 6, 7))
    circuit.enforce(a, b, out)
    assert len(key_for(circuit, recipe).l.points) == 0
    proved(circuit, recipe)


@pytest.mark.parametrize("recipe", RECIPES)
def test_b_without_terms(curve: Curve, recipe: str) -> None:
    """Every B point is infinity: a linear circuit written as (a) * () = ()."""
    circuit = Circuit(curve)
    out, a = circuit.public(5), circuit.public(5)
    circuit.enforce(out - a, 0, 0)
    key = key_for(circuit, recipe)
    assert key.b_g2.points.is_infinity().all()
    proved(circuit, recipe)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("public", [0, 1, 3])
def test_no_constraint(curve: Curve, recipe: str, public: int) -> None:
    circuit = Circuit(curve)
    for value in range(public):
        circuit.public(value)
    assert proved(circuit, recipe).report.constraints == 0


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("rows", sorted({2**k + d for k in range(2, 13) for d in (-1, 0, 1)}))
def test_fill_levels(curve: Curve, recipe: str, rows: int) -> None:
    """constraints + public + 1 just below, at and above a power of two."""
    result = proved(chain(curve, rows - 2), recipe)
    assert result.report.domain == 1 << (rows - 1).bit_length()


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize(("domain", "constraints", "public"), [
    (1, 0, 0), (2, 1, 0), (2, 0, 1), (4, 2, 1), (8, 5, 2), (16, 12, 3),
])  # fmt: skip
def test_small_domains(
    curve: Curve, recipe: str, domain: int, constraints: int, public: int
) -> None:
    circuit = chain(curve, constraints, public) if constraints else Circuit(curve)
    for value in range(public if not constraints else 0):
        circuit.public(value)
    begin = time.process_time()
    result = proved(circuit, recipe)
    assert result.report.domain == domain
    assert time.process_time() - begin < 0.5, "of processors, setup and verification too: 0.02"


@pytest.mark.parametrize(
    "curve", ["bn254", pytest.param("bls12_381", marks=pytest.mark.slow)], indirect=True
)
def test_very_many_outputs(curve: Curve) -> None:
    count = 100_000
    circuit = Circuit(curve)
    outputs = [circuit.public(i) for i in range(count)]
    x = circuit.private(3)
    circuit.enforce(x, x, outputs[9])
    circuit.enforce(outputs[100], outputs[50], outputs[5000])
    key = key_for(circuit)
    with Prover(key) as prover:
        result = prover.prove(circuit.witness())
    assert result.public == list(range(count))
    assert json.loads(public_json(result.public)) == [str(i) for i in range(count)]
    start = time.process_time()
    verifier = Verifier(key.vk)
    assert verifier.verify(result.public, result.proof)
    assert time.process_time() - start < 10
    assert not verifier.verify([*result.public[:-1], 0], result.proof)


@pytest.mark.parametrize("recipe", RECIPES)
def test_repeated_and_empty_constraints(curve: Curve, recipe: str) -> None:
    circuit = Circuit(curve)
    out = circuit.public(9)
    x = circuit.private(3)
    for _ in range(1000):
        circuit.enforce(x, x, out)
    circuit.enforce(0, 0, 0)
    proved(circuit, recipe)


@pytest.mark.parametrize("recipe", RECIPES)
def test_edge_values_of_public_signals(curve: Curve, recipe: str) -> None:
    circuit = Circuit(curve)
    zero, one, top, again = (circuit.public(v) for v in (0, 1, -1, -1))
    product = circuit.product(top, again)
    circuit.enforce(product + zero, one, 1)
    assert proved(circuit, recipe).public == [0, 1, curve.r - 1, curve.r - 1]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("seed", range(8))
def test_random_circuits(curve: Curve, recipe: str, seed: int) -> None:
    proved(tangle(curve, seed), recipe)


def negated_first(matrix: SparseMatrix) -> SparseMatrix:
    numbers = matrix.coefficients.copy()
    numbers[0] ^= 1  # +1 and -1 are numbers 0 and 1
    return replace(matrix, coefficients=numbers)


def without_first(matrix: SparseMatrix) -> SparseMatrix:
    """Row 0 loses its first term."""
    row_ptr = matrix.row_ptr.copy()
    row_ptr[1:] -= np.uint64(1)
    return replace(
        matrix, row_ptr=row_ptr, wires=matrix.wires[1:], coefficients=matrix.coefficients[1:]
    )


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("change", [negated_first, without_first])
@pytest.mark.parametrize("name", ["a", "b"])
def test_wrong_coefficient_is_caught(curve: Curve, recipe: str, change, name: str) -> None:  # type: ignore[no-untyped-def]
    """The negative control: a prover that evaluates another matrix makes no valid proof."""
    circuit = chain(curve, 5)
    key = key_for(circuit, recipe)
    own = key.matrices
    assert isinstance(own, Matrices)
    wrong = replace(own, **{name: change(getattr(own, name))})
    with (
        Prover(replace(key, matrices=wrong), threads=1) as prover,
        pytest.raises(ProofError, match="withheld"),
    ):
        prover.prove(circuit.witness())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_on_a_circuit_of_some_size(threads: int) -> None:
    """Enough rows that work is split: equal bytes with r = s = 0."""
    circuit = chain(BLS12_381, 3000)
    key = insecure_setup(circuit.matrices(), SECRETS, SNARKJS, threads=2)
    proofs = []
    for count in (1, threads):
        with Prover(key, threads=count) as prover:
            proofs.append(prover.prove_insecure(circuit.witness(), 0, 0).proof)
    for name in ("a", "b", "c"):
        first, second = (getattr(proof, name).words for proof in proofs)
        assert np.array_equal(first, second)
