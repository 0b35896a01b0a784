"""Primes, scalars and points as iden3's files hold them.

A prime is u32 n8 and n8 bytes, n8 the field's bytes rounded up to 8. Points are affine, Montgomery with
R = 2^(8 n8), little-endian: G1 = x, y; G2 = x.c0, x.c1, y.c0, y.c1; infinity is all zero bytes. That is
the layout of :mod:`cuzk.vectors`, so a section of points is used where it lies.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.curves import Curve, curve_with_base_field, curve_with_scalar_field
from cuzk.errors import FormatError
from cuzk.formats.iden3.frame import Cursor
from cuzk.formats.source import Source
from cuzk.membership import EXPECTED, first_bad
from cuzk.vectors import Affine, Points, Scalars

MOST_FIELD_BYTES = 64


class MappedPoints(Points):
    """Points still in their file: ``words`` is made, once, when first asked for.

    An aligned vector is a view and costs nothing either way; a misaligned one is copied (see
    :meth:`Source.words`), which here waits until someone needs the points. Slices do not copy.
    """

    def __init__(self, curve: Curve, group: str, source: Source, offset: int, count: int) -> None:
        object.__setattr__(self, "curve", curve)
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "_span", (source, offset, count))

    _span: tuple[Source, int, int]

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """(n, point_words)."""
        source, offset, count = self._span
        width = self.curve.point_words(self.group)
        return source.words(offset, 8 * width * count).reshape(count, width)

    def expect_there(self) -> None:
        """FormatError where the file has been cut short since it was mapped."""
        self._span[0].expect_whole()

    def affine(self, index: int = 0) -> Affine:
        """The coordinates of one point as integers."""
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Points(self.curve, self.group, self[index : index + 1].words).affine()

    def __len__(self) -> int:
        return self._span[2]

    def __getitem__(self, span: slice) -> Points:
        source, offset, count = self._span
        start, stop, step = span.indices(count)
        if step != 1 or "words" in self.__dict__:
            return super().__getitem__(span)
        start_byte = offset + 8 * self.curve.point_words(self.group) * start
        return MappedPoints(self.curve, self.group, source, start_byte, max(stop - start, 0))


def point_bytes(curve: Curve, group: str) -> int:
    """Bytes of a point."""
    return 8 * curve.point_words(group)


def take_points(cursor: Cursor, curve: Curve, group: str, count: int, what: str) -> Points:
    """The next ``count`` points; not checked."""
    start = cursor.offset + cursor.at
    cursor.take(count * point_bytes(curve, group), what)
    return MappedPoints(curve, group, cursor.source, start, count)


def whole_section(cursor: Cursor, curve: Curve, group: str, count: int) -> Points:
    """A section that holds ``count`` points and nothing else; not checked."""
    size = point_bytes(curve, group)
    cursor.expect_length(count * size, f"{count} points of {size} bytes")
    return take_points(cursor, curve, group, count, "points")


def check_points(points: Points, where: str, *, threads: int = 1) -> None:
    """All points are good, else FormatError."""
    index, reason = first_bad(points, threads=threads)
    if index >= 0:
        which = f"point {index}" if len(points) > 1 else "the point"
        raise FormatError(f"{where}: expected {which} {EXPECTED[reason]}, found otherwise")


def _prime(cursor: Cursor, what: str) -> tuple[int, int]:
    size = cursor.u32(f"bytes of the {what}")
    if size % 8 or not 0 < size <= MOST_FIELD_BYTES:
        raise cursor.error(f"a {what} of 32 or 48 bytes", f"{size} bytes")
    return size, cursor.integer(size, what)


def take_scalar_field(cursor: Cursor) -> Curve:
    """n8 and the prime r of one of the two curves."""
    size, prime = _prime(cursor, "scalar field's prime")
    curve = curve_with_scalar_field(prime, cursor.where)
    _expect_real(cursor, curve, size, curve.fr_words, prime)
    return curve


def take_base_field(cursor: Cursor) -> Curve:
    """n8 and the prime p of one of the two curves."""
    size, prime = _prime(cursor, "base field's prime")
    curve = curve_with_base_field(prime, cursor.where)
    _expect_real(cursor, curve, size, curve.fp_words, prime)
    return curve


def _expect_real(cursor: Cursor, curve: Curve, size: int, words: int, prime: int) -> None:
    if curve.is_toy:
        raise cursor.error("a prime of BN254 or BLS12-381", f"{prime:#x}")
    if size != 8 * words:
        raise cursor.error(f"{8 * words} bytes for a prime of {curve.title}", f"{size} bytes")


def prime_bytes(prime: int, words: int) -> bytes:
    """u32 n8, then the prime."""
    return (8 * words).to_bytes(4, "little") + prime.to_bytes(8 * words, "little")


def check_scalars(values: Scalars, where: str, what: str = "value", *, threads: int = 1) -> None:
    """Every scalar is below r, else FormatError with the index of the first that is not."""
    index = _core.first_not_canonical(values.curve.name, "fr", values.words, threads)
    if index >= 0:
        found = int.from_bytes(values.words[index].tobytes(), "little")
        raise FormatError(
            f"{where}: {what} {index}: expected a number below the scalar field's prime of "
            f"{values.curve.title}, found {found:#x}"
        )
