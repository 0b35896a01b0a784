"""The device's arithmetic on 32-bit limbs, built for the host, against Python's integers.

The kernels of ``rates.cu`` and ``point_rates.cu`` run one or two steps on values where carries change
sides, and on random ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from cuzk.backends.cuda.machine import Unit
from cuzk.curves import Curve
from cuzk.vectors import pack, unpack
from emulator import EmulatedMachine

FIELDS = ("fp", "fr")
Values = tuple[int, ...]


def modulus(curve: Curve, field: str) -> tuple[int, int]:
    return (curve.r, curve.fr_words) if field == "fr" else (curve.p, curve.fp_words)


def edges(p: int, words: int) -> list[int]:
    """Elements as they are held: ends of the range, limbs of all ones, single bits."""
    top = p.bit_length() - 1
    near = [0, 1, 2, p - 1, p - 2, p >> 1, (p >> 1) + 1, (1 << 64 * words) % p, 2**32 - 1, 2**32]
    ones = [
        2**64 - 1,
        2**64,
        2**96 - 2**32,
        2**top - 1,
        2**top,
        2**top - 2**64,
        p - 2**64,
        p - 2**32,
    ]
    return near + ones


def run(curve: Curve, kernel: str, rows: Sequence[Values], steps: int = 1) -> list[Values]:
    """One thread a row of elements as they are held, not plain integers; the same number of rows out."""
    _, words = modulus(curve, kernel[-2:])
    machine, width = EmulatedMachine(), len(rows[0])
    flat = pack([value for row in rows for value in row], words)
    source, out = machine.alloc(flat.nbytes), machine.alloc(flat.nbytes)
    machine.upload(source, flat)
    machine.launch(Unit("rates.cu", curve), kernel, 1, len(rows), source, out, steps)
    result = np.empty_like(flat)
    machine.download(out, result)
    found = unpack(result)
    return [tuple(found[i : i + width]) for i in range(0, len(found), width)]


def chunks(rows: list[Values], size: int = 512) -> list[list[Values]]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def expect(
    curve: Curve, name: str, field: str, rows: list[Values], law: Callable[..., Values]
) -> None:
    """``law(p, product, *row)`` is what a step leaves; product is a * b / 2^(64 words) modulo p."""
    p, words = modulus(curve, field)
    shrink = pow(2, -64 * words, p)

    def product(a: int, b: int) -> int:
        return a * b * shrink % p

    for part in chunks(rows):
        assert run(curve, f"{name}_{field}", part) == [law(p, product, *row) for row in part]


def values_of(curve: Curve, field: str) -> tuple[list[int], random.Random]:
    p, words = modulus(curve, field)
    rng = random.Random(f"{curve.name} {field}")
    return edges(p, words) + [rng.randrange(p) for _ in range(12)], rng


Product = Callable[[int, int], int]


def multiply(_: int, product: Product, a: int, b: int) -> Values:
    a = product(a, b)
    return a, product(b, a)


def square(_: int, product: Product, a: int) -> Values:
    a = product(a, a)
    return (product(a, a),)


def add(p: int, _: Product, a: int, b: int) -> Values:
    a = (a + b) % p
    return a, (a - b) % p


def pairs(p: int, product: Product, a: int, b: int, c: int, d: int) -> Values:
    a = (product(a, b) + product(c, d)) % p
    return a, b, (product(c, d) - product(a, b)) % p, d


@pytest.mark.parametrize("field", FIELDS)
def test_products_and_sums(curve: Curve, field: str) -> None:
    values, _ = values_of(curve, field)
    rows: list[Values] = [(a, b) for a in values for b in values]
    expect(curve, "multiply", field, rows, multiply)
    expect(curve, "add", field, rows, add)


@pytest.mark.parametrize("field", FIELDS)
def test_squares(curve: Curve, field: str) -> None:
    values, rng = values_of(curve, field)
    p, _ = modulus(curve, field)
    values += [rng.randrange(p) for _ in range(300)]
    expect(curve, "square", field, [(a,) for a in values], square)


@pytest.mark.parametrize("field", FIELDS)
def test_two_products_with_one_reduction(curve: Curve, field: str) -> None:
    values, rng = values_of(curve, field)
    p, _ = modulus(curve, field)
    largest = [0, 1, p - 1, p - 2, 2 ** (p.bit_length() - 1) - 1]
    rows: list[Values] = [
        (a, b, c, d) for a in largest for b in largest for c in largest for d in largest
    ]
    rows += [tuple(rng.choice(values) for _ in range(4)) for _ in range(1000)]
    expect(curve, "pairs", field, rows, pairs)


@pytest.mark.parametrize("field", FIELDS)
def test_long_chains(curve: Curve, field: str) -> None:
    values, _ = values_of(curve, field)
    p, words = modulus(curve, field)
    shrink = pow(2, -64 * words, p)
    rows: list[Values] = [(a, b) for a, b in pairwise(values)]
    expected = []
    for a, b in rows:
        for _ in range(50):
            a = a * b * shrink % p
            b = a * b * shrink % p
        expected.append((a, b))
    assert run(curve, f"multiply_{field}", rows, steps=50) == expected


@pytest.mark.parametrize("field", FIELDS)
def test_inverses(curve: Curve, field: str) -> None:
    values, rng = values_of(curve, field)
    p, words = modulus(curve, field)
    values += [rng.randrange(p) for _ in range(100)]
    one = (1 << 64 * words) % p
    expected = [((pow(v, -1, p) * one * one if v else 0) + one) % p for v in values]
    assert run(curve, f"invert_{field}", [(v,) for v in values]) == [(v,) for v in expected]
