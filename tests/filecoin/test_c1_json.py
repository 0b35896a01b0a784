"""C1 outputs in JSON that are refused, and the wrapper around them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from c1_files import Change, R, altered, json_bytes, put, same

from cuzk.errors import FormatError
from cuzk.filecoin.c1 import read_c1


@pytest.fixture(scope="module")
def stored(fixtures: Path) -> bytes:
    return (fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes()


@pytest.fixture(scope="module")
def text(fixtures: Path) -> dict[str, Any]:
    return dict(json.loads((fixtures / "filecoin" / "c1-2KiB.json").read_bytes()))


def first(text: Any) -> Any:
    return text["vanilla_proofs"]["StackedDrg2KiBV1"][0][0]


def rename(record: dict[str, Any], old: str, new: str) -> None:
    record[new] = record.pop(old)


IN_FIRST = "vanilla_proofs: partition 0: challenge 0: "
JSON_CHANGES: dict[str, tuple[Change, str]] = {
    "no such proof": (
        lambda t: put(t, at="registered_proof", value="StackedDrg1KiBV1"),
        "registered_proof: expected a seal proof, 0 to 19 or a name like .* found 'StackedDrg1KiBV1'",
    ),
    "another size": (
        lambda t: rename(t["vanilla_proofs"], "StackedDrg2KiBV1", "StackedDrg8MiBV1"),
        'vanilla_proofs: expected "StackedDrg2KiBV1", found "StackedDrg8MiBV1"',
    ),
    "no partition": (
        lambda t: put(t["vanilla_proofs"], at="StackedDrg2KiBV1", value=[]),
        "expected at least 28256 bytes of JSON, found 671: cut short, or with too few proofs",
    ),
    "two partitions": (
        lambda t: t["vanilla_proofs"]["StackedDrg2KiBV1"].append([]),
        "vanilla_proofs: expected 1 partitions, found ',' after them",
    ),
    "one challenge": (
        lambda t: t["vanilla_proofs"]["StackedDrg2KiBV1"][0].pop(),
        r"vanilla_proofs: partition 0: expected 2 challenges, found '\]' after 1",
    ),
    "31 bytes": (
        lambda t: t["comm_r"].pop(),
        r"comm_r: expected an array of 32 bytes, found '\]' after 31",
    ),
    "33 bytes": (
        lambda t: t["comm_r"].append(0),
        r"comm_r: expected '\]' after 32 bytes, found ','",
    ),
    "a byte of 256": (
        lambda t: put(t["comm_r"], at=7, value=256),
        "comm_r: expected a number up to 255, found a larger one or a leading zero",
    ),
    "a negative byte": (
        lambda t: put(t["comm_r"], at=7, value=-1),
        "comm_r: expected a number, found '-'",
    ),
    "a fraction": (
        lambda t: put(t["comm_r"], at=7, value=1.5),
        r"comm_r: expected an array of 32 bytes, found '\.' after 8",
    ),
    "hexadecimal": (
        lambda t: put(t, at="comm_r", value="ab" * 32),
        r"comm_r: expected '\[' of an array of bytes, found '\"'",
    ),
    "node too large": (
        lambda t: put(first(t)["labeling_proofs"][1], at="node", value=2**64),
        IN_FIRST + "labeling_proofs: layer 1: node: expected a number up to 18446744073709551615",
    ),
    "node out of the sector": (
        lambda t: put(first(t)["labeling_proofs"][1], at="node", value=64),
        IN_FIRST + "labeling_proofs: layer 1: node: expected a number below 64, found 64",
    ),
    "layer index of 33 bits": (
        lambda t: put(first(t)["encoding_proof"], at="layer_index", value=2**32),
        IN_FIRST + r"encoding_proof\.layer_index: expected a number up to 4294967295",
    ),
    "a missing field": (
        lambda t: t.pop("ticket"),
        'expected the field "ticket", found none before \'}\'',
    ),
    "an unknown field": (
        lambda t: put(first(t), at="comm_x", value=0),
        IN_FIRST.removesuffix(": ") + ': expected one of its 5 fields, found "comm_x"',
    ),
    "sub path": (
        lambda t: rename(first(t)["comm_d_proofs"]["data"], "Single", "Sub"),
        IN_FIRST + r'comm_d_proofs\.data: expected "Single", found "Sub"',
    ),
    "short path": (
        lambda t: first(t)["comm_d_proofs"]["data"]["Single"]["path"]["path"].pop(),
        IN_FIRST + r"comm_d_proofs\.data\.path\.path: expected 6 items, found '\]' after 5",
    ),
    "_h": (
        lambda t: put(first(t)["replica_column_proofs"]["c_x"]["column"], at="_h", value=0),
        IN_FIRST + r"replica_column_proofs\.c_x\.column\._h: expected null, found '0'",
    ),
    "label is r": (
        lambda t: put(first(t)["replica_column_proofs"]["c_x"]["column"]["rows"], at=1, value=list(R)),
        IN_FIRST + r"replica_column_proofs\.c_x\.column\.rows: layer 1: expected a field element below r",
    ),
    "zero": (lambda t: put(t, at="comm_d", value=[0] * 32), "comm_d: expected a value other than zero"),
}  # fmt: skip


@pytest.mark.parametrize("name", JSON_CHANGES)
def test_changed_json_is_refused(name: str, text: dict[str, Any]) -> None:
    change, message = JSON_CHANGES[name]
    with pytest.raises(FormatError, match=message) as error:
        read_c1(json_bytes(altered(text, change)))
    assert "\n" not in str(error.value)


def test_l6_trailing_characters_and_cut_texts(text: dict[str, Any]) -> None:
    data = json_bytes(text)
    for tail in (b"0", b"{}", b"\0", b",", data):
        message = f"offset {len(data)}: expected the end of the text, found {len(tail)} more bytes"
        with pytest.raises(FormatError, match=message):
            read_c1(data + tail)
    for size in (*range(30_000, len(data), 9973), len(data) - 1):
        with pytest.raises(FormatError, match="offset"):
            read_c1(data[:size])
    with pytest.raises(FormatError, match=r"at least 28256 bytes of JSON, found 20000: cut short"):
        read_c1(data[:20_000])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b'"ticket":[32', b'"ticket":[032', "ticket: expected a number up to 255, found a larger one or a"),
        (b'"ticket"', b'"seed":[1],"ticket"', "seed: expected the field once, found it again"),
        (b'"ticket"', b'"\\u0074icket"', "the name of a field without escapes, found '.'"),
        (b'"ticket":', b'"ticket"', "ticket: expected ':' after the name of a field, found '.'"),
        (b'"ticket":', b"ticket:", "expected the name of a field, found 't'"),
        (b',"ticket"', b',,"ticket"', "expected the name of a field, found ','"),
        (b',"ticket"', b' "ticket"', "expected ',' or '}' of an object, found '\"'"),
        (b'"_h":null', b'"_h":nil!', "_h: expected null, found 'n'"),
        (b'"registered_proof"', b'"registered"', 'a field "registered_proof" and its name, found none'),
        (b'"StackedDrg2KiBV1_1"', b"5", 'a field "registered_proof" and its name, found none'),
    ],
)  # fmt: skip
def test_broken_json(text: dict[str, Any], before: bytes, after: bytes, message: str) -> None:
    data = json_bytes(text)
    assert before in data
    with pytest.raises(FormatError, match=message):
        read_c1(data.replace(before, after, 1))


def wrapped(inner: bytes, **fields: Any) -> bytes:
    wrapper = {"SectorNum": 7, "Phase1Out": base64.b64encode(inner).decode(), "SectorSize": 2048}
    return json_bytes({**wrapper, **fields})


def test_l8_the_wrapper(text: dict[str, Any], stored: bytes) -> None:
    c1 = read_c1(wrapped(json_bytes(text)))
    assert c1.sector_number == 7
    assert same(c1, read_c1(stored))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"SectorSize": 4096}, "SectorSize: expected 2048 as StackedDrg2KiBV1_1 says, found 4096"),
        ({"SectorNum": -1}, "SectorNum: expected a number, found '-'"),
        ({"SectorNum": None}, "SectorNum: expected a number, found 'n'"),
        ({"Phase1Out": "ey!="}, "Phase1Out: expected base64, found"),
        ({"Phase1Out": "e30"}, "Phase1Out: expected base64, found"),
        ({"Phase1Out": "e30="}, 'Phase1Out: expected a C1 output with a field "registered_proof"'),
        ({"Phase1Out": ""}, 'Phase1Out: expected a C1 output with a field "registered_proof"'),
        ({"Phase1Out": 5}, "Phase1Out: expected a string, found '5'"),
        ({"Other": 5}, 'expected one of its 3 fields, found "Other"'),
    ],
)
def test_bad_wrappers(text: dict[str, Any], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_c1(wrapped(json_bytes(text), **fields))


def test_a_fault_inside_the_wrapper_is_placed(text: dict[str, Any]) -> None:
    inner = json_bytes(altered(text, lambda t: t["comm_r"].pop()))
    with pytest.raises(
        FormatError, match=r"<bytes>: Phase1Out: offset \d+: comm_r: expected an array"
    ):
        read_c1(wrapped(inner))


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected a C1 output, found a directory"):
        read_c1(tmp_path)
    with pytest.raises(FormatError, match="expected a C1 output, found no file of that name"):
        read_c1(tmp_path / "c1.json")
