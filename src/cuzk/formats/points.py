"""The zcash encodings of BLS12-381 points: what bellman's files and proofs and Filecoin's are made of.

Big-endian coordinates of 48 bytes; an element of Fp2 is written c1, c0. The top three bits of the first
byte are flags: 0x80 compressed, 0x40 infinity (every other bit zero), 0x20 the larger root y, y > -y
(compressed only; in Fp2 the u part is compared first).

    compressed     x        48 bytes in G1,  96 in G2
    uncompressed   x, y     96 bytes in G1, 192 in G2

Reference: zkcrypto/bls12_381, "notes::serialization".
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.curves import BLS12_381, GROUPS
from cuzk.errors import FormatError
from cuzk.membership import FOUND, first_bad
from cuzk.vectors import Points, Words, pack

Bytes: TypeAlias = bytes | bytearray | memoryview | NDArray[np.uint8]

COMPRESSED = 0x80
INFINITY = 0x40
LARGER = 0x20

WORDS = BLS12_381.fp_words
SIZE = 8 * WORDS


def encoded_bytes(group: str, *, compressed: bool) -> int:
    """Bytes of one point: 48, 96 (G1) or 96, 192 (G2)."""
    return BLS12_381.coordinates(group) * SIZE // (2 if compressed else 1)


def encode_compressed(points: Points, *, threads: int = 1) -> bytes:
    """n * 48 (G1) or n * 96 (G2) bytes."""
    plain = _plain(points, threads)
    half = plain.shape[1] // 2
    data = _big_endian(plain[:, :half])
    infinity = points.is_infinity()
    larger = _is_larger(plain[:, half:]) & ~infinity
    data[:, 0] |= COMPRESSED | _bit(infinity, INFINITY) | _bit(larger, LARGER)
    return data.tobytes()


def encode_uncompressed(points: Points, *, threads: int = 1) -> bytes:
    """n * 96 (G1) or n * 192 (G2) bytes."""
    plain = _plain(points, threads)
    half = plain.shape[1] // 2
    data = np.hstack([_big_endian(plain[:, :half]), _big_endian(plain[:, half:])])
    data[:, 0] |= _bit(points.is_infinity(), INFINITY)
    return data.tobytes()


def decode_compressed(
    data: Bytes, group: str, where: str, *, subgroup: bool = True, threads: int = 1
) -> Points:
    """Points from their compressed form; the encoding itself puts them on the curve.

    Raises FormatError naming ``where``, the point's number (from 0) and the reason. ``subgroup=False``
    leaves out the subgroup test, for data that is checked by digest.
    """
    rows = _rows(data, group, where, compressed=True)
    out = np.empty((len(rows), BLS12_381.point_words(group)), dtype=np.uint64)
    index, reason = _core.decompress(BLS12_381.name, group, rows, out, threads)
    if reason:
        raise FormatError(f"{where}: {group} point {index}: {reason}")
    out.flags.writeable = False
    return _checked(
        Points(BLS12_381, group, out), where, curve=False, subgroup=subgroup, threads=threads
    )


def decode_uncompressed(
    data: Bytes,
    group: str,
    where: str,
    *,
    curve: bool = True,
    subgroup: bool = True,
    threads: int = 1,
    first: int = 0,
) -> Points:
    """Points from their uncompressed form.

    Flags and ranges are always checked; ``curve`` and ``subgroup`` can be left out for data that is
    checked by digest. Raises FormatError naming ``where``, the point's number (from ``first`` on) and the reason.
    """
    rows = _rows(data, group, where, compressed=False)
    out = np.empty((len(rows), BLS12_381.point_words(group)), dtype=np.uint64)
    decode_into(out, data, group, where, threads=threads, first=first)
    out.flags.writeable = False
    points = Points(BLS12_381, group, out)
    return _checked(points, where, curve=curve, subgroup=subgroup, threads=threads, first=first)


def decode_into(
    out: Words, data: Bytes, group: str, where: str, *, threads: int = 1, first: int = 0
) -> None:
    """As :func:`decode_uncompressed` without the curve and the subgroup, into the words of as many points."""
    rows = _rows(data, group, where, compressed=False)
    index, reason = _core.decode_uncompressed(BLS12_381.name, group, rows, out, threads)
    if reason:
        raise FormatError(f"{where}: {group} point {first + index}: {reason}")


def _bit(flags: NDArray[np.bool_], mask: int) -> NDArray[np.uint8]:
    return flags.astype(np.uint8) * np.uint8(mask)


def _checked(
    points: Points, where: str, *, curve: bool, subgroup: bool, threads: int, first: int = 0
) -> Points:
    if curve or subgroup:
        index, reason = first_bad(points, subgroup=subgroup, threads=threads)
        if reason:
            raise FormatError(f"{where}: {points.group} point {first + index}: {FOUND[reason]}")
    return points


def _rows(data: Bytes, group: str, where: str, *, compressed: bool) -> NDArray[np.uint8]:
    """(n, bytes of a point), a view of ``data``."""
    if group not in GROUPS:
        raise FormatError(f"{where}: expected the group g1 or g2, found {group!r}")
    flat = np.frombuffer(data, dtype=np.uint8)
    size = encoded_bytes(group, compressed=compressed)
    if flat.size % size:
        raise FormatError(
            f"{where}: expected a multiple of {size} bytes ({group} points), found {flat.size}"
        )
    return flat.reshape(-1, size)


def _plain(points: Points, threads: int) -> Words:
    """(n, coordinates, words) out of Montgomery form."""
    if points.curve is not BLS12_381:
        raise FormatError(f"expected points of {BLS12_381.title}, found {points.curve.title}")
    values = np.ascontiguousarray(points.words).reshape(-1, WORDS)
    out = np.empty_like(values)
    _core.from_montgomery(BLS12_381.name, "fp", values, out, threads)
    return out.reshape(len(points), points.curve.coordinates(points.group), WORDS)


def _big_endian(coordinates: Words) -> NDArray[np.uint8]:
    """(n, k, words) little-endian words to (n, 48 k) bytes; the last of k (c1) comes first."""
    count, parts, _ = coordinates.shape
    words = np.ascontiguousarray(coordinates[:, ::-1, ::-1]).astype(">u8")
    return words.view(np.uint8).reshape(count, parts * SIZE)


def _is_larger(y: Words) -> NDArray[np.bool_]:
    """(n,) flags of y > -y for (n, k, words) plain coordinates: the last that is not zero decides."""
    decisive = y[:, -1]
    if y.shape[1] == 2:
        decisive = np.where(np.any(decisive, axis=1, keepdims=True), decisive, y[:, 0])
    half = pack([(BLS12_381.p - 1) // 2], WORDS)[0]
    larger = np.zeros(len(y), dtype=np.bool_)
    for word in range(WORDS):  # from the least significant: a later difference overrules
        column = decisive[:, word]
        larger = (column > half[word]) | ((column == half[word]) & larger)
    return larger
