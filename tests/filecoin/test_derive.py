"""Prover ids and replica ids against known ones and real sectors."""

import json
from pathlib import Path
from typing import Any

import pytest

from cuzk.curves import BLS12_381
from cuzk.errors import FormatError
from cuzk.filecoin.derive import field_element, prover_id, replica_id


@pytest.fixture(scope="module")
def known(fixtures: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((fixtures / "filecoin" / "challenges.json").read_text())
    return data


def test_prover_ids(known: dict[str, Any]) -> None:
    assert len(known["prover_ids"]) == 9
    for case in known["prover_ids"]:
        assert prover_id(case["miner"]).hex() == case["prover_id"]


def test_replica_ids(known: dict[str, Any]) -> None:
    """Two of them are of sectors that other software sealed."""
    names = ("prover_id", "ticket", "comm_d", "porep_id")
    assert len(known["replica_ids"]) == 4
    for case in known["replica_ids"]:
        prover, ticket, comm_d, porep_id = (bytes.fromhex(case[name]) for name in names)
        found = replica_id(prover, case["sector"], ticket, comm_d, porep_id)
        assert found.hex() == case["replica_id"]


@pytest.mark.parametrize("actor", [-1, 1 << 63])
def test_no_such_actor(actor: int) -> None:
    with pytest.raises(FormatError, match=f"actor id: expected 0 to .*, found {actor}"):
        prover_id(actor)


def test_bytes_and_values_that_do_not_fit() -> None:
    node = bytes(32)
    with pytest.raises(FormatError, match="ticket: expected 32 bytes, found 31"):
        replica_id(node, 1, node[1:], node, node)
    with pytest.raises(FormatError, match="sector number"):
        replica_id(node, 1 << 64, node, node, node)
    with pytest.raises(FormatError, match="comm_r: expected a value below r, found 01000000"):
        field_element(BLS12_381.r.to_bytes(32, "little"), "comm_r")
    assert field_element((BLS12_381.r - 1).to_bytes(32, "little"), "comm_r") == BLS12_381.r - 1
