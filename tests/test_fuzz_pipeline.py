"""Damaged files through the whole way: a key is loaded and proves, a proof is read and verified.

Only CuzkError may escape; what comes out verifies under the key's own verifying part; and no statement that
was changed is ever valid.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cuzk
from circuits import chain
from cuzk.circuit import Circuit
from cuzk.curves import BLS12_381, Curve
from cuzk.errors import CuzkError
from cuzk.formats.bellman import params_chunks
from cuzk.formats.iden3.frame import frame_chunks, read_frame
from cuzk.formats.iden3.r1cs import write_r1cs
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.formats.snarkjs_json import proof_json, public_json, verification_key_json
from cuzk.formats.source import Source
from cuzk.groth16 import BELLMAN, Proof, VerifyingKey
from cuzk.setup import Secrets, insecure_setup
from cuzk.verifier import verify

FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SECRETS = Secrets(tau=1234577, alpha=271, beta=314159, delta=1618)


def circuit_of(curve: Curve) -> Circuit:
    return chain(curve, 5, public=2)


@cache
def files_of(curve: Curve) -> dict[str, bytes]:
    """A key in both formats, its circuit and witness, and a statement in JSON."""
    circuit = circuit_of(curve)
    key = insecure_setup(circuit.matrices(), SECRETS)
    with TemporaryDirectory() as folder:
        paths = {kind: Path(folder) / f"it.{kind}" for kind in ("zkey", "r1cs", "wtns")}
        write_zkey(paths["zkey"], key)
        write_r1cs(paths["r1cs"], circuit.matrices())
        write_wtns(paths["wtns"], circuit.witness())
        files = {kind: path.read_bytes() for kind, path in paths.items()}
    if curve is BLS12_381:
        bellman = insecure_setup(circuit.matrices(), SECRETS, BELLMAN)
        files["params"] = b"".join(params_chunks(bellman))
    with cuzk.Prover(key) as prover:
        result = prover.prove(circuit.witness())
    files["vk.json"] = verification_key_json(key.vk)
    files["public.json"] = public_json(result.public)
    files["proof.json"] = proof_json(result.proof)
    return files


def damaged(data: bytes, rng: Random) -> bytes:
    """One to three accidents or tricks: bits, counts, pieces copied, sections swapped, ends cut."""
    content = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(content))
        match rng.randrange(7):
            case 0:
                content[at] ^= 1 << rng.randrange(8)
            case 1:
                value = rng.choice([0, 1, 2, 3, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
                content[at : at + 4] = value.to_bytes(4, rng.choice(["little", "big"]))
            case 2:
                size, start = rng.choice([4, 32, 48, 64, 96, 128]), rng.randrange(len(content))
                content[at : at + size] = content[start : start + size]
            case 3:
                content[at : at + 32] = bytes([rng.choice([0, 255])]) * 32
            case 4:
                del content[at : at + rng.choice([1, 4, 12, 64])]
            case 5:
                content[at:at] = rng.randbytes(rng.choice([1, 4, 12, 64]))
            case 6:
                content = bytearray(resorted(bytes(content), rng))
        if not content:
            break
    return bytes(content)


def resorted(data: bytes, rng: Random) -> bytes:
    """The sections of an iden3 file under each other's numbers, or the file unchanged."""
    kind = data[:4].decode("latin-1")
    try:
        table = read_frame(Source.open(data), kind, (1, 2), {}).table
    except CuzkError:
        return data
    numbers = list(table)
    if len(numbers) < 2:
        return data
    i, j = rng.sample(range(len(numbers)), 2)
    numbers[i], numbers[j] = numbers[j], numbers[i]
    contents = [[data[at : at + size]] for at, size in table.values()]
    pairs = list(zip(numbers, contents, strict=True))
    return b"".join(frame_chunks(kind, data[4], pairs))


def prove_with(curve: Curve, kind: str, rng: Random) -> None:
    files = dict(files_of(curve))
    kinds = rng.choice([[kind], [kind], [kind, "wtns"], [kind, "r1cs"], ["wtns"], ["r1cs"]])
    for name in kinds:
        files[name] = damaged(files[name], rng)
    circuit = files["r1cs"] if kind == "params" or rng.random() < 0.3 else None
    try:
        with cuzk.Prover(files[kind], circuit=circuit, insecure_key=True, threads=1) as prover:
            result = prover.prove(files["wtns"])
            vk = prover.key.vk
    except CuzkError:
        return
    assert verify(vk, result.public, result.proof, insecure_key=True)
    assert result.public == cuzk.load_witness(files["wtns"])[1 : vk.public + 1].ints()


def same_statement(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return bytes_of(a) == bytes_of(b)


def bytes_of(statement: tuple[VerifyingKey, list[int], Proof]) -> list[Any]:
    vk, public, proof = statement
    points = (vk.alpha_g1, vk.beta_g2, vk.gamma_g2, vk.delta_g2, vk.ic, proof.a, proof.b, proof.c)
    return [public, *(p.words.tobytes() for p in points)]


def load(files: dict[str, bytes], curve: Curve) -> tuple[VerifyingKey, list[int], Proof]:
    vk = cuzk.load_verifying_key(files["vk.json"], insecure_key=True)
    return vk, cuzk.load_public(files["public.json"], curve), cuzk.load_proof(files["proof.json"], curve)  # fmt: skip


def numbers_of(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every number's text."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        found: list[tuple[Any, Any]] = []
        for key, item in pairs:
            is_number = isinstance(item, str) and item.isdigit()
            found += [(value, key)] if is_number else numbers_of(item)
        return found
    return []


def changed_json(data: bytes, curve: Curve, rng: Random) -> bytes:
    """Another number or structure at one place of the value."""
    value = json.loads(data)
    places = numbers_of(value)
    container, key = rng.choice(places)
    number = int(container[key])
    other_container, other_key = rng.choice(places)
    p, r = curve.p, curve.r
    match rng.randrange(6):
        case 0:
            arithmetic = [number + 1, number + r, number + p, -number % p, -number % r, 0, 1, p, r]
            container[key] = str(rng.choice(arithmetic))
        case 1:
            container[key] = number if rng.random() < 0.5 else hex(number)
        case 2:
            container[key], other_container[other_key] = other_container[other_key], container[key]
        case 3:
            container[key] = rng.choice([None, True, -number, number + 0.5, [], {}, "", "01", " 1"])
        case 4:
            points = [k for k in value if k[:3] in ("pi_", "vk_", "IC")] if isinstance(value, dict) else []  # fmt: skip
            if len(points) > 1:
                i, j = rng.sample(points, 2)
                value[i] = copy.deepcopy(value[j])
        case 5:
            return damaged(data, rng)
    return json.dumps(value).encode()


def verify_with(curve: Curve, rng: Random) -> None:
    files = dict(files_of(curve))
    original = load(files, curve)
    name = rng.choice(["vk.json", "public.json", "proof.json"])
    files[name] = changed_json(files[name], curve, rng)
    try:
        statement = load(files, curve)
        valid = verify(*statement, insecure_key=True)
    except CuzkError:
        return
    assert valid == same_statement(statement, original)


@FUZZ
@given(seed=st.integers(0, 2**64))
@pytest.mark.parametrize("kind", ["zkey", "params"])
def test_keys_circuits_and_witnesses(curve: Curve, kind: str, seed: int) -> None:
    prove_with(curve if kind == "zkey" else BLS12_381, kind, Random(seed))


@FUZZ
@given(seed=st.integers(0, 2**64))
def test_statements(curve: Curve, seed: int) -> None:
    verify_with(curve, Random(seed))


def test_the_undamaged_files_are_good(curve: Curve) -> None:
    files = files_of(curve)
    assert verify(*load(files, curve), insecure_key=True)
    with cuzk.Prover(files["zkey"], circuit=files["r1cs"], insecure_key=True) as prover:
        assert prover.prove(files["wtns"]).public == circuit_of(curve).public_values()
