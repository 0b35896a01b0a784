"""Field arithmetic of the native core against Python integers: four fields, Fp2, every arithmetic path."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk import _core
from cuzk.constants import fp2_inverse, fp2_mul
from cuzk.curves import CURVES, Curve
from cuzk.vectors import pack, unpack

FIELDS = [(c, f) for c in ("bn254", "bls12_381") for f in ("fp", "fr")]
TWO: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, _: a + b,
    "subtract": lambda a, b, _: a - b,
    "multiply": lambda a, b, _: a * b,
}
ONE: dict[str, Callable[[int, int], int]] = {
    "negate": lambda a, _: -a,
    "twice": lambda a, _: 2 * a,
    "square": lambda a, _: a * a,
    "invert": lambda a, p: pow(a, p - 2, p),
}


def modulus(curve: Curve, field: str) -> tuple[int, int]:
    return (curve.r, curve.fr_words) if field == "fr" else (curve.p, curve.fp_words)


def run(curve: str, field: str, op: str, a: list[int], b: list[int]) -> list[int]:
    """Plain integers in, Montgomery form inside, plain integers out; the words found are canonical."""
    p, words = modulus(CURVES[curve], field)
    enter, leave = 1 << (64 * words), pow(2, -64 * words, p)
    out = np.zeros((len(a), words), dtype=np.uint64)
    left, right = (pack([v * enter % p for v in values], words) for values in (a, b))
    _core.field_op(curve, field, op, left, right, out)
    found = unpack(out)
    assert all(v < p for v in found)
    return [v * leave % p for v in found]


def edges(p: int) -> list[int]:
    """Values at which carries, borrows and the final subtraction change sides, in both forms."""
    near = [0, 1, 2, p - 1, p - 2, (p - 1) // 2, (p + 1) // 2, 2**64 - 1, 2**64, 2**192 - 1]
    words = (p.bit_length() + 63) // 64
    leave = pow(2, -64 * words, p)
    return near + [v * leave % p for v in [*near, 2**252 - 1, p - 2**64, p - 2**128]]


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize(("curve", "field"), FIELDS)
def test_edges_and_random_pairs(curve: str, field: str) -> None:
    p, _ = modulus(CURVES[curve], field)
    rng = random.Random(f"{curve} {field}")
    values = edges(p) + [rng.randrange(p) for _ in range(20)]
    a = [x for x in values for _ in values]
    b = [y for _ in values for y in values]
    for name, law in TWO.items():
        assert run(curve, field, name, a, b) == [
            law(x, y, p) % p for x, y in zip(a, b, strict=True)
        ]
    for name, unary in ONE.items():
        assert run(curve, field, name, values, values) == [unary(x, p) % p for x in values], name


@pytest.mark.parametrize(("curve", "field"), FIELDS)
@pytest.mark.parametrize("path", _core.paths())
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_pair(path: str, curve: str, field: str, data: st.DataObject) -> None:
    p, _ = modulus(CURVES[curve], field)
    a, b = (data.draw(st.integers(0, p - 1)) for _ in "ab")
    before = _core.path()
    _core.use_path(path)
    try:
        for name, law in TWO.items():
            assert run(curve, field, name, [a], [b]) == [law(a, b, p) % p]
        for name, unary in ONE.items():
            assert run(curve, field, name, [a], [b]) == [unary(a, p) % p]
    finally:
        _core.use_path(before)


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize(("curve", "field"), FIELDS)
def test_inverse_of_many(curve: str, field: str) -> None:
    """Division steps take different routes for different inputs: powers of two and their neighbours too."""
    p, _ = modulus(CURVES[curve], field)
    rng = random.Random(7)
    values = [2**i + d for i in range(p.bit_length() - 1) for d in (-1, 0, 1)]
    values += [rng.randrange(p) for _ in range(500)] + [rng.randrange(2**40) for _ in range(100)]
    assert run(curve, field, "invert", values, values) == [
        pow(v, -1, p) if v else 0 for v in values
    ]


@pytest.mark.usefixtures("arithmetic")
def test_quadratic_extension(curve: Curve) -> None:
    p, words = curve.p, curve.fp_words
    rng = random.Random(3)
    coordinates = [0, 1, p - 1, (p + 1) // 2, rng.randrange(p), rng.randrange(p)]
    values = [(x, y) for x in coordinates for y in coordinates]
    a = [x for x in values for _ in values]
    b = [y for _ in values for y in values]
    enter, leave = 1 << (64 * words), pow(2, -64 * words, p)

    def words_of(elements: list[tuple[int, int]]) -> np.ndarray:
        flat = [c * enter % p for element in elements for c in element]
        return pack(flat, words).reshape(-1, 2 * words)

    def found(op: str) -> list[tuple[int, int]]:
        out = np.zeros((len(a), 2 * words), dtype=np.uint64)
        _core.field_op(curve.name, "fp2", op, words_of(a), words_of(b), out)
        flat = [v * leave % p for v in unpack(out.reshape(-1, words))]
        return list(zip(flat[::2], flat[1::2], strict=True))

    assert found("multiply") == [fp2_mul(x, y, p) for x, y in zip(a, b, strict=True)]
    assert found("square") == [fp2_mul(x, x, p) for x in a]
    assert found("add") == [
        ((x[0] + y[0]) % p, (x[1] + y[1]) % p) for x, y in zip(a, b, strict=True)
    ]
    assert found("subtract") == [
        ((x[0] - y[0]) % p, (x[1] - y[1]) % p) for x, y in zip(a, b, strict=True)
    ]
    assert found("invert") == [fp2_inverse(x, p) if x != (0, 0) else (0, 0) for x in a]


def test_names_and_shapes_are_checked() -> None:
    a = np.zeros((2, 4), dtype=np.uint64)
    with pytest.raises(ValueError, match="operation: expected add"):
        _core.field_op("bn254", "fr", "divide", a, a, a)
    with pytest.raises(ValueError, match=r"b: expected 2 rows, found 1"):
        _core.field_op("bn254", "fr", "add", a, a[:1], a)
    with pytest.raises(ValueError, match=r"a: expected shape \(n, 6\)"):
        _core.field_op("bls12_381", "fp", "add", a, a, a)
