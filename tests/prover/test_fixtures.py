"""Proofs with keys of other projects' ceremonies, made from their witnesses."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.errors import UnsatisfiedError
from cuzk.load import (
    load_circuit,
    load_key,
    load_proof,
    load_public,
    load_verifying_key,
    load_witness,
)
from cuzk.prover.session import Prover
from cuzk.vectors import Scalars
from cuzk.verifier import verify

# folder, key, witness, circuit, verifying key, insecure (delta is known)
CASES = [
    ("co-snarks/bn254/multiplier2", "circuit.zkey", "witness.wtns", "circuit.r1cs", True, False),
    (
        "co-snarks/bls12_381/multiplier2",
        "circuit.zkey",
        "witness.wtns",
        "circuit.r1cs",
        True,
        False,
    ),
    ("co-snarks/bn254/poseidon", "circuit.zkey", "witness.wtns", "circuit.r1cs", True, True),
    ("co-snarks/bls12_381/poseidon", "circuit.zkey", "witness.wtns", "circuit.r1cs", True, False),
    ("co-snarks/bls12_381/kyc", "kyc.zkey", "witness.wtns", "kyc.r1cs", True, False),
    ("rapidsnark", "circuit_final.zkey", "witness.wtns", "", True, False),
    ("groth16-zorch", "multiplier_3.zkey", "multiplier_3.wtns", "", False, False),
]
IDS = [case[0] for case in CASES]


@pytest.mark.parametrize(
    ("folder", "key", "witness", "circuit", "has_vk", "insecure"), CASES, ids=IDS
)
def test_proofs_with_their_keys(
    fixtures: Path, folder: str, key: str, witness: str, circuit: str, has_vk: bool, insecure: bool
) -> None:
    at = fixtures / folder
    file = at / "verification_key.json" if has_vk else at / key
    vk = load_verifying_key(file, insecure_key=insecure)
    values = load_witness(at / witness)
    with Prover(
        at / key, circuit=at / circuit if circuit else None, insecure_key=insecure
    ) as prover:
        result = prover.prove(values)
    assert result.report.retries == 0
    assert result.public == values[1 : vk.public + 1].ints()
    assert verify(vk, result.public, result.proof, insecure_key=insecure)


def test_all_wires_public(fixtures: Path) -> None:
    """An empty C section, every B point infinity, six of seven wires public; the witness is made here."""
    at = fixtures / "co-snarks/bn254/sum_arrays"
    circuit = load_circuit(at / "sum_arrays.r1cs")
    key = load_key(at / "sum_arrays.zkey")
    assert key.b_g2.points.is_infinity().all()
    # outputs are sums of inputs: solve row by row from inputs 1, 2, 3, ...
    assert circuit.c is not None
    values = solve(
        circuit.wires, [circuit.c.row(i) for i in range(circuit.constraints)], key.curve.r
    )
    with Prover(key, circuit=circuit) as prover:
        result = prover.prove(Scalars.from_ints(key.curve, values))
    assert verify(load_verifying_key(at / "verification_key.json"), result.public, result.proof)


def solve(wires: int, rows: list[list[tuple[int, int]]], r: int) -> list[int]:
    """Values of a linear system sum c w = 0 where each row's lowest wire is an output with coefficient +-1."""
    values = [1, *range(11, 10 + wires)]
    for row in rows:
        output = min(wire for _, wire in row)
        factor = next(c for c, wire in row if wire == output)
        rest = sum(c * values[wire] for c, wire in row if wire != output)
        values[output] = -rest * pow(factor, -1, r) % r
    return values


@pytest.mark.parametrize(("folder", "proof", "public"), [
    ("co-snarks/bn254/multiplier2", "circom.proof", "public.json"),
    ("co-snarks/bls12_381/multiplier2", "circom.proof", "public.json"),
    ("co-snarks/bls12_381/poseidon", "circom.proof", "public.json"),
])  # fmt: skip
def test_our_statement_is_theirs(fixtures: Path, folder: str, proof: str, public: str) -> None:
    """Their proof and ours are of the same public signals."""
    at = fixtures / folder
    vk = load_verifying_key(at / "verification_key.json")
    theirs = load_public(at / public, vk.curve)
    assert verify(vk, theirs, load_proof(at / proof, vk.curve))
    with Prover(at / "circuit.zkey") as prover:
        ours = prover.prove(at / "witness.wtns")
    assert ours.public == theirs


def test_false_witness_names_the_constraint(fixtures: Path) -> None:
    at = fixtures / "co-snarks/bn254/poseidon"
    witness = load_witness(at / "witness.wtns")
    values = witness.ints()
    values[100] += 1
    with (
        Prover(at / "circuit.zkey", circuit=at / "circuit.r1cs", insecure_key=True) as prover,
        pytest.raises(UnsatisfiedError, match=r"constraint 40 of 213 is not satisfied: .*w\[100\]"),
    ):
        prover.prove(Scalars.from_ints(witness.curve, values))
