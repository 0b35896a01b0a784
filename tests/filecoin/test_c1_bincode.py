"""C1 outputs in bincode that are refused, each with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_files import Change, R, put, record

from cuzk.errors import FormatError
from cuzk.filecoin.c1 import layout, read_c1
from cuzk.filecoin.registered import SEAL


@pytest.fixture(scope="module")
def stored(fixtures: Path) -> bytes:
    return (fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes()


def challenge(output: Any, number: int = 1) -> Any:
    return output["vanilla_proofs"]["content"]["items"]["items"][0, number]


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
