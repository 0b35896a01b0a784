"""A JSON object read field by field: each once, of the type asked for, none left over."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from cuzk.errors import FormatError
from cuzk.filecoin.derive import field_element
from cuzk.filecoin.shapes import NODE_BYTES
from cuzk.formats.json_text import json_text
from cuzk.formats.source import Source

MOST_BYTES = 1 << 22  # 2,349 sectors with arrays of numbers for comm_r take 0.5 MB
MOST_NUMBER = (1 << 64) - 1
MOST_DIGITS = 20
SHOWN = 40  # characters of a bad value that a message quotes
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")


def read_object(source: Source) -> Fields:
    """The object that a file holds."""
    name = source.name
    text = json_text(source, MOST_BYTES)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(items)
        if len(fields) != len(items):
            left = dict.fromkeys(fields)
            twice = next(key for key, _ in items if left.pop(key, True))
            raise FormatError(f"{name}: {_shown(twice)}: expected the field once, found it twice")
        return fields

    def number(text: str) -> int:
        if len(text) > MOST_DIGITS:
            raise FormatError(
                f"{name}: expected numbers below 2^64, found one of {len(text)} digits"
            )
        return int(text)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_int=number)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{name}: expected JSON, found a fault at offset {error.pos}: {error.msg}"
        ) from None
    return Item(name, value).object()


@dataclass(frozen=True)
class Item:
    """A value and where it stands."""

    where: str
    value: Any

    def refuse(self, expected: str) -> NoReturn:
        """FormatError with what is there."""
        raise FormatError(f"{self.where}: expected {expected}, found {_shown(self.value)}")

    def object(self) -> Fields:
        """An object's fields."""
        if not isinstance(self.value, dict):
            self.refuse("a JSON object")
        return Fields(self.where, self.value)

    def array(self, fewest: int, most: int, each: str) -> list[Item]:
        """So many values, called ``each`` and a number."""
        wanted = f"{most}" if fewest == most else f"{fewest} to {most}"
        if not isinstance(self.value, list):
            self.refuse(f"an array of {wanted}")
        if not fewest <= len(self.value) <= most:
            raise FormatError(f"{self.where}: expected {wanted} values, found {len(self.value)}")
        return [Item(f"{self.where}: {each} {i}", value) for i, value in enumerate(self.value)]

    def number(self, most: int) -> int:
        """0 to ``most``."""
        if type(self.value) is not int or not 0 <= self.value <= most:
            self.refuse(f"a number from 0 to {most}")
        return int(self.value)

    def numbers(self, ranges: Sequence[range], each: str) -> list[int]:
        """As many as ranges, each in its own."""
        items = self.array(len(ranges), len(ranges), each)
        return [item.number(span.stop - 1) for item, span in zip(items, ranges, strict=True)]

    def octets(self, count: int | None, most: int) -> bytes:
        """Hexadecimal digits or an array of numbers; ``count`` None: up to ``most`` of them."""
        value, wanted = self.value, f"{count} bytes" if count is not None else "bytes"
        if isinstance(value, str) and len(value) % 2 == 0 and _HEXADECIMAL.fullmatch(value):
            data = bytes.fromhex(value)
        elif isinstance(value, list) and all(type(b) is int and 0 <= b < 256 for b in value):
            data = bytes(value)
        else:
            self.refuse(f"{wanted} as hexadecimal digits or as an array of numbers")
        if len(data) > most if count is None else len(data) != count:
            raise FormatError(
                f"{self.where}: expected {wanted}{f' (at most {most})' if count is None else ''}, "
                f"found {len(data)}"
            )
        return data


@dataclass(frozen=True)
class Fields:
    """An object; what was asked for is known, so that the rest can be refused."""

    where: str
    values: dict[str, Any]
    asked: set[str] = field(default_factory=set)

    def item(self, name: str) -> Item:
        """A field that must be there."""
        self.asked.add(name)
        if name not in self.values:
            raise FormatError(f"{self.where}: expected a field {name!r}, found none")
        return Item(f"{self.where}: {name}", self.values[name])

    def expect_no_more(self) -> None:
        """FormatError names a field that nobody asked for."""
        if more := [name for name in self.values if name not in self.asked]:
            raise FormatError(
                f"{self.where}: expected the fields {', '.join(sorted(self.asked))}, found {_shown(more[0])}, too"
            )

    def object(self, name: str) -> Fields:
        """An object in an object."""
        return self.item(name).object()

    def objects(self, name: str, most: int, each: str) -> list[Fields]:
        """An array of 1 to ``most`` objects."""
        return [item.object() for item in self.item(name).array(1, most, each)]

    def array(self, name: str, count: int, each: str) -> list[Item]:
        """An array of so many."""
        return self.item(name).array(count, count, each)

    def number(self, name: str, most: int = MOST_NUMBER) -> int:
        """0 to ``most``."""
        return self.item(name).number(most)

    def text(self, name: str) -> str:
        """A string."""
        item = self.item(name)
        if not isinstance(item.value, str):
            item.refuse("a string")
        return str(item.value)

    def texts(self, name: str) -> list[str]:
        """A short array of strings."""
        items = self.item(name).array(0, 16, "value")
        for item in items:
            if not isinstance(item.value, str):
                item.refuse("a string")
        return [item.value for item in items]

    def type(self, name: str) -> int | str:
        """A number or a name."""
        item = self.item(name)
        if type(item.value) is not int and not isinstance(item.value, str):
            item.refuse("the number or the name of a proof type")
        value: int | str = item.value
        return value

    def octets(self, name: str, count: int | None, most: int = NODE_BYTES) -> bytes:
        """Bytes in either form."""
        return self.item(name).octets(count, most)

    def node(self, name: str) -> bytes:
        """Any 32 bytes."""
        return self.octets(name, NODE_BYTES)

    def element(self, name: str) -> bytes:
        """32 bytes of a value below r."""
        data = self.node(name)
        field_element(data, f"{self.where}: {name}")
        return data

    def commitment(self, name: str) -> bytes:
        """An element that is not zero."""
        data = self.element(name)
        if not any(data):
            raise FormatError(f"{self.where}: {name}: expected a value other than zero, found zero")
        return data


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    text = ascii(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}.. ({len(text)} characters)"
