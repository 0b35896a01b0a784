"""Benchmarks must not rot: each one's check of itself, and a tiny run of the whole command."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import cuzk.prover
from bench import hashes, msm, ntt, phases, prove
from bench.circuits import KINDS, circuit_of
from bench.processes import run
from bench.timing import Meter, least, sizes
from cuzk.backends import Backend
from cuzk.curves import Curve
from cuzk.groth16 import BELLMAN, SNARKJS, Proof
from cuzk.prover import ResidentKey
from cuzk.vectors import Scalars

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_msm_is_right(curve: Curve, group: str) -> None:
    msm.prove_right(curve, group, 1)


def test_ntt_is_right(curve: Curve) -> None:
    ntt.prove_right(curve, 2)


def test_hashes_are_right_and_can_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes.prove_right()
    for call in hashes.work(3, 1).values():
        call()
    monkeypatch.setattr(hashes, "OF_ZEROS", "00" * 32)
    with pytest.raises(SystemExit, match="Poseidon of two zeros: expected 00"):
        hashes.prove_right()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
def test_proof_is_right(curve: Curve, recipe: str, kind: str) -> None:
    phases.prove_right(curve.name, recipe, kind, 2)


def test_a_wrong_proof_stops_the_benchmark(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_blinding(key: ResidentKey, w: Scalars, backend: Backend, r: int, s: int) -> Proof:
        return cuzk.prover.prove(key, w, backend, r, s + 1)

    monkeypatch.setattr("bench.phases.prove", other_blinding)
    with pytest.raises(SystemExit, match="B is not what"):
        phases.prove_right(curve.name, SNARKJS, "dense", 1)


def test_a_wrong_sum_stops_the_benchmark(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msm, "msm", lambda *given: given[2][:1])  # the first base
    with pytest.raises(SystemExit, match="wrong sum of 3 points"):
        msm.prove_right(curve, "g1", 1)


def test_a_wrong_transform_stops_the_benchmark(
    curve: Curve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ntt, "_core", SimpleNamespace(ntt=lambda *_: None))  # leaves its input
    with pytest.raises(SystemExit, match="transform of 64 points is wrong"):
        ntt.prove_right(curve, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_circuits_fill_their_domain(curve: Curve, kind: str) -> None:
    matrices = circuit_of(kind, curve.name, 9).matrices()
    assert (matrices.rows, matrices.log_domain) == (512, 9)


def test_rows(curve: Curve) -> None:
    (row,) = msm.measure(curve, "g1", [5], 1, 1)
    assert row["log_n"] == 5
    assert ntt.measure(curve, 5, 1, 0.0).forward.cpu >= 0
    meter = Meter()
    for _ in range(3):
        with meter("phase"):
            least(lambda: None, repeat=2)
    assert set(meter.medians()["phase"]) == {"wall_ms", "cpu_ms", "faults"}
    assert sizes("3-5") == [3, 4, 5]
    assert sizes("3,9") == [3, 9]


def test_whole_proofs() -> None:
    command = [sys.executable, "-m", "bench.prove", "--sizes", "9", "--kinds", "bits", "--json"]
    options = ["--runs", "1", "--threads", "1"]
    done = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    row = json.loads(done.stdout)
    assert row["case"] == "bn254/bits9"
    assert row["programs"]["cuzk"]["runs"] == 1
    assert row["inside"]["log_domain"] == 9
    assert row["verified_by"] == {"cuzk": "cuzk"}
    prove.show(row)


def test_a_failing_program_stops_the_benchmark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; print('reason'); sys.exit(3)"]
    with (tmp_path / "log").open("w+b") as log, pytest.raises(SystemExit, match="status 3\nreason"):
        run(command, {0}, log)
