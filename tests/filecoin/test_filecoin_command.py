"""``cuzk filecoin``: what a person types, from a key of one's own to a verified proof; circuits and help."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_posts import RANDOMNESS, MadeSector, made_sector
from typed import Run, as_file, fresh_home, refuser, runner

import cuzk.cli.app as app
from cuzk.filecoin.parameters import parameters_named
from cuzk.filecoin.registered import registered
from proof_files import EQUATION

WINDOW = registered("post", "StackedDrgWindow2KiBV1")
STEM = parameters_named("window-2KiB").stem


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fresh_home(tmp_path, monkeypatch)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


@pytest.fixture
def refused(run: Run, home: Path) -> Callable[..., str]:
    return refuser(run, home)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "of" / "mine"
    assert app.run(["filecoin", "setup", "window-2KiB", "-o", str(folder), "--insecure"]) == 0
    return folder


@pytest.fixture
def sectors(home: Path) -> list[Path]:
    """Two vanilla proofs and statement.json."""
    made = [made_sector(WINDOW, 5), made_sector(WINDOW, 9, 1)]
    as_file(home / "statement.json", window_statement(*made))
    paths = []
    for sector in made:
        paths.append(home / f"{sector.number}.vproof")
        paths[-1].write_bytes(sector.blob)
    return paths


def window_statement(*made: MadeSector) -> dict[str, Any]:
    return {
        "registered_post_proof": WINDOW.name,
        "randomness": RANDOMNESS.hex(),
        "sectors": [{"sector": s.number, "comm_r": s.comm_r.hex()} for s in made],
    }


def test_from_sectors_to_a_verified_proof(
    run: Run, keys: Path, sectors: list[Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {f"{STEM}.params": 11_501_496, f"{STEM}.vk": 3_076}
    assert {path.name: path.stat().st_size for path in keys.iterdir()} == names
    monkeypatch.setenv("FIL_PROOFS_PARAMETER_CACHE", str(keys))
    given = ("--statement", "statement.json")
    status, out, error = run(
        "prove", *sectors, *given, "--insecure-key", "--write-statement", "s.json"
    )
    assert (status, out) == (0, "")
    for shown in ("witness", "commit", "verify all", "192 bytes", "not the published key"):
        assert shown in error
    assert (home / "proof.bin").stat().st_size == 192
    for statement in ("statement.json", "s.json"):
        assert run("verify", statement, "proof.bin", "--insecure-key") == (0, "valid\n", "")
    other = json.loads((home / "s.json").read_text())
    other["sectors"][0]["sector"] = 6
    as_file(home / "other.json", other)
    status, out, error = run("verify", "other.json", "proof.bin", "--insecure-key")
    assert (status, out, error) == (1, "", f"not valid: proof.bin: {EQUATION}\n")
    facts = json.loads(run("verify", "s.json", "proof.bin", "--insecure-key", "--json")[1])
    expected = {"valid": True, "type": WINDOW.name, "challenges": "derived", "published_key": False}
    assert facts == expected
    key = next(keys.glob("*.params"))
    arguments = (
        "prove",
        *sectors,
        *given,
        "--key",
        key,
        "--insecure-key",
        "-o",
        "p2.bin",
        "--trace",
        "trace.json",
        "--json",
    )
    facts = json.loads(run(*arguments)[1])
    assert (facts["proof"], facts["trace"]) == ("p2.bin", "trace.json")
    events = json.loads((home / "trace.json").read_text())["traceEvents"]
    assert {"load", "witness", "commit", "verify"} <= {event["name"] for event in events}
    assert (facts["bytes"], facts["published_key"], len(facts["partitions"])) == (192, False, 1)
    assert facts["partitions"][0]["key_checked"] is False
    assert run("verify", "s.json", "p2.bin", "--key", key, "--insecure-key")[0] == 0


def test_own_keys_must_be_meant(
    refused: Callable[..., str],
    keys: Path,
    sectors: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = ("prove", *sectors, "--statement", "statement.json")
    found = refused(*given, "--params", keys)
    assert f"{STEM}.params: expected the digest 7610b9f82bfc88405b7a832b651ce2f6" in found
    assert "say that an insecure key is meant" in found
    key = next(keys.glob("*.params"))
    assert "delta = gamma" in refused(*given, "--key", key)
    assert "expected the file with digest 000" in refused(
        *given, "--key", key, "--key-digest", "0" * 32
    )
    assert "--params, --key: expected one" in refused(*given, "--key", key, "--params", keys)
    assert "expected no file of that name yet" in refused(
        "setup", "window-2KiB", "-o", keys, "--insecure"
    )
    assert "--insecure: expected" in refused("setup", "window-2KiB", "-o", "new")
    setup = ("setup", "window-2KiB", "--insecure", "-o")
    assert "-o statement.json: expected a directory" in refused(*setup, "statement.json")
    room = SimpleNamespace(free=11_504_571)
    monkeypatch.setattr("cuzk.filecoin.own_keys.shutil.disk_usage", lambda _: room)
    assert "room for 11504572 bytes" in refused(*setup, ".")
    monkeypatch.setattr("cuzk.filecoin.key_sizes.installed_bytes", lambda: 1 << 35)
    large = refused("setup", "window-32GiB", "-o", "new", "--insecure", status=3)
    assert "window-32GiB: making a key needs" in large


def test_l14_no_parameters(
    refused: Callable[..., str], sectors: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("prove", *sectors, "--statement", "statement.json")
    monkeypatch.setenv("FIL_PROOFS_PARAMETER_CACHE", "nowhere")
    found = refused(*given)
    assert found.startswith(
        f"nowhere/{STEM}.params: expected the .params file of window-2KiB, found no such d"
    )
    assert "lotus fetch-params 2KiB" in found
    assert f"elsewhere/{STEM}.params" in refused(*given, "--params", "elsewhere")


def test_sectors_that_do_not_fit(
    refused: Callable[..., str], keys: Path, sectors: list[Path], home: Path
) -> None:
    given = ("--statement", "statement.json", "--params", keys, "--insecure-key")
    turned = refused("prove", *sectors[::-1], *given)
    assert turned == (
        "9.vproof: sector 0: sector_id: expected 5, found 9: give the vanilla proofs in the statement's order"
    )
    assert "expected 2 sectors, as the statement has" in refused("prove", sectors[0], *given)
    assert "expected a C1 with them" in refused("prove", *sectors, *given, "--miner", "1")
    assert "needs --statement" in refused("prove", *sectors)
    assert "-o statement.json: the same file as --statement" in refused(
        "prove", *sectors, *given, "-o", "statement.json"
    )
    small = refused("prove", *sectors, *given, "--memory", "1M", status=3)
    assert small.startswith("window-2KiB: a proof needs ")
    data = bytearray(sectors[1].read_bytes())
    data[-104] ^= 1
    sectors[1].write_bytes(data)
    found = refused("prove", *sectors, *given, status=1)
    assert found.startswith("9.vproof: sector 1 (number 9): challenge 9 (node ")
    sectors[1].write_bytes(data[:-1])
    found = refused("prove", *sectors, *given)
    assert found.startswith("9.vproof: sector 1: expected 5680 bytes, found 5679: cut short")
    data[8:40] = b"\xff" * 32
    sectors[1].write_bytes(data)
    found = refused("prove", *sectors, *given)
    assert found.startswith("9.vproof: sector 1: comm_r: expected a field element below r")
    missing = home / "missing"
    assert f"{missing}: expected a vanilla proof" in refused("prove", sectors[0], missing, *given)


def test_verify_needs_a_proof(refused: Callable[..., str], sectors: list[Path]) -> None:
    assert sectors
    assert refused("verify", "statement.json") == "PROOF: expected one proof, found none"
    assert "expected a statement" in refused("verify", "nothing.json")


def test_circuit_info(run: Run) -> None:
    facts = json.loads(run("circuit-info", "porep-32GiB", "--json")[1])
    assert facts["rows"] == 130_278_869
    assert (facts["inputs"], facts["aux"], facts["domain"]) == (328, 130_169_893, 1 << 27)
    assert (facts["a_aux"], facts["b_aux"]) == (129_753_292, 33_112_281)
    params = facts["files"]["params"]
    assert params["bytes"] == 47_373_928_632
    assert params["published_digest"] == "6a388072a518cf46ebd661f5cc46900a"
    assert params["name"].startswith(
        "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-0-sha256_hasher-82a357d2"
    )
    status, out, error = run("circuit-info", "StackedDrg32GiBV1_1")
    assert (status, error) == (0, "")
    for shown in ("130278869", "2^27", "44.1 GiB", "82a357d2", "domain"):
        assert shown in out


def test_names_of_circuits(refused: Callable[..., str]) -> None:
    for wrong in ("porep", "porep-3GiB", "StackedDrg", "seal-20", "post--1", ""):
        found = refused("circuit-info", wrong)
        assert found.startswith("TYPE: expected a circuit like porep-32GiB")


def test_every_command_has_help(run: Run) -> None:
    assert all(name in run("--help")[1] for name in ("circuit-info", "prove", "setup", "verify"))
    for name in ("circuit-info", "prove", "setup", "verify"):
        status, out, _ = run(name, "--help")
        assert status == 0
        assert out.startswith(f"Usage: cuzk filecoin {name} ")
