"""Damaged JSON, keys and proof bytes: every reader answers with an object or a CuzkError, soon, without much memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import exchange_files as files
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from circuits import cubic
from cuzk.backends.cpu import CpuBackend
from cuzk.curves import BLS12_381, CURVES
from cuzk.errors import CuzkError
from cuzk.formats import bellman, snarkjs_json
from cuzk.formats.solidity import export_calldata, export_solidity
from cuzk.formats.source import Source
from cuzk.groth16 import BELLMAN, Proof
from cuzk.prover import prove, reside
from cuzk.verifier import Verifier
from reference import ReferenceBackend

MATRICES = cubic(BLS12_381).matrices()


def use_proof(data: bytes) -> None:
    proof = snarkjs_json.read_proof(data)
    again = snarkjs_json.read_proof(snarkjs_json.proof_json(proof))
    assert [p.affine() for p in (again.a, again.b, again.c)] == [
        p.affine() for p in (proof.a, proof.b, proof.c)
    ]
    if proof.curve.name == "bn254":
        export_calldata(proof, [])


def use_public(data: bytes) -> None:
    for curve in (CURVES["bn254"], CURVES["bls12_381"]):
        values = snarkjs_json.read_public(data, curve)
        assert all(0 <= value < curve.r for value in values)
        assert snarkjs_json.read_public(snarkjs_json.public_json(values), curve) == values


def use_vk(data: bytes) -> None:
    vk = snarkjs_json.read_verification_key(data)
    assert vk.public == len(vk.ic) - 1
    snarkjs_json.read_verification_key(snarkjs_json.verification_key_json(vk))
    if vk.curve.name == "bn254":
        export_solidity(vk)


def use_params(data: bytes) -> None:
    layout = bellman.read_params_layout(Source.open(data))
    assert layout.trailing_bytes >= 0
    key = bellman.read_params(Source.open(data), MATRICES)
    assert len(key.h) == (1 << key.log_domain) - 1
    for query in (key.a, key.b_g1, key.b_g2, key.l):
        assert len(query.points) == len(query.wires)


def use_params_in_full(data: bytes) -> None:
    bellman.read_params(Source.open(data), MATRICES, full=True)


def use_bellman_vk(data: bytes) -> None:
    assert bellman.read_vk(data).public >= 0


def use_proof_bytes(data: bytes) -> None:
    assert bellman.write_proof_bytes(bellman.read_proof_bytes(data)) == data


USES: dict[str, Callable[[bytes], None]] = {
    "bn254.proof.json": use_proof,
    "bls12_381.proof.json": use_proof,
    "bn254.public.json": use_public,
    "bn254.vk.json": use_vk,
    "bls12_381.vk.json": use_vk,
    "cubic.params": use_params,
    "cubic.vk": use_bellman_vk,
    "cubic.proof": use_proof_bytes,
}
MOST_MEMORY = 1 << 20
PER_BYTE = 40  # an empty object of JSON is 2 bytes of text and 64 of memory


def survives(use: Callable[[bytes], None], data: bytes) -> None:
    message = ""
    tracemalloc.start()
    try:
        use(data)
    except CuzkError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert "\n" not in message
    assert len(message) < 1000
    assert peak < MOST_MEMORY + PER_BYTE * len(data)


QUICK = settings(
    max_examples=60, deadline=2000, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
COUNTS = [0, 1, 2, 7, 8, 2**16, 2**24, 2**26, 2**28 + 1, 2**31, 2**32 - 1]
TOKENS = [b"[", b"]", b"{", b"}", b",", b":", b'"', b"0", b"1e9", b"-", b"null", b"\\u0000", b"\xff", b"\0", b"9" * 5000]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    data = files.corpus(name)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.sampled_from(["flip", "cut", "grow", "drop", "count", "token", "copy"])):
            case "flip":
                data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
            case "cut":
                data = data[:at]
            case "grow":
                data = data[:at] + draw(st.binary(min_size=1, max_size=64)) + data[at:]
            case "drop":
                data = data[:at] + data[at + draw(st.integers(1, 200)) :]
            case "count":
                new = draw(st.sampled_from(COUNTS)).to_bytes(4, "big")
                near = draw(st.sampled_from([at, 864, 1060, len(data) - 4]))
                data = data[:near] + new + data[near + 4 :]
            case "token":
                data = data[:at] + draw(st.sampled_from(TOKENS)) + data[at:]
            case _:
                data = data[:at] + data[at // 2 :]
    return data


@pytest.mark.parametrize("name", USES)
def test_damaged_files_never_do_worse_than_an_error(name: str) -> None:
    @QUICK
    @given(damaged(name))
    def check(data: bytes) -> None:
        survives(USES[name], data)

    check()


@settings(QUICK, max_examples=25)
@given(damaged("cubic.params"))
def test_damaged_params_in_full(data: bytes) -> None:
    survives(use_params_in_full, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", USES)
def test_damaged_files_for_longer(name: str) -> None:
    @settings(QUICK, max_examples=10_000, derandomize=False)
    @given(damaged(name))
    def check(data: bytes) -> None:
        survives(USES[name], data)

    check()


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(2**250, 2**400),
    st.floats(),
    st.text(max_size=20),
    st.integers(-5, 2**400).map(str),
    st.integers(0, 2**400).map(hex),
    st.sampled_from(["bn128", "groth16", "plonk", "1", "0", "01", "٣", "\ud800", "1" * 300]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value, the value itself first."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(p for key, child in inner for p in places(child, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("name", [name for name in USES if name.endswith(".json")])
def test_any_value_at_any_place_of_the_json(name: str) -> None:
    value = json.loads(files.corpus(name))
    everywhere = places(value)

    @settings(QUICK, max_examples=60)
    @given(st.sampled_from(everywhere), VALUES)
    def check(path: tuple[Any, ...], new: Any) -> None:
        survives(USES[name], json.dumps(replaced(value, path, new)).encode())

    check()


@settings(QUICK, max_examples=60)
@given(st.sampled_from(sorted(USES)), st.binary(max_size=300))
def test_bytes_of_any_kind(name: str, data: bytes) -> None:
    survives(USES[name], data)


@pytest.mark.parametrize("unit", [b"[],", b"{},", b'"",', b"0,", b'{"a":0},', b"[[[[[[[[]]]]]]]],"])
def test_memory_of_hostile_json_is_bounded(unit: bytes) -> None:
    def read(data: bytes) -> None:
        snarkjs_json.read_public(data, BLS12_381)

    survives(read, b"[" + unit * 50_000 + b"0]")


@pytest.mark.parametrize("name", USES)
def test_the_corpus_is_read(name: str) -> None:
    USES[name](files.corpus(name))


def test_the_corpus_is_what_the_writers_write() -> None:
    for name, content in files.contents().items():
        assert files.corpus(name) == content, name


@pytest.mark.parametrize("name", ["bn254", "bls12_381"])
def test_the_corpus_verifies(name: str) -> None:
    vk = snarkjs_json.read_verification_key(files.corpus(f"{name}.vk.json"))
    public = snarkjs_json.read_public(files.corpus(f"{name}.public.json"), vk.curve)
    proof = snarkjs_json.read_proof(files.corpus(f"{name}.proof.json"), vk.curve)
    verifier = Verifier(vk)
    assert verifier.check(public, proof) == ""
    assert verifier.check([public[0] + 1], proof) != ""
    swapped = Proof(proof.c, proof.b, proof.a)
    assert verifier.check(public, swapped) != ""


@pytest.mark.parametrize("backend", [ReferenceBackend(BLS12_381), CpuBackend(BLS12_381, 2)])
def test_a_key_read_from_params_proves(backend: Any) -> None:
    """The wires come from the circuit's columns and the recipe is bellman's: the proof verifies under the .vk."""
    key = bellman.read_params(Source.open(files.corpus("cubic.params")), MATRICES, full=True)
    assert key.recipe == BELLMAN
    circuit = cubic(BLS12_381)
    proof = prove(reside(key, MATRICES, backend), circuit.witness(), backend, *files.BLINDING)
    assert bellman.write_proof_bytes(proof) == files.corpus("cubic.proof")
    verifier = Verifier(bellman.read_vk(files.corpus("cubic.vk")))
    assert verifier.check(circuit.public_values(), proof) == ""
    assert verifier.check([1], proof) != ""
