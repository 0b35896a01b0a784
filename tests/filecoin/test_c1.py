"""C1 outputs: a made 2 KiB sector in three forms, a real 8 MiB sector, and everything that is not one."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_files import c1_8mib, json_bytes, record
from numpy.typing import NDArray

from bench.c1 import expect_same, forms, synthetic, to_json
from cuzk.curves import BLS12_381
from cuzk.errors import FormatError
from cuzk.filecoin.c1 import C1, layout, read_c1
from cuzk.filecoin.registered import SEAL

R = BLS12_381.r.to_bytes(32, "little")
Change = Callable[[Any], object]


@pytest.fixture(scope="module")
def stored(fixtures: Path) -> bytes:
    return (fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes()


@pytest.fixture(scope="module")
def text(fixtures: Path) -> dict[str, Any]:
    return dict(json.loads((fixtures / "filecoin" / "c1-2KiB.json").read_bytes()))


def same(a: C1, b: C1) -> bool:
    def content(c1: C1) -> bytes:
        fields = {n: v for n, v in vars(c1).items() if n not in ("name", "sector_number")}
        return pickle.dumps(fields)

    return content(a) == content(b)


def nodes(values: list[list[int]]) -> NDArray[np.uint64]:
    return np.array([np.frombuffer(bytes(v), "<u8") for v in values])


# What is read


def test_three_forms_of_one_output(fixtures: Path, stored: bytes) -> None:
    folder = fixtures / "filecoin"
    binary, plain, wrapped = (
        read_c1(folder / f"c1-2KiB.{suffix}") for suffix in ("bincode", "json", "curio.json")
    )
    assert same(binary, plain)
    assert same(binary, wrapped)
    assert (binary.sector_number, plain.sector_number, wrapped.sector_number) == (None, None, 1)
    assert same(binary, read_c1(stored))


def test_public_data_of_the_made_sector(fixtures: Path, stored: bytes) -> None:
    public = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    c1 = read_c1(stored)
    assert c1.proof is SEAL[public["registered_proof_number"]]
    for name in ("ticket", "seed", "replica_id", "comm_d", "comm_c", "comm_r_last", "comm_r"):
        assert getattr(c1, name).hex() == public[name]
    assert c1.nodes.tolist() == [public["challenges"]]
    assert c1.column_openings.index[0, :, 0].tolist() == public["challenges"]
    assert c1.column_openings.index[0, :, 1:7].tolist() == public["drg_parents"]
    assert c1.column_openings.index[0, :, 7:].tolist() == public["exp_parents"]
    assert (c1.data.index.tolist(), c1.replica.index.tolist()) == ([public["challenges"]],) * 2
    sector = [bytes.fromhex(node) for node in public["sector_data"]]
    assert [leaf.tobytes() for leaf in c1.data.leaf[0]] == [sector[i] for i in public["challenges"]]


def test_every_node_lies_where_the_json_has_it(text: dict[str, Any], stored: bytes) -> None:
    c1 = read_c1(stored)
    for c, proof in enumerate(text["vanilla_proofs"]["StackedDrg2KiBV1"][0]):
        columns = proof["replica_column_proofs"]
        opened = [columns["c_x"], *columns["drg_parents"], *columns["exp_parents"]]
        for k, column in enumerate(opened):
            single = column["inclusion_proof"]["data"]["Single"]
            siblings = [s for level in single["path"]["path"] for s in level["hashes"]]
            assert (c1.columns[0, c, k] == nodes(column["column"]["rows"])).all()
            assert (c1.column_openings.siblings[0, c, k] == nodes(siblings)).all()
            assert (c1.column_openings.leaf[0, c, k] == nodes([single["leaf"]])).all()
        for name, opening in (("comm_d_proofs", c1.data), ("comm_r_last_proof", c1.replica)):
            single = proof[name]["data"]["Single"]
            siblings = [s for level in single["path"]["path"] for s in level["hashes"]]
            assert (opening.siblings[0, c] == nodes(siblings)).all()
            assert (opening.leaf[0, c] == nodes([single["leaf"]])).all()
        for layer, labeling in enumerate(proof["labeling_proofs"]):
            assert (c1.label_parents[0, c, layer] == nodes(labeling["parents"])).all()
    assert (c1.data.arities, c1.replica.arities) == ((2,) * 6, (8, 8))


def test_a_real_8_mib_output(fixtures: Path) -> None:
    """Replica id and challenges by their definitions, D paths hashed to comm_d, from the sector's identity."""
    data, prover, sector = c1_8mib(fixtures)
    c1 = read_c1(data)
    assert c1.proof.name == "StackedDrg8MiBV1_1"
    assert (prover[:2], sector) == (bytes([0xEE, 0x07]), 1498)  # miner 1006
    porep = (6).to_bytes(8, "little") + bytes(24)
    identity = prover + sector.to_bytes(8, "big") + c1.ticket + c1.comm_d + porep
    replica = bytearray(hashlib.sha256(identity).digest())
    replica[31] &= 0x3F
    assert c1.replica_id == replica
    for i, node in enumerate(c1.nodes[0]):
        digest = hashlib.sha256(replica + c1.seed + i.to_bytes(4, "little")).digest()
        assert node == int.from_bytes(digest, "little") % ((1 << 18) - 1) + 1
        running = c1.data.leaf[0, i].tobytes()
        for level, sibling in enumerate(c1.data.siblings[0, i]):
            pair = [running, sibling.tobytes()]
            above = bytearray(
                hashlib.sha256(b"".join(pair[:: -1 if node >> level & 1 else 1])).digest()
            )
            above[31] &= 0x3F
            running = bytes(above)
        assert running == c1.comm_d
    assert c1.columns.shape == (1, 2, 15, 2, 4)
    assert c1.column_openings.siblings.shape == (1, 2, 15, 42, 4)


def test_json_in_other_orders_and_spacings(text: dict[str, Any], stored: bytes) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: turned(value[name]) for name in reversed(value) if name != "_h"}
        return [turned(item) for item in value] if isinstance(value, list) else value

    expected = read_c1(stored)
    assert same(read_c1(json_bytes(turned(text))), expected)
    assert same(read_c1(json_bytes(text, indent=1, separators=(" ,\t", "\r\n : "))), expected)
    assert same(read_c1(b"\n " + json_bytes(text, sort_keys=True) + b" \n"), expected)


def test_larger_shapes_by_their_layout(fixtures: Path) -> None:
    """FILECOIN's sizes of bincode: 60 KB for 8 MiB, 61.2 KB a challenge for 32 GiB; sub and top paths."""
    sizes = {proof.name: layout(proof).dtype.itemsize for proof in SEAL}
    assert sizes["StackedDrg8MiBV1_1"] == len(c1_8mib(fixtures)[0]) == 60_128
    assert round(sizes["StackedDrg32GiBV1_1"] / 180, -2) == 61_200
    for number in (8, 9):
        shape, kind = SEAL[number].shape, layout(SEAL[number])
        value = record(kind, bytes(kind.dtype.itemsize))
        challenge = value["vanilla_proofs"]["content"]["items"]["items"][0, 0]
        path = challenge["comm_r_last_proof"]["data"]["content"]
        names = ["base_proof", "sub_proof", "top_proof"][: len(shape.arities) - 8]
        assert list(path.dtype.names) == [*names, "root", "leaf"]


# What is refused: bincode


def challenge(output: Any, number: int = 1) -> Any:
    return output["vanilla_proofs"]["content"]["items"]["items"][0, number]


def put(array: Any, *, at: Any, value: Any) -> None:
    array[at] = value


def set_r(array: Any) -> None:
    array[...] = np.frombuffer(R, "<u8")


WORDS = np.arange(1, 5, dtype=np.uint64)
CHANGES: dict[str, tuple[Change, str]] = {
    "comm_r zero": (lambda o: put(o, at="comm_r", value=0), "comm_r: expected a value other than zero"),
    "comm_d zero": (lambda o: put(o, at="comm_d", value=0), "comm_d: expected a value other than zero"),
    "seed zero": (lambda o: put(o, at="seed", value=0), "seed: expected a value other than zero"),
    "comm_r is r": (lambda o: set_r(o["comm_r"]), "comm_r: expected a field element below r, found"),
    "variant": (
        lambda o: put(o["vanilla_proofs"], at="tag", value=3),
        "vanilla_proofs: variant: expected 0 of StackedDrg2KiBV1_1, found 3",
    ),
    "partitions": (
        lambda o: put(o["vanilla_proofs"]["content"], at="count", value=10),
        "vanilla_proofs: partitions: expected 1 of StackedDrg2KiBV1_1, found 10",
    ),
    "challenges": (
        lambda o: put(o["vanilla_proofs"]["content"]["items"]["count"], at=0, value=3),
        "offset 16: vanilla_proofs: partition 0: expected 2 challenges, found 3",
    ),
    "number of siblings": (
        lambda o: put(
            challenge(o)["comm_d_proofs"]["data"]["content"]["path"]["path"]["items"]["hashes"]["count"],
            at=4, value=2**63,
        ),
        r"partition 0: challenge 1: comm_d_proofs\.data\.path\.path\[4\]\.hashes: "
        "expected 1 items, found 9223372036854775808",
    ),
    "kind of path": (
        lambda o: put(challenge(o, 0)["comm_r_last_proof"]["data"], at="tag", value=1),
        r"challenge 0: comm_r_last_proof\.data: expected the variant 0 \(Single\), found 1",
    ),
    "position": (
        lambda o: put(
            challenge(o)["comm_r_last_proof"]["data"]["content"]["path"]["path"]["items"]["index"],
            at=1, value=8,
        ),
        r"comm_r_last_proof\.data\.path\.path\[1\]\.index: expected a number below 8, found 8",
    ),
    "label is r": (
        lambda o: set_r(
            challenge(o)["replica_column_proofs"]["exp_parents"]["items"]["column"]["rows"]["items"][5, 1]
        ),
        r"partition 0: challenge 1: replica_column_proofs\.exp_parents: expander parent 5: "
        r"column\.rows: layer 1: expected a field element below r, found a value that is not below r",
    ),
    "node": (
        lambda o: put(challenge(o, 0)["labeling_proofs"]["items"]["node"], at=1, value=34),
        "partition 0: challenge 0: labeling_proofs: layer 1: node: "
        "expected 33 as elsewhere in the output, found 34",
    ),
    "node out of the sector": (
        lambda o: put(challenge(o, 0)["labeling_proofs"]["items"]["node"], at=0, value=64),
        r"labeling_proofs: layer 0: node: expected a number below 64, found 64",
    ),
    "layer": (
        lambda o: put(challenge(o, 0)["labeling_proofs"]["items"]["layer_index"], at=1, value=3),
        "labeling_proofs: layer 1: layer_index: expected 2 as elsewhere in the output, found 3",
    ),
    "encoding": (
        lambda o: put(challenge(o)["encoding_proof"]["parents"]["items"], at=36, value=WORDS),
        r"challenge 1: encoding_proof: parent 36: label: expected \w{64} as .* found 01000000",
    ),
    "D index": (
        lambda o: put(
            challenge(o)["comm_d_proofs"]["data"]["content"]["path"]["path"]["items"]["index"],
            at=0, value=1,
        ),
        "challenge 1: comm_d_proofs: the index that its path spells: expected 2 as .* found 3",
    ),
    "column index": (
        lambda o: put(
            challenge(o)["replica_column_proofs"]["drg_parents"]["items"]["column"]["index"],
            at=3, value=9,
        ),
        "challenge 1: DRG parent 3: the index that its path spells: expected 9 as .* found 0",
    ),
    "root of D": (
        lambda o: put(
            challenge(o)["comm_d_proofs"]["data"]["content"]["root"], at=..., value=WORDS
        ),
        r"challenge 1: comm_d_proofs: root: expected fc3b6077\w+ as elsewhere",
    ),
    "root of R": (
        lambda o: put(
            challenge(o)["comm_r_last_proof"]["data"]["content"]["root"], at=..., value=WORDS
        ),
        r"challenge 1: comm_r_last_proof: root: expected fabee609\w+ as elsewhere",
    ),
    "root of C": (
        lambda o: put(
            challenge(o)["replica_column_proofs"]["exp_parents"]["items"]["inclusion_proof"]["data"][
                "content"
            ]["root"],
            at=7, value=WORDS,
        ),
        r"challenge 1: expander parent 7: root: expected 1acbf3da\w+ as elsewhere",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_output_is_refused(name: str, stored: bytes) -> None:
    change, message = CHANGES[name]
    output = record(layout(SEAL[5]), stored)
    change(output)
    with pytest.raises(FormatError, match=message) as error:
        read_c1(output.tobytes())
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("<bytes>: ")


def test_two_faults_are_named_in_the_order_of_the_bytes(stored: bytes) -> None:
    output = record(layout(SEAL[5]), stored)
    set_r(output["comm_r"])
    set_r(challenge(output)["comm_d_proofs"]["data"]["content"]["leaf"])
    set_r(challenge(output, 0)["encoding_proof"]["parents"]["items"][36])
    with pytest.raises(FormatError, match=r"challenge 0: encoding_proof\.parents\[36\]"):
        read_c1(output.tobytes())


@pytest.mark.parametrize("size", [0, 1, 15, 16, 28_255, 28_257, 60_128])
def test_wrong_sizes(size: int, stored: bytes) -> None:
    data = (stored + bytes(60_000))[:size]
    with pytest.raises(FormatError, match=r"found no bytes|bytes only|bytes: expected 28256 of"):
        read_c1(data)


def test_a_size_that_is_another_proof_types(stored: bytes) -> None:
    for number in (6, 8, 15, 18):
        data = number.to_bytes(4, "little") + stored[4:]
        with pytest.raises(FormatError, match=f"expected .* of {SEAL[number].name}, found"):
            read_c1(data)
    with pytest.raises(FormatError, match="begins with a number up to 19, found 20"):
        read_c1(bytes([20]) + stored[1:])


# What is refused: JSON


def altered(text: dict[str, Any], change: Change) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json_bytes(text))
    change(copy)
    return copy


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


# The wrapper


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


def test_the_json_of_the_fixture_is_what_the_layout_writes(
    text: dict[str, Any], stored: bytes
) -> None:
    assert to_json(layout(SEAL[5]), record(layout(SEAL[5]), stored)) == text


@pytest.mark.parametrize("number", [1, 7, 10, 15])
def test_other_types_in_all_forms(number: int) -> None:
    """Of more partitions, too: 13 of the non-interactive 2 KiB proof."""
    proof = SEAL[number]
    read = {name: read_c1(data) for name, data in forms(proof, synthetic(proof)).items()}
    assert {c1.proof for c1 in read.values()} == {proof}
    expect_same(read["JSON"], read["bincode"])
    expect_same(read["wrapper"], read["bincode"])
    assert read["JSON"].nodes.shape == (proof.partitions, proof.shape.challenges)


@pytest.mark.parametrize("number", [8, 9])
def test_paths_of_the_large_sectors(number: int) -> None:
    """10 partitions of 18 challenges over 11 layers; base, sub and top paths in their order."""
    proof = SEAL[number]
    output = synthetic(proof)
    c1 = read_c1(output.tobytes())
    assert c1.columns.shape == (10, 18, 15, 11, 4)
    assert c1.replica.arities == proof.shape.arities
    opened = output["vanilla_proofs"]["content"]["items"]["items"][9, 17]["comm_r_last_proof"]
    content, at = opened["data"]["content"], 0
    for name in content.dtype.names[:-2]:
        for level in content[name]["path"]["items"]:
            siblings = level["hashes"]["items"]
            assert (c1.replica.siblings[9, 17, at : at + len(siblings)] == siblings).all()
            at += len(siblings)
    assert at == proof.shape.siblings
    output["vanilla_proofs"]["content"]["items"]["items"][6, 3]["encoding_proof"]["node"] += 1
    with pytest.raises(
        FormatError, match="partition 6: challenge 3: encoding_proof: node: expected"
    ):
        read_c1(output.tobytes())
