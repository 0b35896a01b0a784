"""Parents of SDR against known ones, real proofs, and published digests of whole parents caches."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk.filecoin.chacha import blocks, cipher_blocks
from cuzk.filecoin.parents import drg_parents, parents
from cuzk.filecoin.registered import SEAL, ApiVersion

# rust-fil-proofs storage-proofs-porep/parent_cache.json: SHA-256 of all parents as u32, by registered proof
CACHES = {
    0: "3da49221e2ed55371b86d0bf3d6526fcf128af61bed904f966428db1b531750d",
    5: "840057702eea7652cf97e04306c30fe57174714d90de156a25eddd6075c25b97",
    1: "a76604f2f59f2744c7151653bbb1d8596b6b57d295e6fa6c1f0c41d725b502ce",
    6: "03cd13565ded97c240a5f52e54295ad127bd0461b57904cb3a4d79b097bbecab",
}


@pytest.fixture(scope="module")
def known(fixtures: Path) -> list[dict[str, Any]]:
    data = json.loads((fixtures / "filecoin" / "parents.json").read_text())
    cases: list[dict[str, Any]] = data["cases"]
    return cases


def test_known_parents(known: list[dict[str, Any]]) -> None:
    """Sizes from 2 KiB to 64 GiB; with them all challenges of ten real 32 GiB seal proofs."""
    assert len(known) == 14
    for case in known:
        nodes = np.array([node for node, _, _ in case["parents"]], dtype=np.uint64)
        porep_id, api = bytes.fromhex(case["porep_id"]), ApiVersion(case["api_version"])
        found = parents(nodes, case["nodes"], porep_id, api)
        assert found.tolist() == [[*drg, *expander] for _, drg, expander in case["parents"]]


def test_version_1_2_is_version_1_1(known: list[dict[str, Any]]) -> None:
    case = next(c for c in known if c["api_version"] == "1.1" and c["nodes"] == 1 << 31)
    nodes = np.array([node for node, _, _ in case["parents"]], dtype=np.uint64)
    found = parents(nodes, 1 << 31, bytes.fromhex(case["porep_id"]), ApiVersion.V1_2)
    assert found.tolist() == [[*drg, *expander] for _, drg, expander in case["parents"]]


def test_version_1_0_reaches_half_of_32_gib() -> None:
    nodes = np.arange(1, 40, dtype=np.uint64)
    old, new = (
        parents(nodes, 1 << 30, SEAL[3].porep_id(), api)[:, 6:]
        for api in (ApiVersion.V1_0, ApiVersion.V1_1)
    )
    assert old.max() < 1 << 29 < new.max() < 1 << 30
    assert ((new - old) % (1 << 29) == 0).all()


def cache_digest(number: int) -> str:
    proof = SEAL[number]
    every = np.arange(proof.shape.nodes, dtype=np.uint64)
    found = parents(every, proof.shape.nodes, proof.porep_id(), proof.api)
    return sha256(found.astype("<u4").tobytes()).hexdigest()


@pytest.mark.parametrize("number", [0, 5])
def test_published_cache_of_2_kib(number: int) -> None:
    assert cache_digest(number) == CACHES[number]


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 6])
def test_published_cache_of_8_mib(number: int) -> None:
    assert cache_digest(number) == CACHES[number]


def test_drg_parents_come_before_their_node() -> None:
    nodes = np.arange(2, 3000, dtype=np.uint64)
    found = drg_parents(nodes, SEAL[5].porep_id(), ApiVersion.V1_1)
    assert (found < nodes[:, None]).all()
    assert (found[:, 0] == nodes - np.uint64(1)).all()
    assert len(drg_parents(nodes[:0], SEAL[5].porep_id(), ApiVersion.V1_1)) == 0


def test_chacha20_block_of_rfc_8439() -> None:
    """Section 2.3.2."""
    key = np.frombuffer(bytes(range(32)), dtype="<u4").reshape(1, 8)
    nonce = bytes.fromhex("000000090000004a00000000")
    counter = np.array([[1, *np.frombuffer(nonce, dtype="<u4")]], dtype=np.uint32)
    expected = bytes.fromhex(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert blocks(key, counter, 20).tobytes() == expected
    many = cipher_blocks(bytes(range(32)), nonce, np.array([7, 1, 0]))
    assert many[1].tobytes() == expected
    assert not (many[0] == many[1]).any()
