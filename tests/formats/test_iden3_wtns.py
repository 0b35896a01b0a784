import json
import struct
from pathlib import Path

import iden3_files as files
import pytest

from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.wtns import read_wtns, read_wtns_header, write_wtns
from cuzk.vectors import Scalars


def refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        read_wtns(data)
    assert str(error.value).startswith(f"<bytes>: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("version", [1, 2])
def test_f19_versions_1_and_2_are_read(curve: Curve, version: int) -> None:
    witness = read_wtns(files.wtns(curve, version=version))
    assert witness.curve is curve
    assert not witness.montgomery
    assert witness.ints() == files.WITNESS


def test_header(curve: Curve) -> None:
    header = read_wtns_header(files.wtns(curve, version=1) + b"tail")
    assert (header.curve, header.version, header.wires) == (curve, 1, 5)
    assert header.warnings == ("4 bytes after the last section",)


def test_f19_other_versions_are_refused(curve: Curve) -> None:
    refused(files.wtns(curve, version=3), "expected version 1 or 2 of .wtns, found 3")
    refused(files.wtns(curve, version=0), "expected version 1 or 2 of .wtns, found 0")


FIXTURES = {
    "co-snarks/bls12_381/kyc/witness.wtns": 17,
    "co-snarks/bls12_381/multiplier2/witness.wtns": 4,
    "co-snarks/bls12_381/poseidon/witness.wtns": 215,
    "co-snarks/bn254/multiplier2/witness.wtns": 4,
    "co-snarks/bn254/poseidon/witness.wtns": 215,
    "groth16-zorch/multiplier_3.wtns": 6,
    "rapidsnark/witness.wtns": 1003,
    "snarkjs/groth16_witness.wtns": 1003,
}


@pytest.mark.parametrize("name", FIXTURES)
def test_real_witnesses(fixtures: Path, tmp_path: Path, name: str) -> None:
    content = (fixtures / name).read_bytes()
    witness = read_wtns(fixtures / name)
    values = dict(files.take_apart(content))[2]
    assert len(witness) == FIXTURES[name]
    assert witness.ints() == [int.from_bytes(values[i : i + 32], "little") for i in range(0, len(values), 32)]  # fmt: skip
    write_wtns(tmp_path / "x", witness)
    assert (tmp_path / "x").read_bytes() == content


@pytest.mark.parametrize("folder", ["co-snarks/bls12_381/poseidon", "co-snarks/bn254/multiplier2"])
def test_wires_1_to_public_are_the_public_signals(fixtures: Path, folder: str) -> None:
    public = json.loads((fixtures / folder / "public.json").read_text())
    ints = read_wtns(fixtures / folder / "witness.wtns").ints()
    assert ints[1 : len(public) + 1] == [int(text) for text in public]


def test_f7_counts_are_those_of_the_header(curve: Curve) -> None:
    data = files.wtns(curve)
    values = dict(files.take_apart(data))[2]
    for content, found in ((values[32:], 128), (values + values[:32], 192), (values[:-1], 159)):
        refused(
            files.with_section(data, 2, content),
            f"section 2 (values): expected 5 values of 32 bytes = 160 bytes, found {found}",
        )
    refused(files.wtns(curve, []), "section 1 (header): expected at least one wire, the constant 1, found 0")  # fmt: skip


def test_f8_a_raw_witness_is_named() -> None:
    raw = b"".join(v.to_bytes(32, "little") for v in files.WITNESS)
    refused(raw, "expected a .wtns file, found what looks like a raw witness (5 values of 32 bytes without a header)")  # fmt: skip
    refused(
        raw[:-1], 'expected a .wtns file, which begins with "wtns", found the bytes 01 00 00 00'
    )


def test_f10_the_prime_names_the_curve() -> None:
    assert read_wtns(files.wtns(BN254)).curve is BN254
    assert read_wtns(files.wtns(BLS12_381)).curve is BLS12_381
    header = files.prime(BLS12_381.p, 48) + struct.pack("<I", 5)
    refused(
        files.with_section(files.wtns(BN254), 1, header),
        "section 1 (header): expected the scalar field of BN254 or BLS12-381, found the prime 0x1a0111ea",
    )


@pytest.mark.parametrize("index", [1, 3, 4])
@pytest.mark.parametrize("excess", [0, 1, 2**200])
def test_values_are_below_r(curve: Curve, index: int, excess: int) -> None:
    values = list(files.WITNESS)
    values[index] = curve.r + excess
    refused(
        files.wtns(curve, values),
        f"section 2 (values): value {index}: expected a number below the scalar field's prime of "
        f"{curve.title}, found {curve.r + excess:#x}",
    )
    values[index] = curve.r - 1
    assert read_wtns(files.wtns(curve, values)).ints() == values


@pytest.mark.parametrize("one", [0, 2, BN254.r - 1])
def test_wire_0_is_1(one: int) -> None:
    data = files.wtns(BN254, [one, *files.WITNESS[1:]])
    refused(data, f"section 2 (values): expected wire 0 to be the constant 1, found {one}")


def test_every_cut_is_refused(curve: Curve) -> None:
    data = files.wtns(curve)
    for end in range(1, len(data)):
        with pytest.raises(FormatError):
            read_wtns(data[:end])


def test_f18_f24_sections(curve: Curve) -> None:
    data = files.wtns(curve)
    sections = files.take_apart(data)
    header = dict(sections)[1]
    refused(files.assemble("wtns", [*sections, sections[0]], 2), "expected each section once, found duplicate section 1")  # fmt: skip
    refused(files.with_section(data, 1, None), "section 1 (header) is missing, found sections 2")
    refused(files.with_section(data, 2, None), "section 2 (values) is missing, found sections 1")
    refused(files.with_section(data, 1, header + b"\0\0"), "section 1 (header): expected 40 bytes, found 42")  # fmt: skip
    refused(files.with_section(data, 1, header[:-4] + b"\xff" * 4), "section 2 (values): expected 4294967295 values")  # fmt: skip
    assert read_wtns(files.assemble("wtns", sections[::-1], 2)).ints() == files.WITNESS


def test_montgomery_form_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected a witness in plain form"):
        write_wtns(tmp_path / "x", Scalars.from_ints(BN254, [1, 2], montgomery=True))


def test_written_witnesses_read_the_same(curve: Curve, tmp_path: Path) -> None:
    write_wtns(tmp_path / "x", Scalars.from_ints(curve, files.WITNESS))
    assert (tmp_path / "x").read_bytes() == files.wtns(curve)
