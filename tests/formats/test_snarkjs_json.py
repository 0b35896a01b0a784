"""proof.json, public.json and verification_key.json against real files and against what breaks readers."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from cuzk.curves import BLS12_381, BN254, CURVES, Curve
from cuzk.errors import FormatError
from cuzk.formats import snarkjs_json
from cuzk.groth16 import Proof
from cuzk.vectors import Affine, Points

SAMPLES = [
    f"co-snarks/{curve}/{circuit}"
    for curve in ("bn254", "bls12_381")
    for circuit in ("multiplier2", "poseidon")
]
KEYS = [
    *(f"{sample}/verification_key.json" for sample in SAMPLES),
    "co-snarks/bn254/kyc/verification_key.json",
    "co-snarks/bls12_381/kyc/verification_key.json",
    "co-snarks/bn254/sum_arrays/verification_key.json",
    "rapidsnark/verification_key.json",
]


def generator_proof(curve: Curve) -> Proof:
    g1 = Points.from_affine(curve, "g1", [curve.g1])
    return Proof(g1, Points.from_affine(curve, "g2", [curve.g2]), g1)


def fields_of(curve: Curve) -> dict[str, Any]:
    result = json.loads(snarkjs_json.proof_json(generator_proof(curve)))
    assert isinstance(result, dict)
    return result


def refusal(data: object, curve: Curve | None = None) -> str:
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(FormatError) as caught:
        snarkjs_json.read_proof(content, curve)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def public_refusal(data: bytes, curve: Curve = BN254) -> str:
    with pytest.raises(FormatError) as caught:
        snarkjs_json.read_public(data, curve)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Real files


@pytest.mark.parametrize("sample", SAMPLES)
def test_proof_holds_the_numbers_of_the_file(fixtures: Path, sample: str) -> None:
    path = fixtures / sample / "circom.proof"
    raw = json.loads(path.read_bytes())
    proof = snarkjs_json.read_proof(path)
    assert proof.a.affine() == tuple(int(v) for v in raw["pi_a"][:2])
    assert proof.b.affine() == tuple(int(v) for row in raw["pi_b"][:2] for v in row)
    assert proof.c.affine() == tuple(int(v) for v in raw["pi_c"][:2])
    assert proof.curve is CURVES[sample.split("/")[1]]
    assert json.loads(snarkjs_json.proof_json(proof)) == raw


@pytest.mark.parametrize("sample", SAMPLES)
def test_e4_bytes_are_those_of_snarkjs_and_one_newline(fixtures: Path, sample: str) -> None:
    folder = fixtures / sample
    curve = CURVES[sample.split("/")[1]]
    public = snarkjs_json.read_public(folder / "public.json", curve)
    written = snarkjs_json.public_json(public)
    assert written == (folder / "public.json").read_bytes() + b"\n"
    proof = snarkjs_json.proof_json(snarkjs_json.read_proof(folder / "circom.proof"))
    if sample != "co-snarks/bn254/multiplier2":  # the one file that is indented by four
        assert proof == (folder / "circom.proof").read_bytes() + b"\n"
    for text in (written, proof):
        assert b"\0" not in text
        assert text.endswith(b"\n")
        assert not text.endswith(b"\n\n")


@pytest.mark.parametrize("name", KEYS)
def test_verification_key_round_trips_to_the_byte(fixtures: Path, name: str) -> None:
    """Includes vk_alphabeta_12, which is computed here and came from snarkjs there."""
    path = fixtures / name
    vk = snarkjs_json.read_verification_key(path)
    assert vk.public == json.loads(path.read_bytes())["nPublic"]
    assert snarkjs_json.verification_key_json(vk) == path.read_bytes() + b"\n"


def test_written_files(fixtures: Path, tmp_path: Path) -> None:
    folder = fixtures / SAMPLES[1]
    proof = snarkjs_json.read_proof(folder / "circom.proof")
    vk = snarkjs_json.read_verification_key(folder / "verification_key.json")
    snarkjs_json.write_proof(tmp_path / "proof.json", proof)
    snarkjs_json.write_public(tmp_path / "public.json", [3, 0])
    snarkjs_json.write_verification_key(tmp_path / "vk.json", vk)
    original = (folder / "circom.proof").read_bytes() + b"\n"
    assert (tmp_path / "proof.json").read_bytes() == original
    assert (tmp_path / "public.json").read_bytes() == b'[\n "3",\n "0"\n]\n'
    assert (tmp_path / "vk.json").read_bytes() == (folder / KEYS[0][-21:]).read_bytes() + b"\n"


def test_no_public_signal_is_an_empty_array() -> None:
    assert snarkjs_json.public_json([]) == b"[]\n"
    assert snarkjs_json.read_public(b"[]\n", BN254) == []


# Points


@pytest.mark.parametrize("y_sign", [1, -1])
def test_v21_infinity_and_both_signs_round_trip(curve: Curve, y_sign: int) -> None:
    def signed(point: tuple[int, ...]) -> Affine:
        half = len(point) // 2
        return point[:half] + tuple(y_sign * y % curve.p for y in point[half:])

    proof = Proof(
        Points.from_affine(curve, "g1", [signed(curve.g1)]),
        Points.from_affine(curve, "g2", [signed(curve.g2)]),
        Points.from_affine(curve, "g1", [None]),
    )
    text = snarkjs_json.proof_json(proof)
    assert json.loads(text)["pi_c"] == ["0", "1", "0"]  # as ffjavascript writes the zero point
    again = snarkjs_json.read_proof(text)
    assert again.a.affine() == signed(curve.g1)
    assert again.b.affine() == signed(curve.g2)
    assert again.c.affine() is None
    zero = Proof(proof.c, Points.from_affine(curve, "g2", [None]), proof.c)
    text = snarkjs_json.proof_json(zero)
    assert json.loads(text)["pi_b"] == [["0", "0"], ["1", "0"], ["0", "0"]]
    assert snarkjs_json.read_proof(text).b.affine() is None


@pytest.mark.parametrize(
    ("point", "complaint"),
    [
        (["1", "2", "2"], "pi_a[2]: expected 1 (or [0, 1, 0] for infinity), found '2'"),
        (["1", "2", "0"], "pi_a[2]: expected 1"),
        (["0", "2", "0"], "pi_a[2]: expected 1"),
        (["0", "0", "0"], "pi_a[2]: expected 1"),
        (["0", "0", "1"], "pi_a: expected a point, found x = y = 0"),
    ],
)
def test_one_encoding_of_every_point(point: list[str], complaint: str) -> None:
    assert complaint in refusal({**fields_of(BN254), "pi_a": point})


def test_one_encoding_of_infinity_in_g2() -> None:
    for z in (["0", "1"], ["1", "1"], ["2", "0"], ["0", "0"]):
        rows = [*fields_of(BN254)["pi_b"][:2], z]
        assert "pi_b[2]: expected 1" in refusal({**fields_of(BN254), "pi_b": rows})
    rows = [["0", "0"], ["1", "1"], ["0", "0"]]
    assert "pi_b[2]: expected 1" in refusal({**fields_of(BN254), "pi_b": rows})


def test_coordinate_of_q_or_more(curve: Curve) -> None:
    fields = fields_of(curve)
    rows = fields["pi_b"]
    rows[0][1] = str(int(rows[0][1]) + curve.p)
    message = refusal(fields)
    assert f"pi_b[0][1]: expected a number below q of {curve.title}, found {rows[0][1]}" in message
    rows[0][1] = str(curve.p)
    assert "below q" in refusal(fields)
    rows[0][1] = str(curve.p - 1)
    assert snarkjs_json.read_proof(json.dumps(fields).encode()).b.affine() is not None


def test_key_points_must_lie_on_the_curve_and_in_the_subgroup(fixtures: Path) -> None:
    path = fixtures / "co-snarks/bls12_381/multiplier2/verification_key.json"
    fields = json.loads(path.read_bytes())
    off = json.loads(path.read_bytes())
    off["IC"][1][1] = str((int(off["IC"][1][1]) + 1) % BLS12_381.p)
    with pytest.raises(FormatError, match=r"IC\[1\]: expected a point on the curve of BLS12-381"):
        snarkjs_json.read_verification_key(json.dumps(off).encode())
    # y^2 = 0 + 4: (0, 2) is on the curve and has order 3
    fields["vk_alpha_1"] = ["0", "2", "1"]
    with pytest.raises(FormatError, match="vk_alpha_1: expected a point in the subgroup"):
        snarkjs_json.read_verification_key(json.dumps(fields).encode())


# Numbers


def test_e8_integers_strings_and_hexadecimal() -> None:
    big = 2**53 + 1
    text = f'[{big}, "{big}", "{big:#x}", "0X{big:X}", {BN254.r - 1}, "007"]'.encode()
    assert snarkjs_json.read_public(text, BN254) == [big, big, big, big, BN254.r - 1, 7]


@pytest.mark.parametrize(
    "text",
    [
        *("1.0", "1.5", "1e3", "9007199254740993.0", "-1", "-0", "true", "false", "null", "NaN"),
        *("Infinity", "-Infinity", "{}", "[]", '["1"]', '""', '" 1"', '"1 "', '"+1"', '"-1"'),
        *(
            '"1_000"',
            '"0x"',
            '"0xg"',
            '"0b1"',
            '"1.0"',
            '"1e3"',
            '"\u0661"',
            '"\\ud800"',
            '"12\\n"',
        ),
    ],
)
def test_e8_anything_else_is_no_number(text: str) -> None:
    message = public_refusal(f"[1, {text}]".encode())
    assert "[1]: expected a non-negative integer" in message


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("digits", [257, 4301, 100_000])
def test_numbers_beyond_pythons_digit_limit(quote: str, digits: int) -> None:
    message = public_refusal(f"[{quote}{'9' * digits}{quote}]".encode())
    assert "[0]: expected a non-negative integer" in message
    assert f"{digits} characters" in message
    assert len(message) < 200


@pytest.mark.parametrize("offset", [0, 1])
def test_v1_v2_public_signal_below_r(curve: Curve, offset: int) -> None:
    """V1: x + r; V2: a value in [r, q), which is a field element of the wrong field."""
    for value in (curve.r + offset, 33 + curve.r, curve.p - 1):
        assert value >= curve.r
        message = public_refusal(f'["1", "{value}"]'.encode(), curve)
        assert message.endswith(f"[1]: expected a number below r of {curve.title}, found {value}")
    assert snarkjs_json.read_public(f"[{curve.r - 1}]".encode(), curve) == [curve.r - 1]


# Structure


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("pi_a", ["1", "2"], "pi_a: expected an array of 3, found an array of 2"),
        ("pi_a", ["1", "2", "1", "1"], "pi_a: expected an array of 3, found an array of 4"),
        ("pi_a", "12", "pi_a: expected an array of 3, found '12'"),
        ("pi_a", [["1", "2"], "2", "1"], "pi_a[0]: expected a non-negative integer"),
        ("pi_b", [["1", "2"], ["3"], ["1", "0"]], "pi_b[1]: expected an array of 2"),
        ("pi_b", ["1", "2", "1"], "pi_b[0]: expected an array of 2, found '1'"),
        ("pi_c", {"0": "1"}, "pi_c: expected an array of 3, found an object"),
        ("pi_c", None, "pi_c: expected an array of 3, found null"),
        ("protocol", "plonk", "protocol: expected groth16, found 'plonk'"),
        ("protocol", None, "protocol: expected groth16, found null"),
        ("protocol", 16, "protocol: expected groth16, found 16"),
    ],
)
def test_e8_wrong_shapes_are_named(key: str, value: object, complaint: str) -> None:
    assert complaint in refusal({**fields_of(BN254), key: value})


def test_missing_fields_are_named() -> None:
    for key in ("pi_a", "pi_b", "pi_c"):
        fields = fields_of(BN254)
        del fields[key]
        assert f"expected the field {key}, found none" in refusal(fields)


def test_not_an_object_or_not_an_array() -> None:
    assert "expected a JSON object, found an array of 0" in refusal([])
    assert "expected an array, found an object" in public_refusal(b"{}")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"[1", "expected JSON, found a fault in line 1, column 3"),
        (b"[1]\0", "expected JSON, found a fault in line 1, column 4"),
        (b"[1]\n[2]", "expected JSON, found a fault in line 2, column 1"),
        (b"[1,]", "expected JSON"),
        (b"\xff\xfe[\x001\x00]\x00", "expected JSON in UTF-8, found the byte 0xff at offset 0"),
        (b'["1", "\xc3"]', "expected JSON in UTF-8, found the byte 0xc3 at offset 7"),
        (b"   ", "expected JSON"),
        (b'[{"a": 1, "b": 2, "a": 3}]', "expected each key once, found 'a' twice"),
        (b"[" * 100_000, "expected JSON of at most 32 levels, found 100000"),
        ((b"[" + b" " * 20) * 50_000, "at most 32 levels, found 50000"),
        ((b'{"a":' + b" " * 20) * 50_000, "at most 32 levels, found 50000"),
        (b'["\\"]]]", ' * 40 + b"1" + b"]" * 40, "at most 32 levels, found 40"),
        (b"[[]," + b"[]," * 50_000 + b"[]]", "found 50003 brackets"),
    ],
    ids=range(13),
)
def test_broken_json_is_one_line(data: bytes, complaint: str) -> None:
    assert complaint in public_refusal(data)


def test_depth_is_not_miscounted() -> None:
    assert public_refusal(b"[" * 32 + b"]" * 32).endswith(
        "[0]: expected a non-negative integer (decimal or 0x.. string), found an array of 1"
    )
    brackets_in_a_string = json.dumps({**fields_of(BN254), "note": "[" * 60 + '"' + "{" * 60})
    padded = brackets_in_a_string + " " * 1000
    assert snarkjs_json.read_proof(padded.encode()).a.affine() == (1, 2)


def test_duplicate_keys_of_a_huge_object_are_found_quickly() -> None:
    keys = ",".join(f'"{i}":""' for i in range(200_000))
    start = time.monotonic()
    assert "found '199999' twice" in public_refusal(f'[{{{keys},"199999":""}}]'.encode())
    assert time.monotonic() - start < 5


def test_a_proof_file_is_small() -> None:
    assert "expected at most 65536 bytes of JSON" in refusal(b" " * ((1 << 16) + 1))


def test_many_public_signals_are_read_quickly() -> None:
    values = [BN254.r - 1 - i for i in range(100_000)]
    text = snarkjs_json.public_json(values)
    start = time.monotonic()
    assert snarkjs_json.read_public(text, BN254) == values
    assert time.monotonic() - start < 5  # 0.1 s on an idle core


# Curves


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("bn128", BN254), ("bn254", BN254), ("BN-128", BN254), ("alt_bn128", BN254)),
        *(("bls12381", BLS12_381), ("bls12-381", BLS12_381), ("BLS12_381", BLS12_381)),
    ],
)
def test_v16_synonyms_in_snarkjs_names_out(name: str, expected: Curve) -> None:
    fields = {**fields_of(expected), "curve": name}
    proof = snarkjs_json.read_proof(json.dumps(fields).encode())
    assert proof.curve is expected
    written = json.loads(snarkjs_json.proof_json(proof))["curve"]
    assert written == {"bn254": "bn128", "bls12_381": "bls12381"}[expected.name]


@pytest.mark.parametrize("name", ["bls12377", "secp256k1", "", "toy", None, 128, ["bn128"]])
def test_v16_unknown_curves_are_refused(name: object) -> None:
    message = refusal({**fields_of(BN254), "curve": name})
    assert "curve: expected bn128 or bls12381" in message


def test_v16_key_with_a_synonym(fixtures: Path) -> None:
    path = fixtures / "co-snarks/bn254/multiplier2/verification_key.json"
    fields = {**json.loads(path.read_bytes()), "curve": "alt_bn128"}
    vk = snarkjs_json.read_verification_key(json.dumps(fields).encode())
    assert snarkjs_json.verification_key_json(vk) == path.read_bytes() + b"\n"
    fields["curve"] = "bw6"
    with pytest.raises(FormatError, match="curve: expected bn128 or bls12381, found 'bw6'"):
        snarkjs_json.read_verification_key(json.dumps(fields).encode())


def test_a_proof_without_curve_takes_the_keys(curve: Curve) -> None:
    fields = fields_of(curve)
    del fields["curve"]
    assert "curve: expected bn128 or bls12381, found no such field" in refusal(fields)
    proof = snarkjs_json.read_proof(json.dumps(fields).encode(), curve)
    assert proof.curve is curve
    assert proof.a.affine() == curve.g1


def test_a_proof_of_the_other_curve_is_refused(curve: Curve) -> None:
    other = BLS12_381 if curve is BN254 else BN254
    message = refusal(fields_of(curve), other)
    assert f"expected {other.snarkjs_name}, the verifying key's" in message


@pytest.mark.parametrize("count", [0, 2, -1, True, "1", 1.0, 2**70, None])
def test_v3_public_count_must_fit_ic(fixtures: Path, count: object) -> None:
    path = fixtures / "co-snarks/bn254/multiplier2/verification_key.json"
    fields = {**json.loads(path.read_bytes()), "nPublic": count}
    with pytest.raises(FormatError, match="nPublic: expected 1, one less than the 2 points of IC"):
        snarkjs_json.read_verification_key(json.dumps(fields).encode())


def test_v3_empty_ic(fixtures: Path) -> None:
    path = fixtures / "co-snarks/bn254/multiplier2/verification_key.json"
    fields = {**json.loads(path.read_bytes()), "IC": []}
    with pytest.raises(FormatError, match=r"IC: expected nPublic \+ 1 points, found none"):
        snarkjs_json.read_verification_key(json.dumps(fields).encode())
