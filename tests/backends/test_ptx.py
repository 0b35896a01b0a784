"""The rows of carries that only a device's compiler reads: their PTX, interpreted, against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from test_arithmetic import (
    FIELDS,
    Product,
    Values,
    add,
    modulus,
    multiply,
    pairs,
    square,
    values_of,
)

from cuzk import constants
from cuzk.backends.cuda import kernels
from cuzk.backends.cuda.machine import Unit
from cuzk.constants import Fp2
from cuzk.curves import CURVES, Curve
from emulator.ptx import Thread

# Products in Fp2 are calls, which the interpreter has not: here they stand in the kernel itself.
COMPLEX = b"""
KERNEL(1, 1) complex_fp(const Fp* in, Fp* out, size) {
  using L = Limbs<typename Fp::P>;
  Fp a[8], b[8];
  for (int i = 0; i < 8; i++) b[i] = a[i] = load(in + i);
  L::multiply_complex(b[0].w, b[1].w, a[0].w, a[1].w, a[2].w, a[3].w);
  L::square_complex(b[2].w, b[3].w, a[4].w, a[5].w);
  L::difference_complex(b[4].w, b[5].w, a[0].w, a[1].w, a[2].w, a[3].w, a[4].w, a[5].w, a[6].w, a[7].w);
  for (int i = 0; i < 8; i++) store(out + i, b[i]);
}
"""
IN, OUT = 1 << 32, 1 << 33
LAWS: dict[str, tuple[Callable[..., Values], int]] = {
    "multiply": (multiply, 2),
    "square": (square, 1),
    "add": (add, 2),
    "pairs": (pairs, 4),
}


@cache
def text_of(curve: str) -> str:
    """rates.cu as NVRTC translates it."""
    nvrtc = kernels.compiler().nvrtc
    unit = Unit("rates.cu", CURVES[curve])
    options = [o.replace(b"sm_", b"compute_") for o in kernels.options(unit, 90)]
    header, name = constants.header().encode(), b"curve_constants.hpp"
    _, program = nvrtc.nvrtcCreateProgram(
        kernels.program_text(unit) + COMPLEX, b"unit.cu", 1, [header], [name]
    )
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert not int(status)
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = kernels.room(size)
    nvrtc.nvrtcGetPTX(program, text)
    return str(text, "ascii").strip("\0 ")


def complex_law(p: int, product: Product, *row: int) -> Values:
    def times(a: Fp2, b: Fp2) -> Fp2:
        real, imaginary = product(a[0], b[0]) - product(a[1], b[1]), product(a[0], b[1])
        return real % p, (imaginary + product(a[1], b[0])) % p

    a, b, c, d = zip(row[::2], row[1::2], strict=True)
    e, f = times(a, b), times(c, d)
    return (*e, *times(c, c), (e[0] - f[0]) % p, (e[1] - f[1]) % p, *d)


def test_products_in_the_quadratic_extension(curve: Curve) -> None:
    expect_law(curve, "complex_fp", complex_law, 8)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", LAWS)
def test_rows_of_carries(curve: Curve, field: str, name: str) -> None:
    expect_law(curve, f"{name}_{field}", *LAWS[name])


def expect_law(curve: Curve, kernel: str, law: Callable[..., Values], operands: int) -> None:
    """One step of the kernel on rows of edges and random elements is what the law says."""
    field = kernel[-2:]
    p, words = modulus(curve, field)
    values, rng = values_of(curve, field)
    shrink, text = pow(2, -64 * words, p), text_of(curve.name)
    for _ in range(25):
        row: Values = tuple(rng.choice(values) for _ in range(operands))
        flat = b"".join(value.to_bytes(8 * words, "little") for value in row)
        thread = Thread(text, kernel, dict(enumerate(flat, IN)), [IN, OUT, 1])
        thread.run()
        found = bytes(thread.memory[OUT + i] for i in range(len(flat)))
        elements = [found[i : i + 8 * words] for i in range(0, len(found), 8 * words)]
        expected = law(p, lambda a, b: a * b * shrink % p, *row)
        assert tuple(int.from_bytes(e, "little") for e in elements) == expected
