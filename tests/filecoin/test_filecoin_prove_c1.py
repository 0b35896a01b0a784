"""``cuzk filecoin prove`` of a C1: a bad one is refused before there is even a key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typed import Run, as_file, fresh_home, refuser, runner

from cuzk.curves import BLS12_381


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fresh_home(tmp_path, monkeypatch)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


@pytest.fixture
def refused(run: Run, home: Path) -> Callable[..., str]:
    return refuser(run, home)


@pytest.fixture
def c1(fixtures: Path) -> bytearray:
    return bytearray((fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes())


END = {"comm_r": 160, "comm_d": 128, "replica_id": 96, "seed": 64, "ticket": 32}


def field(name: str) -> slice:
    """Of a C1 in bincode, from its end."""
    return slice(-END[name], -END[name] + 32 or None)


def flip(data: bytearray, place: int) -> None:
    data[place] ^= 1


def cut(data: bytearray) -> None:
    del data[len(data) // 2 :]


def set_field(name: str, value: bytes) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[field(name)] = value

    return change


CHANGES: dict[str, tuple[Callable[[bytearray], Any], int, str]] = {
    "cut": (cut, 2, "bytes: expected 28256 of StackedDrg2KiBV1_1, found 14128"),
    "trailing": (lambda d: d.append(0), 2, "bytes: expected 28256 of StackedDrg2KiBV1_1, found 28257"),
    "a size of another type": (lambda d: flip(d, 0), 2, "expected"),
    "one sibling": (lambda d: flip(d, 16 + 8 + 4 + 64 + 8 + 8), 1, "partition 0: challenge 0 (node 33): root that the path in tree D leads to"),
    "r": (set_field("comm_d", BLS12_381.r.to_bytes(32, "little")), 2, "comm_d: expected a field element below r"),
    "zero comm_r": (set_field("comm_r", bytes(32)), 2, "comm_r: expected a value other than zero"),
    "zero comm_d": (set_field("comm_d", bytes(32)), 2, "comm_d: expected a value other than zero"),
    "zero seed": (set_field("seed", bytes(32)), 2, "seed: expected a value other than zero"),
    "another comm_r": (lambda d: flip(d, -160), 1, "comm_r: expected 46322253"),
    "another replica id": (lambda d: flip(d, -96), 1, "challenged node: expected"),
    "another seed": (lambda d: flip(d, -64), 1, "partition 0: challenge 0: challenged node: expected"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_bad_c1_is_refused_before_proving(
    name: str, c1: bytearray, refused: Callable[..., str], home: Path
) -> None:
    """There is not even a key."""
    change, status, message = CHANGES[name]
    change(c1)
    (home / "bad.c1").write_bytes(c1)
    found = refused("prove", "bad.c1", "--params", "nowhere", status=status)
    assert found.startswith("bad.c1: ")
    assert message in found


def test_a_c1_against_what_is_known_of_it(
    fixtures: Path, refused: Callable[..., str], home: Path
) -> None:
    path = fixtures / "filecoin" / "c1-2KiB.json"
    case = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    known = {name: case[name] for name in ("comm_r", "comm_d", "seed", "replica_id")}
    stated = {"registered_seal_proof": case["registered_proof"], **known}
    given = ("prove", path, "--params", "nowhere")

    def against(**other: Any) -> tuple[str, ...]:
        return ("--statement", str(as_file(home / "s.json", {**stated, **other})))

    ok = "nowhere/v28-stacked-proof-of-replication-"
    assert refused(*given, *against()).startswith(ok)
    assert refused(*given, "--miner", 1000, "--sector", 1).startswith(ok)
    other = refused(*given, "--miner", 1000, "--sector", 2, status=1)
    assert other.startswith("c1-2KiB.json: replica_id: expected ")
    assert "expected a sector number" in refused(*given, "--miner", 1000)
    assert "expected a prover id" in refused(*given, "--sector", 1)
    wrapped = ("prove", fixtures / "filecoin" / "c1-2KiB.curio.json", "--params", "nowhere")
    assert refused(*wrapped, "--miner", 1000).startswith(ok)
    assert "SectorNum: expected 2, as asked for, found 1" in refused(*wrapped, "--sector", 2)
    assert "replica_id: expected" in refused(*wrapped, "--miner", 1001, status=1)
    for name in ("comm_r", "comm_d", "seed", "replica_id"):
        found = refused(*given, *against(**{name: "01" + "00" * 31}), status=1)
        assert found.startswith(f"c1-2KiB.json: {name}: expected 0100")
    found = refused(*given, *against(registered_seal_proof=0))
    assert "expected proofs of StackedDrg2KiBV1 (seal), as the statement has" in found
