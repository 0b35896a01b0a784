"""Statements in JSON: their forms, what they mean, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_files import post_statement, read_prf, read_winning_prf, records, seal_statement

from cuzk.curves import BLS12_381
from cuzk.errors import FormatError
from cuzk.filecoin.derive import prover_id, replica_id
from cuzk.filecoin.registered import SEAL, Challenges
from cuzk.filecoin.statement import PostStatement, SealStatement, UpdateStatement, derived
from cuzk.filecoin.statement_json import read_statement, statement_json

R = BLS12_381.r
ONE, TWO, THREE = ((n).to_bytes(32, "little").hex() for n in (1, 2, 3))
SEALED = {
    "registered_seal_proof": "StackedDrg2KiBV1_1",
    "comm_r": ONE,
    "comm_d": TWO,
    "seed": "ff" * 32,
    "replica_id": THREE,
}
WINDOW = {
    "registered_post_proof": "StackedDrgWindow2KiBV1",
    "randomness": ONE,
    "sectors": [{"sector": 5, "comm_r": TWO}, {"sector": 6, "comm_r": THREE}],
}
WINNING = {**WINDOW, "registered_post_proof": 3, "sectors": [{"sector": 5, "comm_r": TWO}]}
UPDATED = {
    "registered_update_proof": "StackedDrg32GiBV1",
    "comm_r_old": ONE,
    "comm_d_new": TWO,
    "comm_r_new": THREE,
}
KINDS = {"seal": SEALED, "window": WINDOW, "winning": WINNING, "update": UPDATED}


def read(fields: Any) -> Any:
    return read_statement(json.dumps(fields).encode())[0]


@pytest.mark.parametrize("kind", KINDS)
def test_written_and_read(kind: str) -> None:
    statement = read(KINDS[kind])
    again = read_statement(statement_json(statement))[0]
    assert again == statement
    assert derived(statement)


def test_what_fields_mean() -> None:
    seal = read(SEALED)
    assert isinstance(seal, SealStatement)
    assert seal.proof is SEAL[5]
    assert (seal.comm_r[0], seal.comm_d[0], seal.replica_id[0]) == (1, 2, 3)
    assert (seal.seed, seal.porep_id) == (b"\xff" * 32, SEAL[5].porep_id())
    window = read({**WINDOW, "partition": 7})
    assert isinstance(window, PostStatement)
    assert (window.partition, [sector.number for sector in window.sectors]) == (7, [5, 6])
    update = read({**UPDATED, "h_select": 2})
    assert isinstance(update, UpdateStatement)
    assert update.h_select == 2
    assert len(update.inputs(15)) == 4


def test_a_replica_id_from_its_parts() -> None:
    """By the provider's actor id or its 32 bytes, with the PoRep id that is given."""
    parts: dict[str, Any] = {name: SEALED[name] for name in SEALED if name != "replica_id"}
    parts |= {"sector": 9, "ticket": list(range(32)), "porep_id": "07" * 32}
    ids = (prover_id(1000), 9, bytes(range(32)), bytes.fromhex(TWO), b"\x07" * 32)
    by_actor = read({**parts, "miner": 1000})
    assert by_actor.replica_id == replica_id(*ids)
    assert read({**parts, "prover_id": prover_id(1000).hex()}) == by_actor


def test_non_interactive_proofs_need_no_seed() -> None:
    fields = {name: value for name, value in SEALED.items() if name != "seed"}
    statement = read({**fields, "registered_seal_proof": 15})
    assert len(statement.inputs(12)) == 39


@pytest.mark.parametrize("version", [16, 18])
def test_every_regression_record(fixtures: Path, version: int) -> None:
    """448 and 113 records: the type, and the data that challenges are made of."""
    count, features = 0, set()
    for record in records(fixtures, version):
        statement, data = read_statement(json.dumps(record).encode())
        assert isinstance(statement, SealStatement)
        config, proof = record["porep_config"], statement.proof
        assert proof.shape.sector_bytes == config["sector_size"]
        assert (proof.api.value == "1.0") == (config["api_version"] == "V1_0_0")
        assert proof.challenges.value == {
            "SyntheticPoRep": "synthetic",
            "NonInteractivePoRep": "non-interactive",
        }.get("".join(config["api_features"]), "interactive")
        features.add(proof.challenges)
        assert data == bytes(record["proof"])
        assert statement.porep_id == bytes(config["porep_id"])
        prover, ticket = bytes(record["prover_id"]), bytes(record["ticket"])
        comm_d = bytes(record["comm_d"])
        ids = (prover, record["sector_id"], ticket, comm_d, statement.porep_id)
        assert statement.replica_id == replica_id(*ids)
        count += 1
    assert count == {16: 448, 18: 113}[version]
    assert (Challenges.NON_INTERACTIVE in features) == (version == 18)


def test_given_challenges_are_the_files_public_inputs(fixtures: Path) -> None:
    """Of the real proofs of 32 GiB."""
    folder = fixtures / "filecoin"
    seal = read_prf((folder / "seal32_x10.prf").read_bytes())
    statement = read(seal_statement(seal.publics))
    assert [statement.inputs(k).ints() for k in range(10)] == seal.publics
    assert not derived(statement)
    assert statement_json(read_statement(statement_json(statement))[0]) == statement_json(statement)
    winning = read_winning_prf((folder / "winning32.prf").read_bytes())
    fields = post_statement("StackedDrgWinning32GiBV1", winning.publics[0], 1)
    assert read(fields).inputs().ints() == winning.publics[0]
    window = read_prf((folder / "window.prf").read_bytes())
    fields = post_statement("StackedDrgWindow32GiBV1", window.publics[0], 10)
    found = read(fields)
    assert found.inputs().ints() == window.publics[0]
    assert not derived(found)


Change = Callable[[dict[str, Any]], object]
BIG = R.to_bytes(32, "little").hex()
WRONG: dict[str, tuple[str, Change, str]] = {
    "no type": ("seal", lambda f: f.pop("registered_seal_proof"), "expected one of the fields registered_seal_proof, registered_post_proof, registered_update_proof, found none"),
    "two types": ("seal", lambda f: f.update(registered_post_proof=5), "found registered_seal_proof and registered_post_proof"),
    "unknown type": ("seal", lambda f: f.update(registered_seal_proof="StackedDrg3GiBV1"), "registered_seal_proof: expected a seal proof, 0 to 19"),
    "type of another kind": ("seal", lambda f: f.update(registered_seal_proof=None), "registered_seal_proof: expected the number or the name of a proof type, found null"),
    "a boolean for a type": ("seal", lambda f: f.update(registered_seal_proof=True), "expected the number or the name of a proof type, found true"),
    "missing": ("seal", lambda f: f.pop("comm_r"), "expected a field 'comm_r', found none"),
    "unknown": ("seal", lambda f: f.update(extra=1), "found 'extra', too"),
    "short": ("seal", lambda f: f.update(comm_r="00" * 31), "comm_r: expected 32 bytes, found 31"),
    "odd digits": ("seal", lambda f: f.update(comm_r="0" * 63), "comm_r: expected 32 bytes as hexadecimal digits or as an array of numbers, found '000"),
    "no digits": ("seal", lambda f: f.update(seed="xy" * 32), "seed: expected 32 bytes as hexadecimal"),
    "no byte": ("seal", lambda f: f.update(seed=[256] * 32), "seed: expected 32 bytes as hexadecimal digits or as an array of numbers, found an array of 32"),
    "fractions": ("seal", lambda f: f.update(seed=[1.0] * 32), "seed: expected 32 bytes as hex"),
    "r": ("seal", lambda f: f.update(comm_d=BIG), "comm_d: expected a value below r, found 01000000"),
    "zero comm_r": ("seal", lambda f: f.update(comm_r="00" * 32), "comm_r: expected a value other than zero, found zero"),
    "zero comm_d": ("seal", lambda f: f.update(comm_d="00" * 32), "comm_d: expected a value other than zero, found zero"),
    "challenges beside the seed": ("seal", lambda f: f.update(challenges=[[1, 2]]), "found 'seed', too"),
    "too few partitions": ("seal", lambda f: (f.pop("seed"), f.update(challenges=[])), "challenges: expected 1 values, found 0"),
    "a node that is not there": ("seal", lambda f: (f.pop("seed"), f.update(challenges=[[1, 64]])), "challenges: partition 0: challenge 1: expected a number from 0 to 63, found 64"),
    "neither replica id nor parts": ("seal", lambda f: f.pop("replica_id"), "expected a field 'prover_id', found none"),
    "replica id and parts": ("seal", lambda f: f.update(ticket="00" * 32), "found 'ticket', too"),
    "no sector": ("window", lambda f: f.update(sectors=[]), "sectors: expected 1 to 2 values, found 0"),
    "too many sectors": ("window", lambda f: f.update(sectors=f["sectors"] * 2), "sectors: expected 1 to 2 values, found 4"),
    "two winners": ("winning", lambda f: f.update(sectors=f["sectors"] * 2), "sectors: expected 1 values, found 2"),
    "a winner's partition": ("winning", lambda f: f.update(partition=0), "found 'partition', too"),
    "a sector's number": ("window", lambda f: f["sectors"][1].update(sector=-1), "sectors: sector 1: sector: expected a number from 0 to 18446744073709551615, found -1"),
    "a sector's comm_r": ("window", lambda f: f["sectors"][1].update(comm_r="00" * 32), "sectors: sector 1: comm_r: expected a value other than zero, found zero"),
    "randomness of r": ("window", lambda f: f.update(randomness=BIG), "randomness: expected a value below r"),
    "neither randomness nor challenges": ("window", lambda f: f.pop("randomness"), "sectors: sector 0: expected a field 'challenges', found none"),
    "partition": ("window", lambda f: f.update(partition="1"), "partition: expected a number from 0 to 4294967295, found '1'"),
    "h_select": ("update", lambda f: f.update(h_select=6), "h_select: expected a number from 0 to 5, found 6"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str) -> None:
    kind, change, message = WRONG[name]
    fields = json.loads(json.dumps(KINDS[kind]))
    change(fields)
    with pytest.raises(FormatError) as error:
        read(fields)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]", "expected a JSON object, found an array of 0"),
        (b"{", "expected JSON, found a fault at offset 1"),
        (b'{"a": 1} x', "expected JSON, found a fault at offset 9: Extra data"),
        (b"\xff\xff{}", "expected JSON"),
        (b'{"comm_r": "", "comm_r": ""}', "'comm_r': expected the field once, found it twice"),
        (b"[" * 100_000, "expected JSON of at most 32 levels, found 100000"),
        (b'{"a": ' + b"9" * 5000 + b"}", "expected numbers below 2^64, found one of 5000 digits"),
        (b" " * (1 << 23), "expected at most 4194304 bytes of JSON, found 8388608"),
        (b'{"registered_seal_proof": 1e3}', "registered_seal_proof: expected the number or the name"),
    ],
)  # fmt: skip
def test_texts_that_are_no_statements(text: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        read_statement(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_record_of_no_registered_type(fixtures: Path) -> None:
    record = next(records(fixtures, 16))
    for name, value in (
        ("sector_size", 4096), ("partitions", 2), ("api_version", "V2_0_0"), ("api_features", ["X"]),
    ):  # fmt: skip
        config = {**record["porep_config"], name: value}
        with pytest.raises(FormatError, match="porep_config: expected the configuration of a reg"):
            read({**record, "porep_config": config})
    with pytest.raises(FormatError, match="found 'more', too"):
        read({**record, "more": 1})


ODD: list[Any] = [None, True, 0, -1, 1 << 63, 1 << 64, 0.5, "", "zz", "00" * 32, BIG, [], [1], {}, {"a": 1}]  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a value with every key in it."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    found = [(value, key) for key in keys]
    return found + [place for key in keys for place in places(value[key])]


def test_no_odd_value_is_more_than_refused(fixtures: Path) -> None:
    """Each in each place of each form, and each place left out: a statement, or one line that refuses it."""
    texts = [json.dumps(fields) for fields in (*KINDS.values(), next(records(fixtures, 16)))]
    refusals = []
    for text in texts:
        for number in range(min(60, len(places(json.loads(text))))):
            for odd in [*ODD, places]:
                fields = json.loads(text)
                holder, key = places(fields)[number]
                if odd is places:
                    del holder[key]
                else:
                    holder[key] = odd
                try:
                    statement, _ = read_statement(json.dumps(fields).encode())
                except FormatError as error:
                    refusals.append(str(error))
                else:
                    assert len(statement.inputs(0)) > 3
    assert len(refusals) > 1000
    assert not any("\n" in message for message in refusals)
