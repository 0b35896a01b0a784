"""Files are told apart by content; every form of input gives the same object; known deltas are refused."""

from __future__ import annotations

import io
import mmap
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuzk
from cuzk.curves import BLS12_381, BN254
from cuzk.errors import CircuitError, FormatError, InsecureKeyError
from cuzk.load import (
    load_circuit,
    load_key,
    load_proof,
    load_public,
    load_verifying_key,
    load_witness,
)

MULTIPLIER = "co-snarks/bn254/multiplier2"


@pytest.fixture
def folder(fixtures: Path) -> Path:
    return fixtures / MULTIPLIER


def as_path(path: Path) -> Any:
    return path


def as_text(path: Path) -> Any:
    return str(path)


def as_bytes(path: Path) -> Any:
    return path.read_bytes()


def as_bytearray(path: Path) -> Any:
    return bytearray(path.read_bytes())


def as_memoryview(path: Path) -> Any:
    return memoryview(path.read_bytes())


def as_map(path: Path) -> Any:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def as_file_in_memory(path: Path) -> Any:
    return io.BytesIO(path.read_bytes())


FORMS = [as_path, as_text, as_bytes, as_bytearray, as_memoryview, as_map, as_file_in_memory]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_every_form_of_input(folder: Path, form: Callable[[Path], Any]) -> None:
    key = load_key(form(folder / "circuit.zkey"))
    assert (key.curve, key.vk.public) == (BN254, 1)
    witness = load_witness(form(folder / "witness.wtns"))
    assert witness.ints() == [1, 33, 3, 11]
    assert load_circuit(form(folder / "circuit.r1cs")).constraints == 1
    assert load_public(form(folder / "public.json"), "bn128") == [33]
    vk = load_verifying_key(form(folder / "verification_key.json"))
    proof = load_proof(form(folder / "circom.proof"), vk.curve)
    assert cuzk.verify(vk, [33], proof)


def test_open_file(folder: Path) -> None:
    with (folder / "circuit.zkey").open("rb") as file:
        key = load_key(file)
    assert key.digest == load_key(folder / "circuit.zkey").digest


def test_content_counts_not_the_name(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "circuit.zkey", tmp_path / "witness.wtns")
    assert load_key(tmp_path / "witness.wtns").vk.public == 1
    with pytest.raises(
        FormatError, match=r"^witness\.wtns: expected a \.wtns file, found a \.zkey"
    ):
        load_witness(tmp_path / "witness.wtns")


def test_a_zkey_holds_a_verifying_key(folder: Path) -> None:
    from_key = load_verifying_key(folder / "circuit.zkey")
    from_json = load_verifying_key(folder / "verification_key.json")
    for name in ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2", "ic"):
        assert np.array_equal(getattr(from_key, name).words, getattr(from_json, name).words)


@pytest.mark.parametrize(
    ("load", "file", "message"),
    [
        (load_key, "circuit.r1cs", "expected a .zkey or .params file, found an .r1cs (a circuit)"),
        (load_key, "witness.wtns", "expected a .zkey or .params file, found a .wtns (a witness)"),
        (load_key, "public.json", "expected a .zkey or .params file, found a JSON array"),
        (load_key, "circom.proof", "expected a .zkey or .params file, found a JSON object"),
        (load_witness, "circuit.r1cs", "expected a .wtns file, found an .r1cs (a circuit)"),
        (load_circuit, "witness.wtns", "expected an .r1cs file, found a .wtns (a witness)"),
        (load_verifying_key, "public.json", "or .params file, found a JSON array"),
        (load_verifying_key, "circuit.r1cs", "or .params file, found an .r1cs (a circuit)"),
        (load_proof, "public.json", "a proof of 192 bytes, found a JSON array"),
        (load_proof, "circuit.zkey", "a proof of 192 bytes, found a .zkey (a proving key)"),
        (lambda f: load_public(f, BN254), "circom.proof", "(an array of numbers), found a JSON"),
    ],
)
def test_the_wrong_file_is_named(
    folder: Path, load: Callable[[Path], object], file: str, message: str
) -> None:
    with pytest.raises(FormatError) as failure:
        load(folder / file)
    text = str(failure.value)
    assert text.startswith(f"{file}: ")
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "load", [load_key, load_witness, load_circuit, load_verifying_key, load_proof]
)
@pytest.mark.parametrize(
    "content", [b"", b"\x00", b"nonsense that is no file of ours", b"\xff" * 1000]
)
def test_nonsense(load: Callable[[Any], object], content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.file"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"some\.file: .*expected"):
        load(path)


@pytest.mark.parametrize(
    "load", [load_key, load_witness, load_circuit, load_verifying_key, load_proof]
)
def test_no_file_and_no_regular_file(load: Callable[[Any], object], tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no file of that name"):
        load(tmp_path / "missing")
    with pytest.raises(FormatError, match="a directory"):
        load(tmp_path)
    with pytest.raises(FormatError, match="found int"):
        load(7)


def test_raw_witness_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "raw.wtns"
    path.write_bytes(b"".join(k.to_bytes(32, "little") for k in (1, 33, 3, 11)))
    with pytest.raises(FormatError, match="raw witness"):
        load_witness(path)


def test_known_delta_is_refused(fixtures: Path) -> None:
    # this ceremony's last step was never made: delta = gamma
    folder = fixtures / "co-snarks/bn254/poseidon"
    for load, file in (
        (load_key, "circuit.zkey"),
        (load_verifying_key, "circuit.zkey"),
        (load_verifying_key, "verification_key.json"),
    ):
        with pytest.raises(InsecureKeyError, match=f"^{file}: .*delta = gamma"):
            load(folder / file)
        load(folder / file, insecure_key=True)


def test_params_need_their_circuit(fixtures: Path) -> None:
    params = fixtures / "zcash/sapling-output.params"
    with pytest.raises(CircuitError, match=r"holds no circuit: expected the \.r1cs beside it"):
        load_key(params)
    circuit = load_circuit(fixtures / "co-snarks/bls12_381/multiplier2/circuit.r1cs")
    with pytest.raises(CircuitError, match="do not belong together"):
        load_key(params, circuit)
    vk = load_verifying_key(params)
    assert (vk.curve, vk.public) == (BLS12_381, 5)


def test_proof_bytes_of_another_length() -> None:
    for size in (1, 191, 193, 1920):
        with pytest.raises(FormatError, match="192 bytes"):
            load_proof(b"\x80" * size)


def test_curve_by_any_of_its_names(folder: Path) -> None:
    for name in ("bn128", "BN254", "alt_bn128"):
        assert load_public(folder / "public.json", name) == [33]
    with pytest.raises(FormatError, match="expected bn128 or bls12381, found 'bn'"):
        load_public(folder / "public.json", "bn")
