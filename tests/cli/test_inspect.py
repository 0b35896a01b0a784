import json
import struct
import time
from pathlib import Path

import pytest
from files import files, sections

from command import cuzk
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import FormatError
from cuzk.formats.bellman import vk_bytes, write_proof_bytes
from cuzk.formats.iden3.zkey import read_zkey
from cuzk.formats.snarkjs_json import read_proof
from cuzk.inspect import inspect

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def frame(kind: bytes, version: int, parts: dict[int, bytes]) -> bytes:
    table = b"".join(struct.pack("<IQ", n, len(content)) + content for n, content in parts.items())
    return kind + struct.pack("<II", version, len(parts)) + table


def contents(path: Path) -> dict[int, bytes]:
    data = path.read_bytes()
    return {n: data[at : at + length] for n, (at, length) in sections(data).items()}


@pytest.mark.parametrize("full", [False, True])
def test_every_kind_is_told_by_content(curve: Curve, full: bool, tmp_path: Path) -> None:
    made = files(curve.name)
    kinds = {
        made.r1cs: "r1cs",
        made.wtns: "wtns",
        made.zkey: "zkey",
        made.ptau: "ptau",
        made.vk: "verification key",
        made.proof: "proof",
        made.public: "public signals",
    }
    for number, (path, kind) in enumerate(kinds.items()):
        unnamed = tmp_path / str(number)
        unnamed.write_bytes(path.read_bytes())
        found = inspect(unnamed, full=full)
        assert found.kind == kind
        assert found.bytes == path.stat().st_size
        assert found.curve == (curve.name if kind != "public signals" else "any")


def test_bellman_files(tmp_path: Path) -> None:
    made = files("bls12_381")
    key = read_zkey(made.zkey)
    vk = tmp_path / "a"
    vk.write_bytes(vk_bytes(key.vk, key.beta_g1, key.delta_g1))
    assert (inspect(vk).kind, inspect(vk).counts["public"]) == ("vk", 1)
    proof = tmp_path / "b"
    proof.write_bytes(2 * write_proof_bytes(read_proof(made.proof)))
    assert (inspect(proof).kind, inspect(proof).counts["proofs"]) == ("proof bytes", 2)


def test_counts_of_circuits_of_other_projects(fixtures: Path) -> None:
    circuit = inspect(fixtures / "snarkjs" / "groth16_circuit.r1cs", full=True)
    assert circuit.counts["constraints"] == 1000  # the 1,000 squarings of snarkjs' test circuit
    assert circuit.counts["wires"] == 1003
    key = inspect(fixtures / "rapidsnark" / "circuit_final.zkey", full=True)
    assert key.counts == {"wires": 1003, "public": 1, "coefficients": 2002, "domain": 1024}
    assert key.contributions
    assert key.warnings == ()


def test_parameters_of_zcash(fixtures: Path) -> None:
    found = inspect(fixtures / "zcash" / "sapling-output.params")
    assert found.kind == "params"
    assert found.counts["public"] == 5
    assert any("52836 bytes follow" in warning for warning in found.warnings)


def test_keys_that_prove_nothing_are_flagged(fixtures: Path) -> None:
    poseidon = fixtures / "co-snarks" / "bn254" / "poseidon"
    for path in (poseidon / "circuit.zkey", poseidon / "verification_key.json"):
        assert any("delta = gamma" in warning for warning in inspect(path).warnings)
    mopro = inspect(fixtures / "mopro" / "multiplier2_bls_final.zkey", full=True)
    assert any("delta = gamma" in warning for warning in mopro.warnings)
    assert any("every H point is infinity" in warning for warning in mopro.warnings)


def test_public_signal_that_is_not_bound(tmp_path: Path) -> None:
    fields = json.loads(files("bn254").vk.read_text())
    fields["IC"][1] = ["0", "1", "0"]
    path = tmp_path / "vk.json"
    path.write_text(json.dumps(fields))
    found = cuzk("inspect", path)
    assert found.status == 0
    assert "warning" in found.out
    assert "1 is not bound" in found.out


def test_key_without_its_ceremony_record(tmp_path: Path) -> None:
    parts = contents(files("bn254").zkey)
    del parts[10]
    path = tmp_path / "bare.zkey"
    path.write_bytes(frame(b"zkey", 1, parts))
    assert any("no record of contributions" in warning for warning in inspect(path).warnings)
    assert cuzk("prove", path, files("bn254").wtns, cwd=tmp_path).status == 0


def test_trailing_bytes(tmp_path: Path) -> None:
    path = tmp_path / "c.zkey"
    path.write_bytes(files("bn254").zkey.read_bytes() + bytes(7))
    assert any("7 bytes" in warning for warning in inspect(path).warnings)


def test_custom_gates_are_listed_and_setup_refuses_them(tmp_path: Path) -> None:
    made = files("bn254")
    parts = contents(made.r1cs)
    path = tmp_path / "gates.r1cs"
    path.write_bytes(frame(b"r1cs", 1, {**parts, 4: b"", 5: b""}))
    assert inspect(path, full=True).warnings == ()
    gate = struct.pack("<I", 1) + b"CMUL\0" + struct.pack("<I", 0)
    path.write_bytes(frame(b"r1cs", 1, {**parts, 4: gate, 5: struct.pack("<I", 0)}))
    assert any("CMUL" in warning for warning in inspect(path).warnings)
    done = cuzk("setup", path, made.ptau, "-o", tmp_path / "key.zkey")
    assert done.status == 2
    assert "CMUL" in done.err
    assert not (tmp_path / "key.zkey").exists()


def test_offsets_past_4_gib(tmp_path: Path) -> None:
    parts = contents(files("bn254").zkey)
    wires, domain, public = 14_000_000, 1 << 24, 1
    header = parts[2][:72] + struct.pack("<III", wires, public, domain) + parts[2][84:]
    lengths = {5: 64 * wires, 6: 64 * wires, 7: 128 * wires, 8: 64 * (wires - 2), 9: 64 * domain}
    path = tmp_path / "large.zkey"
    with path.open("wb") as file:
        file.write(b"zkey" + struct.pack("<II", 1, 9))
        for number, content in {1: parts[1], 2: header, 3: parts[3], 4: parts[4]}.items():
            file.write(struct.pack("<IQ", number, len(content)) + content)
        for number, length in lengths.items():
            file.write(struct.pack("<IQ", number, length))
            file.seek(length, 1)
        file.truncate(file.tell())
    start = time.thread_time()
    found = inspect(path)
    assert time.thread_time() - start < 1
    assert found.bytes > 1 << 32
    assert found.counts["domain"] == domain


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02", "found none of them"),
        (b'{"a": 1}', "found other JSON"),
        ((1).to_bytes(32, "little") + bytes(32), "raw witness"),
        (b"zkey", "header of 12 bytes"),
    ],
)
def test_unknown_content(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=words):
        inspect(path)


def test_a_proof_that_names_no_curve(curve: Curve, tmp_path: Path) -> None:
    fields = json.loads(files(curve.name).proof.read_text())
    del fields["curve"]
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(fields))
    assert inspect(path).curve == curve.name


def test_a_proof_off_its_curve(tmp_path: Path) -> None:
    fields = json.loads(files("bn254").proof.read_text())
    fields["pi_a"][0] = str(int(fields["pi_a"][0]) ^ 1)
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(fields))
    with pytest.raises(FormatError, match="pi_a"):
        inspect(path)


@pytest.mark.parametrize(("name", "curve"), [("membership20", BN254), ("membership4", BLS12_381)])
def test_json_of_the_example(name: str, curve: Curve) -> None:
    done = cuzk("inspect", EXAMPLES / f"{name}.r1cs", "--full", "--json")
    found = json.loads(done.out)
    assert found["kind"] == "r1cs"
    assert found["curve"] == curve.name
    assert found["counts"]["constraints"] >= 1 << 10
    assert found["counts"]["outputs"] == 2
