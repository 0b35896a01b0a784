"""The exported contract, compiled by solc and run in an Ethereum virtual machine, both from npm."""

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from py_ecc.optimized_bn128 import optimized_curve as bn

from cuzk.curves import BN254
from cuzk.formats import snarkjs_json
from cuzk.formats.solidity import export_calldata, export_solidity
from cuzk.groth16 import Proof, VerifyingKey
from cuzk.vectors import Points
from cuzk.verifier import Verifier

pytestmark = pytest.mark.interop

PACKAGES = Path(__file__).resolve().parents[2] / "build" / "interop"
R, Q = BN254.r, BN254.p
# The selector of snarkjs' contract with one signal: the first bytes of Keccak-256 of the signature
SELECTOR_1 = "43753b4d"


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not there")
    if not (PACKAGES / "node_modules" / "solc").is_dir():
        pytest.skip("solc and an EVM are not there: make interop installs them")
    return found


def run(
    node: str, vk: VerifyingKey, arguments: list[list[int]], *, optimize: bool = False
) -> dict[str, Any]:
    encoded = ["".join(f"{word:064x}" for word in words) for words in arguments]
    source = export_solidity(vk)
    job = json.dumps({"source": source, "optimize": optimize, "arguments": encoded})
    script = Path(__file__).with_name("evm.cjs")
    done = subprocess.run(
        [node, script, PACKAGES],
        input=job,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


def words_of(text: str) -> list[int]:
    """The 32-byte words of the arguments' text, in order."""

    def flat(value: Any) -> list[int]:
        return [w for v in value for w in flat(v)] if isinstance(value, list) else [int(value, 16)]

    return flat(json.loads(f"[{text}]"))


def answers(node: str, vk: VerifyingKey, arguments: list[list[int]], **options: Any) -> list[bool]:
    result = run(node, vk, arguments, **options)
    assert result["warnings"] == []
    for call in result["calls"]:
        assert call["error"] is None
        assert call["returned"] in (f"0x{0:064x}", f"0x{1:064x}")
    return [int(call["returned"], 16) == 1 for call in result["calls"]]


def sample(fixtures: Path, name: str) -> tuple[VerifyingKey, list[int], Proof]:
    folder = fixtures / "co-snarks/bn254" / name
    vk = snarkjs_json.read_verification_key(folder / "verification_key.json")
    public = snarkjs_json.read_public(folder / "public.json", BN254)
    return vk, public, snarkjs_json.read_proof(folder / "circom.proof", BN254)


def made(public: list[int], *, unbound: bool = False) -> tuple[VerifyingKey, Proof]:
    """A key of known logarithms and a proof for it: a b = alpha beta + (IC . public) gamma + c delta."""

    def g1(*logs: int) -> Points:
        points = [bn.normalize(bn.multiply(bn.G1, log)) for log in logs]
        flat = [
            tuple(int(f) for f in point) if log else None
            for point, log in zip(points, logs, strict=True)
        ]
        return Points.from_affine(BN254, "g1", flat)

    def g2(log: int) -> Points:
        point = bn.normalize(bn.multiply(bn.G2, log))
        return Points.from_affine(BN254, "g2", [tuple(int(c) for f in point for c in f.coeffs)])

    alpha, beta, gamma, delta, a, b = 11, 13, 17, 19, 23, 29
    ic = [31 + 2 * i for i in range(len(public) + 1)]
    if unbound:
        ic[-1] = 0
    total = sum(x * y for x, y in zip(ic, [1, *public], strict=True))
    c = (a * b - alpha * beta - total * gamma) * pow(delta, -1, R) % R
    vk = VerifyingKey(BN254, g1(alpha), g2(beta), g2(gamma), g2(delta), g1(*ic))
    return vk, Proof(g1(a), g2(b), g1(c))


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("name", ["multiplier2", "poseidon"])
def test_real_proof_and_tampered_ones(
    node: str, fixtures: Path, name: str, *, optimize: bool
) -> None:
    vk, public, proof = sample(fixtures, name)
    good = words_of(export_calldata(proof, public))
    cases = {"valid": (good, True)}

    def case(label: str, index: int, value: int) -> None:
        words = list(good)
        words[index] = value
        cases[label] = (words, False)

    case("V1: signal plus r", 8, public[0] + R)
    case("another signal", 8, (public[0] + 1) % R)
    case("V2: signal between r and q", 8, Q - 1)
    case("V6: A.x plus q", 0, good[0] + Q)
    case("V6: A.y plus q", 1, good[1] + Q)
    case("A off the curve", 1, (good[1] + 1) % Q)
    case("V8: -A alone", 1, Q - good[1])
    case("C off the curve", 6, (good[6] + 1) % Q)
    case("largest word", 1, 2**256 - 1)
    cases["V15: B swapped"] = ([*good[:2], good[3], good[2], good[5], good[4], *good[6:]], False)
    cases["A and C exchanged"] = ([*good[6:8], *good[2:6], *good[:2], good[8]], False)
    cases["all zero"] = ([0] * 9, False)
    both = [good[0], Q - good[1], good[2], good[3], Q - good[4], Q - good[5], *good[6:]]
    cases["V8: -A and -B"] = (both, True)
    found = answers(node, vk, [words for words, _ in cases.values()], optimize=optimize)
    assert dict(zip(cases, found, strict=True)) == {k: valid for k, (_, valid) in cases.items()}


def test_interface_is_snarkjs(node: str, fixtures: Path) -> None:
    vk, _, _ = sample(fixtures, "poseidon")
    methods = run(node, vk, [])["methods"]
    signature = "verifyProof(uint256[2],uint256[2][2],uint256[2],uint256[1])"
    assert methods == {signature: SELECTOR_1}


def test_no_public_signal(node: str) -> None:
    vk, proof = made([])
    assert Verifier(vk).verify([], proof)
    words = words_of(export_calldata(proof, []))
    head = 9 * 32  # a dynamic array: its offset, then its length
    good = [*words, head, 0]
    longer = [*words, head, 1, 5]
    wrong = [*words[:6], words[0], words[1], head, 0]
    assert answers(node, vk, [good, longer, wrong]) == [True, False, False]


@pytest.mark.parametrize("public", [[0], [R - 1], [5, 0, R - 1], list(range(1, 30))], ids=len)
def test_signals_of_any_number(node: str, public: list[int]) -> None:
    vk, proof = made(public)
    assert Verifier(vk).verify(public, proof)
    good = words_of(export_calldata(proof, public))
    tampered = [*good[:-1], (good[-1] + 1) % R]
    assert answers(node, vk, [good, tampered]) == [True, False]


def test_v11_unbound_signal_and_signal_of_the_whole_sum(node: str) -> None:
    """IC at infinity binds nothing: the contract says what the equation says."""
    vk, proof = made([7, 8], unbound=True)
    good = words_of(export_calldata(proof, [7, 8]))
    assert answers(node, vk, [good, [*good[:-1], 9], [*good[:-2], 6, 8]]) == [True, True, False]


def test_a_key_with_a_hundred_signals_fits_the_size_limit(node: str) -> None:
    vk, proof = made(list(range(100)))
    words = words_of(export_calldata(proof, list(range(100))))
    result = run(node, vk, [words], optimize=True)
    assert result["size"] < 24_576  # EIP-170
    assert int(result["calls"][0]["returned"], 16) == 1


@pytest.mark.parametrize("name", ["multiplier2", "poseidon"])
def test_v15_calldata_is_snarkjs_text(node: str, fixtures: Path, tmp_path: Path, name: str) -> None:
    _, public, proof = sample(fixtures, name)
    for values in (public, []):
        snarkjs_json.write_proof(tmp_path / "proof.json", proof)
        snarkjs_json.write_public(tmp_path / "public.json", values)
        command = ["zkey", "export", "soliditycalldata", "public.json", "proof.json"]
        cli = PACKAGES / "node_modules/snarkjs/build/cli.cjs"
        done = subprocess.run(
            [node, cli, *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        assert done.stdout == export_calldata(proof, values) + "\n"


def test_infinity_in_a_proof(node: str) -> None:
    vk, proof = made([3])
    zero = Points.from_affine(BN254, "g1", [None])
    words = words_of(export_calldata(dataclasses.replace(proof, c=zero), [3]))
    assert words[6:8] == [0, 0]
    assert answers(node, vk, [words]) == [False]
