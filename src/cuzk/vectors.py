"""Vectors of scalars and of curve points, laid out as the native code, the GPU and iden3's files hold them.

A scalar is ``curve.fr_words`` little-endian 64-bit words. A point is affine, uncompressed, Montgomery:
G1 = x, y; G2 = x.c0, x.c1, y.c0, y.c1; each coordinate ``curve.fp_words`` words. Infinity is all zero
words. A vector may be a view of a mapped file: nothing here copies or writes what it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cuzk.constants import from_montgomery, to_montgomery
from cuzk.curves import Curve

Words = NDArray[np.uint64]

Affine = tuple[int, ...] | None
"""Coordinates as integers (x, y), (x.c0, x.c1, y.c0, y.c1), or on TOY (value,); None is infinity."""


def pack(values: Sequence[int], words: int) -> Words:
    """Integers below 2^(64 * words) as a (n, words) array."""
    data = b"".join(value.to_bytes(8 * words, "little") for value in values)
    return np.frombuffer(data, dtype="<u8").reshape(len(values), words)


def unpack(array: Words) -> list[int]:
    """The inverse of :func:`pack`."""
    data = np.ascontiguousarray(array).tobytes()
    size = array.shape[1] * 8
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


@dataclass(frozen=True)
class Scalars:
    """(n, fr_words) words of Fr elements, plain unless ``montgomery``."""

    curve: Curve
    words: Words
    montgomery: bool = False

    @classmethod
    def from_ints(cls, curve: Curve, values: Sequence[int], *, montgomery: bool = False) -> Scalars:
        """Integers are reduced modulo r."""
        r, n = curve.r, curve.fr_words
        if montgomery:
            values = [to_montgomery(v, r, n) for v in values]
        return cls(curve, pack([v % r for v in values], n), montgomery)

    def ints(self) -> list[int]:
        """Plain integers, whatever the form."""
        values = unpack(self.words)
        if not self.montgomery:
            return values
        factor = pow(2, -64 * self.curve.fr_words, self.curve.r)
        return [v * factor % self.curve.r for v in values]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, span: slice) -> Scalars:
        return Scalars(self.curve, self.words[span], self.montgomery)


@dataclass(frozen=True)
class CanonicalScalars(Scalars):
    """Plain scalars that whoever made them knows to be below r, every one: nobody writes their words any more."""

    def __post_init__(self) -> None:
        self.words.flags.writeable = False


@dataclass(frozen=True)
class Points:
    """(n, point_words) words of affine points of one group ("g1" or "g2")."""

    curve: Curve
    group: str
    words: Words
    known_good: bool = field(default=False, init=False, compare=False, repr=False)
    """All points were found to belong to the group (:mod:`cuzk.membership`)."""

    @classmethod
    def from_affine(cls, curve: Curve, group: str, points: Sequence[Affine]) -> Points:
        """Coordinates must be below p; they are not checked against the curve's equation here."""
        zero = (0,) * curve.coordinates(group)
        flat = [
            to_montgomery(c, curve.p, curve.fp_words) for point in points for c in (point or zero)
        ]
        return cls(
            curve,
            group,
            pack(flat, curve.fp_words).reshape(len(points), curve.point_words(group)),
        )

    @classmethod
    def empty(cls, curve: Curve, group: str) -> Points:
        """No points."""
        return cls(curve, group, np.zeros((0, curve.point_words(group)), dtype=np.uint64))

    @classmethod
    def concatenate(cls, parts: Sequence[Points]) -> Points:
        """A copy of all parts, one after the other; at least one part."""
        return cls(parts[0].curve, parts[0].group, np.concatenate([p.words for p in parts]))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled and copied with memory of their own, which nobody has checked."""
        return Points, (self.curve, self.group, np.array(self.words))

    def expect_there(self) -> None:
        """Raises where the points cannot be read any more; those in memory always can."""

    def affine(self, index: int = 0) -> Affine:
        """The coordinates of one point as integers."""
        row = self.words[index]
        if not row.any():
            return None
        curve = self.curve
        values = unpack(row.reshape(-1, curve.fp_words))
        return tuple(from_montgomery(v, curve.p, curve.fp_words) for v in values)

    def remember_good(self) -> None:
        """Called by the check itself, for words that cannot be written."""
        object.__setattr__(self, "known_good", True)

    def is_infinity(self) -> NDArray[np.bool_]:
        """(n,) flags."""
        flags: NDArray[np.bool_] = np.logical_not(np.logical_or.reduce(self.words, axis=1))
        return flags

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, span: slice) -> Points:
        return Points(self.curve, self.group, self.words[span])
