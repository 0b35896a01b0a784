"""Vanilla proofs in requests: faults in the command line's words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_posts import made_sector
from made_sectors import PROVER, SECTOR, sealed
from served import request
from window_posts import WINDOW, served, window_fields, window_request

import cuzk.cli.app as app
from cuzk.catalogue.filecoin_requests import read_vanilla, task_of
from cuzk.curves import BLS12_381
from cuzk.engine.catalogue import Route
from cuzk.engine.request import Field, Request
from cuzk.errors import (
    FormatError,
    UnsatisfiedError,
)
from cuzk.filecoin.derive import prover_id
from cuzk.filecoin.registered import SEAL, RegisteredProof
from cuzk.filecoin.statement import SealStatement
from cuzk.filecoin.task import Task


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's is read or written."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    return tmp_path


def bad_sectors() -> dict[str, bytes]:
    good = made_sector(WINDOW, 9, 1).blob
    return {
        "cut": good[:-1],
        "half": good[: len(good) // 2],
        "trailing": good + b"\0",
        "another size": b"\0" * 16,
        "not below r": good[:8] + b"\xff" * 32 + good[40:],
        "zero comm_r": good[:8] + bytes(32) + good[40:],
        "a root": good[:-8] + bytes([good[-8] ^ 1]) + good[-7:],
        "count": good[:40] + b"\2" + good[41:],
    }


@pytest.mark.parametrize("case", bad_sectors())
def test_d10_bad_vanilla_proofs_have_the_command_lines_text(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = made_sector(WINDOW, 5), made_sector(WINDOW, 9, 1)
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(first.blob)
    Path("b").write_bytes(bad_sectors()[case])
    Path("statement.json").write_text(json.dumps(window_fields(first, second)))
    assert app.run(["filecoin", "prove", "a", "b", "--statement", "statement.json", "--json"]) == 2
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert message.startswith("b: ")
    catalogue = served()
    asked = window_request(first.blob, bad_sectors()[case])
    assert catalogue.route(asked) == Route("w", 1)
    with pytest.raises(FormatError) as caught:
        catalogue.check(asked)
    assert str(caught.value) == f"vanilla_proofs[1]{message.removeprefix('b')}"


def test_an_empty_vanilla_proof() -> None:
    with pytest.raises(FormatError, match=r"vanilla_proofs\[0\]: expected .*, found an empty file"):
        served().check(window_request(b""))


@pytest.fixture
def c1(fixtures: Path) -> bytes:
    return (fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes()


def porep(data: bytes, **more: Field) -> Request:
    fields = {"registered_proof": 5, "sector_size": 2048, **more}
    return request("porep-c2", fields, data)


def checked(asked: Request, proof: RegisteredProof, threads: int) -> Task:
    return task_of(asked, proof, read_vanilla(asked, proof), threads)


def test_d10_bad_c1_have_the_command_lines_text(
    c1: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    proof = SEAL[5]
    bad = {
        "cut": c1[: len(c1) // 2],
        "trailing": c1 + b"\0",
        "r": c1[:-128] + BLS12_381.r.to_bytes(32, "little") + c1[-96:],
        "zero comm_r": c1[:-160] + bytes(32) + c1[-128:],
        "zero comm_d": c1[:-128] + bytes(32) + c1[-96:],
        "zero seed": c1[:-64] + bytes(32) + c1[-32:],
        "cut json": b'{"registered_proof": "StackedDrg2KiBV1_1", "vanilla_proofs": ',
        "other json": b'{"a": 1}',
        "no base64": b'{"SectorNum": 1, "Phase1Out": "####", "SectorSize": 2048}',
        "wrapped noise": b'{"SectorNum": 1, "Phase1Out": "AAAA", "SectorSize": 2048}',
        "noise": b"\xff" * 64,
    }
    for case, data in bad.items():
        Path("c1").write_bytes(data)
        assert app.run(["filecoin", "prove", "c1", "--json"]) == 2, case
        message = json.loads(capsys.readouterr().out)["error"]["message"]
        assert message.startswith("c1: "), message
        with pytest.raises(FormatError) as caught:
            read_vanilla(porep(data), proof)
        assert str(caught.value) == f"vanilla_proof{message.removeprefix('c1')}"
    assert read_vanilla(porep(c1), proof)
    with pytest.raises(
        FormatError,
        match="vanilla_proof: registered_proof: expected StackedDrg2KiBV1, as the request",
    ):
        read_vanilla(porep(c1, registered_proof=0), SEAL[0])


def test_l8_the_wrapper(fixtures: Path) -> None:
    """A real one, with the sector number and the size that must be the request's, and its other forms."""
    folder = fixtures / "filecoin"
    data = (folder / "c1-2KiB.curio.json").read_bytes()
    fields = {"miner_id": 1000, "sector_number": 1}
    statement = checked(porep(data, **fields), SEAL[5], 2).statement
    for name in ("c1-2KiB.json", "c1-2KiB.bincode"):
        bare = (folder / name).read_bytes()
        for asked in (porep(bare, **fields), porep(bare), porep(data, miner_id=1000)):
            assert checked(asked, SEAL[5], 2).statement == statement
        with pytest.raises(UnsatisfiedError, match="vanilla_proof: replica_id: expected"):
            checked(porep(bare, miner_id=1000, sector_number=2), SEAL[5], 2)
    with pytest.raises(UnsatisfiedError, match="vanilla_proof: Phase1Out: replica_id: expected"):
        checked(porep(data, miner_id=1001, sector_number=1), SEAL[5], 2)
    with pytest.raises(FormatError, match="vanilla_proof: SectorNum: expected 8, as the request"):
        read_vanilla(porep(data, miner_id=1000, sector_number=8), SEAL[5])


def test_the_replica_id_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the request's miner and sector; a C1 that does not say its sector is taken at the request's word."""
    made = sealed(SEAL[5])
    assert prover_id(1000) == PROVER
    for number in (SECTOR, None):
        c1 = replace(made, sector_number=number)
        monkeypatch.setattr("cuzk.catalogue.filecoin_requests.read_c1", lambda _, c1=c1: c1)
        fields = {"miner_id": 1000, "sector_number": SECTOR}
        task = checked(porep(b"x", **fields), SEAL[5], 1)
        assert isinstance(task.statement, SealStatement)
        assert task.statement.replica_id == made.replica_id
        checked(porep(b"x"), SEAL[5], 1)
        with pytest.raises(UnsatisfiedError, match="replica_id: expected"):
            checked(porep(b"x", **{**fields, "miner_id": 1001}), SEAL[5], 1)
    with pytest.raises(UnsatisfiedError, match="replica_id: expected"):
        checked(porep(b"x", miner_id=1000), SEAL[5], 1)  # sector 0
