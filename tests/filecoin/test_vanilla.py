"""Vanilla proofs of PoSt and SnapDeals: a real 32 GiB sector, and made ones of all sizes, against a plain walk."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_files import record

from bench.c1 import fill, open_at
from cuzk.curves import BLS12_381
from cuzk.errors import FormatError
from cuzk.filecoin.openings import Openings, binary_segments, octree_segments
from cuzk.filecoin.registered import POST, SEAL, UPDATE, Kind, RegisteredProof
from cuzk.filecoin.serde import Record
from cuzk.filecoin.vanilla import (
    POST_CHALLENGES,
    post_layout,
    read_post,
    read_update,
    update_layout,
)

WINDOW_32GIB, WINDOW_32GIB_V1_2, WINNING_32GIB = POST[8], POST[13], POST[3]
R = np.frombuffer(BLS12_381.r.to_bytes(32, "little"), "<u8")
Path_ = tuple[bytes, bytes, list[tuple[list[bytes], int]]]


class Walk:
    """bincode read value by value."""

    def __init__(self, data: bytes) -> None:
        self.data, self.offset = data, 0

    def take(self, size: int) -> bytes:
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def word(self, size: int = 8) -> int:
        return int.from_bytes(self.take(size), "little")

    def path(self) -> list[tuple[list[bytes], int]]:
        return [
            ([self.take(32) for _ in range(self.word())], self.word()) for _ in range(self.word())
        ]

    def proof(self) -> Path_:
        """(root, leaf, levels)"""
        kind = self.word(4)
        if kind == 0:
            root, leaf = self.take(32), self.take(32)
            return root, leaf, self.path()
        levels = [level for _ in range(kind + 1) for level in self.path()]
        return self.take(32), self.take(32), levels


def expect_opening(openings: Openings, at: tuple[int, ...], proof: Path_) -> None:
    root, leaf, levels = proof
    siblings = b"".join(s for level, _ in levels for s in level)
    assert openings.root[at].tobytes() == root
    assert openings.leaf[at].tobytes() == leaf
    assert openings.siblings[at].tobytes() == siblings
    assert openings.arities == tuple(len(level) + 1 for level, _ in levels)
    index, shift = 0, 0
    for level, position in levels:
        index += position << shift
        shift += len(level).bit_length()
    assert openings.index[at] == index


def made_post(proof: RegisteredProof, sectors: int, seed: int = 1) -> Record:
    random = np.random.default_rng(seed)
    layout = post_layout(proof)
    values = np.zeros(sectors, dtype=layout.dtype)
    fill(layout, values, random)
    values["sector_id"] = random.integers(0, 1 << 40, sectors)
    inner = values["vanilla_proof"]["sectors"]["items"][:, 0]
    opened = inner["inclusion_proofs"]["items"]
    index = random.integers(0, proof.shape.nodes, opened.shape, dtype=np.uint64)
    open_at(opened, octree_segments(proof.shape), index, inner["comm_r_last"][:, None])
    return values


def made_update(proof: RegisteredProof, seed: int = 1) -> Record:
    random = np.random.default_rng(seed)
    layout, shape = update_layout(proof), proof.shape
    values = np.zeros(proof.partitions, dtype=layout.dtype)
    fill(layout, values, random)
    values["comm_c"] = values["comm_c"][0]
    challenges = values["challenge_proofs"]["items"]
    index = random.integers(0, shape.nodes, challenges.shape, dtype=np.uint64)
    for name, segments in (
        ("proof_r_old", octree_segments(shape)),
        ("proof_d_new", binary_segments(shape.log2_nodes)),
        ("proof_r_new", octree_segments(shape)),
    ):
        open_at(challenges[name], segments, index, random.integers(0, 1 << 62, 4))
    return values


def blobs(values: Record) -> list[bytes]:
    return [value.tobytes() for value in values]


# A real sector


@pytest.fixture(scope="module")
def real(fixtures: Path) -> bytes:
    return (fixtures / "filecoin" / "post.vproof").read_bytes()


@pytest.mark.parametrize("proof", [WINDOW_32GIB, WINDOW_32GIB_V1_2], ids=lambda p: str(p.name))
def test_a_real_32_gib_sector(real: bytes, proof: RegisteredProof) -> None:
    post = read_post([real], proof)
    assert post.sector_ids.tolist() == [1]
    for i, index in enumerate(post.replica.index[0].tolist()):  # its randomness is zero
        digest = hashlib.sha256(bytes(32) + struct.pack("<QQ", 1, i)).digest()
        assert index == int.from_bytes(digest[:8], "little") % (1 << 30)
    walk = Walk(real)
    assert (walk.word(), post.comm_r.tobytes()) == (1, walk.take(32))
    assert (walk.word(), walk.word()) == (1, 10)
    for i in range(10):
        expect_opening(post.replica, (0, i), walk.proof())
    assert walk.take(64) == post.comm_c.tobytes() + post.comm_r_last.tobytes()
    assert walk.offset == len(real)


def test_a_file_and_bytes(real: bytes, fixtures: Path) -> None:
    post = read_post([fixtures / "filecoin" / "post.vproof", real], WINDOW_32GIB)
    assert (post.replica.siblings[0] == post.replica.siblings[1]).all()


# Made ones


@pytest.mark.parametrize("number", range(15))
def test_post_of_all_sizes(number: int) -> None:
    proof = POST[number]
    sectors = 1 if proof.kind is Kind.WINNING else min(3, proof.shape.window_sectors)
    values = made_post(proof, sectors)
    post = read_post(blobs(values), proof)
    count = POST_CHALLENGES[proof.kind]
    assert count == {"winning": 66, "window": 10}[proof.kind.value]
    assert post.replica.leaf.shape == (sectors, count, 4)
    for s, data in enumerate(blobs(values)):
        walk = Walk(data)
        assert walk.word() == post.sector_ids[s]
        assert walk.take(32) == post.comm_r[s].tobytes()
        assert (walk.word(), walk.word()) == (1, count)
        for i in range(count):
            expect_opening(post.replica, (s, i), walk.proof())
        assert walk.take(32) == post.comm_c[s].tobytes()
        assert walk.take(32) == post.comm_r_last[s].tobytes()
        assert walk.offset == len(data)


@pytest.mark.parametrize("number", range(5))
def test_updates_of_all_sizes(number: int) -> None:
    proof = UPDATE[number]
    values = made_update(proof)
    update = read_update(blobs(values), proof)
    for p, data in enumerate(blobs(values)):
        walk = Walk(data)
        assert walk.take(32) == update.comm_c
        leaves = [walk.take(32) for _ in range(walk.word())]
        assert len(leaves) == (8 if number == 0 else 128)
        assert b"".join(leaves) == update.apex_leaves[p].tobytes()
        assert walk.word() == proof.shape.update_challenges
        for i in range(proof.shape.update_challenges):
            for opened in (update.replica_old, update.data_new, update.replica_new):
                expect_opening(opened, (p, i), walk.proof())
        assert walk.offset == len(data)
    assert update.comm_d_new == update.data_new.root[0, 0].tobytes()
    assert update.comm_r_last_old == update.replica_old.root[0, 0].tobytes()
    assert update.comm_r_last_new == update.replica_new.root[-1, -1].tobytes()


# What is refused


@pytest.mark.parametrize("change", [-1, 1, -24_960, 24_960, -8])
def test_wrong_sizes_of_a_sector(real: bytes, change: int) -> None:
    data = (real + bytes(30_000))[: len(real) + change]
    message = rf"sector 1: expected 24960 bytes, found {len(data)}: cut short"
    with pytest.raises(FormatError, match=message if data else "found no bytes"):
        read_post([real, data], WINDOW_32GIB)


def test_another_size_or_kind_of_proof(real: bytes) -> None:
    with pytest.raises(FormatError, match="sector 0: expected 25520 bytes, found 24960"):
        read_post([real], POST[9])
    with pytest.raises(FormatError, match="sector 0: expected 164064 bytes, found 24960"):
        read_post([real], WINNING_32GIB)
    with pytest.raises(FormatError, match="expected a PoSt proof type, found StackedDrg32GiBV1"):
        read_post([real], SEAL[3])
    with pytest.raises(FormatError, match="expected an update proof type, found StackedDrgWin"):
        read_update([real], POST[0])


@pytest.mark.parametrize(
    ("proof", "count", "most"), [(POST[0], 2, 1), (POST[0], 0, 1), (POST[5], 3, 2), (POST[5], 0, 2)]
)
def test_wrong_counts_of_sectors(proof: RegisteredProof, count: int, most: int) -> None:
    with pytest.raises(FormatError, match=f"expected 1 to {most} sectors of .*, found {count}"):
        read_post([b"\0"] * count, proof)


def test_wrong_counts_of_partitions() -> None:
    values = blobs(made_update(UPDATE[1]))
    for wrong in (values[:3], [*values, values[0]], []):
        with pytest.raises(FormatError, match=f"expected 4 partitions of .*, found {len(wrong)}"):
            read_update(wrong, UPDATE[1])


def _put(array: Any, *, at: Any, value: Any) -> None:
    array[at] = value


def _sector(value: Any) -> Any:
    return value["vanilla_proof"]["sectors"]["items"][0]


def _content(value: Any, challenge: int) -> Any:
    return _sector(value)["inclusion_proofs"]["items"][challenge]["data"]["content"]


PLACE = r"sector 1: vanilla_proof\.sectors: sector 0: "
OPENED = PLACE + r"inclusion_proofs: challenge 7: data\."
CHANGES: dict[str, tuple[Callable[[Any], object], str]] = {
    "zero comm_r": (lambda v: _put(v, at="comm_r", value=0), "sector 1: comm_r: expected a value other"),
    "comm_r is r": (lambda v: _put(v, at="comm_r", value=R), r"sector 1: comm_r: expected a field element"),
    "sectors": (
        lambda v: _put(v["vanilla_proof"]["sectors"], at="count", value=2),
        r"sector 1: vanilla_proof\.sectors: expected 1 sectors, found 2",
    ),
    "challenges": (
        lambda v: _put(_sector(v)["inclusion_proofs"], at="count", value=2**40),
        PLACE + "inclusion_proofs: expected 10 challenges, found 1099511627776",
    ),
    "position": (
        lambda v: _put(_content(v, 7)["base_proof"]["path"]["items"][8], at="index", value=8),
        OPENED + r"base_proof\.path\[8\]\.index: expected a number below 8, found 8",
    ),
    "levels": (
        lambda v: _put(_content(v, 7)["sub_proof"]["path"], at="count", value=0),
        OPENED + r"sub_proof\.path: expected 1 items, found 0",
    ),
    "sibling is r": (
        lambda v: _put(
            _content(v, 7)["sub_proof"]["path"]["items"]["hashes"]["items"], at=(0, 6), value=R
        ),
        OPENED + r"sub_proof\.path\[0\]\.hashes\[6\]: expected a field element below r",
    ),
    "leaf is r + 1": (
        lambda v: _put(_content(v, 7), at="leaf", value=R + np.array([1, 0, 0, 0], np.uint64)),
        OPENED + r"leaf: expected a field element below r, found a value that is not below r",
    ),
    "root": (
        lambda v: _put(_content(v, 7), at="root", value=1),
        r"sector 1: challenge 7: inclusion_proofs: root: expected \w{64} as elsewhere",
    ),
    "comm_r_last": (
        lambda v: _put(_sector(v), at="comm_r_last", value=1),
        r"sector 1: challenge 0: inclusion_proofs: root: expected 0100\w+ as elsewhere",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_sector_is_refused(name: str, real: bytes) -> None:
    change, message = CHANGES[name]
    value = record(post_layout(WINDOW_32GIB), real)
    change(value[()])
    with pytest.raises(FormatError, match=message) as error:
        read_post([real, value.tobytes()], WINDOW_32GIB)
    assert "\n" not in str(error.value)


def test_r_minus_one_is_a_value(real: bytes) -> None:
    value = record(post_layout(WINDOW_32GIB), real)
    _content(value[()], 7)["leaf"] = R - np.array([1, 0, 0, 0], np.uint64)
    assert read_post([value.tobytes()], WINDOW_32GIB).replica.leaf[0, 7].tobytes() == (
        BLS12_381.r - 1
    ).to_bytes(32, "little")


def test_partitions_that_disagree() -> None:
    proof = UPDATE[2]
    changes: dict[str, Callable[[Any], object]] = {
        "partition 9: comm_c: expected": lambda v: _put(v[9], at="comm_c", value=5),
        "partition 9: challenge 3: proof_d_new: root: expected": lambda v: _put(
            v[9]["challenge_proofs"]["items"][3]["proof_d_new"]["data"]["content"], at="root", value=5
        ),
        "partition 15: apex_leafs: apex leaf 127: expected a field element below r": lambda v: _put(
            v[15]["apex_leafs"]["items"], at=127, value=R
        ),
        r"partition 0: challenge_proofs: challenge 85: proof_d_new\.data\.path\.path\[23\]\.index": lambda v: _put(
            v[0]["challenge_proofs"]["items"][85]["proof_d_new"]["data"]["content"]["path"]["path"]["items"][23],
            at="index", value=2,
        ),
    }  # fmt: skip
    for name, change in changes.items():
        values = made_update(proof)
        change(values)
        with pytest.raises(FormatError, match=name):
            read_update(blobs(values), proof)


def test_one_wrong_partition_among_many() -> None:
    values = blobs(made_update(UPDATE[1]))
    values[2] = values[2][:-32]
    with pytest.raises(FormatError, match=r"partition 2: expected 43864 bytes, found 43832"):
        read_update(values, UPDATE[1])
