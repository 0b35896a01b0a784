"""Loops over vectors of field elements against Python integers."""

import random

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import Curve
from cuzk.vectors import Scalars, Words, pack, unpack

pytestmark = pytest.mark.usefixtures("arithmetic")

SIZES = (0, 1, 2, 1023, 1025, 5000)


def scalars(curve: Curve, n: int, seed: int = 1) -> list[int]:
    rng = random.Random(seed)
    edge = [0, 1, curve.r - 1, curve.r - 2, 2**64 - 1, 2**64, 2**128, 2**192]
    return (edge + [rng.randrange(curve.r) for _ in range(n)])[:n]


def mont(curve: Curve, values: list[int]) -> Words:
    return Scalars.from_ints(curve, values, montgomery=True).words


def ints(curve: Curve, words: Words) -> list[int]:
    return Scalars(curve, words, montgomery=True).ints()


def empty(n: int) -> Words:
    return np.full((n, 4), 2**64 - 1, np.uint64)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("field", ["fr", "fp"])
def test_montgomery_form_and_back(curve: Curve, field: str, n: int, threads: int) -> None:
    modulus, width = (curve.r, curve.fr_words) if field == "fr" else (curve.p, curve.fp_words)
    rng = random.Random(n)
    values = ([0, 1, modulus - 1] + [rng.randrange(modulus) for _ in range(n)])[:n]
    plain, out = pack(values, width), np.zeros((n, width), np.uint64)
    _core.to_montgomery(curve.name, field, plain, out, threads)
    assert unpack(out) == [(v << 64 * width) % modulus for v in values]
    _core.from_montgomery(curve.name, field, out, out, threads)  # in place
    assert unpack(out) == values


def test_first_not_canonical(curve: Curve) -> None:
    values = scalars(curve, 20000)
    for bad in ([], [0], [19999], [1500, 1501, 12000]):
        words = pack([curve.r if i in bad else v for i, v in enumerate(values)], 4)
        for threads in (1, 2, 3):
            found = _core.first_not_canonical(curve.name, "fr", words, threads)
            assert found == (min(bad) if bad else -1)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("scale", [1, 0, 12345])
def test_pointwise(curve: Curve, n: int, threads: int, scale: int) -> None:
    a, b, minus = (scalars(curve, n, seed) for seed in (1, 2, 3))
    out = empty(n)
    left, right, off, factor = (mont(curve, v) for v in (a, b, minus, [scale]))
    _core.pointwise(curve.name, left, right, off, factor, out, threads)
    expected = [(x * y - m) * scale % curve.r for x, y, m in zip(a, b, minus, strict=True)]
    assert ints(curve, out) == expected
    _core.pointwise(curve.name, left, None, off, factor, out, threads)
    assert ints(curve, out) == [(x - m) * scale % curve.r for x, m in zip(a, minus, strict=True)]
    own = left.copy()
    _core.pointwise(curve.name, own, right, None, factor, own, threads)
    assert ints(curve, own) == [x * y * scale % curve.r for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_combine(curve: Curve, n: int, count: int) -> None:
    vectors = [scalars(curve, n, seed) for seed in range(count)]
    factors = scalars(curve, count + 9, 4)[9:]
    out = empty(n)
    _core.combine(curve.name, [mont(curve, v) for v in vectors], mont(curve, factors), out, 2)
    expected = [
        sum(f * v[i] for f, v in zip(factors, vectors, strict=True)) % curve.r for i in range(n)
    ]
    assert ints(curve, out) == expected


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("threads", [1, 3])
def test_powers(curve: Curve, n: int, threads: int) -> None:
    base, first = scalars(curve, 10)[8:]
    out = empty(n)
    _core.powers(curve.name, mont(curve, [base]), mont(curve, [first]), out, threads)
    assert ints(curve, out) == [first * pow(base, i, curve.r) % curve.r for i in range(n)]


def test_shapes_that_do_not_fit(curve: Curve) -> None:
    four, three = np.zeros((4, 4), np.uint64), np.zeros((3, 4), np.uint64)
    one = mont(curve, [1])
    with pytest.raises(ValueError, match="b: expected 4 rows, found 3"):
        _core.pointwise(curve.name, four, three, None, one, four.copy(), 1)
    with pytest.raises(ValueError, match="out: expected 4 rows, found 3"):
        _core.to_montgomery(curve.name, "fr", four, three, 1)
    with pytest.raises(ValueError, match="factors: expected 1 rows, found 4"):
        _core.combine(curve.name, [four], four, four.copy(), 1)
    with pytest.raises(ValueError, match="values: expected shape"):
        _core.from_montgomery(curve.name, "fr", np.zeros((4, 5), np.uint64), four, 1)
    with pytest.raises(ValueError, match="curve: expected bn254 or bls12_381, found toy"):
        _core.to_montgomery("toy", "fr", four, four, 1)
