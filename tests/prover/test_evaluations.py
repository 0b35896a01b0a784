"""A w, B w, C w that the caller brings, made by Python integers from the circuit's rows (given.py)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from given import circuit_of, evaluations, key_of, values_of

import cuzk
from cuzk import Evaluations
from cuzk.backends.cuda import CudaBackend
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import CircuitError, CuzkError, FormatError, ProofError, UnsatisfiedError
from cuzk.groth16 import BELLMAN, PREPARED, SNARKJS
from cuzk.prover.session import Prover, Result
from cuzk.vectors import Scalars
from cuzk.verifier import verify
from emulator import EmulatedMachine
from null_backend import NullBackend, NullDevice

RECIPES = [SNARKJS, BELLMAN, PREPARED]
R, S = 1234567, 7654321


def same(one: Result, other: Result) -> bool:
    return all(
        getattr(one.proof, part).words.tobytes() == getattr(other.proof, part).words.tobytes()
        for part in "abc"
    )


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("names", ["ab", "abc"])
@pytest.mark.parametrize("with_circuit", [False, True])
def test_the_proof_is_the_same(curve: Curve, recipe: str, names: str, with_circuit: bool) -> None:
    """As the one from the witness alone, in either form, with zeros up to the domain or without."""
    key, witness = key_of(curve, recipe), circuit_of(curve).witness()
    matrices = circuit_of(curve).matrices()
    room = (1 << key.log_domain) - matrices.rows
    assert room >= 1
    circuit = matrices if with_circuit else None
    with Prover(key, circuit=circuit, device="cpu", threads=1, insecure_key=True) as prover:
        expected = prover.prove_insecure(witness, R, S)
        assert verify(key.vk, expected.public, expected.proof, insecure_key=True)
        for montgomery, spare in (("abc", 0), ("", room), ("b", 1)):
            given = evaluations(curve, names, montgomery, spare)
            found = prover.prove_insecure(witness, R, S, given)
            assert same(expected, found)
        drawn = prover.prove(witness, given)
    assert verify(key.vk, drawn.public, drawn.proof, insecure_key=True)


@pytest.mark.parametrize(("curve_", "recipe"), [(BN254, SNARKJS), (BLS12_381, BELLMAN), (BN254, PREPARED)])  # fmt: skip
def test_on_the_kernels_of_a_gpu(curve_: Curve, recipe: str) -> None:
    key, witness = key_of(curve_, recipe), circuit_of(curve_).witness()
    backend = CudaBackend(curve_, EmulatedMachine())
    with Prover(key, device=backend, insecure_key=True) as prover:
        expected = prover.prove_insecure(witness, R, S)
        for given in (evaluations(curve_), evaluations(curve_, "ab", "a", 1)):
            found = prover.prove_insecure(witness, R, S, given)
            assert same(expected, found)
            assert found.report.retries == 0


def test_the_gpu_finds_what_is_not_below_r() -> None:
    """Pinned pages and buffers are let go, the next proof is right."""
    witness, given = circuit_of(BN254).witness(), evaluations(BN254)
    words = given.b.words.copy()
    words[7] = 2**64 - 1
    wrong = replace(given, b=replace(given.b, words=words))
    key, backend = key_of(BN254), CudaBackend(BN254, EmulatedMachine())
    with Prover(key, device=backend, insecure_key=True) as prover:
        with pytest.raises(FormatError) as failure:
            prover.prove(witness, wrong)
        result = prover.prove(witness, given)
    text = "evaluations: b: value 7: expected one below r, found a larger one"
    assert str(failure.value) == text
    assert verify(key.vk, result.public, result.proof, insecure_key=True)


def test_a_comes_first() -> None:
    """So that its transform may start while b is on its way; c not at all where the key has no use for it."""
    witness, given = circuit_of(BN254).witness(), evaluations(BN254)
    for recipe, expected in ((SNARKJS, "abcw"), (PREPARED, "abw")):
        device = NullDevice()
        key, backend = key_of(BN254, recipe), NullBackend(BN254, device)
        with Prover(key, device=backend, insecure_key=True) as prover:
            prover.prove(witness, given)
        names = {id(v.words): name for name, v in given.vectors().items()} | {
            id(witness.words): "w"
        }
        assert "".join(names[id(values.words)] for values in device.staged) == expected
        verbs = [event.verb for event in device.events]
        assert "product" not in verbs
        assert verbs.count("settle") == len(expected)
        assert len(verbs) - verbs[::-1].index("stage") <= verbs.index(
            "padded"
        )  # all before any work


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_wrong_values_make_no_proof(curve: Curve, name: str) -> None:
    """The error names them as what may be wrong; without them it does not."""
    given = evaluations(curve)
    words = getattr(given, name).words.copy()
    words[2, 0] ^= np.uint64(1)
    wrong = replace(given, **{name: replace(getattr(given, name), words=words)})
    with Prover(key_of(curve), device="cpu", threads=1, insecure_key=True) as prover:
        with pytest.raises(ProofError, match="the evaluations are not those of the witness, or"):
            prover.prove(circuit_of(curve).witness(), wrong)
        assert verify(key_of(curve).vk, *proved(prover, given), insecure_key=True)
        values = circuit_of(curve).witness().ints()
        with pytest.raises(ProofError) as failure:
            prover.prove(Scalars.from_ints(curve, [*values[:-1], values[-1] + 1]))
    assert "evaluations" not in str(failure.value)


def proved(prover: Prover, given: Evaluations) -> tuple[list[int], cuzk.Proof]:
    result = prover.prove(circuit_of(prover.key.curve).witness(), given)
    return result.public, result.proof


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_wrong_values_with_a_circuit_name_the_constraint(curve: Curve, names: str) -> None:
    matrices = circuit_of(curve).matrices()
    with Prover(
        key_of(curve), circuit=matrices, device="cpu", threads=1, insecure_key=True
    ) as prover:
        for row in (0, 5, matrices.constraints - 1):
            values = values_of(curve)
            values["a"][row] += 1
            values["b"][row] = values["b"][row] or 1
            given = Evaluations(**{name: Scalars.from_ints(curve, values[name]) for name in names})
            with pytest.raises(UnsatisfiedError) as failure:
                prover.prove(circuit_of(curve).witness(), given)
            text = str(failure.value)
            assert (
                f"witness: evaluations: constraint {row} of {matrices.constraints} is not" in text
            )
        values["a"][row] -= 1
        values["c"][-1] = 1
        if names == "abc":
            given = Evaluations(**{name: Scalars.from_ints(curve, values[name]) for name in names})
            with pytest.raises(UnsatisfiedError, match=f"row {matrices.rows - 1}: expected"):
                prover.prove(circuit_of(curve).witness(), given)


def refusal(kind: type[CuzkError], given: Evaluations) -> str:
    with Prover(key_of(BN254), device="cpu", threads=1, insecure_key=True) as prover:
        with pytest.raises(kind) as failure:
            prover.prove(circuit_of(BN254).witness(), given)
        proved(prover, evaluations(BN254))
    assert "\n" not in str(failure.value)
    return str(failure.value)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_refusals(name: str) -> None:
    given, matrices = evaluations(BN254, montgomery=""), circuit_of(BN254).matrices()
    vector = getattr(given, name)
    domain = 1 << key_of(BN254).log_domain

    def changed(words: np.ndarray, curve: Curve = BN254) -> Evaluations:
        return replace(given, **{name: Scalars(curve, words)})

    short = refusal(CircuitError, changed(vector.words[: matrices.constraints]))
    assert short.startswith(f"evaluations: {name}: expected {matrices.rows} values (")
    assert short.endswith(f"found {matrices.constraints}")
    long = np.zeros((domain + 1, 4), np.uint64)
    assert f"found {domain + 1}" in refusal(CircuitError, changed(long))
    text = refusal(CircuitError, changed(vector.words, BLS12_381))
    assert text == f"evaluations: {name}: expected values of BN254's scalar field as {key_of(BN254).source} has, found BLS12-381's"  # fmt: skip
    wide = np.zeros((matrices.rows, 6), np.uint64)
    assert "expected a (n, 4) array of uint64" in refusal(FormatError, changed(wide))
    large = vector.words.copy()
    large[3] = 2**64 - 1
    text = refusal(FormatError, changed(large))
    assert text == f"evaluations: {name}: value 3: expected one below r, found a larger one"


def test_other_objects_are_refused() -> None:
    a, b = ([1] * circuit_of(BN254).matrices().rows for _ in "ab")
    text = refusal(FormatError, Evaluations(a, b))  # type: ignore[arg-type]
    assert text == "evaluations: a: expected Scalars, found list; see Scalars.from_ints"
    text = refusal(FormatError, (a, b))  # type: ignore[arg-type]
    assert text == "evaluations: expected Evaluations(a, b, c), found tuple"


def test_any_layout_of_memory() -> None:
    """Columns first, or every second row of an array."""
    given = evaluations(BN254)
    odd = Evaluations(
        replace(given.a, words=np.asfortranarray(given.a.words)),
        replace(given.b, words=np.repeat(given.b.words, 2, axis=0)[::2]),
    )
    with Prover(key_of(BN254), device="cpu", threads=1, insecure_key=True) as prover:
        assert verify(key_of(BN254).vk, *proved(prover, odd), insecure_key=True)
