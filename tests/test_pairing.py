"""The pairing against py_ecc, snarkjs' stored values, Ethereum's vectors and its own laws."""

import json
from functools import cache
from importlib import import_module
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk import _core
from cuzk.constants import REAL_CURVES, ate_loop, is_bn, signed_digits
from cuzk.curves import BLS12_381, BN254, Curve, curve_named
from cuzk.vectors import Affine, Points, pack, unpack
from reference import affine_points, sum_points

pytestmark = pytest.mark.usefixtures("arithmetic")

XI0 = {BN254: 9, BLS12_381: 1}


def generator(curve: Curve, group: str) -> Points:
    return multiple(curve, group, 1)


@cache
def multiple(curve: Curve, group: str, k: int) -> Points:
    base = curve.g1 if group == "g1" else curve.g2
    return Points.from_affine(curve, group, [sum_points(curve, group, [base], [k % curve.r])])


@cache
def multiples(curve: Curve, group: str, count: int) -> list[Affine]:
    """1, 2, ... times the generator."""
    base = curve.g1 if group == "g1" else curve.g2
    return list(
        accumulate(repeat(base, count), lambda a, b: sum_points(curve, group, [a, b], [1, 1]))
    )


def is_one(g1: Points, g2: Points, threads: int = 1) -> bool:
    return _core.pairing_product_is_one(g1.curve.name, g1.words, g2.words, threads)


def value(g1: Points, g2: Points) -> list[int]:
    """The twelve coefficients as plain integers."""
    curve = g1.curve
    out = np.zeros((12, curve.fp_words), dtype=np.uint64)
    _core.pairing(curve.name, g1.words, g2.words, out)
    factor = pow(2, -64 * curve.fp_words, curve.p)
    return [v * factor % curve.p for v in unpack(out)]


@pytest.mark.parametrize(
    "folder",
    [
        "co-snarks/bn254/multiplier2",
        "co-snarks/bn254/poseidon",
        "co-snarks/bn254/kyc",
        "co-snarks/bn254/sum_arrays",
        "rapidsnark",
        "co-snarks/bls12_381/multiplier2",
        "co-snarks/bls12_381/poseidon",
        "co-snarks/bls12_381/kyc",
    ],
)
def test_value_that_snarkjs_stores(fixtures: Path, folder: str) -> None:
    key = json.loads((fixtures / folder / "verification_key.json").read_text())
    curve = curve_named(key["curve"])
    alpha = Points.from_affine(curve, "g1", [tuple(map(int, key["vk_alpha_1"][:2]))])
    beta_coordinates = tuple(int(c) for pair in key["vk_beta_2"][:2] for c in pair)
    beta = Points.from_affine(curve, "g2", [beta_coordinates])
    stored = [int(c) for half in key["vk_alphabeta_12"] for pair in half for c in pair]
    assert value(alpha, beta) == stored


def final_power(curve: Curve) -> int:
    """Ours over (p^12 - 1) / r; py_ecc leaves out the inversion that x < 0 asks for."""
    x = curve.x
    return 2 * x * (6 * x * x + 3 * x + 1) if curve is BN254 else -3


@cache
def py_ecc_value(curve: Curve, g1: Affine, g2: Affine) -> list[int]:
    """py_ecc's Fp[w] / (w^12 - 2 xi0 w^6 + xi0^2 + 1) written over Fp2: w^6 = xi0 + u."""
    name = {"bn254": "bn128", "bls12_381": "bls12_381"}[curve.name]
    ecc: Any = import_module(f"py_ecc.optimized_{name}")
    assert g1 is not None
    assert g2 is not None
    p = (ecc.FQ(g1[0]), ecc.FQ(g1[1]), ecc.FQ(1))
    q = (ecc.FQ2(g2[:2]), ecc.FQ2(g2[2:]), ecc.FQ2.one())
    c = [int(v) for v in (ecc.pairing(q, p) ** (final_power(curve) % curve.r)).coeffs]
    return [
        part
        for i in (0, 2, 4, 1, 3, 5)
        for part in ((c[i] + XI0[curve] * c[i + 6]) % curve.p, c[i + 6])
    ]


def test_value_of_py_ecc(curve: Curve) -> None:
    p, q = multiple(curve, "g1", 2026), multiple(curve, "g2", 1129 << 200)
    assert value(p, q) == py_ecc_value(curve, p.affine(), q.affine())


def test_final_exponents() -> None:
    p, r, x = BN254.p, BN254.r, BN254.x
    assert r * (
        (1 + 6 * x + 12 * x**2 + 12 * x**3)
        + (4 * x + 6 * x**2 + 12 * x**3) * p
        + (6 * x + 6 * x**2 + 12 * x**3) * p**2
        + (4 * x + 6 * x**2 + 12 * x**3 - 1) * p**3
    ) == final_power(BN254) * (p**4 - p**2 + 1)
    p, r, x = BLS12_381.p, BLS12_381.r, BLS12_381.x
    assert r * ((x - 1) ** 2 * (x + p) * (x**2 + p**2 - 1) + 3) == 3 * (p**4 - p**2 + 1)
    for curve in REAL_CURVES:  # the multiples are coprime to r: no pairing value is lost
        assert final_power(curve) % curve.r != 0


def test_families_and_digits() -> None:
    assert [is_bn(curve) for curve in (BN254, BLS12_381)] == [True, False]
    for number in (1, 2, 7, 0b1011, 2**64 - 1, *(ate_loop(curve) for curve in REAL_CURVES)):
        digits = signed_digits(number)
        assert sum(d << i for i, d in enumerate(digits)) == number
        assert set(digits) <= {-1, 0, 1}
        assert digits[-1] == 1


def test_bilinear(curve: Curve) -> None:
    r = curve.r
    a, b = 0xABCDEF << 220, r - 0x1234567
    left = Points.concatenate([multiple(curve, "g1", a), multiple(curve, "g1", -a * b)])
    right = Points.concatenate([multiple(curve, "g2", b), generator(curve, "g2")])
    assert is_one(left, right)
    off = Points.concatenate([multiple(curve, "g1", a), multiple(curve, "g1", -a * b + 1)])
    assert not is_one(off, right)
    assert value(multiple(curve, "g1", a), multiple(curve, "g2", b)) == value(
        multiple(curve, "g1", a * b), generator(curve, "g2")
    )


def test_not_degenerate_and_infinity(curve: Curve) -> None:
    g1, g2 = generator(curve, "g1"), generator(curve, "g2")
    none1 = Points.from_affine(curve, "g1", [None])
    none2 = Points.from_affine(curve, "g2", [None])
    one = [1] + [0] * 11
    assert not is_one(g1, g2)
    assert value(g1, g2) != one
    for p, q in ((none1, g2), (g1, none2), (none1, none2)):
        assert is_one(p, q)
        assert value(p, q) == one
    assert is_one(Points.empty(curve, "g1"), Points.empty(curve, "g2"))
    minus = multiple(curve, "g1", -1)
    assert is_one(
        Points.concatenate([none1, g1, minus, g1]), Points.concatenate([g2, g2, g2, none2])
    )


@pytest.mark.parametrize("threads", [1, 3])
def test_many_pairs(curve: Curve, threads: int) -> None:
    count = 133  # more than one chunk, the last of another length
    g1 = Points.from_affine(curve, "g1", multiples(curve, "g1", count))
    g2 = Points.from_affine(curve, "g2", multiples(curve, "g2", count)[::-1])
    for n in (1, 2, 7, 64, 65, count):
        total = sum((i + 1) * (count - i) for i in range(n))
        for change in (0, 1):
            last = multiple(curve, "g1", change - total)
            left = Points.concatenate([g1[:n], last])
            right = Points.concatenate([g2[:n], generator(curve, "g2")])
            assert is_one(left, right, threads) == (change == 0)


def parsed(curve: Curve, data: bytes, size: int, order: tuple[int, ...]) -> tuple[Points, Points]:
    """Pairs of (x, y) and four coordinates of G2 in ``order``, each a big-endian word of ``size``."""
    numbers = [int.from_bytes(data[i : i + size], "big") for i in range(0, len(data), size)]
    factor = 1 << 64 * curve.fp_words
    held = [
        v * factor % curve.p if v < curve.p else v for v in numbers
    ]  # keep what is out of range
    pairs = [held[i : i + 6] for i in range(0, len(held), 6)]
    left = [c for pair in pairs for c in pair[:2]]
    right = [pair[2 + i] for pair in pairs for i in order]
    n, words = len(pairs), curve.fp_words
    return (
        Points(curve, "g1", pack(left, words).reshape(n, 2 * words)),
        Points(curve, "g2", pack(right, words).reshape(n, 4 * words)),
    )


def fault(points: Points) -> str:
    return _core.first_bad_point(points.curve.name, points.group, points.words, True, 2)[1]


def test_ethereum_bn254(fixtures: Path) -> None:
    cases = json.loads((fixtures / "evm/bn256Pairing.json").read_text())
    assert len(cases) == 14
    for case in cases:
        g1, g2 = parsed(BN254, bytes.fromhex(case["Input"]), 32, (1, 0, 3, 2))
        assert fault(g1) == fault(g2) == ""
        assert is_one(g1, g2, 2) == (int(case["Expected"], 16) == 1), case["Name"]


def test_ethereum_bls12_381(fixtures: Path) -> None:
    folder = fixtures / "evm/eip-2537"
    cases = json.loads((folder / "pairing_check_bls.json").read_text())
    assert len(cases) == 10
    for case in cases:
        g1, g2 = parsed(BLS12_381, bytes.fromhex(case["Input"]), 64, (0, 1, 2, 3))
        assert fault(g1) == fault(g2) == ""
        assert is_one(g1, g2, 2) == (int(case["Expected"], 16) == 1), case["Name"]


def test_ethereum_bls12_381_refused(fixtures: Path) -> None:
    words = {"fp.Element": "range", "on curve": "curve", "correct subgroup": "subgroup"}
    text = (fixtures / "evm/eip-2537/fail-pairing_check_bls.json").read_text()
    seen = []
    for case in json.loads(text):
        reason = next((r for word, r in words.items() if word in case["ExpectedError"]), "")
        if not reason:
            continue  # length and padding of the precompile's own frame
        g1, g2 = parsed(BLS12_381, bytes.fromhex(case["Input"]), 64, (0, 1, 2, 3))
        assert {fault(g1), fault(g2)} == {"", reason}, case["Name"]
        seen.append(reason)
    assert {reason: seen.count(reason) for reason in set(seen)} == {
        "range": 6,
        "curve": 6,
        "subgroup": 6,
    }


def test_shapes(curve: Curve) -> None:
    g1, g2 = generator(curve, "g1").words, generator(curve, "g2").words
    out = np.zeros((12, curve.fp_words), dtype=np.uint64)
    with pytest.raises(ValueError, match="g2"):
        _core.pairing_product_is_one(curve.name, g1, np.repeat(g2, 2, axis=0), 1)
    with pytest.raises(ValueError, match="g1"):
        _core.pairing_product_is_one(curve.name, g2, g2, 1)
    with pytest.raises(ValueError, match="out"):
        _core.pairing(curve.name, g1, g2, out[:11])
    with pytest.raises(ValueError, match="g1"):
        _core.pairing(curve.name, np.repeat(g1, 2, axis=0), g2, out)


def test_reference_multiples(curve: Curve) -> None:
    """The multiples above come from the reference's own arithmetic; here they meet themselves."""
    for group in ("g1", "g2"):
        points = Points.from_affine(curve, group, multiples(curve, group, 9))
        assert affine_points(points)[8] == multiple(curve, group, 9).affine()
