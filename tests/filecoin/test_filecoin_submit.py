"""``cuzk filecoin submit``: the fields of its requests, and a PoSt through a real daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from made_posts import RANDOMNESS, made_sector
from own_files import own_files

import cuzk.cli.app as app
from command import cuzk
from cuzk.filecoin.parameters import parameters_named
from cuzk.filecoin.registered import registered
from cuzk.server.proving_pb2 import ProofKind, SubmitProofResponse
from daemon_process import serve
from one_answer import Script, refuse, serving

WINDOW = registered("post", "StackedDrgWindow2KiBV1")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    """Takes every request; the working folder is empty."""
    monkeypatch.chdir(tmp_path)
    made = Script({"SubmitProof": lambda r, _: SubmitProofResponse(job_id=r.request_id)})
    with serving(made) as address:
        monkeypatch.setenv("CUZK_ADDRESS", address)
        yield made


def broken(blob: bytes) -> bytes:
    """Another last sibling; behind it are the last index, comm_c and comm_r_last."""
    return blob[:-104] + bytes([blob[-104] ^ 1]) + blob[-103:]


def submit(*arguments: object) -> int:
    return app.run(["filecoin", "submit", *map(str, arguments)])


def statement(**fields: Any) -> Path:
    path = Path("statement.json")
    path.write_text(json.dumps(fields))
    return path


def test_a_c1_with_what_its_wrapper_says(script: Script, fixtures: Path) -> None:
    path = fixtures / "filecoin" / "c1-2KiB.curio.json"
    assert submit(path, "--miner", 1000, "--id", "porep-1000-1") == 0
    sent = script.seen[0]
    assert (sent.proof_kind, sent.request_id) == (ProofKind.POREP_SEAL_COMMIT, "porep-1000-1")
    assert (sent.miner_id, sent.sector_number, sent.sector_size) == (1000, 1, 2048)
    case = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    assert sent.registered_proof == registered("seal", case["registered_proof"]).number
    assert sent.vanilla_proof == path.read_bytes()


def test_what_a_c1_does_not_say_is_asked_for(
    script: Script, fixtures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fixtures / "filecoin" / "c1-2KiB.json"
    assert submit(path) == 2
    assert "--miner: expected the actor id" in capsys.readouterr().err
    assert submit(path, "--miner", 1000) == 2
    assert "--sector: expected the sector's number" in capsys.readouterr().err
    assert submit(path, path, "--miner", 1000) == 2
    assert "expected one C1, found 2" in capsys.readouterr().err
    assert submit(path, "--miner", 1000, "--sector", 1) == 0
    assert [sent.sector_number for sent in script.seen] == [1]


def test_an_update(script: Script) -> None:
    nodes = {name: f"{number:02x}" * 31 + "00" for number, name in enumerate(
        ("comm_r_old", "comm_d_new", "comm_r_new"), 1)}  # fmt: skip
    Path("a").write_bytes(b"first")
    Path("b").write_bytes(b"second")
    stated = statement(registered_update_proof="StackedDrg32GiBV1", **nodes)
    assert submit("a", "b", "--statement", stated, "--priority", "low") == 0
    sent = script.seen[0]
    assert (sent.proof_kind, sent.registered_proof) == (ProofKind.SNAP_DEALS_UPDATE, 3)
    assert (list(sent.vanilla_proofs), sent.priority) == ([b"first", b"second"], 1)
    assert {name: getattr(sent, name).hex() for name in nodes} == nodes


def test_a_service_speaks_of_files_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of those that were given; a place that there was not stays as it is."""
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(b"first")
    Path("b").write_bytes(b"second")
    node = "01" * 31 + "00"
    stated = statement(
        registered_update_proof="StackedDrg32GiBV1",
        comm_r_old=node, comm_d_new=node, comm_r_new=node,
    )  # fmt: skip
    for said, shown in (
        ("vanilla_proofs[1]: partition 1: expected 5 bytes", "b: partition 1: expected 5 bytes"),
        ("vanilla_proofs[2]: partition 2: expected", "vanilla_proofs[2]: partition 2: expected"),
        ("vanilla_proofs: expected 16", "vanilla_proofs: expected 16"),
    ):
        answer = refuse(grpc.StatusCode.INVALID_ARGUMENT, said, "bad-format")
        with serving(Script({"SubmitProof": answer})) as address:
            assert submit("a", "b", "--statement", stated, "--address", address) == 2
        assert shown in capsys.readouterr().err


def test_statements_that_no_request_can_be_made_of(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a").write_bytes(b"")
    node = "01" * 31 + "00"
    sector = {"sector": 1, "comm_r": node, "challenges": [1] * 10}
    for fields, words in (
        ({"registered_post_proof": WINDOW.name, "sectors": [sector]}, "found challenges alone"),
        (
            {"registered_update_proof": "StackedDrg32GiBV1", "comm_r_old": node,
             "comm_d_new": node, "comm_r_new": node, "h_select": 2},
            "h_select: expected none",
        ),
        (
            {"registered_seal_proof": "StackedDrg2KiBV1_1", "comm_r": node, "comm_d": node,
             "seed": node, "replica_id": node},
            "expected a PoSt or an update, found a seal",
        ),
    ):  # fmt: skip
        assert submit("a", "--statement", statement(**fields)) == 2
        assert words in capsys.readouterr().err
    assert script.seen == []


def test_a_window_post_through_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From vanilla proofs to bytes that verify, with a key of its own."""
    monkeypatch.chdir(tmp_path)
    keys = own_files("window-2KiB")
    made = [made_sector(WINDOW, 5), made_sector(WINDOW, 9, 1)]
    for sector in made:
        Path(f"{sector.number}.vproof").write_bytes(sector.blob)
    stated = statement(
        registered_post_proof=WINDOW.name,
        randomness=RANDOMNESS.hex(),
        sectors=[{"sector": s.number, "comm_r": s.comm_r.hex()} for s in made],
    )
    Path("cuzk.toml").write_text(
        f'[daemon]\nstate = "state"\n[filecoin]\nparameters = "{keys}"\ninsecure_keys = true\n'
        '[devices]\nuse = ["cpu"]\n[[circuit]]\nid = "window-2KiB"\nkind = "filecoin"\n'
    )
    with serve("--config", tmp_path / "cuzk.toml") as served:
        given: list[str | Path] = [
            "5.vproof",
            "9.vproof",
            "--statement",
            stated,
            "--wait",
            "-o",
            "post.bin",
        ]
        done = cuzk("filecoin", "submit", *given, "--address", served.address, cwd=tmp_path)
        assert (done.status, done.out) == (0, ""), done.err
        turned: list[str | Path] = ["9.vproof", "5.vproof", "--statement", stated, "--wait"]
        other = cuzk("filecoin", "submit", *turned, "--address", served.address, cwd=tmp_path)
        assert (other.status, other.err) == (
            2,
            "cuzk: 9.vproof: sector 0: sector_id: expected 5, found 9: give the vanilla proofs in the statement's order\n",
        )
        Path("9.vproof").write_bytes(broken(made[1].blob))
        wrong = cuzk("filecoin", "submit", *given, "--address", served.address, cwd=tmp_path)
        assert wrong.status == 1, wrong
        assert wrong.err.startswith("cuzk: 9.vproof: sector 1 (number 9): challenge 9 (node ")
    assert Path("post.bin").stat().st_size == 192
    key = keys / f"{parameters_named('window-2KiB').stem}.params"
    verify = ["filecoin", "verify", str(stated), "post.bin", "--key", str(key), "--insecure-key"]
    assert app.run(verify) == 0
    assert capsys.readouterr().out == "valid\n"
