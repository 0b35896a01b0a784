"""Random types, values and damage: the readers of serde's forms against Python's own JSON and plain arithmetic."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_files import json_bytes, record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.c1 import fill, to_json
from cuzk import _core
from cuzk.errors import FormatError
from cuzk.filecoin.c1 import layout, read_c1
from cuzk.filecoin.registered import POST, SEAL, UPDATE
from cuzk.filecoin.serde import (
    ELEMENT,
    RAW,
    U32,
    U64,
    List,
    Null,
    Struct,
    Type,
    Variant,
    read_bincode,
    read_json,
    table,
)
from cuzk.filecoin.vanilla import post_layout, read_post, read_update, update_layout

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
NAMES = st.text("abcdefgh_xyz019", min_size=1, max_size=8).filter(lambda name: name != "_h")
LEAVES = st.sampled_from([U32, U64, ELEMENT, RAW])
OUTPUT = layout(SEAL[5])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(NAMES, inner, min_size=1, max_size=5)
    return st.one_of(
        st.builds(List, inner, st.integers(1, 4), st.sampled_from(["", "layer"])),
        fields.map(lambda named: Struct(tuple(named.items()))),
        fields.map(lambda named: Struct((*named.items(), ("_h", Null())))),
        st.builds(Variant, NAMES, st.integers(0, 5), st.one_of(st.none(), inner)),
    )


TYPES: st.SearchStrategy[Type] = containers(st.recursive(LEAVES, containers, max_leaves=12))


def set_numbers(kind: Type, values: Any, random: np.random.Generator) -> None:
    """Numbers of all lengths."""
    if kind in (U32, U64):
        shift = random.integers(0, 8 * kind.dtype.itemsize, values.shape, dtype=np.uint64)
        largest = np.uint64((1 << 8 * kind.dtype.itemsize) - 1)
        values[...] = (largest >> shift).astype(kind.dtype)
    elif isinstance(kind, List):
        set_numbers(kind.item, values["items"], random)
    elif isinstance(kind, Struct):
        for name, content in kind.fields:
            if not isinstance(content, Null):
                set_numbers(content, values[name], random)
    elif isinstance(kind, Variant) and kind.content is not None:
        set_numbers(kind.content, values["content"], random)


def shuffled(value: Any, random: np.random.Generator) -> Any:
    if isinstance(value, dict):
        names = random.permutation(list(value))
        return {str(name): shuffled(value[name], random) for name in names}
    return [shuffled(item, random) for item in value] if isinstance(value, list) else value


@FUZZ
@given(kind=TYPES, seed=st.integers(0, 2**32))
def test_any_type_in_both_forms(kind: Type, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.zeros((), dtype=kind.dtype)
    fill(kind, values, random)
    set_numbers(kind, values, random)
    data = np.frombuffer(values.tobytes(), dtype=np.uint8)
    assert read_bincode(kind, data, "x").tobytes() == values.tobytes()
    plain = to_json(kind, values)
    for text in (
        json_bytes(plain),
        json_bytes(shuffled(plain, random), indent=2),
        json_bytes(plain, separators=("\t,\r", "\n: ")),
    ):
        padded = text + b" " * kind.dtype.itemsize  # small types are shorter in JSON
        array = np.frombuffer(padded, dtype=np.uint8)
        assert read_json(kind, array, "x").tobytes() == values.tobytes()


# Damage


@pytest.fixture(scope="module")
def binary(fixtures: Path) -> bytes:
    return (fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes()


@pytest.fixture(scope="module")
def texts(fixtures: Path) -> dict[str, bytes]:
    names = ("c1-2KiB.json", "c1-2KiB.curio.json")
    return {name: (fixtures / "filecoin" / name).read_bytes() for name in names}


def content(value: Any) -> bytes:
    return pickle.dumps([v for name, v in vars(value).items() if name != "name"])


def expect_one_line(error: FormatError) -> None:
    assert "\n" not in str(error)
    assert 10 < len(str(error)) < 400


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 28_255), st.integers(0, 255)), min_size=1, max_size=4))
def test_no_byte_of_an_output_is_ignored(binary: bytes, changes: list[tuple[int, int]]) -> None:
    """What is read from changed bytes is refused or differs."""
    data = bytearray(binary)
    for at, value in changes:
        data[at] = value
    try:
        found = content(read_c1(bytes(data)))
    except FormatError as error:
        expect_one_line(error)
        return
    assert (found == content(read_c1(binary))) == (data == binary)


def every_byte(size: int, step: int) -> range:
    return range(size % step, size, step)


def test_no_byte_of_a_vanilla_proof_is_ignored(fixtures: Path) -> None:
    """Every 37th byte, and each of the first challenge's first 400."""
    data = (fixtures / "filecoin" / "post.vproof").read_bytes()
    original = content(read_post([data], POST[8]))
    for at in (*range(400), *every_byte(len(data), 37)):
        changed = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        try:
            assert content(read_post([changed], POST[8])) != original, at
        except FormatError as error:
            expect_one_line(error)


def test_no_byte_of_an_update_is_ignored() -> None:
    kind = update_layout(UPDATE[0])
    made = np.zeros((), dtype=kind.dtype)
    fill(kind, made, np.random.default_rng(5))
    for proof in made["challenge_proofs"]["items"]:
        for name in ("proof_r_old", "proof_d_new", "proof_r_new"):
            proof[name]["data"]["content"]["root"] = 7
    data = made.tobytes()
    original = content(read_update([data], UPDATE[0]))
    for at in (*range(60), *every_byte(len(data), 29)):
        changed = data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1 :]
        try:
            assert content(read_update([changed], UPDATE[0])) != original, at
        except FormatError as error:
            expect_one_line(error)


@st.composite
def edits(draw: st.DrawFn, text: bytes) -> bytes:
    """Bytes replaced, removed, put in or moved; the signs of JSON more often than others."""
    signs = st.sampled_from(list(b'{}[],:"0123456789-+.eE \\n/tfu\x00\x7f\xff'))
    data = bytearray(text)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data) - 1))
        length = draw(st.integers(0, 6))
        middle = bytes(draw(st.lists(st.one_of(signs, st.integers(0, 255)), max_size=6)))
        if draw(st.booleans()):
            start = draw(st.integers(0, len(data) - 1))
            middle = bytes(data[start : start + draw(st.integers(1, 300))])
        data[at : at + length] = middle
    return bytes(data)


@FUZZ
@given(data=st.data())
def test_damaged_json_is_refused_or_reads_as_python_reads_it(
    texts: dict[str, bytes], data: st.DataObject
) -> None:
    text = data.draw(edits(texts["c1-2KiB.json"]))
    try:
        values = read_json(OUTPUT, np.frombuffer(text, dtype=np.uint8), "x")
    except FormatError as error:
        expect_one_line(error)
        return
    plain = json.loads(text)
    ours = to_json(OUTPUT, values)
    assert without_markers(ours) == without_markers(plain)


def without_markers(value: Any) -> Any:
    """PhantomData may be left out."""
    if isinstance(value, dict):
        return {name: without_markers(item) for name, item in value.items() if name != "_h"}
    return [without_markers(item) for item in value] if isinstance(value, list) else value


@FUZZ
@given(data=st.data())
@pytest.mark.parametrize("name", ["c1-2KiB.json", "c1-2KiB.curio.json"])
def test_damaged_texts_are_refused_or_read(
    texts: dict[str, bytes], data: st.DataObject, name: str
) -> None:
    text = data.draw(edits(texts[name]))
    try:
        assert read_c1(text).proof.shape.name == "2KiB"
    except FormatError as error:
        expect_one_line(error)


@FUZZ
@given(data=st.binary(max_size=200))
def test_rubbish(data: bytes) -> None:
    for read in (read_c1, lambda blob: read_post([blob], POST[5])):
        for blob in (data, b"{" + data, data[:4].ljust(4, b"\0") + bytes(28_252)):
            with pytest.raises(FormatError) as error:
                read(blob)
            expect_one_line(error.value)


def test_a_value_can_be_changed_and_read_again(binary: bytes) -> None:
    """The records that tests change are views of memory of their own."""
    value = record(OUTPUT, binary)
    value["ticket"][3] ^= 1
    assert read_c1(value.tobytes()).ticket != read_c1(binary).ticket
    assert post_layout(POST[8]).dtype.itemsize == 24_960


@pytest.mark.parametrize(
    ("which", "row", "column", "value"),
    [
        ("types", 0, 0, 9),  # no such kind
        ("types", 0, 2, 99),  # more fields than there are
        ("types", 0, 1, 2**62),
        ("fields", 0, 0, 99),  # no such name
        ("fields", 1, 1, 8),  # a field elsewhere
        ("fields", 1, 2, 0),  # a type that holds itself
        ("fields", 2, 2, 10**6),  # no such type
        ("types", 2, 1, 16),  # a number of 16 bytes
        ("types", 4, 2, 31),  # items of another size
        ("types", 4, 1, -1),
        ("types", 4, 4, 99),
    ],
)
def test_tables_that_do_not_fit_are_refused(which: str, row: int, column: int, value: int) -> None:
    kind = Struct((("a", RAW), ("b", U64), ("c", Variant("v", 1, List(ELEMENT, 3, "layer")))))
    types, fields, names = table(kind)
    text = np.zeros(300, dtype=np.uint8)
    out = np.zeros(kind.dtype.itemsize, dtype=np.uint8)
    assert "offset 0: expected '{'" in _core.read_serde_json(text, types, fields, names, out)
    with pytest.raises(ValueError, match=f"out: expected {len(out)} bytes"):
        _core.read_serde_json(text, types, fields, names, out[1:])
    {"types": types, "fields": fields}[which][row, column] = value
    with pytest.raises(ValueError, match=r"not a description|out: expected"):
        _core.read_serde_json(text, types, fields, names, out)
