"""Sizes and registered proof types against the sizes of the circuits, the parameters and real proofs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuzk.errors import FormatError
from cuzk.filecoin.registered import POST, SEAL, UPDATE, ApiVersion, Challenges, Kind, registered
from cuzk.filecoin.shapes import (
    PUBLISHED,
    SHAPES,
    WINDOW_CHALLENGES,
    WINNING_CHALLENGES,
    Shape,
    shape_of_bytes,
)

EVERY = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@pytest.fixture(scope="module")
def circuits(fixtures: Path) -> dict[str, dict[str, int]]:
    stored = json.loads((fixtures / "filecoin" / "circuits.json").read_text())
    return {circuit["name"]: circuit for circuit in stored["circuits"]}


@EVERY
def test_trees_have_all_leaves(shape: Shape) -> None:
    leaves = 1
    for arity in shape.arities:
        leaves *= arity
    assert leaves == shape.nodes == 1 << shape.log2_nodes
    assert shape.siblings == sum(arity - 1 for arity in shape.arities)
    assert [shape.sub, shape.top] == [int(part) for part in shape.tree.split("-")[1:]]


@EVERY
def test_porep_counts_give_the_sizes_of_the_circuit(
    shape: Shape, circuits: dict[str, dict[str, int]]
) -> None:
    """Rows by the closed form: levels of the trees, columns of 2 or 11 layers, labels."""
    path = sum({8: 530, 4: 387, 2: 314}[arity] for arity in shape.arities) + 2
    column = {2: 311, 11: 598}[shape.layers]
    challenge = (
        (45_382 * shape.log2_nodes + 2)
        + 14 * (column + path)
        + 65
        + (1_536 + 522_269)
        + (shape.layers - 1) * (3_584 + 522_269)
        + (1 + path)
        + (column + path)
    )
    circuit = circuits[f"porep-{shape.name}"]
    assert circuit["units"] == shape.challenges
    assert circuit["constraints"] == 571 + shape.challenges * challenge
    assert circuit["inputs"] == 4 + 18 * shape.challenges


@pytest.mark.parametrize("name", PUBLISHED)
def test_post_and_update_counts_give_the_sizes_of_the_circuits(
    name: str, circuits: dict[str, dict[str, int]]
) -> None:
    shape = SHAPES[name]
    window, winning = circuits[f"window-{name}"], circuits[f"winning-{name}"]
    path = sum({8: 530, 2: 314}[arity] for arity in shape.arities) + 2
    assert window["units"] == shape.window_sectors
    assert window["constraints"] == shape.window_sectors * (313 + WINDOW_CHALLENGES * path)
    assert window["inputs"] == 1 + shape.window_sectors * (1 + WINDOW_CHALLENGES)
    assert winning["units"] == WINNING_CHALLENGES
    assert winning["constraints"] == WINNING_CHALLENGES * (313 + path)
    assert circuits[f"update-{name}"]["units"] == shape.update_challenges


@EVERY
def test_non_interactive_challenges_fill_their_partitions(shape: Shape) -> None:
    assert -(-shape.ni_challenges // shape.ni_partitions) == shape.challenges
    apex_bits = shape.update_apex_leaves.bit_length() - 1
    assert 1 << shape.update_partition_bits == shape.update_partitions
    assert apex_bits + shape.update_partition_bits < shape.log2_nodes
    assert len(shape.update_h_values) == 6
    assert max(shape.update_h_values) <= shape.log2_nodes - shape.update_partition_bits


def test_sizes_by_bytes() -> None:
    assert shape_of_bytes(34359738368) is SHAPES["32GiB"]
    assert [SHAPES[name].sector_bytes for name in ("2KiB", "8MiB", "64GiB")] == [
        2048, 8388608, 68719476736,
    ]  # fmt: skip
    with pytest.raises(FormatError, match=r"sector size: expected one of 2048 .* found 2047"):
        shape_of_bytes(2047)


def test_numbers_and_names() -> None:
    assert [len(family) for family in (SEAL, POST, UPDATE)] == [20, 15, 5]
    for family in (SEAL, POST, UPDATE):
        assert [proof.number for proof in family] == list(range(len(family)))
        assert [proof.shape.name for proof in family] == list(PUBLISHED) * (len(family) // 5)
        names = {proof.name for proof in family} | {str(proof.number) for proof in family}
        assert len(names) == 2 * len(family)


@pytest.mark.parametrize(
    ("family", "number", "name", "circuit", "api", "partitions"),
    [
        ("seal", 3, "StackedDrg32GiBV1", "porep-32GiB", "1.0", 10),
        ("seal", 5, "StackedDrg2KiBV1_1", "porep-2KiB", "1.1", 1),
        ("seal", 9, "StackedDrg64GiBV1_1", "porep-64GiB", "1.1", 10),
        ("seal", 13, "StackedDrg32GiBV1_1_Feat_SyntheticPoRep", "porep-32GiB", "1.2", 10),
        ("seal", 16, "StackedDrg8MiBV1_2_Feat_NonInteractivePoRep", "porep-8MiB", "1.2", 13),
        ("seal", 18, "StackedDrg32GiBV1_2_Feat_NonInteractivePoRep", "porep-32GiB", "1.2", 126),
        ("post", 3, "StackedDrgWinning32GiBV1", "winning-32GiB", "1.0", 1),
        ("post", 8, "StackedDrgWindow32GiBV1", "window-32GiB", "1.0", 1),
        ("post", 13, "StackedDrgWindow32GiBV1_2", "window-32GiB", "1.2", 1),
        ("update", 0, "StackedDrg2KiBV1", "update-2KiB", "1.2", 1),
        ("update", 3, "StackedDrg32GiBV1", "update-32GiB", "1.2", 16),
    ],
)
def test_known_types(
    family: str, number: int, name: str, circuit: str, api: str, partitions: int
) -> None:
    proof = registered(family, number)
    assert registered(family, name) is registered(family, proof.go_name) is proof
    assert (proof.number, proof.name, proof.circuit) == (number, name, circuit)
    assert (proof.api.value, proof.partitions) == (api, partitions)


def test_names_of_go() -> None:
    assert registered("post", "StackedDrgWindow32GiBV1_1").number == 13
    assert registered("seal", "StackedDrg32GiBV1_2_Feat_NiPoRep").number == 18


def test_the_made_sector(fixtures: Path) -> None:
    public = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    proof = registered("seal", public["registered_proof"])
    assert proof.number == public["registered_proof_number"]
    assert proof.api is ApiVersion(public["api_version"])
    assert proof.shape.sector_bytes == public["sector_size"]
    assert proof.porep_id().hex() == public["porep_id"]
    assert proof.challenges is Challenges.INTERACTIVE
    assert len(public["public_inputs"]) == proof.partitions


def test_regression_records_name_the_same_sizes(fixtures: Path) -> None:
    versions = {"V1_0_0": "1.0", "V1_1_0": "1.1", "V1_2_0": "1.2"}
    features = {
        "": Challenges.INTERACTIVE,
        "SyntheticPoRep": Challenges.SYNTHETIC,
        "NonInteractivePoRep": Challenges.NON_INTERACTIVE,
    }
    seen = set()
    for version in ("v16", "v18"):
        text = (fixtures / "filecoin" / f"seal_regression_records-{version}.json").read_text()
        for line in text.splitlines():
            config = json.loads(line)["porep_config"]
            challenges = features["".join(config["api_features"])]
            shape = shape_of_bytes(config["sector_size"])
            same = [p for p in SEAL if p.shape is shape and p.challenges is challenges]
            assert {proof.partitions for proof in same} == {config["partitions"]}
            seen.add((versions[config["api_version"]], challenges))
    assert {api for api, _ in seen} == {"1.0", "1.1", "1.2"}
    assert {challenges for _, challenges in seen} == set(Challenges)


def test_refusals() -> None:
    with pytest.raises(FormatError, match="registered proof: expected a seal proof, 0 to 19"):
        registered("seal", 20)
    with pytest.raises(FormatError, match=r"expected a post proof, 0 to 14 .* found 'StackedDrg"):
        registered("post", "StackedDrg32GiBV1")
    with pytest.raises(FormatError, match="PoRep id: expected a seal proof, found StackedDrgWin"):
        registered("post", 3).porep_id()
    assert registered("update", 3).kind is Kind.UPDATE
