"""A point of G2 drawn from a seed, the way snarkjs does: nobody knows its logarithm.

ChaCha20 (RFC 8439's rounds, a 128-bit block counter from 0, no nonce) gives 32-bit words; two make a
64-bit one, high half first. x = c0 + c1 u: each coordinate is as many 64-bit words as the field has, low word first,
cut to the prime's bits and drawn again until below p, and it is the Montgomery form of the value. One
more word's lowest bit says which y; if x^3 + b' is no square, all is drawn again. The cofactor takes the
point into the subgroup of order r.
"""

from __future__ import annotations

from collections.abc import Iterator

from cuzk.constants import Fp2, fp2_inverse, fp2_mul, from_montgomery, twist_b
from cuzk.curves import Curve

MASK = 0xFFFFFFFF
CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)  # "expand 32-byte k"
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
ROTATIONS = (16, 12, 8, 7)


def chacha_block(key: list[int], counter: int) -> list[int]:
    """16 words of key stream; ``key`` is 8 words, ``counter`` fills the last four of the state."""
    start = [*CONSTANTS, *key, *((counter >> (32 * i)) & MASK for i in range(4))]
    state = list(start)
    for _ in range(10):
        for a, b, c, d in (*COLUMNS, *DIAGONALS):
            for x, y, z, rotation in zip(
                (a, c, a, c), (b, d, b, d), (d, b, d, b), ROTATIONS, strict=True
            ):
                state[x] = (state[x] + state[y]) & MASK
                mixed = state[z] ^ state[x]
                state[z] = (mixed << rotation | mixed >> (32 - rotation)) & MASK
    return [(a + b) & MASK for a, b in zip(state, start, strict=True)]


def stream(seed: bytes) -> Iterator[int]:
    """32-bit words without end; the seed's 32 bytes are eight big-endian words of key."""
    key = [int.from_bytes(seed[4 * i : 4 * i + 4], "big") for i in range(8)]
    counter = 0
    while True:
        yield from chacha_block(key, counter)
        counter += 1


def _coordinate(words: Iterator[int], curve: Curve) -> int:
    mask = (1 << curve.p.bit_length()) - 1
    while True:
        value = 0
        for i in range(curve.fp_words):
            high, low = next(words), next(words)
            value |= (high << 32 | low) << (64 * i)
        if (value := value & mask) < curve.p:
            return from_montgomery(value, curve.p, curve.fp_words)


def _square_root(a: Fp2, p: int) -> Fp2 | None:
    """By the complex method, p = 3 mod 4; None where there is none."""
    if a[1] == 0:
        root = pow(a[0], (p + 1) // 4, p)
        return (root, 0) if root * root % p == a[0] else (0, root)
    norm = (a[0] * a[0] + a[1] * a[1]) % p
    length = pow(norm, (p + 1) // 4, p)
    if length * length % p != norm:
        return None
    half = pow(2, -1, p)
    for part in ((a[0] + length) * half % p, (a[0] - length) * half % p):
        real = pow(part, (p + 1) // 4, p)
        if real and real * real % p == part:
            return real, a[1] * pow(2 * real, -1, p) % p
    return None


def _is_negative(a: Fp2, p: int) -> bool:
    return (a[1] or a[0]) > (p - 1) // 2


def cofactor(curve: Curve) -> int:
    """Points of the twist over r: Barreto-Naehrig 2p - r; BLS12 the family's polynomial in x."""
    if curve.name == "bn254":
        return 2 * curve.p - curve.r
    x = curve.x
    return (x**8 - 4 * x**7 + 5 * x**6 - 4 * x**4 + 6 * x**3 - 4 * x**2 - 4 * x + 13) // 9


def point_from(curve: Curve, seed: bytes) -> tuple[int, ...]:
    """x.c0, x.c1, y.c0, y.c1 of a point of order r; ``seed`` has 32 bytes."""
    words, p, b = stream(seed), curve.p, twist_b(curve)
    while True:
        x = (_coordinate(words, curve), _coordinate(words, curve))
        greatest = next(words) & 1 == 1
        cube = fp2_mul(fp2_mul(x, x, p), x, p)
        y = _square_root(((cube[0] + b[0]) % p, (cube[1] + b[1]) % p), p)
        if y is not None:
            break
    if greatest != _is_negative(y, p):
        y = (-y[0] % p, -y[1] % p)
    return _times(x, y, cofactor(curve), p)


def _times(x: Fp2, y: Fp2, factor: int, p: int) -> tuple[int, ...]:
    """Double and add from the top; a random point of the twist meets no exception."""
    px, py = x, y
    for bit in bin(factor)[3:]:
        square = fp2_mul(px, px, p)
        px, py = _chord((px, py), px, (3 * square[0], 3 * square[1]), (2 * py[0], 2 * py[1]), p)
        if bit == "1":
            px, py = _chord(
                (px, py), x, (y[0] - py[0], y[1] - py[1]), (x[0] - px[0], x[1] - px[1]), p
            )
    return *px, *py


def _chord(point: tuple[Fp2, Fp2], other_x: Fp2, rise: Fp2, run: Fp2, p: int) -> tuple[Fp2, Fp2]:
    px, py = point
    slope = fp2_mul(rise, fp2_inverse(run, p), p)
    square = fp2_mul(slope, slope, p)
    x = ((square[0] - px[0] - other_x[0]) % p, (square[1] - px[1] - other_x[1]) % p)
    fall = fp2_mul(slope, (px[0] - x[0], px[1] - x[1]), p)
    return x, ((fall[0] - py[0]) % p, (fall[1] - py[1]) % p)
