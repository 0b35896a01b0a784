"""The daemon's benchmarks, tiny: their proofs verify, their numbers are of what they say. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import serve_critical, serve_flat, serve_status, serve_throughput
from bench.serve_check import Checked
from bench.serve_daemon import Usage, make
from cuzk.formats.snarkjs_json import proof_json, public_json
from cuzk.prover.session import Prover

ROOT = Path(__file__).resolve().parents[2]


def test_throughput(tmp_path: Path) -> None:
    row = serve_throughput.throughput(tmp_path, log_n=3, seconds=0.1, turns=1, bare_threads=1)
    assert row["verified"] > 0
    assert [len(row["rates"][name]) for name in ("bare", "prove", "submit")] == [2, 1, 1]
    assert row["ratio"]["prove"] == pytest.approx(2 * row["rates"]["prove"][0] / sum(row["rates"]["bare"]))  # fmt: skip
    assert set(row["cpu_ms_a_proof"]["prove"]) == {"daemon", "worker", "client"}
    assert len(serve_throughput.show(row)) == 4


def test_status_while_others_push(tmp_path: Path) -> None:
    (row,) = serve_status.status_latency(
        tmp_path, seconds=0.3, clients=2, nbytes=2 << 20, log_n=3, cases=["both"]
    )
    assert row["calls"] > 0
    assert row["messages"] >= 2
    assert row["verified"] > 0
    assert row["p50_ms"] <= row["p99_ms"] <= row["max_ms"]
    assert serve_status.show([row])


def test_a_garbage_message_that_is_not_refused_stops_the_benchmark() -> None:
    serve_status._expect_refused(["FormatError: witness: expected a .wtns file, found ..."])
    with pytest.raises(SystemExit, match="QueueFull"):
        serve_status._expect_refused(["QueueFull: no room"])


def test_flat(tmp_path: Path) -> None:
    row = serve_flat.flat(tmp_path, jobs=40)
    assert row["jobs"] == row["verified"] == 40
    assert row["samples"][-1]["jobs"] == 40
    assert row["last"]["journal"] > 0
    assert serve_flat.show(row)


def test_growth_is_a_slope() -> None:
    def sample(jobs: int) -> serve_flat.Sample:
        return serve_flat.Sample(jobs, {"daemon": Usage(0.0, 1000 + 3 * jobs, 7, 2)}, 5 * jobs)

    found = serve_flat.growth([sample(10), sample(20), sample(40)])
    assert found == pytest.approx(
        {"journal": 5, "daemon bytes": 3, "daemon files": 0, "daemon threads": 0}
    )


def test_critical_jobs(tmp_path: Path) -> None:
    row = serve_critical.critical(tmp_path, queue=6, times=2, log_n=11)
    assert row["critical"] == len(row["waits_ms"]) == 2
    assert row["wait_ms"]["max"] == max(row["waits_ms"]) > 0
    assert serve_critical.show(row)


def test_a_command_prints_json() -> None:
    command = [sys.executable, "-m", "bench.serve", "flat", "--jobs", "4", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["jobs"] == 4


def test_a_wrong_proof_stops_the_benchmark(tmp_path: Path) -> None:
    made = make(tmp_path, "bn254", 3, 2)
    checked = Checked(made.key, made.witnesses)
    with Prover(made.key, device="cpu", insecure_key=True) as prover:
        result = prover.prove(made.witnesses[1])
    proof, public = proof_json(result.proof).decode(), public_json(result.public).decode()
    checked.expect(proof, public, 1)
    with pytest.raises(SystemExit, match="states"):
        checked.all([(proof, public)])
    with pytest.raises(SystemExit, match="not valid"):
        checked.expect(proof, json.dumps([str(checked.stated[0][0])]), 0)
