"""The package's front door: names, lazy loading, the two kernels."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import py_ecc.optimized_bls12_381
import py_ecc.optimized_bn128
import pytest

import cuzk
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import FormatError
from cuzk.vectors import Affine, Points, Scalars
from reference import transform

SOURCE = Path(cuzk.__file__).resolve().parent.parent


def multiple(curve: Curve, group: str, k: int) -> Affine:
    """py_ecc's k times the generator."""
    oracle = {BN254: py_ecc.optimized_bn128, BLS12_381: py_ecc.optimized_bls12_381}[curve]
    x, y = oracle.normalize(oracle.multiply({"g1": oracle.G1, "g2": oracle.G2}[group], k))
    return (int(x), int(y)) if group == "g1" else tuple(int(c) for v in (x, y) for c in v.coeffs)


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    return result.stdout.strip()


def test_import_is_quick() -> None:
    """Of a processor's time less than five empty interpreters' start: that of one, where numpy's import takes ten."""

    def best(code: str) -> float:
        """Of three; of a process and no other."""
        times = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run(code)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(times)

    empty = best("pass")
    assert best("import cuzk") - empty < 5 * empty


@pytest.mark.parametrize(
    "first", ["cuzk.Prover", "cuzk.load_key", "import_module('cuzk.verifier')"]
)
def test_verify_is_a_function_whatever_came_first(first: str) -> None:
    code = f"import cuzk; from importlib import import_module; {first}; print(cuzk.verify.__name__)"
    assert run(code) == "verify"


def test_dir_and_unknown_names() -> None:
    assert set(cuzk.__all__) < set(dir(cuzk))
    with pytest.raises(AttributeError, match="no attribute 'proof'"):
        cuzk.proof  # noqa: B018


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_msm_of_coordinates(curve: Curve, group: str) -> None:
    points = [multiple(curve, group, 2), None, multiple(curve, group, 5)]
    scalars = [3, 99, curve.r - 1]
    assert cuzk.msm(curve.name, group, points, scalars) == multiple(curve, group, 1)
    assert cuzk.msm(curve, group, points, [5, 0, -2]) is None
    assert cuzk.msm(curve, group, [], []) is None


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_msm_of_arrays(curve: Curve, group: str) -> None:
    points = Points.from_affine(curve, group, [multiple(curve, group, k) for k in (2, 7)])
    scalars = Scalars.from_ints(curve, [10, 3])
    expected = multiple(curve, group, 41)
    assert cuzk.msm(curve, group, points, scalars) == expected
    assert cuzk.msm(curve, group, points.words, scalars.words) == expected
    assert (
        cuzk.msm(curve, group, points, Scalars.from_ints(curve, [10, 3], montgomery=True))
        == expected
    )


def test_msm_refuses(curve: Curve) -> None:
    g = multiple(curve, "g1", 1)
    assert g is not None
    for points, scalars, message in (
        ([g], [1, 2], "expected as many scalars as points, found 2 and 1"),
        ([(g[0], g[1] + 1)], [1], "index 0: expected a point on the curve"),
        ([None, (curve.p, 1)], [1, 1], "index 1: expected 2 coordinates below p"),
        ([(1, 2, 3)], [1], "index 0: expected 2 coordinates"),
    ):
        with pytest.raises(FormatError, match=message):
            cuzk.msm(curve, "g1", points, scalars)
    with pytest.raises(FormatError, match="group: expected g1 or g2, found 'g3'"):
        cuzk.msm(curve, "g3", [], [])
    with pytest.raises(FormatError, match=r"expected a \(n, 4\) array of uint64"):
        cuzk.msm(curve, "g1", [g], np.zeros((1, 3), dtype=np.uint64))
    too_large = np.full((1, 4), 2**64 - 1, dtype=np.uint64)
    with pytest.raises(FormatError, match="index 0: expected a value below r"):
        cuzk.msm(curve, "g1", [g], too_large)


@pytest.mark.parametrize("log_n", [0, 1, 2, 3, 7])
def test_ntt_of_integers(curve: Curve, log_n: int) -> None:
    x = [pow(3, 50 * i, curve.r) for i in range(1 << log_n)]
    root = curve.root_of_unity(log_n)
    y = cuzk.ntt(curve.name, x)
    assert y == transform(x, root, curve.r)
    assert cuzk.ntt(curve.name, y, inverse=True) == x


def test_ntt_of_arrays(curve: Curve) -> None:
    x = Scalars.from_ints(curve, [5, 6, 7, 8])
    before = x.words.copy()
    y = cuzk.ntt(curve, x)
    assert isinstance(y, np.ndarray)
    assert Scalars(curve, y).ints() == cuzk.ntt(curve, [5, 6, 7, 8])
    back = cuzk.ntt(curve, y, inverse=True)
    assert np.array_equal(back, x.words)
    assert np.array_equal(x.words, before)


def test_ntt_with_another_generator() -> None:
    x = [1, 2, 3, 4]
    root = pow(7, (BLS12_381.r - 1) >> 2, BLS12_381.r)
    assert cuzk.ntt("bls12-381", x, generator=7) == transform(x, root, BLS12_381.r)


def test_ntt_refuses(curve: Curve) -> None:
    for count in (0, 3, 6):
        with pytest.raises(FormatError, match=f"expected 2.k values, found {count}"):
            cuzk.ntt(curve, [1] * count)
