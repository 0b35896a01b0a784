"""NTT, Lagrange basis and sparse products against direct evaluation in Python integers."""

import random
from itertools import accumulate

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import Curve
from cuzk.vectors import Scalars, Words, pack

pytestmark = pytest.mark.usefixtures("arithmetic")


def mont(curve: Curve, values: list[int]) -> Words:
    return Scalars.from_ints(curve, values, montgomery=True).words.copy()


def ints(curve: Curve, words: Words) -> list[int]:
    return Scalars(curve, words, montgomery=True).ints()


def scalars(curve: Curve, n: int, seed: int = 1) -> list[int]:
    rng = random.Random(seed)
    return ([curve.r - 1, 0, 1] + [rng.randrange(curve.r) for _ in range(n)])[:n]


def horner(curve: Curve, coefficients: list[int], x: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * x + coefficient) % curve.r
    return value


def reversed_order(log_n: int) -> list[int]:
    return [int(f"{i:0{log_n}b}"[::-1], 2) if log_n else 0 for i in range(1 << log_n)]


def transform(
    curve: Curve, words: Words, *, shift: int = 1, inverse: bool = False, threads: int = 1
) -> Words:
    root = curve.root_of_unity(len(words).bit_length() - 1)
    out = words.copy()
    _core.ntt(curve.name, out, mont(curve, [root]), mont(curve, [shift]), inverse, threads)
    return out


@pytest.mark.parametrize("log_n", range(7))
@pytest.mark.parametrize("shift", [1, 5, 1234567])
def test_every_value_by_direct_evaluation(curve: Curve, log_n: int, shift: int) -> None:
    n, root = 1 << log_n, curve.root_of_unity(log_n)
    coefficients = scalars(curve, n)
    found = ints(curve, transform(curve, mont(curve, coefficients), shift=shift))
    points = [shift * pow(root, j, curve.r) % curve.r for j in reversed_order(log_n)]
    assert found == [horner(curve, coefficients, x) for x in points]


@pytest.mark.parametrize("log_n", range(7, 15))
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_some_values_by_horner(curve: Curve, log_n: int, threads: int) -> None:
    n, root, shift = 1 << log_n, curve.root_of_unity(log_n), 7
    coefficients = scalars(curve, n, log_n)
    found = transform(curve, mont(curve, coefficients), shift=shift, threads=threads)
    order = reversed_order(log_n)
    for place in (0, 1, n // 2, n - 1, random.Random(log_n).randrange(n)):
        x = shift * pow(root, order[place], curve.r) % curve.r
        assert ints(curve, found[place : place + 1]) == [horner(curve, coefficients, x)]


@pytest.mark.parametrize("log_n", [0, 1, 2, 3, 5, 8, 9, 10, 11, 12, 13, 16])
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_round_trip(curve: Curve, log_n: int, shift: int, threads: int) -> None:
    rng = np.random.default_rng(log_n)
    words = rng.integers(0, 2**60, (1 << log_n, 4), np.uint64)  # below either prime
    there = transform(curve, words, shift=shift, threads=threads)
    assert log_n == 0 or (there != words).any()
    assert (there == transform(curve, words, shift=shift)).all()
    back = transform(curve, there, shift=shift, inverse=True, threads=threads)
    assert (back == words).all()


@pytest.mark.slow
@pytest.mark.parametrize("log_n", [21, 22])
def test_large_transforms(curve: Curve, log_n: int) -> None:
    """X^(n - 1) + 2 X: values known everywhere; the last index needs all bits."""
    n, root, r = 1 << log_n, curve.root_of_unity(log_n), curve.r
    words = np.zeros((n, 4), np.uint64)
    words[1], words[n - 1] = mont(curve, [2])[0], mont(curve, [1])[0]
    found = transform(curve, words, threads=2)
    for place in (0, 1, 2, n // 2 + 1, n - 1):
        x = pow(root, int(f"{place:0{log_n}b}"[::-1], 2), r)
        assert ints(curve, found[place : place + 1]) == [(pow(x, n - 1, r) + 2 * x) % r]
    assert (transform(curve, found, inverse=True, threads=2) == words).all()


@pytest.mark.parametrize("log_n", [4, 11])
def test_the_inverse_alone(curve: Curve, log_n: int) -> None:
    """x^k's values are known: the powers of w^k, in bit-reversed order."""
    n, root, k = 1 << log_n, curve.root_of_unity(log_n), 3
    values = [pow(root, k * j % n, curve.r) for j in reversed_order(log_n)]
    found = ints(curve, transform(curve, mont(curve, values), inverse=True))
    assert found == [int(i == k) for i in range(n)]


def test_extreme_values(curve: Curve) -> None:
    """All r - 1, where every lazy bound is nearest to its limit."""
    for log_n in (6, 12, 13):
        n = 1 << log_n
        words = np.tile(pack([curve.r - 1], 4), (n, 1))
        found = transform(curve, words, shift=1)
        assert (found[0] == pack([n * (curve.r - 1) % curve.r], 4)).all()
        assert not found[1:].any()
        back = transform(curve, words, shift=9, inverse=True)
        assert (transform(curve, back, shift=9) == words).all()


def test_linearity(curve: Curve) -> None:
    a, b = (scalars(curve, 1 << 10, seed) for seed in (1, 2))
    s = curve.r - 12345
    mixed = mont(curve, [(x + s * y) % curve.r for x, y in zip(a, b, strict=True)])
    left = ints(curve, transform(curve, mixed, shift=3))
    images = [ints(curve, transform(curve, mont(curve, v), shift=3)) for v in (a, b)]
    assert left == [(x + s * y) % curve.r for x, y in zip(*images, strict=True)]


@pytest.mark.parametrize("threads", [1, 3])
def test_one_table_serves_smaller_transforms(curve: Curve, threads: int) -> None:
    log_table = 14
    table = np.zeros((1 << (log_table - 1), 4), np.uint64)
    top = mont(curve, [curve.root_of_unity(log_table)])
    _core.twiddles(curve.name, top, table, threads)
    order = reversed_order(log_table - 1)
    root = curve.root_of_unity(log_table)
    for k in (0, 1, 2, 3, 100, len(table) - 1):
        assert ints(curve, table[k : k + 1]) == [pow(root, order[k], curve.r)]
    for log_n in (1, 2, 9, 13, 14):
        words = mont(curve, scalars(curve, 1 << log_n))
        own = mont(curve, [curve.root_of_unity(log_n)]), mont(curve, [7])
        for inverse in (False, True):
            out = words.copy()
            _core.ntt(curve.name, out, *own, inverse, threads, table)
            assert (out == transform(curve, words, shift=7, inverse=inverse)).all()


def test_what_is_not_a_transform(curve: Curve) -> None:
    words, one = mont(curve, scalars(curve, 8)), mont(curve, [1])
    root = mont(curve, [curve.root_of_unity(3)])
    with pytest.raises(ValueError, match="expected a power of two, found 7"):
        _core.ntt(curve.name, words[:7], root, one, False, 1)
    with pytest.raises(ValueError, match="expected a power of two, found 0"):
        _core.ntt(curve.name, words[:0], root, one, False, 1)
    for order in (2, 4):
        wrong = mont(curve, [curve.root_of_unity(order)])
        with pytest.raises(ValueError, match="primitive root of unity of order 8"):
            _core.ntt(curve.name, words, wrong, one, False, 1)
    with pytest.raises(ValueError, match="shift"):
        _core.ntt(curve.name, words, root, mont(curve, [0]), False, 1)
    table = np.zeros((2, 4), np.uint64)
    _core.twiddles(curve.name, mont(curve, [curve.root_of_unity(2)]), table, 1)
    with pytest.raises(ValueError, match="twiddles: expected at least 4"):
        _core.ntt(curve.name, words, root, one, False, 1, table)
    with pytest.raises(ValueError, match="twiddles: expected at least 4"):
        _core.ntt(curve.name, words, root, one, False, 1, np.zeros((4, 4), np.uint64))
    frozen = words.copy()
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        _core.ntt(curve.name, frozen, root, one, False, 1)


@pytest.mark.parametrize("log_n", [0, 1, 5, 8, 9, 10, 13])
@pytest.mark.parametrize("width", [1, 4, 12])
@pytest.mark.parametrize("threads", [1, 3])
def test_bit_reverse(log_n: int, width: int, threads: int) -> None:
    rng = np.random.default_rng(log_n)
    words = rng.integers(0, 2**64, (1 << log_n, width), np.uint64)
    out = words.copy()
    _core.bit_reverse(out, threads)
    assert (out == words[reversed_order(log_n)]).all()


def test_bit_reverse_of_other_lengths() -> None:
    for n in (0, 3, 12):
        with pytest.raises(ValueError, match="power of two"):
            _core.bit_reverse(np.zeros((n, 4), np.uint64))


@pytest.mark.parametrize("log_n", [0, 1, 4, 9, 12])
@pytest.mark.parametrize("threads", [1, 3])
def test_lagrange_basis_evaluates_polynomials(curve: Curve, log_n: int, threads: int) -> None:
    n, root, tau = 1 << log_n, curve.root_of_unity(log_n), curve.r // 3
    out = np.zeros((n, 4), np.uint64)
    _core.lagrange(curve.name, mont(curve, [root]), mont(curve, [tau]), out, threads)
    basis = ints(curve, out)
    assert sum(basis) % curve.r == 1
    f = scalars(curve, min(n, 40))
    domain = accumulate(range(n - 1), lambda w, _: w * root % curve.r, initial=1)
    total = sum(v * horner(curve, f, w) for v, w in zip(basis, domain, strict=True))
    assert total % curve.r == horner(curve, f, tau)


def test_lagrange_inside_the_domain(curve: Curve) -> None:
    root = curve.root_of_unity(3)
    with pytest.raises(ValueError, match="tau: lies in the domain"):
        _core.lagrange(
            curve.name,
            mont(curve, [root]),
            mont(curve, [pow(root, 5, curve.r)]),
            np.zeros((8, 4), np.uint64),
            1,
        )
