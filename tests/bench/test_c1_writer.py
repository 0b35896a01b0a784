"""``bench.c1_writer`` and owners of sparse sectors: what is written is read as it was, and its replica id follows."""

from __future__ import annotations

import hashlib
import json

import pytest

from bench.c1 import expect_same
from bench.c1_writer import c1_json, record_of, wrapped
from bench.serve_sectors import MINER, sector_request
from bench.sparse_sector import Owner, seal_of, sparse_c1
from cuzk.errors import UnsatisfiedError
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.derive import prover_id
from cuzk.filecoin.task import seal_task


@pytest.mark.parametrize("size", ["2KiB", "8MiB"])
@pytest.mark.parametrize("owner", [None, Owner(1000, 7)])
def test_every_form_is_read_as_it_was(size: str, owner: Owner | None) -> None:
    c1 = sparse_c1(seal_of(size), owner=owner)
    text = c1_json(c1)
    for form in (record_of(c1).tobytes(), text, wrapped(text, 7, c1.proof.shape.sector_bytes)):
        back = read_c1(form)
        expect_same(back, c1)
        assert (back.columns == c1.columns).all()
        assert (back.label_parents == c1.label_parents).all()
        assert (back.column_openings.leaf == c1.column_openings.leaf).all()
    assert json.loads(text)["registered_proof"] == c1.proof.name


def test_an_owned_sector_is_that_owners_alone() -> None:
    c1 = sparse_c1(seal_of("8MiB"), owner=Owner(1000, 7))
    node = bytes(32)
    for _ in range(18):
        node = bytearray(hashlib.sha256(node + node).digest())  # type: ignore[assignment]
        node = bytes(node[:31]) + bytes([node[31] & 0x3F])
    assert c1.comm_d == node  # of a sector of zeros
    assert seal_task(c1, prover_id=prover_id(1000)).proof is c1.proof
    with pytest.raises(UnsatisfiedError, match="replica_id: expected"):
        seal_task(c1, prover_id=prover_id(1001))
    others = [sparse_c1(seal_of("8MiB"), owner=Owner(1000, n)) for n in (7, 8)]
    assert others[0].nodes.tobytes() == c1.nodes.tobytes() != others[1].nodes.tobytes()


def test_a_request_has_curios_fields() -> None:
    proof = seal_of("2KiB")
    request = sector_request(proof, 3, b"C1")
    found = {field.name: value for field, value in request.ListFields()}
    assert found == {
        "request_id": f"porep-{MINER}-3", "proof_kind": 1, "sector_size": 2048, "registered_proof": 5, "priority": 2,
        "vanilla_proof": b"C1", "sector_number": 3, "miner_id": MINER,
    }  # fmt: skip
