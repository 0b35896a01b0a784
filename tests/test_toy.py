"""Whole proofs on TOY, where a point is its discrete logarithm: checked with Python integers.

The expected A, B, C come from the paper's equations with tau, alpha, beta, delta, r and s in hand; the
quotient's value at tau is found by division, not by transforms.
"""

from __future__ import annotations

import pytest

from circuits import chain, cubic, tangle
from cuzk.circuit import Circuit
from cuzk.curves import TOY
from cuzk.groth16 import BELLMAN, SNARKJS, Proof
from cuzk.prover import prove, reside
from reference import ReferenceBackend
from reference_setup import TOXIC, columns_at, key_from, lagrange_at

R = TOY.r


def proof_of(circuit: Circuit, recipe: str, r: int, s: int) -> Proof:
    matrices = circuit.matrices()
    backend = ReferenceBackend(TOY)
    resident = reside(key_from(matrices, recipe=recipe), matrices, backend)
    return prove(resident, circuit.witness(), backend, r, s)


def logs(proof: Proof) -> tuple[int, ...]:
    return tuple((p.affine() or (0,))[0] for p in (proof.a, proof.b, proof.c))


def by_hand(circuit: Circuit, r: int, s: int) -> tuple[int, int, int]:
    """A, B, C from the paper's formulas."""
    m, w, t = circuit.matrices(), circuit.witness().ints(), TOXIC
    n = 1 << m.log_domain
    root = TOY.root_of_unity(m.log_domain)
    basis = lagrange_at(t.tau, [pow(root, i, R) for i in range(n)], 1, R)
    if m.c is None:
        raise ValueError
    u, v, k = (columns_at(part, m.wires, basis, R) for part in (m.a, m.b, m.c))
    a_tau, b_tau, c_tau = (sum(x * y for x, y in zip(w, p, strict=True)) % R for p in (u, v, k))
    a = (t.alpha + a_tau + r * t.delta) % R
    b = (t.beta + b_tau + s * t.delta) % R
    private = sum(
        w[i] * (t.beta * u[i] + t.alpha * v[i] + k[i]) for i in range(m.public + 1, m.wires)
    )
    # h(tau) Z(tau) = A(tau) B(tau) - C(tau), with C the product's interpolation = C w for a witness
    quotient = a_tau * b_tau - c_tau
    c = (private + quotient) * pow(t.delta, -1, R) + s * a + r * b - r * s * t.delta
    return a, b, c % R


def accepted(proof: Proof, circuit: Circuit) -> bool:
    """The pairing equation with e(a, b) = a b."""
    vk, (a, b, c) = key_from(circuit.matrices()).vk, logs(proof)
    ic = [(vk.ic.affine(i) or (0,))[0] for i in range(vk.public + 1)]
    x = sum(p * q for p, q in zip([1, *circuit.public_values()], ic, strict=True))
    right = TOXIC.alpha * TOXIC.beta + x * TOXIC.gamma + c * TOXIC.delta
    return (a * b - right) % R == 0


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
@pytest.mark.parametrize(("r", "s"), [(0, 0), (5, 0), (0, 7), (101, 64000)])
def test_cubic_by_hand(recipe: str, r: int, s: int) -> None:
    circuit = cubic(TOY)
    proof = proof_of(circuit, recipe, r, s)
    assert logs(proof) == by_hand(circuit, r, s)
    assert accepted(proof, circuit)


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
@pytest.mark.parametrize("constraints", [1, 2, 3, 6, 7, 13, 14, 15, 30])
def test_fill_levels_by_hand(recipe: str, constraints: int) -> None:
    circuit = chain(TOY, constraints)
    proof = proof_of(circuit, recipe, 9, 11)
    assert logs(proof) == by_hand(circuit, 9, 11)
    assert accepted(proof, circuit)


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
@pytest.mark.parametrize("seed", range(8))
def test_random_circuits_by_hand(recipe: str, seed: int) -> None:
    circuit = tangle(TOY, seed)
    proof = proof_of(circuit, recipe, 900 + seed, 77)
    assert logs(proof) == by_hand(circuit, 900 + seed, 77)
    assert accepted(proof, circuit)


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
def test_largest_domain_has_no_double_root(recipe: str) -> None:
    # 2^10 is all the two-adicity there is: the coset comes from another shift
    circuit = chain(TOY, 1000)
    assert circuit.matrices().log_domain == TOY.two_adicity
    proof = proof_of(circuit, recipe, 3, 4)
    assert logs(proof) == by_hand(circuit, 3, 4)


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
def test_false_witness_is_not_accepted(recipe: str) -> None:
    circuit = cubic(TOY)
    circuit._values[2] = 4
    assert not accepted(proof_of(circuit, recipe, 1, 2), circuit)


def test_blinding_changes_every_element() -> None:
    circuit = cubic(TOY)
    left, right = (logs(proof_of(circuit, SNARKJS, r, s)) for r, s in ((1, 2), (3, 4)))
    assert all(x != y for x, y in zip(left, right, strict=True))
