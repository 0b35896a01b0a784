"""Challenges against known answers of rust-fil-proofs' tests and of real proofs."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cuzk.errors import FormatError
from cuzk.filecoin.challenges import (
    hashed,
    porep_challenges,
    post_challenges,
    post_indices,
    synthetic,
    update_challenges,
)
from cuzk.filecoin.registered import SEAL, ApiVersion, registered
from cuzk.filecoin.shapes import SHAPES


@pytest.fixture(scope="module")
def known(fixtures: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((fixtures / "filecoin" / "challenges.json").read_text())
    return data


def node(value: int) -> bytes:
    return value.to_bytes(32, "little")


def test_interactive(known: dict[str, Any]) -> None:
    proofs = {proof.shape.nodes: proof for proof in SEAL[5:10]}
    assert len(known["challenges"]) == 15
    for case in known["challenges"]:
        replica_id, seed = bytes.fromhex(case["replica_id"]), bytes.fromhex(case["seed"])
        proof = proofs[case["nodes"]]
        assert proof.shape.challenges == case["count"]
        found = porep_challenges(proof, replica_id, bytes(32), seed, case["partition"])
        assert found.tolist() == case["challenges"]


# storage-proofs-porep stacked::vanilla::challenges, test_synth_challenges_against_hardcoded
SYNTHETIC_SET = [178, 297, 869, 211, 875, 477, 94, 781, 124, 332, 856, 801, 176, 692, 429, 691, 290, 204, 986, 210, 973]  # fmt: skip
SYNTHETIC = [176, 781, 801, 986, 290, 211, 692, 856, 986, 332]


def test_synthetic() -> None:
    found = synthetic(node(55), node(101), b"\x01" * 32, 1 << 10, range(10), candidates=21)
    assert found.tolist() == SYNTHETIC
    assert set(SYNTHETIC) <= set(SYNTHETIC_SET)
    later = synthetic(node(55), node(101), b"\x01" * 32, 1 << 10, range(4, 7), candidates=21)
    assert later.tolist() == SYNTHETIC[4:7]


def test_synthetic_partitions_are_pieces_of_one_stream() -> None:
    proof = registered("seal", "StackedDrg32GiBV1_1_Feat_SyntheticPoRep")
    ids = node(7), node(8), b"\x02" * 32
    whole = synthetic(*ids, proof.shape.nodes, range(180)).tolist()
    parts = [porep_challenges(proof, *ids, k).tolist() for k in range(10)]
    assert [c for part in parts for c in part] == whole
    assert len(set(whole)) > 170
    # of no more than 2^18 nodes
    small = synthetic(*ids, 64, range(1000))
    assert small.min() >= 1
    assert small.max() <= 63


def test_non_interactive() -> None:
    """The definition once more; no public proof of this kind has a key."""
    proof = registered("seal", "StackedDrg32GiBV1_2_Feat_NonInteractivePoRep")
    replica_id, comm_r = node(123), node(456)
    found = porep_challenges(proof, replica_id, comm_r, bytes(32), 125)
    expected = []
    for i in range(18 * 125, 18 * 126):
        message = b"filecoin.io|PoRep|1|NonInteractive|1" + replica_id + comm_r
        digest = sha256(message + i.to_bytes(4, "little")).digest()
        expected.append(int.from_bytes(digest, "little") % (2**30 - 1) + 1)
    assert found.tolist() == expected
    assert porep_challenges(proof, replica_id, comm_r, b"\xff" * 32, 125).tolist() == expected
    assert porep_challenges(proof, replica_id, node(457), bytes(32), 125).tolist() != expected


def test_post(known: dict[str, Any]) -> None:
    """The first two are of a real vanilla proof and of a real proof."""
    assert len(known["post_challenges"]) == 3
    for case in known["post_challenges"]:
        randomness = bytes.fromhex(case["randomness"])
        pairs = case["sector_and_index"]
        found = [post_challenges(randomness, s, [i], case["nodes"]).item() for s, i in pairs]
        assert found == case["challenges"]
        sector = pairs[0][0]
        indices = [i for s, i in pairs if s == sector]
        together = post_challenges(randomness, sector, indices, case["nodes"])
        assert together.tolist() == case["challenges"][: len(indices)]


def test_post_indices_count_through_sectors_up_to_version_1_1() -> None:
    for api in (ApiVersion.V1_0, ApiVersion.V1_1):
        assert post_indices(api, 3, 10) == range(30, 40)
    assert post_indices(ApiVersion.V1_2, 3, 10) == range(10)


# storage-proofs-update challenges, test_challenges_against_hardcoded: comm_r_new is the first field element
# that XorShiftRng gives of storage-proofs-core's TEST_SEED
COMM_R_NEW = "101cbe4b9c42604f04c703c396f788c6cb2d6d7d58f45430b12eb2edd640076c"
UPDATE = {
    ("2KiB", 0): [53, 51, 56, 3, 0],
    ("4KiB", 0): [117, 25, 62, 0, 72],
    ("16KiB", 0): [245, 140, 15, 128, 28],
    ("16KiB", 1): [286, 308, 493, 510, 508],
    ("8MiB", 0): [36085, 32783, 44060, 10950, 3731],
    ("8MiB", 1): [78878, 130797, 112892, 93994, 78379],
    ("512MiB", 0): [1019125, 116736, 706220, 59698, 799498],
    ("512MiB", 1): [2092548, 1213276, 1185483, 1164598, 1095197],
    ("512MiB", 14): [15212432, 15665918, 15015423, 15012912, 15495223],
    ("512MiB", 15): [16388544, 15794686, 16637142, 16319148, 16328348],
    ("32GiB", 0): [1019125, 27985696, 15282860, 11586600, 44651330],
    ("32GiB", 1): [109168525, 127316247, 80331041, 97065716, 72310052],
    ("32GiB", 14): [990420169, 955146989, 968005601, 976863263, 944650706],
    ("32GiB", 15): [1038629497, 1053983614, 1030421316, 1027373887, 1068685433],
    ("64GiB", 0): [1019125, 13992848, 3820715, 18225541, 57316660],
    ("64GiB", 1): [243386253, 197875851, 204632136, 171516766, 247789010],
    ("64GiB", 14): [1997053129, 1920414070, 2003609080, 1900492803, 1963254685],
    ("64GiB", 15): [2045262457, 2036941247, 2136653521, 2091356007, 2147167623],
}


@pytest.mark.parametrize(("size", "partition"), UPDATE)
def test_update(size: str, partition: int) -> None:
    shape = SHAPES[size]
    found = update_challenges(shape, bytes.fromhex(COMM_R_NEW), partition)
    assert found[:5].tolist() == UPDATE[size, partition]
    assert len(found) == shape.update_challenges
    assert set((found >> (shape.log2_nodes - shape.update_partition_bits)).tolist()) == {partition}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: porep_challenges(SEAL[5], bytes(31), bytes(32), bytes(32), 0), "replica id: .* found 31"),
        (lambda: porep_challenges(SEAL[5], bytes(32), bytes(32), bytes(33), 0), "seed: .* found 33"),
        (lambda: update_challenges(SHAPES["2KiB"], b"\xff" * 32, 0), "comm_r_new: .* below r"),
    ],
)  # fmt: skip
def test_bytes_that_do_not_fit(call: Callable[[], object], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        call()


def test_hashed_challenges_leave_node_0_out() -> None:
    found = hashed(b"", 3, range(100))
    assert set(found.tolist()) == {1, 2}
