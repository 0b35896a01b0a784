"""The frame of iden3's files: a type, a version and numbered sections, little-endian.

    4 bytes type | u32 version | u32 sections | sections times: u32 id, u64 bytes, content

Sections come in any order (circom writes 2, 1, 3). The table is walked and checked in full before any
content is looked at. Source: https://github.com/iden3/r1csfile/blob/master/doc/r1cs_bin_format.md
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cuzk.errors import FormatError
from cuzk.formats.source import Bytes, Chunk, Source

MOST_SECTIONS = 256  # PLONK and FFLONK keys have 14 and 17; a bound on the walk, not on the format


@dataclass
class Cursor:
    """Takes one section apart from front to back; every take is checked against the section's end."""

    source: Source
    where: str  # "circuit.zkey: section 4 (coefficients)"
    offset: int  # in the file
    length: int
    at: int = 0

    @property
    def left(self) -> int:
        """Bytes not taken yet."""
        return self.length - self.at

    def error(self, expected: str, found: object) -> FormatError:
        """The message every complaint about this section has."""
        return FormatError(f"{self.where}: expected {expected}, found {found}")

    def take(self, count: int, what: str) -> Bytes:
        """The next ``count`` bytes, a view."""
        if count > self.left:
            raise self.error(f"{count} bytes of {what} at offset {self.at}", f"{self.left} bytes")
        start = self.offset + self.at
        self.at += count
        return self.source.at(start, count)

    def u8(self, what: str) -> int:
        """A byte."""
        return int(self.take(1, what)[0])

    def u32(self, what: str) -> int:
        """A 32-bit number."""
        return self.integer(4, what)

    def u64(self, what: str) -> int:
        """A 64-bit number."""
        return self.integer(8, what)

    def integer(self, count: int, what: str) -> int:
        """A number of ``count`` bytes."""
        return int.from_bytes(self.take(count, what).tobytes(), "little")

    def expect_length(self, length: int, meaning: str = "") -> None:
        """The section holds exactly so many bytes."""
        if length != self.length:
            expected = f"{meaning} = {length} bytes" if meaning else f"{length} bytes"
            raise self.error(expected, self.length)

    def end(self) -> None:
        """Nothing may be left over."""
        self.expect_length(self.at)


@dataclass(frozen=True)
class Frame:
    """A walked section table: id -> (offset of the content in the file, bytes)."""

    source: Source
    kind: str
    version: int
    table: Mapping[int, tuple[int, int]]
    names: Mapping[int, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __contains__(self, section: int) -> bool:
        return section in self.table

    def where(self, section: int) -> str:
        """How messages call a section."""
        name = self.names.get(section)
        return f"{self.source.name}: section {section}" + (f" ({name})" if name else "")

    def section(self, section: int) -> Cursor:
        """A cursor at the start of a section that must be there."""
        if section not in self.table:
            found = ", ".join(str(number) for number in self.table) or "none"
            raise FormatError(f"{self.where(section)} is missing, found sections {found}")
        return Cursor(self.source, self.where(section), *self.table[section])


def read_frame(
    source: Source, kind: str, versions: Collection[int], names: Mapping[int, str]
) -> Frame:
    """Check type, version and the whole section table of a file of this ``kind`` ("r1cs", "zkey", ...)."""
    head = source.at(0, 12).tobytes()
    if head[:4] != kind.encode():
        article = "an" if kind == "r1cs" else "a"
        raise FormatError(
            f'{source.name}: expected {article} .{kind} file, which begins with "{kind}", found {_shown(head[:4])}'
        )
    if len(head) < 12:
        raise FormatError(f"{source.name}: expected a header of 12 bytes, found {len(head)} bytes")
    version, count = struct.unpack_from("<II", head, 4)
    if version not in versions:
        wanted = " or ".join(str(v) for v in versions)
        raise FormatError(f"{source.name}: expected version {wanted} of .{kind}, found {version}")
    most = min((source.size - 12) // 12, MOST_SECTIONS)
    if count > most:
        raise FormatError(
            f"{source.name}: expected at most {most} sections in {source.size} bytes, found {count}"
        )
    return _walk(source, kind, version, count, names)


def _walk(source: Source, kind: str, version: int, count: int, names: Mapping[int, str]) -> Frame:
    table: dict[int, tuple[int, int]] = {}
    at = 12
    for index in range(count):
        if at + 12 > source.size:
            raise FormatError(
                f"{source.name}: expected {count} sections, found the end of the file after {index}"
            )
        section, length = struct.unpack("<IQ", source.at(at, 12).tobytes())
        at += 12
        if section in table:
            raise FormatError(
                f"{source.name}: expected each section once, found duplicate section {section}"
            )
        if length > source.size - at:
            raise FormatError(
                f"{source.name}: section {section}: expected {length} bytes, found {source.size - at} "
                "before the end of the file (is it cut off?)"
            )
        table[section] = (at, length)
        at += length
    trailing = source.size - at
    warnings = (f"{trailing} bytes after the last section",) if trailing else ()
    return Frame(source, kind, version, table, names, warnings)


def _shown(magic: bytes) -> str:
    if magic.isalnum():
        return f'"{magic.decode()}"'
    return f"the bytes {magic.hex(' ')}"


def frame_chunks(
    kind: str, version: int, sections: Sequence[tuple[int, Sequence[Chunk]]]
) -> Iterable[Chunk]:
    """The bytes of a file: sections of (id, chunks) in the order given."""
    yield kind.encode() + struct.pack("<II", version, len(sections))
    for section, chunks in sections:
        length = sum(memoryview(chunk).nbytes for chunk in chunks)
        yield struct.pack("<IQ", section, length)
        yield from chunks
