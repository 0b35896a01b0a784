"""Rust's serde types of fixed shape: bincode and JSON into numpy arrays, without an object for any value.

A description says of every list how many items it has, because the sector size settles all of them. So
bincode is one structured dtype over the file's bytes (integers little-endian, u64 counts, u32 tags of enum
variants, 32-byte values raw), and JSON is read into the same bytes by the native core. Then one walk over the
description compares every count, tag and limit and every field element with r, all items at a time; the first
thing wrong, in the order of the bytes, is named.

References: bincode 1 (default options), serde_json; structs are objects, a variant is {"Name": content} or,
without content, "Name"; [u8; 32] is an array of 32 numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.errors import FormatError
from cuzk.formats.source import Bytes

Record: TypeAlias = NDArray[np.void]
"""An array of values of a described type; its fields are views of the bytes read."""
Array: TypeAlias = NDArray[Any]

R_WORDS = [BLS12_381.r >> 64 * word & (1 << 64) - 1 for word in range(4)]


@dataclass(frozen=True)
class Number:
    """u32 or u64, ``below`` a limit where one is given."""

    size: int
    below: int | None = None

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Little-endian."""
        return np.dtype(f"<u{self.size}")


@dataclass(frozen=True)
class Bytes32:
    """[u8; 32]; a field element is four little-endian words, below r."""

    element: bool

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Words, or bytes."""
        return np.dtype(("<u8", (4,))) if self.element else np.dtype(("u1", (32,)))


@dataclass(frozen=True)
class Null:
    """PhantomData that is not skipped: no bytes, null in JSON."""

    dtype = np.dtype([])


@dataclass(frozen=True)
class Text:
    """A string of the JSON text: where it begins there, and its length."""

    dtype = np.dtype([("begin", "<u8"), ("length", "<u8")])


@dataclass(frozen=True)
class List:
    """Vec of ``count`` items, each called ``label`` in messages ("partition 3", or else "[3]")."""

    item: Type
    count: int
    label: str = ""

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """count, items."""
        return np.dtype([("count", "<u8"), ("items", self.item.dtype, (self.count,))])


@dataclass(frozen=True)
class Struct:
    """Named fields in the order of declaration."""

    fields: tuple[tuple[str, Type], ...]

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The fields that have bytes."""
        return np.dtype([(name, t.dtype) for name, t in self.fields if not isinstance(t, Null)])


@dataclass(frozen=True)
class Variant:
    """An enum of which one variant is right here."""

    name: str
    tag: int
    content: Type | None = None

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """tag, content."""
        tag: list[tuple[str, Any]] = [("tag", "<u4")]
        return np.dtype(tag if self.content is None else [*tag, ("content", self.content.dtype)])


Type: TypeAlias = Number | Bytes32 | Null | Text | List | Struct | Variant

U32 = Number(4)
U64 = Number(8)
ELEMENT = Bytes32(element=True)
RAW = Bytes32(element=False)


def struct(**fields: Type) -> Struct:
    """A struct by its fields."""
    return Struct(tuple(fields.items()))


def read_bincode(layout: Type, data: Bytes, where: str) -> Record:
    """The one value that ``data`` holds, as an array without dimensions; its size must be right already."""
    values = np.frombuffer(data, dtype=layout.dtype, count=1).reshape(())
    _check(layout, values, where, offsets=True)
    return values


def read_bincodes(layout: Type, blobs: list[Bytes], names: Sequence[str], label: str) -> Record:
    """(n,) values of one type, each in bytes of its own: a name for each, ``label`` and its number in messages."""
    size = layout.dtype.itemsize
    out = np.empty((len(blobs), size), dtype=np.uint8)
    for i, blob in enumerate(blobs):
        if len(blob) != size:
            raise FormatError(
                f"{names[i]}: {label} {i}: expected {size} bytes, found {len(blob)}: "
                "cut short, of another sector size, or with bytes behind its end"
            )
        out[i] = blob
    out.flags.writeable = False
    values = out.view(layout.dtype).reshape(len(blobs))
    _check(layout, values, names, steps=(List(layout, len(blobs), label),))
    return values


def read_json(layout: Type, text: Bytes, where: str) -> Record:
    """The one value that a JSON text holds, in the form of :func:`read_bincode`."""
    size = layout.dtype.itemsize
    if len(text) < size:  # names and brackets make up for short numbers in all that is read here
        raise FormatError(
            f"{where}: expected at least {size} bytes of JSON, found {len(text)}: cut short, or with too few proofs"
        )
    types, fields, names = table(layout)
    out = np.zeros(size, dtype=np.uint8)
    if problem := _core.read_serde_json(text, types, fields, names, out):
        raise FormatError(f"{where}: {problem}")
    out.flags.writeable = False
    values = out.view(layout.dtype).reshape(())
    _check(layout, values, where)
    return values


def table(layout: Type) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """The description as native/serde_json.hpp takes it: types, fields, names; types after their users."""
    types: list[list[int]] = []
    fields: list[list[int]] = []
    names: dict[str, int] = {}

    def name(text: str) -> int:
        return names.setdefault(text, len(names))

    def add(t: Type) -> int:
        index = len(types)
        types.append([0] * 5)
        if isinstance(t, Bytes32):
            types[index] = [0, 32, 0, 0, 0]
        elif isinstance(t, Number):
            types[index] = [1, t.size, 0, 0, 0]
        elif isinstance(t, Null | Text):
            types[index] = [2 if isinstance(t, Null) else 3, 0, 0, 0, 0]
        elif isinstance(t, List):
            label = name(t.label) if t.label else -1
            types[index] = [4, t.count, t.item.dtype.itemsize, add(t.item), label]
        elif isinstance(t, Variant):
            content = -1 if t.content is None else add(t.content)
            types[index] = [6, name(t.name), t.tag, content, 0]
        else:
            types[index] = [5, len(fields), len(t.fields), 0, 0]
            first = len(fields)
            fields.extend([0] * 3 for _ in t.fields)
            offset = 0
            for i, (field, content_type) in enumerate(t.fields):
                fields[first + i] = [name(field), offset, add(content_type)]
                offset += content_type.dtype.itemsize
        return index

    add(layout)
    shape = (-1, 3)
    return np.array(types), np.array(fields, dtype=np.int64).reshape(shape), list(names)


Steps: TypeAlias = "tuple[str | List, ...]"
"""The way to a value: names of fields, and lists of which an index chooses the item."""


@dataclass(frozen=True)
class _Fault:
    """Values that differ from what they must be: ``bad`` flags, one for each."""

    steps: Steps
    values: Array
    bad: NDArray[np.bool_]
    expected: str
    found: str = ""


def _check(
    layout: Type,
    values: Record,
    where: str | Sequence[str],
    *,
    offsets: bool = False,
    steps: Steps = (),
) -> None:
    """Raises for the fault that comes first in the bytes; ``where`` is a name, or one for each of the values."""
    base = values.__array_interface__["data"][0]
    first: tuple[int, str] | None = None
    for fault in _faults(layout, values, steps):
        index = tuple(int(i) for i in np.argwhere(fault.bad)[0])
        address = fault.values.__array_interface__["data"][0]
        at = address - base + sum(i * s for i, s in zip(index, fault.values.strides, strict=False))
        if first is None or at < first[0]:
            found = fault.found or str(fault.values[index])
            prefix = f"offset {at}: " if offsets else ""
            place = place_of(fault.steps, index)
            name = where if isinstance(where, str) else where[index[0]]
            first = at, f"{name}: {prefix}{place}: expected {fault.expected}, found {found}"
    if first is not None:
        raise FormatError(first[1])


def _faults(t: Type, values: Array, steps: Steps) -> Iterator[_Fault]:
    if isinstance(t, Number):
        if t.below is not None and (bad := values >= t.below).any():
            yield _Fault(steps, values, bad, f"a number below {t.below}")
    elif isinstance(t, Bytes32):
        if t.element and (bad := at_least_r(values)).any():
            yield _Fault(
                steps, values, bad, "a field element below r", "a value that is not below r"
            )
    elif isinstance(t, List):
        if (bad := values["count"] != t.count).any():
            yield _Fault(steps, values["count"], bad, f"{t.count} {t.label or 'item'}s")
        yield from _faults(t.item, values["items"], (*steps, t))
    elif isinstance(t, Struct):
        for name, content in t.fields:
            if not isinstance(content, Null):
                yield from _faults(content, values[name], (*steps, name))
    elif isinstance(t, Variant):
        if (bad := values["tag"] != t.tag).any():
            yield _Fault(steps, values["tag"], bad, f"the variant {t.tag} ({t.name})")
        if t.content is not None:
            yield from _faults(t.content, values["content"], steps)


def at_least_r(values: Array) -> NDArray[np.bool_]:
    """Flags of field elements (..., 4) that are not below r."""
    flags = np.asarray(values[..., 3] >= R_WORDS[3])
    if flags.any():  # few have that top word: compare those in full
        rows = values[flags]
        larger = np.ones(len(rows), dtype=np.bool_)
        for word, limit in enumerate(R_WORDS):
            larger = (rows[:, word] > limit) | ((rows[:, word] == limit) & larger)
        flags[flags] = larger
    return flags


def place_of(steps: Steps, index: tuple[int, ...]) -> str:
    """ "vanilla_proofs: partition 3: challenge 0: comm_d_proofs.data" """
    parts: list[str] = []
    numbers = iter(index)
    fresh = True
    for step in steps:
        if isinstance(step, str):
            parts.append(step if fresh else f".{step}")
            fresh = False
        elif step.label:
            parts.append(f"{': ' if parts and not fresh else ''}{step.label} {next(numbers)}: ")
            fresh = True
        else:
            parts.append(f"[{next(numbers)}]")
            fresh = False
    return "".join(parts).removesuffix(": ")
