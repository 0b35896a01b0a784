"""``cuzk filecoin verify`` of real proofs: valid, swapped, changed, of other lengths."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from own_files import (
    post_statement,
    read_prf,
    read_winning_prf,
    records,
    seal_statement,
    write_compressed_vk,
)
from typed import Run, as_file, fresh_home, refuser, runner

from cuzk.filecoin.parameters import DIGESTS, parameters_named
from proof_files import EQUATION


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
