""".wtns: the value of every wire, as circom's witness generators write it.

    1  u32 n8, prime r, u32 wires
    2  wires times n8 bytes, plain form, below r; wire 0 is the constant 1

Versions 1 and 2 have the same layout. Source: https://github.com/iden3/snarkjs (wtns_utils.js)
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from cuzk.curves import Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.fields import check_scalars, prime_bytes, take_scalar_field
from cuzk.formats.iden3.frame import Frame, frame_chunks, read_frame
from cuzk.formats.source import Chunk, Readable, Source, octets, write_atomically
from cuzk.vectors import Scalars

HEADER, VALUES = 1, 2
NAMES = {HEADER: "header", VALUES: "values"}
VERSIONS = (1, 2)


@dataclass(frozen=True)
class WtnsHeader:
    """What a .wtns says about itself."""

    curve: Curve
    version: int
    wires: int
    warnings: tuple[str, ...]


def read_wtns_header(what: Readable) -> WtnsHeader:
    """The counts; values are measured, not read."""
    return _header(_frame(what))


def read_wtns(what: Readable, *, threads: int = 1) -> Scalars:
    """All wires, plain form; every value is checked to be below r, and the first to be 1."""
    frame = _frame(what)
    header = _header(frame)
    cursor, shape = frame.section(VALUES), (header.wires, header.curve.fr_words)
    words = frame.source.words(cursor.offset, cursor.length).reshape(shape)
    witness = Scalars(header.curve, words)
    check_scalars(witness, cursor.where, threads=threads)
    if (one := witness[:1].ints()[0]) != 1:
        raise cursor.error("wire 0 to be the constant 1", one)
    return witness


def _frame(what: Readable) -> Frame:
    source = Source.open(what, "a .wtns file")
    if source.size % 32 == 0 and source.data[:32].tobytes() == (1).to_bytes(32, "little"):
        raise FormatError(
            f"{source.name}: expected a .wtns file, found what looks like a raw witness ({source.size // 32} "
            "values of 32 bytes without a header): write it with the generator's .wtns option"
        )
    return read_frame(source, "wtns", VERSIONS, NAMES)


def _header(frame: Frame) -> WtnsHeader:
    cursor = frame.section(HEADER)
    curve = take_scalar_field(cursor)
    count = cursor.u32("wires")
    cursor.end()
    size = 8 * curve.fr_words
    frame.section(VALUES).expect_length(count * size, f"{count} values of {size} bytes")
    if not count:
        raise cursor.error("at least one wire, the constant 1", 0)
    return WtnsHeader(curve, frame.version, count, frame.warnings)


def write_wtns(path: str | os.PathLike[str], witness: Scalars) -> None:
    """Write a witness in plain form, version 2."""
    if witness.montgomery:
        raise FormatError(f"{path}: expected a witness in plain form, found Montgomery form")
    curve = witness.curve
    header = prime_bytes(curve.r, curve.fr_words) + len(witness).to_bytes(4, "little")
    sections: list[tuple[int, list[Chunk]]] = [
        (HEADER, [header]),
        (VALUES, [octets(witness.words)]),
    ]
    write_atomically(path, frame_chunks("wtns", 2, sections))
