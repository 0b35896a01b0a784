"""The plan that --memory is held against, beside the peak of a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from circuits import chain
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.formats.bellman import write_params
from cuzk.formats.iden3.r1cs import write_r1cs
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import BELLMAN, SNARKJS
from cuzk.prover import session
from cuzk.setup import Secrets, insecure_setup

SOURCE = Path(session.__file__).resolve().parents[2]
CODE = """
import json, sys, cuzk
key, witness, circuit = sys.argv[1:]
with cuzk.Prover(key, circuit=circuit or None, threads=2) as prover:
    report = prover.prove(witness).report
print(json.dumps([report.planned_bytes, report.peak_bytes]))
"""


def planned_and_peak(folder: Path, curve: Curve, recipe: str, log_n: int) -> tuple[int, int]:
    circuit = chain(curve, (1 << log_n) - 2)
    matrices = circuit.matrices()
    key = insecure_setup(matrices, Secrets(tau=77, alpha=3, beta=5, delta=7), recipe, threads=2)
    write_wtns(folder / "w.wtns", circuit.witness())
    beside = ""
    if recipe == SNARKJS:
        write_zkey(folder / "key", key)
    else:
        write_params(folder / "key", key)
        beside = str(folder / "c.r1cs")
        write_r1cs(beside, matrices)
    run = subprocess.run(
        [sys.executable, "-c", CODE, folder / "key", folder / "w.wtns", beside],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    planned, peak = json.loads(run.stdout)
    return planned, peak


@pytest.mark.parametrize(
    ("curve_", "recipe", "log_n"),
    [
        (BN254, SNARKJS, 13),
        (BLS12_381, BELLMAN, 14),
        pytest.param(BLS12_381, BELLMAN, 12, marks=pytest.mark.slow),
        pytest.param(BN254, SNARKJS, 17, marks=pytest.mark.slow),
        pytest.param(BLS12_381, SNARKJS, 16, marks=pytest.mark.slow),
        pytest.param(BLS12_381, BELLMAN, 16, marks=pytest.mark.slow),
    ],
)
def test_peak_is_close_to_the_plan(tmp_path: Path, curve_: Curve, recipe: str, log_n: int) -> None:
    planned, peak = planned_and_peak(tmp_path, curve_, recipe, log_n)
    assert 0.85 * planned < peak < 1.1 * planned, f"planned {planned}, peak {peak}"
