"""The one point that snarkjs hashes from outside its section of a .ptau.

Its circuit hash takes tau^i Z(tau) = tau^(n+i) - tau^i in chunks of 2^14 that are never cut short: from
n = 2^15 on, the last chunk ends with i = n - 1. A .ptau of power log2(n) has no tau^(2n-1); the read then
goes on behind section 2, into the header of section 3 (u32 number, u64 length) and the first bytes of its
first point, the generator of G2. Those bytes are subtracted like a point, though their numbers are not
below p, and what comes out depends on how an addition reduces. A key whose hash shall agree has to do the
same steps: one conditional subtraction of p, all modulo 2^(64 words).

Source: behaviour of https://github.com/iden3/snarkjs (``zkey new``) with its WebAssembly fields.
"""

from __future__ import annotations

import struct

import numpy as np

from cuzk.curves import Curve
from cuzk.vectors import Points, pack, unpack


class _WordField:
    """Montgomery arithmetic on numbers below 2^bits, some of them not below p."""

    def __init__(self, curve: Curve) -> None:
        self.p, self.range = curve.p, 1 << (64 * curve.fp_words)
        self.inverse = pow(-curve.p, -1, self.range)

    def once(self, value: int) -> int:
        """Less p where that or a carry calls for it."""
        return (value - self.p) % self.range if value >= self.p else value

    def add(self, a: int, b: int) -> int:
        return self.once(a + b)

    def sub(self, a: int, b: int) -> int:
        return a - b if a >= b else (a - b + self.p) % self.range

    def mul(self, a: int, b: int) -> int:
        low = a * b % self.range * self.inverse % self.range
        return self.once((a * b + low * self.p) // self.range)

    def invert(self, a: int) -> int:
        plain = a * pow(self.range, -1, self.p)
        return pow(plain, -1, self.p) * self.range % self.p


def bytes_behind(curve: Curve, power: int) -> bytes:
    """What follows section 2 in the place of one more point."""
    generator = Points.from_affine(curve, "g2", [curve.g2])
    header = struct.pack("<IQ", 3, 8 * curve.point_words("g2") << power)
    return (header + generator.words.astype("<u8").tobytes())[: 8 * curve.point_words("g1")]


def difference(curve: Curve, power: int, last: Points) -> Points:
    """The bytes behind section 2 of a .ptau of that power, less the point ``last`` = tau^(n-1)."""
    f = _WordField(curve)
    behind = np.frombuffer(bytes_behind(curve, power), dtype="<u8").reshape(2, curve.fp_words)
    x1, y1 = unpack(behind)
    x2, y2 = unpack(np.ascontiguousarray(last.words).reshape(2, curve.fp_words))
    # Jacobian sum of (x1, y1) and (x2, -y2): "madd-2007-bl" with Z1 = Z2 = 1.
    h, rise = f.sub(x2, x1), f.sub(f.sub(0, y2), y1)
    i = f.add(f.mul(h, h), f.mul(h, h))
    i = f.add(i, i)
    j, v, r = f.mul(h, i), f.mul(x1, i), f.add(rise, rise)
    x = f.sub(f.sub(f.mul(r, r), j), f.add(v, v))
    y1j = f.mul(y1, j)
    y = f.sub(f.mul(f.sub(v, x), r), f.add(y1j, y1j))
    z = f.invert(f.add(h, h))
    z2 = f.mul(z, z)
    words = pack([f.mul(x, z2), f.mul(y, f.mul(z2, z))], curve.fp_words)
    return Points(curve, "g1", words.reshape(1, -1))
