"""C1 outputs: a made 2 KiB sector in three forms, a real 8 MiB sector, other types made here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_files import c1_8mib, json_bytes, record, same
from numpy.typing import NDArray

from bench.c1 import expect_same, forms, synthetic, to_json
from cuzk.errors import FormatError
from cuzk.filecoin.c1 import layout, read_c1
from cuzk.filecoin.registered import SEAL


@pytest.fixture(scope="module")
def stored(fixtures: Path) -> bytes:
    return (fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes()


@pytest.fixture(scope="module")
def text(fixtures: Path) -> dict[str, Any]:
    return dict(json.loads((fixtures / "filecoin" / "c1-2KiB.json").read_bytes()))


def nodes(values: list[list[int]]) -> NDArray[np.uint64]:
    return np.array([np.frombuffer(bytes(v), "<u8") for v in values])


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
