"""``cuzk filecoin``: what a person types, with real proofs, made ones and bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_posts import RANDOMNESS, MadeSector, made_sector
from own_files import (
    post_statement,
    read_prf,
    read_winning_prf,
    records,
    seal_statement,
    write_compressed_vk,
)

import cuzk.cli.app as app
from cuzk.curves import BLS12_381
from cuzk.filecoin.parameters import DIGESTS, parameters_named
from cuzk.filecoin.registered import registered
from proof_files import EQUATION

Run = Callable[..., tuple[int, str, str]]
WINDOW = registered("post", "StackedDrgWindow2KiBV1")
STEM = parameters_named("window-2KiB").stem


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's is read or written."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = app.run(["filecoin", *map(str, arguments)])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return call


@pytest.fixture
def refused(run: Run, home: Path) -> Callable[..., str]:
    """The message of a command that must not write anything."""

    def call(*arguments: object, status: int = 2) -> str:
        before = sorted(home.rglob("*"))
        found, out, error = run(*arguments, "--json")
        assert found == status, (out, error)
        assert error.count("\n") == 1
        assert sorted(home.rglob("*")) == before
        fields = json.loads(out)["error"]
        assert error.split(": ", 1)[1] == f"{fields['message']}\n"
        return str(fields["message"])

    return call


def as_file(path: Path, fields: dict[str, Any]) -> Path:
    path.write_text(json.dumps(fields))
    return path


# A key of one's own


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
    assert refused("prove", *sectors[::-1], *given) == "sector 0: sector_id: expected 5, found 9"
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
    assert found.startswith("sector 1 (number 9): challenge 9 (node ")
    sectors[1].write_bytes(data[:-1])
    found = refused("prove", *sectors, *given)
    assert found.startswith("9.vproof: sector 1: expected 5680 bytes, found 5679: cut short")
    data[8:40] = b"\xff" * 32
    sectors[1].write_bytes(data)
    found = refused("prove", *sectors, *given)
    assert found.startswith("9.vproof: sector 1: comm_r: expected a field element below r")
    missing = home / "missing"
    assert f"{missing}: expected a vanilla proof" in refused("prove", sectors[0], missing, *given)


# C1


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


# Real proofs


@pytest.fixture
def folder(fixtures: Path) -> Path:
    return fixtures / "filecoin"


def test_ten_real_seal_partitions(run: Run, folder: Path, home: Path) -> None:
    """A whole proof of 32 GiB; swapped partitions and changed data are found, and named."""
    file = read_prf((folder / "seal32_x10.prf").read_bytes())
    key = home / "v27.vk"
    key.write_bytes(file.vk)
    stated = seal_statement(file.publics)
    as_file(home / "s.json", stated)
    proofs = list(file.proofs)
    (home / "p.bin").write_bytes(b"".join(proofs))
    given = ("--key", key, "--threads", 2)
    status, out, error = run("verify", "s.json", "p.bin", *given)
    assert (status, out) == (0, "valid\n")
    assert error == "note: the challenges were given, not derived: valid for these alone\n"
    proofs[3], proofs[7] = proofs[7], proofs[3]
    (home / "p.bin").write_bytes(b"".join(proofs))
    assert run("verify", "s.json", "p.bin", *given)[::2] == (
        1,
        f"not valid: p.bin: partition 3: {EQUATION}\n",
    )
    (home / "p.bin").write_bytes(b"".join(file.proofs))
    flipped = bytes([bytes.fromhex(stated["comm_r"])[0] ^ 1]) + bytes.fromhex(stated["comm_r"])[1:]
    for other in (
        {"comm_r": flipped.hex()},
        {"registered_seal_proof": "StackedDrg32GiBV1_1"},
        {"challenges": [*stated["challenges"][1:], stated["challenges"][0]]},
    ):
        as_file(home / "s.json", {**stated, **other})
        status, _, error = run("verify", "s.json", "p.bin", *given)
        assert (status, error) == (1, f"not valid: p.bin: partition 0: {EQUATION}\n")


def test_a_published_key_is_found_and_trusted(
    run: Run, refused: Callable[..., str], folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The v27 key, as if it were today's."""
    prf = read_prf((folder / "seal32_x10.prf").read_bytes())
    (home / f"{parameters_named('porep-32GiB').stem}.vk").write_bytes(prf.vk)
    as_file(home / "s.json", seal_statement(prf.publics))
    (home / "p.bin").write_bytes(b"".join(prf.proofs))
    given = ("verify", "s.json", "p.bin", "--params", ".")
    assert "expected the digest 0c7b4aac1c40fdb7eb82bc355b41addf" in refused(*given)
    v27 = "7a139d82b8a02e35279d657e197f5c1f"
    monkeypatch.setitem(DIGESTS, "porep-32GiB", ("", v27))
    assert json.loads(run(*given, "--json")[1])["published_key"] is True
    key = ("--key", f"{parameters_named('porep-32GiB').stem}.vk", "--key-digest", v27)
    assert json.loads(run(*given[:3], *key, "--json")[1])["published_key"] is True


def test_real_posts_of_32_gib(run: Run, folder: Path, home: Path) -> None:
    winning = read_winning_prf((folder / "winning32.prf").read_bytes())
    window = read_prf((folder / "window.prf").read_bytes())
    for kind, file, each in (("Winning", winning, 1), ("Window", window, 10)):
        name = kind.lower()
        (home / f"{name}.vk").write_bytes(file.vk)
        stated = post_statement(f"StackedDrg{kind}32GiBV1", file.publics[0], each)
        as_file(home / "s.json", stated)
        (home / "p.bin").write_bytes(file.proofs[0])
        arguments = ("verify", "s.json", "p.bin", "--key", f"{name}.vk", "--threads", 2)
        assert run(*arguments)[:2] == (0, "valid\n")
        if kind == "Winning":
            stated["sectors"][-1]["challenges"][-1] ^= 1
            as_file(home / "s.json", stated)
            assert run(*arguments)[::2] == (1, f"not valid: p.bin: {EQUATION}\n")


def test_real_proofs_of_2_kib_from_public_data(run: Run, folder: Path, home: Path) -> None:
    """Challenges are derived."""
    seal = json.loads((folder / "porep-2KiB.json").read_bytes())
    names = ("prover_id", "sector", "ticket", "comm_d", "comm_r", "porep_id", "seed")
    stated = {"registered_seal_proof": 5, **{name: seal[name] for name in names}}
    post = json.loads((folder / "window-post-2KiB.json").read_bytes())
    sector = {"sector": post["sector"], "comm_r": post["comm_r"]}
    posted = {"registered_post_proof": 5, "randomness": post["randomness"], "sectors": [sector]}
    for name, case, fields, number in (("seal", seal, stated, 77), ("post", post, posted, 77)):
        write_compressed_vk(bytes.fromhex(case["vk"]), home / f"{name}.vk")
        (home / "p.bin").write_bytes(bytes.fromhex(case["proof"]))
        as_file(home / "s.json", fields)
        arguments = ("verify", "s.json", "p.bin", "--key", f"{name}.vk")
        assert run(*arguments) == (0, "valid\n", "")
        text = (home / "s.json").read_text().replace(f"{number}", f"{number + 1}", 1)
        (home / "s.json").write_text(text)
        assert run(*arguments)[0] == 1


def test_regression_records(
    refused: Callable[..., str], run: Run, folder: Path, fixtures: Path, home: Path
) -> None:
    """They hold their proof; under another key of their circuit it is not valid, and other keys do not fit."""
    record = next(r for r in records(fixtures, 16) if r["porep_config"]["sector_size"] == 2048)
    as_file(home / "r.json", record)
    case = json.loads((folder / "porep-2KiB.json").read_bytes())
    write_compressed_vk(bytes.fromhex(case["vk"]), home / "seal.vk")
    assert run("verify", "r.json", "--key", "seal.vk")[::2] == (
        1,
        f"not valid: r.json: {EQUATION}\n",
    )
    assert "PROOF: expected one proof, found one in STATEMENT, too" in refused(
        "verify", "r.json", "r.json", "--key", "seal.vk"
    )
    as_file(home / "r.json", {**record, "proof": record["proof"][:-1]})
    assert "r.json: expected 192 bytes" in refused("verify", "r.json", "--key", "seal.vk")
    for version, message in (
        (16, "expected one with 327 public inputs, as porep-32GiB has, found 39"),
        (18, "126 partitions of 192) of StackedDrg32GiBV1_2_Feat_NonInteractivePoRep, found 23092: an aggregated proof?"),
    ):  # fmt: skip
        size = 1 << 35
        large = next(
            r for r in records(fixtures, version) if r["porep_config"]["sector_size"] == size
        )
        as_file(home / "r.json", large)
        assert message in refused("verify", "r.json", "--key", "seal.vk")


@pytest.mark.parametrize("size", [0, 191, 193, 1919, 1921, 192, 1 << 20])
def test_l10_lengths(size: int, folder: Path, refused: Callable[..., str], home: Path) -> None:
    prf = read_prf((folder / "seal32_x10.prf").read_bytes())
    key = home / "v27.vk"
    key.write_bytes(prf.vk)
    as_file(home / "s.json", seal_statement(prf.publics))
    (home / "p.bin").write_bytes(bytes(size))
    message = refused("verify", "s.json", "p.bin", "--key", key)
    assert message.startswith("p.bin: expected ")


def test_verify_needs_a_proof(refused: Callable[..., str], sectors: list[Path]) -> None:
    assert sectors
    assert refused("verify", "statement.json") == "PROOF: expected one proof, found none"
    assert "expected a statement" in refused("verify", "nothing.json")


# What is known of a circuit


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
