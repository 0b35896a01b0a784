"""A protobuf message taken apart at its top: large fields as ranges of its bytes, the rest for protobuf to parse.

    message = (tag value)*     tag = varint(number << 3 | kind)
    value   = varint | 8 bytes | varint(length) bytes | 4 bytes     kinds 0, 1, 2, 5; 3 and 4 bracket a group

As protobuf reads it: of a singular field that comes twice the last counts, a message that comes twice is the two one
after the other, a known number with another kind than its own is unknown, unknown fields are passed over. Nothing
large is copied, so a message can be a map of a file. https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from cuzk.errors import FormatError

REST_LIMIT = 1 << 20  # bytes of all fields but the large ones: Filecoin's are 200
FIELD_LIMIT = 16384  # fields: a Filecoin partition has 2,349 proofs; 16,384 are walked in 20 ms
GROUP_DEPTH = 100
TAG_BYTES = 5
LENGTH_BYTES = 5
VARINT_BYTES = 10
VARINT, EIGHT, BYTES, GROUP, GROUP_END, FOUR = range(6)

Range = tuple[int, int]
"""From the first byte to the one after the last."""


@dataclass
class Parts:
    """``large``: ranges of the fields asked for by number, in their order; ``rest``: all others, as a message."""

    large: dict[int, list[Range]] = field(default_factory=dict)
    rest: bytearray = field(default_factory=bytearray)
    found: bool = True
    """Of a message inside another: whether it is there at all."""


def split(message: memoryview, large: Collection[int]) -> Parts:
    """The fields of a message; FormatError with the offset where its bytes are none."""
    walk = _Walk(message)
    parts = Parts()
    _collect(walk, (0, len(message)), large, parts)
    return parts


def split_inside(message: memoryview, number: int, large: Collection[int]) -> Parts:
    """The fields of the message that is field ``number`` of a message; offsets are of the outer one's bytes."""
    walk = _Walk(message)
    parts = Parts(found=False)
    for found, kind, _, value in walk.fields(0, len(message)):
        if found == number and kind == BYTES:
            parts.found = True
            _collect(walk, value, large, parts)
    return parts


def _collect(walk: _Walk, within: Range, large: Collection[int], parts: Parts) -> None:
    for number, kind, start, value in walk.fields(*within):
        if kind == BYTES and number in large:
            parts.large.setdefault(number, []).append(value)
            continue
        if len(parts.rest) + value[1] - start > REST_LIMIT:
            raise FormatError(
                f"message: byte {start}: expected at most {REST_LIMIT:,} bytes in all fields but proofs and witness,"
                f" found more, in field {number}"
            )
        parts.rest += walk.message[start : value[1]]


class _Walk:
    """The fields of one message, counted."""

    def __init__(self, message: memoryview) -> None:
        self.message = message
        self.count = 0

    def fields(self, at: int, end: int) -> Iterator[tuple[int, int, int, Range]]:
        """(number, kind, where its tag begins, its value's bytes) of each; of a group all that it holds."""
        while at < end:
            start = at
            number, kind, at = self._tag(at, end)
            if kind == GROUP_END:
                raise _wrong(start, f"the end of a group {number} that has not begun")
            value = self._value(number, kind, at, end, depth=0)
            yield number, kind, start, value
            at = value[1]

    def _tag(self, at: int, end: int) -> tuple[int, int, int]:
        self.count += 1
        if self.count > FIELD_LIMIT:
            raise FormatError(
                f"message: byte {at}: expected at most {FIELD_LIMIT:,} fields, found more"
            )
        tag, after = self._varint(at, end, TAG_BYTES)
        number, kind = tag >> 3, tag & 7
        if not 1 <= number < 1 << 29:
            raise _wrong(at, f"field number {number}")
        if kind > FOUR:
            raise _wrong(at, f"field {number} of kind {kind}, which there is not")
        return number, kind, after

    def _value(self, number: int, kind: int, at: int, end: int, *, depth: int) -> Range:
        if kind == VARINT:
            return at, self._varint(at, end, VARINT_BYTES)[1]
        if kind == GROUP:
            return at, self._group_end(number, at, end, depth=depth + 1)
        start, size = at, 8 if kind == EIGHT else 4
        if kind == BYTES:
            size, start = self._varint(at, end, LENGTH_BYTES)
        if size > end - start:
            raise _wrong(at, f"field {number} with {size:,} bytes where {end - start:,} are left")
        return start, start + size

    def _group_end(self, number: int, at: int, end: int, *, depth: int) -> int:
        if depth > GROUP_DEPTH:
            raise _wrong(at, f"groups within groups, more than {GROUP_DEPTH}")
        while at < end:
            found, kind, after = self._tag(at, end)
            if kind == GROUP_END:
                if found != number:
                    raise _wrong(at, f"the end of group {found} in group {number}")
                return after
            at = self._value(found, kind, after, end, depth=depth)[1]
        raise _wrong(at, f"no end of group {number}")

    def _varint(self, at: int, end: int, longest: int) -> tuple[int, int]:
        value = 0
        for place in range(longest):
            if at + place >= end:
                raise _wrong(at, "a number that is cut short")
            byte = self.message[at + place]
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value, at + place + 1
        raise _wrong(at, f"a number of more than {longest} bytes")


def _wrong(at: int, found: str) -> FormatError:
    return FormatError(f"message: byte {at}: expected a protobuf field, found {found}")
