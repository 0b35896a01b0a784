"""Everything that can be derived from a curve's row of data, rendered as the C++ header both compilers read.

The build runs this file (``python -m cuzk.constants OUTPUT``), so it imports the standard library only.
Field elements are written as little-endian 64-bit words in Montgomery form, x * R mod p with
R = 2^(64 * words), unless the name says ``plain``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from cuzk.curves import BLS12_381, BN254, Curve

REAL_CURVES = (BN254, BLS12_381)

Fp2 = tuple[int, int]


def words(value: int, count: int) -> list[int]:
    """Little-endian 64-bit words."""
    return [(value >> (64 * i)) & (2**64 - 1) for i in range(count)]


def to_montgomery(value: int, modulus: int, count: int) -> int:
    """x * 2^(64 * count) mod p."""
    return (value << (64 * count)) % modulus


def from_montgomery(value: int, modulus: int, count: int) -> int:
    """The inverse of :func:`to_montgomery`."""
    return value * pow(2, -64 * count, modulus) % modulus


def montgomery_inverse(modulus: int) -> int:
    """-p^-1 mod 2^64: one reduction step adds (low word * this mod 2^64) * p."""
    return pow(-modulus, -1, 2**64)


def fp2_mul(a: Fp2, b: Fp2, p: int) -> Fp2:
    """(a0 + a1 u)(b0 + b1 u) with u^2 = -1."""
    return (a[0] * b[0] - a[1] * b[1]) % p, (a[0] * b[1] + a[1] * b[0]) % p


def fp2_pow(a: Fp2, exponent: int, p: int) -> Fp2:
    """Square and multiply."""
    result = (1, 0)
    while exponent:
        if exponent & 1:
            result = fp2_mul(result, a, p)
        a = fp2_mul(a, a, p)
        exponent >>= 1
    return result


def fp2_inverse(a: Fp2, p: int) -> Fp2:
    """Conjugate over norm."""
    norm = pow(a[0] * a[0] + a[1] * a[1], -1, p)
    return a[0] * norm % p, -a[1] * norm % p


def twist_b(curve: Curve) -> Fp2:
    """b of the twist: b / xi (D) or b * xi (M)."""
    factor = curve.xi if curve.twist == "M" else fp2_inverse(curve.xi, curve.p)
    return fp2_mul((curve.b, 0), factor, curve.p)


def frobenius(curve: Curve, power: int) -> list[Fp2]:
    """xi^(i (p^power - 1) / 6) for i = 0..5: w^i times this is Frobenius^power of w^i (w^6 = xi)."""
    return [fp2_pow(curve.xi, i * (curve.p**power - 1) // 6, curve.p) for i in range(6)]


def twist_frobenius(curve: Curve) -> list[Fp2]:
    """(gx, gy) with (x, y) -> (conj(x) gx, conj(y) gy) the p-power Frobenius seen on the twist.

    The untwist is (x w^2, y w^3) for D and (x / w^2, y / w^3) for M.
    """
    factors = frobenius(curve, 1)[2:4]
    return factors if curve.twist == "D" else [fp2_inverse(c, curve.p) for c in factors]


def signed_digits(value: int) -> list[int]:
    """Digits -1, 0, 1, least significant first: binary, or the non-adjacent form where that has fewer."""
    binary = [value >> i & 1 for i in range(value.bit_length())]
    sparse = []
    while value:
        digit = 2 - value % 4 if value % 2 else 0
        sparse.append(digit)
        value = (value - digit) // 2
    return min(binary, sparse, key=lambda digits: sum(map(abs, digits)))


def is_bn(curve: Curve) -> bool:
    """Barreto-Naehrig: p = 36 x^4 + 36 x^3 + 24 x^2 + 6 x + 1; the other curve is BLS12."""
    x = curve.x
    return curve.p == 36 * x**4 + 36 * x**3 + 24 * x**2 + 6 * x + 1


def ate_loop(curve: Curve) -> int:
    """|6x + 2| on BN curves, |x| on BLS curves: the scalar of the optimal ate pairing's Miller loop."""
    return abs(6 * curve.x + 2) if is_bn(curve) else abs(curve.x)


def _digits(name: str, value: int, comment: str) -> list[str]:
    digits = signed_digits(value)
    text = ", ".join(map(str, digits))
    return [
        f"static constexpr int {name}_length = {len(digits)};",
        f"static constexpr signed char {name}[{len(digits)}] = {{{text}}};  // {comment}",
    ]


def _array(values: Iterable[int]) -> str:
    return "{" + ", ".join(f"0x{v:016x}ull" for v in values) + "}"


def _field(name: str, modulus: int, count: int, extra: list[str]) -> str:
    spare = 64 * count - modulus.bit_length()
    lines = [
        f"struct {name} {{",
        f"  static constexpr int words = {count};",
        f"  static constexpr int bits = {modulus.bit_length()};",
        f"  static constexpr int spare_bits = {spare};  // of 64 * words",
        f"  static constexpr u64 inverse = 0x{montgomery_inverse(modulus):016x}ull;  // -p^-1 mod 2^64",
        f"  static constexpr u64 modulus[{count}] = {_array(words(modulus, count))};",
        f"  static constexpr u64 half_plain[{count}] = {_array(words((modulus - 1) // 2, count))};  // (p - 1) / 2",
        f"  static constexpr u64 one[{count}] = {_array(words(to_montgomery(1, modulus, count), count))};  // R",
        f"  static constexpr u64 r2[{count}] = {_array(words(pow(2, 128 * count, modulus), count))};  // R^2: multiply by it to enter Montgomery form",
        f"  static constexpr u64 r3[{count}] = {_array(words(pow(2, 192 * count, modulus), count))};  // R^3: inverse of a Montgomery value, back in Montgomery form",
        *("  " + line for line in extra),
        "};",
    ]
    return "\n".join(lines)


def render(curve: Curve) -> str:
    """The C++ structs of one curve."""
    prefix = {"bn254": "Bn254", "bls12_381": "Bls12381"}[curve.name]
    p, n = curve.p, curve.fp_words

    def fp(value: int) -> str:
        return _array(words(to_montgomery(value % p, p, n), n))

    def fp2(value: Fp2) -> str:
        return "{" + fp(value[0]) + ", " + fp(value[1]) + "}"

    sqrt = f"static constexpr u64 sqrt_exponent_plain[{n}] = {_array(words((p + 1) // 4, n))};  // p = 3 mod 4: sqrt(a) = a^((p + 1) / 4)"
    root = f"static constexpr u64 inverse_sqrt_exponent_plain[{n}] = {_array(words((p - 3) // 4, n))};  // a^((p - 3) / 4) = 1 / sqrt(a), up to sign, for a square a"
    half = f"static constexpr u64 half[{n}] = {_array(words(to_montgomery((p + 1) // 2, p, n), n))};  // 1 / 2"
    adicity = f"static constexpr int two_adicity = {curve.two_adicity};"
    lines = [
        _field(f"{prefix}Fp", p, n, [sqrt, root, half]),
        _field(f"{prefix}Fr", curve.r, curve.fr_words, [adicity]),
        f"struct {prefix} {{",
        f'  static constexpr const char* name = "{curve.name}";',
        f"  using FpParams = {prefix}Fp;",
        f"  using FrParams = {prefix}Fr;",
        f"  static constexpr u64 x_plain = 0x{abs(curve.x):016x}ull;  // |parameter of the family|",
        f"  static constexpr bool x_negative = {'true' if curve.x < 0 else 'false'};",
        f"  static constexpr bool is_bn = {'true' if is_bn(curve) else 'false'};  // else BLS12",
        f"  static constexpr bool twist_is_d = {'true' if curve.twist == 'D' else 'false'};",
        f"  static constexpr u64 xi_plain[2] = {{{curve.xi[0]}, {curve.xi[1]}}};",
        f"  static constexpr u64 b[{n}] = {fp(curve.b)};",
        f"  static constexpr u64 twist_b[2][{n}] = {fp2(twist_b(curve))};",
        f"  static constexpr u64 g1[2][{n}] = {fp2((curve.g1[0], curve.g1[1]))};",
        f"  static constexpr u64 g2[4][{n}] = {{{', '.join(fp(c) for c in curve.g2)}}};",
    ]
    for power in (1, 2, 3):
        rows = ", ".join(fp2(c) for c in frobenius(curve, power))
        lines.append(f"  static constexpr u64 frobenius{power}[6][2][{n}] = {{{rows}}};")
    rows = ", ".join(fp2(c) for c in twist_frobenius(curve))
    digits = [
        *_digits(
            "ate_digits", ate_loop(curve), "|6x + 2| (BN) or |x| (BLS), least significant first"
        ),
        *_digits("x_digits", abs(curve.x), "|x|, least significant first"),
    ]
    lines += [
        f"  static constexpr u64 twist_frobenius[2][2][{n}] = {{{rows}}};  // see constants.py",
        *("  " + line for line in digits),
        "};",
    ]
    return "\n".join(lines)


def header() -> str:
    """The whole generated header."""
    body = "\n\n".join(render(curve) for curve in REAL_CURVES)
    return (
        "// Generated by cuzk/constants.py from cuzk/curves.py; do not edit.\n"
        "#pragma once\n\nnamespace cuzk {\nusing u64 = unsigned long long;\n\n"
        f"{body}\n\n}}  // namespace cuzk\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(header())
