"""The exported contract and its arguments, without an Ethereum virtual machine (that one is in tests/interop)."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from py_ecc.fields import optimized_bn128_FQ as FQ
from py_ecc.fields import optimized_bn128_FQ2 as FQ2
from py_ecc.optimized_bn128 import optimized_curve as bn

from cuzk import _core
from cuzk.curves import BLS12_381, BN254
from cuzk.errors import FormatError
from cuzk.formats import snarkjs_json
from cuzk.formats.solidity import export_calldata, export_solidity
from cuzk.groth16 import Proof, VerifyingKey
from cuzk.vectors import Affine, Points

# What `snarkjs zkey export soliditycalldata` (0.7.6) prints for co-snarks/bn254/poseidon
SNARKJS_CALLDATA = (
    '["0x2781ddb85be1a0c0e0b0350929ede41d50ca226b5596845aee046324ad6be9f7", '
    '"0x13537bb8450a0fc75e8e7511e19ac0cbb03301e036c404f23779860d57826e32"],'
    '[["0x08fc601bf661dde53c320f5a4779b1a39e513786e2e7edc7a163291eb5efa924", '
    '"0x0dc39d32c2a60a46a2274991d566b55086bf4849685601e47f0c272c8b4c7e14"],'
    '["0x0c298f4dd8a01a4e60363be169016a3eb88a3875a62e5e94f8a828ed82c546d6", '
    '"0x12dd3aa64c7b4753e75b2ac8e635b2a652dcd6d57c4f172df60a51e77b43de76"]],'
    '["0x064fac169d327ee10126a4d4901f715382c1fe31f63d086b3bf5dd87339f0222", '
    '"0x1438b296545bf8faf96b7ae58b57404e67ec8b50b0806ee511b9f33d58f679e0"],'
    '["0x2778f900758cc46e051040641348de3dacc6d2a31e2963f22cbbfb8f65464241"]'
)
CONSTANT = re.compile(r"uint256 private constant (\w+) = (\d+);")
SUMMAND = re.compile(r"_add\(sum, (\w+), (\w+), pubSignals\[(\d+)\]\)")

Words = list[int]


def precompile_8(words: Words) -> bool:
    """EIP-197 over 32-byte words, by the native pairing after py_ecc checked every point."""
    g1: list[Affine] = []
    g2: list[Affine] = []
    for k in range(0, len(words), 6):
        x, y, x1, x0, y1, y0 = words[k : k + 6]
        if max(x, y, x1, x0, y1, y0) >= BN254.p:
            raise ValueError("coordinate")
        g1.append((x, y) if x or y else None)
        g2.append((x0, x1, y0, y1) if x0 or x1 or y0 or y1 else None)
        affine = FQ2([x0, x1]), FQ2([y0, y1]), FQ2.one()
        if g2[-1] and not bn.is_on_curve(affine, bn.b2):
            raise ValueError("curve")
    left = Points.from_affine(BN254, "g1", g1)
    right = Points.from_affine(BN254, "g2", g2)
    return _core.pairing_product_is_one("bn254", left.words, right.words, 1)


def call(source: str, calldata: str) -> bool:
    """What verifyProof does, read off its text: constants, summands and the order of the 24 words."""
    constants = {name: int(value) for name, value in CONSTANT.findall(source)}
    q, r = constants["Q"], constants["R"]
    a, b, c, signals = json.loads(f"[{calldata}]")
    named = {
        **{f"a[{i}]": int(v, 16) for i, v in enumerate(a)},
        **{f"b[{i}][{j}]": int(v, 16) for i, row in enumerate(b) for j, v in enumerate(row)},
        **{f"c[{i}]": int(v, 16) for i, v in enumerate(c)},
    }
    total = FQ(constants["IC0_X"]), FQ(constants["IC0_Y"]), FQ.one()
    summands = SUMMAND.findall(source)
    assert len(summands) == len(signals)
    for x, y, index in summands:
        signal = int(signals[int(index)], 16)
        if signal >= r:
            return False
        point = FQ(constants[x]), FQ(constants[y]), FQ.one()
        total = bn.add(total, bn.multiply(point, signal))
    x, y = bn.normalize(total)
    named |= {"sum[0]": int(x), "sum[1]": int(y), "(Q - a[1]) % Q": (q - named["a[1]"]) % q}
    body = source[source.index("pairs = [") + 9 : source.index("];", source.index("pairs = ["))]
    words = [word.strip() for word in body.split(",")]
    return named["a[1]"] < q and precompile_8([constants.get(w, named.get(w, -1)) for w in words])


def sample(fixtures: Path, name: str = "poseidon") -> tuple[VerifyingKey, list[int], Proof]:
    folder = fixtures / "co-snarks/bn254" / name
    vk = snarkjs_json.read_verification_key(folder / "verification_key.json")
    public = snarkjs_json.read_public(folder / "public.json", BN254)
    return vk, public, snarkjs_json.read_proof(folder / "circom.proof", BN254)


def test_precompile_8_on_ethereums_vectors(fixtures: Path) -> None:
    vectors = json.loads((fixtures / "evm/bn256Pairing.json").read_bytes())
    assert len(vectors) > 5
    for vector in vectors:
        data = bytes.fromhex(vector["Input"])
        words = [int.from_bytes(data[i : i + 32], "big") for i in range(0, len(data), 32)]
        assert precompile_8(words) == (int(vector["Expected"], 16) == 1)


def test_v15_calldata_equals_snarkjs_text(fixtures: Path) -> None:
    _, public, proof = sample(fixtures)
    assert export_calldata(proof, public) == SNARKJS_CALLDATA


@pytest.mark.parametrize("name", ["poseidon", "multiplier2"])
def test_the_contracts_equation_holds_for_real_proofs_only(fixtures: Path, name: str) -> None:
    vk, public, proof = sample(fixtures, name)
    source = export_solidity(vk)
    assert call(source, export_calldata(proof, public))
    assert not call(source, export_calldata(proof, [public[0] + 1]))
    assert not call(source, export_calldata(dataclasses.replace(proof, c=proof.a), public))


def test_v15_swapped_coordinates_of_b_are_no_point(fixtures: Path) -> None:
    vk, public, proof = sample(fixtures)
    a, b, c, signals = json.loads(f"[{export_calldata(proof, public)}]")
    swapped = [row[::-1] for row in b]
    text = ",".join(json.dumps(group) for group in (a, swapped, c, signals))
    source = export_solidity(vk)
    with pytest.raises(ValueError, match="curve"):
        call(source, text)


def test_v1_signal_plus_r_is_refused(fixtures: Path) -> None:
    vk, public, proof = sample(fixtures)
    text = export_calldata(proof, public)
    lifted = text.replace(f"{public[0]:064x}", f"{public[0] + BN254.r:064x}")
    assert lifted != text
    assert not call(export_solidity(vk), lifted)
    with pytest.raises(FormatError, match="public signal 0: expected a number below r of BN254"):
        export_calldata(proof, [public[0] + BN254.r])
    with pytest.raises(FormatError, match="public signal 1"):
        export_calldata(proof, [0, -1])


def test_constants_are_the_keys_numbers(fixtures: Path) -> None:
    path = fixtures / "co-snarks/bn254/sum_arrays/verification_key.json"
    raw = json.loads(path.read_bytes())
    text = export_solidity(snarkjs_json.read_verification_key(path))
    constants = dict(CONSTANT.findall(text))
    assert constants["Q"] == str(BN254.p)
    assert constants["R"] == str(BN254.r)
    assert [constants[f"ALPHA_{c}"] for c in "XY"] == raw["vk_alpha_1"][:2]
    for name in ("beta", "gamma", "delta"):
        x, y = raw[f"vk_{name}_2"][:2]
        suffixes = ("X0", "X1", "Y0", "Y1")
        assert [constants[f"{name.upper()}_{s}"] for s in suffixes] == [*x, *y]
    for i, point in enumerate(raw["IC"]):
        assert [constants[f"IC{i}_{c}"] for c in "XY"] == point[:2]
    assert f"uint256[{raw['nPublic']}] calldata pubSignals" in text
    assert text.startswith("// SPDX-License-Identifier: MIT OR Apache-2.0\n")


def test_no_public_signal(fixtures: Path) -> None:
    vk, _, proof = sample(fixtures)
    text = export_solidity(dataclasses.replace(vk, ic=vk.ic[:1]))
    assert "uint256[] calldata pubSignals" in text
    assert "if (pubSignals.length != 0) return false;" in text
    assert "_add" not in text
    assert export_calldata(proof, []).endswith(",[]")


def test_infinity_is_zero_words(fixtures: Path) -> None:
    vk, public, proof = sample(fixtures)
    zero = Points.from_affine(BN254, "g1", [None])
    words = [f'"0x{0:064x}"'] * 2
    text = export_calldata(dataclasses.replace(proof, c=zero), public)
    assert f"[{', '.join(words)}],[" in text
    unbound = Points.concatenate([vk.ic[:1], zero])
    constants = dict(CONSTANT.findall(export_solidity(dataclasses.replace(vk, ic=unbound))))
    assert (constants["IC1_X"], constants["IC1_Y"]) == ("0", "0")


def test_bls12_381_has_no_such_contract() -> None:
    g1 = Points.from_affine(BLS12_381, "g1", [BLS12_381.g1])
    g2 = Points.from_affine(BLS12_381, "g2", [BLS12_381.g2])
    with pytest.raises(
        FormatError, match=r"expected a verifying key on BN254.*found one on BLS12-381"
    ):
        export_solidity(VerifyingKey(BLS12_381, g1, g2, g2, g2, g1))
    with pytest.raises(FormatError, match="expected a proof on BN254"):
        export_calldata(Proof(g1, g2, g1), [])
