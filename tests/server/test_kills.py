"""kill -9 of the daemon and of its worker at random moments, while a client submits and waits (cases: D4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bench.serve_check import Checked
from bench.serve_daemon import make
from bench.serve_kills import Seen, judge, kills
from cuzk.formats.snarkjs_json import proof_json, public_json
from cuzk.prover.session import Prover
from cuzk.server.client import ProofResult


@pytest.fixture
def folder() -> Iterator[Path]:
    """Its name is short enough for a socket's."""
    with TemporaryDirectory(prefix="cuzk-") as made:
        yield Path(made)


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_every_accepted_job_has_one_proof(
    folder: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.serve_kills.GONE_SECONDS", 120.0)
    row = kills(folder, kills=count, most=0.3 if count == 4 else 2.0, log_n=6)
    assert row["kills"] == {"daemon": 3 * count // 4, "worker": count // 4}
    assert row["verified"] == row["accepted"] > 0


def test_what_must_not_be_is_found(tmp_path: Path) -> None:
    """A job without a proof, a wrong one, another job's, one that was made twice."""
    made = make(tmp_path, "bn254", 3, 2)
    checked = Checked(made.key, made.witnesses)
    results = []
    with Prover(made.key, device="cpu", insecure_key=True) as prover:
        for path in made.witnesses:
            result = prover.prove(path)
            proof, public = proof_json(result.proof), public_json(result.public)
            results.append(ProofResult("", proof, public, {}))
    accepted = {"kill-0": 0, "kill-1": 1}
    log = "started 'kill-0' on cpu\ndone 'kill-0' in 1 s\nstarted 'kill-1'\nstarted 'kill-1'\ndone 'kill-1'\n"
    proofs = dict(zip(accepted, results, strict=True))
    assert judge(Seen(accepted, proofs), checked, log) == 2
    with pytest.raises(SystemExit, match="accepted 2 jobs, proofs of 1"):
        judge(Seen(accepted, {"kill-0": results[0]}), checked, log)
    with pytest.raises(SystemExit, match="states"):
        judge(Seen(accepted, {"kill-0": results[1], "kill-1": results[0]}), checked, log)
    wrong = ProofResult("", results[0].proof, results[1].public, {})
    with pytest.raises(SystemExit, match="not valid"):
        judge(Seen(accepted, {**proofs, "kill-1": wrong}), checked, log)
    with pytest.raises(SystemExit, match="kill-0: started after it was done"):
        judge(Seen(accepted, proofs), checked, log + "started 'kill-0'\n")
    assert judge(Seen(accepted, proofs), checked, log.replace("done 'kill-1'", "")) == 2
    with pytest.raises(SystemExit, match="0 jobs are done by the log"):
        judge(Seen(accepted, proofs), checked, "")
    with pytest.raises(SystemExit, match="3 jobs are done by the log"):
        judge(Seen(accepted, proofs), checked, log + "done 'kill-2'\n")
    same = Seen({"kill-0": 0, "kill-1": 0}, {"kill-0": results[0], "kill-1": results[0]})
    with pytest.raises(SystemExit, match="same proof"):
        judge(same, checked, log)
