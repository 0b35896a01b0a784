"""Public inputs: order, padding, and what is refused."""

import json
from pathlib import Path

import pytest

from cuzk.curves import BLS12_381
from cuzk.errors import FormatError
from cuzk.filecoin.challenges import post_challenges
from cuzk.filecoin.public import porep_inputs, update_inputs, window_inputs, winning_inputs
from cuzk.filecoin.registered import POST, SEAL, UPDATE, RegisteredProof, registered
from cuzk.vectors import Scalars

R = BLS12_381.r
NODES = [value.to_bytes(32, "little") for value in (11, 12, 13, 14)]


def porep(
    proof: RegisteredProof, nodes: list[bytes], partition: int, porep_id: bytes | None = None
) -> Scalars:
    replica_id, comm_d, comm_r, seed = nodes
    return porep_inputs(proof, replica_id, comm_d, comm_r, seed, partition, porep_id)


def test_inputs_of_a_2_kib_sector(fixtures: Path) -> None:
    case = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    proof = registered("seal", case["registered_proof"])
    named = ("replica_id", "comm_d", "comm_r", "seed")
    values = [bytes.fromhex(case[name]) for name in named]
    (expected,) = case["public_inputs"]
    found = porep(proof, values, 0)
    assert found.words.tobytes().hex() == "".join(expected)
    other = porep(proof, values, 0, b"\x01" * 32)
    assert other.ints()[:4] == found.ints()[:4]
    assert other.ints() != found.ints()


@pytest.mark.parametrize(("number", "count", "partition"), [(3, 327, 9), (14, 327, 0), (18, 327, 125), (15, 39, 12)])  # fmt: skip
def test_as_many_as_the_circuit_has(number: int, count: int, partition: int) -> None:
    inputs = porep(SEAL[number], NODES, partition).ints()
    assert len(inputs) == count
    assert inputs[:3] == [11, 12, 13]
    assert max(inputs[3:]) < SEAL[number].shape.nodes


def test_winning_post_takes_its_sector_66_times() -> None:
    inputs = winning_inputs(POST[3], NODES[0], 77, NODES[1]).ints()
    leaves = post_challenges(NODES[0], 77, range(66), 1 << 30).tolist()
    assert inputs == [value for leaf in leaves for value in (12, leaf)]


def test_window_post_counts_through_partitions_and_repeats_its_last_sector() -> None:
    """Version 1.0 numbers challenges through all sectors, 1.2 in each sector."""
    old, new = registered("post", 5), registered("post", 10)
    sectors = [(5, NODES[0]), (9, NODES[1])]

    def sector(number: int, root: int, first: int) -> list[int]:
        return [root, *post_challenges(NODES[2], number, range(first, first + 10), 64).tolist()]

    first = window_inputs(old, NODES[2], sectors).ints()
    assert first == sector(5, 11, 0) + sector(9, 12, 10)
    third = window_inputs(old, NODES[2], sectors[:1], 2).ints()
    assert third == sector(5, 11, 40) * 2
    assert window_inputs(new, NODES[2], sectors, 2).ints() == sector(5, 11, 0) + sector(9, 12, 0)
    assert len(window_inputs(registered("post", 8), NODES[2], sectors)) == 2349 * 11


@pytest.mark.parametrize(
    ("number", "partition", "select"),
    [
        (0, 0, 0b000001),
        (1, 3, 0b001000_11),
        (3, 15, 0b001000_1111),
    ],
)
def test_update(number: int, partition: int, select: int) -> None:
    """2 KiB sectors take one high bit whatever is chosen, so that the first choice is it."""
    inputs = update_inputs(UPDATE[number], NODES[0], NODES[1], NODES[2], partition).ints()
    assert inputs == [select, 11, 12, 13]
    chosen = update_inputs(UPDATE[number], NODES[0], NODES[1], NODES[2], partition, 5).ints()
    assert chosen[0] == partition | 32 << UPDATE[number].shape.update_partition_bits


TOO_LARGE = R.to_bytes(32, "little")


@pytest.mark.parametrize(
    ("proof", "nodes", "partition", "message"),
    [
        (SEAL[8], NODES, 10, "partition: expected 0 to 9 for StackedDrg32GiBV1_1, found 10"),
        (SEAL[8], NODES, -1, "partition: expected 0 to 9 .* found -1"),
        (POST[3], NODES, 0, "registered proof: expected one of porep, found StackedDrgWinning32GiBV1"),
        (SEAL[8], [TOO_LARGE, *NODES[1:]], 0, "replica id: expected a value below r"),
        (SEAL[8], [NODES[0], TOO_LARGE, *NODES[2:]], 0, "comm_d: expected a value below r"),
        (SEAL[8], [*NODES[:2], b"", NODES[3]], 0, "comm_r: expected 32 bytes, found 0"),
    ],
)  # fmt: skip
def test_porep_refusals(
    proof: RegisteredProof, nodes: list[bytes], partition: int, message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        porep(proof, nodes, partition)


def test_post_and_update_refusals() -> None:
    window = registered("post", 5)
    with pytest.raises(FormatError, match="sectors: expected 1 to 2 in a partition, found 3"):
        window_inputs(window, NODES[0], [(1, NODES[0])] * 3)
    with pytest.raises(FormatError, match="sectors: expected 1 to 2 in a partition, found 0"):
        window_inputs(window, NODES[0], [])
    with pytest.raises(FormatError, match="sector 8: comm_r: expected a value below r"):
        window_inputs(window, NODES[0], [(7, NODES[0]), (8, TOO_LARGE)])
    with pytest.raises(FormatError, match="randomness: expected 32 bytes, found 5"):
        winning_inputs(POST[3], b"short", 1, NODES[0])
    with pytest.raises(FormatError, match="partition 0: expected one of a WindowPoSt"):
        window_inputs(POST[3], NODES[0], [(1, NODES[0])])
    with pytest.raises(FormatError, match="h select: expected 0 to 5, found 6"):
        update_inputs(UPDATE[0], NODES[0], NODES[1], NODES[2], 0, 6)
    with pytest.raises(FormatError, match="comm_d_new: expected a value below r"):
        update_inputs(UPDATE[0], NODES[0], TOO_LARGE, NODES[2], 0)
