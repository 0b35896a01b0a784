"""The check before proving: real and self-made vanilla proofs pass, and each changed item is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_files import c1_8mib
from made_sectors import PROVER, Commitments, sealed, updated
from made_updates import update_blobs

from cuzk.errors import FormatError, UnsatisfiedError
from cuzk.filecoin.c1 import C1, read_c1
from cuzk.filecoin.check import check_c1
from cuzk.filecoin.check_post import check_post
from cuzk.filecoin.check_update import check_update
from cuzk.filecoin.openings import Openings
from cuzk.filecoin.registered import SEAL, UPDATE, ApiVersion, RegisteredProof, registered
from cuzk.filecoin.shapes import SHAPES
from cuzk.filecoin.vanilla import PostSectors, UpdatePartitions, read_post, read_update
from cuzk.vectors import Words


def changed(array: Words, *item: int) -> Words:
    """The array with one node, or one number, that is another and still below r."""
    copy = array.copy()
    place = item if copy[item].ndim == 0 else (*item, 0)
    copy[place] ^= np.uint64(1)
    return copy


def opening(paths: Openings, name: str, *item: int) -> Openings:
    values: dict[str, Any] = {name: changed(getattr(paths, name), *item)}
    return replace(paths, **values)


def refused(call: Callable[[], None], message: str) -> None:
    with pytest.raises(UnsatisfiedError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
    assert re.search(r"expected \S+, found \S+$", str(error.value))


# C1


@pytest.fixture(scope="module")
def small(fixtures: Path) -> C1:
    return read_c1(fixtures / "filecoin" / "c1-2KiB.bincode")


@pytest.fixture(scope="module")
def real(fixtures: Path) -> C1:
    """8 MiB, of a miner's devnet."""
    return read_c1(c1_8mib(fixtures)[0])


def test_real_8_mib(fixtures: Path, real: C1) -> None:
    _, prover_id, sector = c1_8mib(fixtures)
    check_c1(real, prover_id=prover_id, sector=sector, threads=2)
    refused(lambda: check_c1(real, prover_id=prover_id, sector=sector + 1), "replica_id: expected")
    check_c1(replace(real, sector_number=sector), prover_id=prover_id)
    refused(
        lambda: check_c1(replace(real, sector_number=1), prover_id=prover_id),
        "replica_id: expected",
    )


def test_self_made_2_kib(fixtures: Path, small: C1) -> None:
    public = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    assert small.nodes.tolist() == [public["challenges"]]
    check_c1(small, prover_id=bytes.fromhex(public["prover_id"]), sector=public["sector"])
    refused(lambda: check_c1(small, porep_id=bytes(32)), "challenge 0 .*: node of DRG parent")


# what is changed, and what is named (of the 8 MiB output: its challenges are these nodes)
MUTATIONS: dict[str, tuple[Callable[[C1], dict[str, Any]], str]] = {
    "comm_c": (lambda _: {"comm_c": bytes(32)}, ": comm_r: expected"),
    "comm_r": (lambda _: {"comm_r": bytes(32)}, ": comm_r: expected"),
    "comm_r_last": (lambda c: {"comm_r_last": c.comm_c}, ": comm_r: expected"),
    "seed": (
        lambda _: {"seed": bytes(32)},
        r"partition 0: challenge 0: challenged node: expected \d+, found {n0}$",
    ),
    "replica id": (
        lambda _: {"replica_id": bytes(32)},
        "partition 0: challenge 0: challenged node",
    ),
    "node": (
        lambda c: {"nodes": changed(c.nodes, 0, 1)},
        r"partition 0: challenge 1: challenged node: expected {n1}, found \d+$",
    ),
    "DRG parent": (
        lambda c: {"column_openings": opening(c.column_openings, "index", 0, 1, 3)},
        r"challenge 1 \(node {n1}\): node of DRG parent 2: expected \d+",
    ),
    "expander parent": (
        lambda c: {"column_openings": opening(c.column_openings, "index", 0, 0, 14)},
        r"challenge 0 \(node {n0}\): node of expander parent 7: expected \d+",
    ),
    "comm_d": (
        lambda _: {"comm_d": bytes(32)},
        r"challenge 0 \(node {n0}\): root that the path in tree D leads to",
    ),
    "data leaf": (
        lambda c: {"data": opening(c.data, "leaf", 0, 1)},
        r"challenge 1 \(node {n1}\): root that the path in tree D leads to",
    ),
    "sibling in D": (
        lambda c: {"data": opening(c.data, "siblings", 0, 1, -1)},
        r"challenge 1 \(node {n1}\): root that the path in tree D leads to",
    ),
    "replica leaf": (
        lambda c: {"replica": opening(c.replica, "leaf", 0, 0)},
        r"challenge 0 \(node {n0}\): root that the path in tree R_last leads to",
    ),
    "sibling in R": (
        lambda c: {"replica": opening(c.replica, "siblings", 0, 1, 9)},
        r"challenge 1 \(node {n1}\): root that the path in tree R_last leads to",
    ),
    "column": (
        lambda c: {"columns": changed(c.columns, 0, 1, 8, 1)},
        r"challenge 1 \(node {n1}\): expander parent 1 \(node \d+\): leaf of tree C, the column's hash",
    ),
    "column's leaf": (
        lambda c: {"column_openings": opening(c.column_openings, "leaf", 0, 0, 0)},
        r"challenge 0 \(node {n0}\): the challenged column \(node {n0}\): leaf of tree C",
    ),
    "sibling in C": (
        lambda c: {"column_openings": opening(c.column_openings, "siblings", 0, 1, 6, 3)},
        r"challenge 1 \(node {n1}\): DRG parent 5 \(node \d+\): root that the path in tree C leads to",
    ),
    "label's parent, layer 1": (
        lambda c: {"label_parents": changed(c.label_parents, 0, 1, 0, 36)},
        r"challenge 1 \(node {n1}\): layer 1: label of parent 36",
    ),
    "label's parent, layer 2": (
        lambda c: {"label_parents": changed(c.label_parents, 0, 0, 1, 20)},
        r"challenge 0 \(node {n0}\): layer 2: label of parent 20",
    ),
}


@pytest.mark.parametrize("size", ["2KiB", "8MiB"])
@pytest.mark.parametrize("name", MUTATIONS)
def test_changed_c1(request: pytest.FixtureRequest, size: str, name: str) -> None:
    c1: C1 = request.getfixturevalue({"2KiB": "small", "8MiB": "real"}[size])
    change, message = MUTATIONS[name]
    n0, n1 = c1.nodes[0].tolist()
    message = message.replace("{n0}", str(n0)).replace("{n1}", str(n1))
    refused(lambda: check_c1(replace(c1, **change(c1)), threads=2), message)


# the types of all versions, the two sizes with a sub tree, and where challenges come from
MADE = [
    (SEAL[0], "2KiB"),
    (SEAL[5], "4KiB"),
    (SEAL[5], "16KiB"),
    (SEAL[10], "2KiB"),
    (SEAL[15], "2KiB"),
]


@pytest.mark.parametrize(("proof", "shape"), MADE)
def test_made_sectors(proof: RegisteredProof, shape: str) -> None:
    proof = replace(proof, shape=SHAPES[shape])
    c1 = sealed(proof)
    assert c1.nodes.shape == (proof.partitions, 2)
    check_c1(c1, prover_id=PROVER, threads=2)
    other = replace(
        c1, proof=replace(proof, api=ApiVersion.V1_0 if proof.number else ApiVersion.V1_1)
    )
    refused(
        lambda: check_c1(other), r"partition 0: challenge 0 \(node \d+\): node of DRG parent \d"
    )
    last = proof.partitions - 1
    damaged = replace(c1, replica=opening(c1.replica, "siblings", last, 1, 13))
    refused(lambda: check_c1(damaged), rf"partition {last}: challenge 1 .*: root .* tree R_last")


@pytest.mark.parametrize("layer", [0, 1])
def test_a_sector_sealed_with_a_wrong_label(layer: int) -> None:
    """All hashes of it are right. The challenges hang on its replica id alone."""
    node = int(sealed(SEAL[5]).nodes[0, 1])
    wrong = sealed(SEAL[5], wrong_label=(layer, node))
    refused(
        lambda: check_c1(wrong), rf"challenge 1 \(node {node}\): layer {layer + 1}: label: expected"
    )


def test_a_sector_with_a_replica_of_other_data() -> None:
    c1 = sealed(SEAL[5], wrong_replica=True)
    refused(lambda: check_c1(c1), r"challenge 0 \(node \d+\): replica's node, last label \+ data")


def test_swapped_challenges(real: C1) -> None:
    order = [1, 0]
    swapped = replace(
        real,
        nodes=real.nodes[:, order],
        columns=real.columns[:, order],
        label_parents=real.label_parents[:, order],
    )
    refused(lambda: check_c1(swapped), "partition 0: challenge 0: challenged node")


# PoSt


@pytest.fixture(scope="module")
def post(fixtures: Path) -> PostSectors:
    """A real sector of 32 GiB: randomness 0, sector 1."""
    data = (fixtures / "filecoin" / "post.vproof").read_bytes()
    return read_post([data], registered("post", "StackedDrgWindow32GiBV1_2"))


def test_real_post(post: PostSectors) -> None:
    check_post(post, bytes(32))
    check_post(post, bytes(32), partition=3)  # version 1.2: no index of the sector
    older = replace(post, proof=registered("post", "StackedDrgWindow32GiBV1"))
    check_post(older, bytes(32))
    refused(
        lambda: check_post(older, bytes(32), partition=1),
        r"sector 0 \(number 1\): challenge 0: challenged node",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: {"comm_r": changed(p.comm_r, 0)}, r"sector 0 \(number 1\): comm_r"),
        (lambda p: {"comm_c": changed(p.comm_c, 0)}, r"sector 0 \(number 1\): comm_r"),
        (lambda p: {"comm_r_last": changed(p.comm_r_last, 0)}, r"sector 0 \(number 1\): comm_r"),
        (lambda p: {"sector_ids": changed(p.sector_ids, 0)}, r"sector 0 \(number 0\): challenge 0: challenged"),
        (lambda p: {"replica": opening(p.replica, "index", 0, 4)}, "challenge 4: challenged node"),
        (lambda p: {"replica": opening(p.replica, "leaf", 0, 9)}, r"challenge 9 \(node \d+\): root"),
        (lambda p: {"replica": opening(p.replica, "siblings", 0, 5, 69)}, r"challenge 5 \(node \d+\): root"),
    ],
)  # fmt: skip
def test_changed_post(
    post: PostSectors, change: Callable[[PostSectors], dict[str, Any]], message: str
) -> None:
    refused(lambda: check_post(replace(post, **change(post)), bytes(32)), message)


def test_post_of_other_randomness(post: PostSectors) -> None:
    refused(lambda: check_post(post, b"\x01" * 32), "challenge 0: challenged node")
    with pytest.raises(FormatError, match="randomness: expected 32 bytes, found 31"):
        check_post(post, bytes(31))
    with pytest.raises(FormatError, match="randomness: expected a value below r"):
        check_post(post, b"\xff" * 32)


# SnapDeals: no vanilla proof of other software is public


Made = tuple[UpdatePartitions, Commitments]


@pytest.fixture(scope="module")
def update_2kib() -> Made:
    """One partition, eight apex leaves."""
    return updated(UPDATE[0], 1)


@pytest.fixture(scope="module")
def update_16kib() -> Made:
    """Two partitions, 128 apex leaves each; no size that has a registered proof is as small."""
    return updated(replace(UPDATE[0], shape=SHAPES["16KiB"]), 1)


def test_updates(update_2kib: Made, update_16kib: Made) -> None:
    for update, commitments in (update_2kib, update_16kib):
        check_update(update, *commitments, threads=2)
        check_update(update, *commitments, h_select=5)  # all six are one bit in these sizes
        for k, name in enumerate(("comm_r_old", "comm_d_new", "comm_r_new")):
            wrong = [bytes(32) if i == k else value for i, value in enumerate(commitments)]
            a, b, c = wrong
            refused(lambda a=a, b=b, c=c, u=update: check_update(u, a, b, c), f"^{name}: expected")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: {"comm_c": bytes(32)}, "^comm_r_old"),
        (lambda u: {"data_new": opening(u.data_new, "index", 1, 3)}, "partition 1: challenge 3: challenged node in the new tree D"),
        (lambda u: {"replica_old": opening(u.replica_old, "index", 1, 9)}, "challenge 9: challenged node in the old tree R_last"),
        (lambda u: {"replica_new": opening(u.replica_new, "index", 0, 0)}, "challenge 0: challenged node in the new tree R_last"),
        (lambda u: {"replica_old": opening(u.replica_old, "siblings", 1, 2, 20)}, r"partition 1: challenge 2 \(node \d+\): root that the path in the old tree R_last"),
        (lambda u: {"data_new": opening(u.data_new, "siblings", 0, 7, 0)}, r"partition 0: challenge 7 \(node \d+\): root that the path in the new tree D"),
        (lambda u: {"replica_new": opening(u.replica_new, "leaf", 0, 5)}, r"challenge 5 \(node \d+\): root that the path in the new tree R_last"),
        (lambda u: {"apex_leaves": changed(u.apex_leaves, 1, int(u.data_new.index[1, 0]) // 2 % 128)}, r"partition 1: challenge 0 \(node \d+\): apex leaf \d+"),
    ],
)  # fmt: skip
def test_changed_update(
    update_16kib: Made, change: Callable[[UpdatePartitions], dict[str, Any]], message: str
) -> None:
    update, commitments = update_16kib
    refused(lambda: check_update(replace(update, **change(update)), *commitments), message)


def test_partitions_that_change_places(update_16kib: Made, tmp_path: Path) -> None:
    """From two files in the wrong order: the file is named, and whose they are."""
    update, commitments = update_16kib
    files = [tmp_path / name for name in ("a.vproof", "b.vproof")]
    for path, blob in zip(files, update_blobs(update), strict=True):
        path.write_bytes(blob)
    check_update(read_update(files, update.proof), *commitments)
    with pytest.raises(UnsatisfiedError) as caught:
        check_update(read_update(files[::-1], update.proof), *commitments)
    assert str(caught.value) == (
        "b.vproof: partition 0: expected its challenges, found those of partition 1: give the vanilla proofs in the "
        "order of the partitions"
    )
    files[1].write_bytes(update_blobs(replace(update, data_new=opening(update.data_new, "siblings", 1, 7, 0)))[1])  # fmt: skip
    wrong = read_update(files, update.proof)
    refused(
        lambda: check_update(wrong, *commitments),
        r"^b\.vproof: partition 1: challenge 7 \(node \d+\): root that the path in the new tree D",
    )


def test_update_with_an_apex_leaf_that_no_path_passes(update_16kib: Made) -> None:
    update, commitments = update_16kib
    used = set((update.data_new.index[0] // 2 % 128).tolist())
    free = next(i for i in range(128) if i not in used)
    wrong = replace(update, apex_leaves=changed(update.apex_leaves, 0, free))
    refused(
        lambda: check_update(wrong, *commitments),
        "partition 0: root of the tree of its apex leaves",
    )


@pytest.mark.parametrize(("size", "number"), [("2KiB", 0), ("16KiB", 1)])
def test_update_encoded_otherwise(size: str, number: int) -> None:
    """All paths are right, the new replica is not."""
    update, commitments = updated(replace(UPDATE[0], shape=SHAPES[size]), 1, wrong_by=1)
    assert len(update.apex_leaves) == number + 1
    refused(
        lambda: check_update(update, *commitments),
        r"partition 0: challenge 0 \(node \d+\): new replica's node, old node \+ rho \* data",
    )


# Whatever byte is changed


def changed_bytes(data: bytes, step: int) -> Iterator[bytes]:
    """One bit of every ``step``-th byte; a prime ``step`` comes to all places of a node."""
    for place in range(0, len(data), step):
        yield data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]


def test_no_byte_of_a_c1_can_be_another(fixtures: Path) -> None:
    """Reader or check says so, in one line; the ticket is known by the replica id."""
    public = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    prover_id = bytes.fromhex(public["prover_id"])
    data = (fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes()
    outcomes = []
    for other in changed_bytes(data, 101):
        with pytest.raises((FormatError, UnsatisfiedError), match=r"^[^\n]*$") as error:
            check_c1(read_c1(other), prover_id=prover_id, sector=public["sector"])
        outcomes.append(error.type)
    assert outcomes.count(UnsatisfiedError) > 80
    assert outcomes.count(FormatError) > 20


def test_no_byte_of_a_post_can_be_another(fixtures: Path) -> None:
    data = (fixtures / "filecoin" / "post.vproof").read_bytes()
    proof = registered("post", "StackedDrgWindow32GiBV1_2")
    outcomes = []
    for other in changed_bytes(data, 251):
        with pytest.raises((FormatError, UnsatisfiedError), match=r"^[^\n]*$") as error:
            check_post(read_post([other], proof), bytes(32))
        outcomes.append(error.type)
    assert outcomes.count(UnsatisfiedError) > 80
