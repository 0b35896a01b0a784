"""A device that computes wrongly, in the proving service: what it made is never returned, whoever asks again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from files import files
from served import catalogue_of, circom, witness_request

from cuzk.backends.cpu import CpuBackend
from cuzk.catalogue import Catalogue
from cuzk.curves import Curve
from cuzk.engine.engine import Engine
from cuzk.engine.in_process import InProcessWorker
from cuzk.engine.job import Outcome, State
from cuzk.engine.journal import Journal
from cuzk.engine.policy import EnginePolicy
from cuzk.errors import ProofError
from cuzk.formats.snarkjs_json import read_verification_key
from cuzk.load import load_proof, load_public
from cuzk.prover import placement
from cuzk.vectors import Points
from cuzk.verifier import verify


class Faults(CpuBackend):
    """As many of its sums in G1 as ``left`` says come out as another point."""

    left = 0

    def msm(self, bases: object, scalars: object, wires: object = None) -> Points:
        total = super().msm(bases, scalars, wires)  # type: ignore[arg-type]
        if Faults.left and total.group == "g1":
            Faults.left -= 1
            return Points.from_affine(self.curve, "g1", [self.curve.g1])
        return total


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(_: str, curve: Curve, threads: int, __: object = None) -> tuple[CpuBackend, str]:
        return Faults(curve, threads), "test"

    monkeypatch.setattr(placement, "open_device", faulty)


def outcomes(folder: Path, catalogue: Catalogue, tries: int) -> list[Outcome]:
    """Of the same request again and again, as Curio's task does; then what a journal opened anew has."""

    async def work() -> list[Outcome]:
        journal = Journal(folder / "state")
        worker = InProcessWorker("cpu", "cpu", catalogue, threads=1)
        engine = Engine(catalogue, [worker], journal, EnginePolicy())
        found = []
        try:
            await engine.start()
            for _ in range(tries):
                await engine.submit(
                    replace(witness_request("c", files("bn254").wtns.read_bytes()), id="same")
                )
                _, outcome = await engine.result("same", timeout=120)
                assert outcome is not None
                found.append(outcome)
        finally:
            await engine.stop()
            journal.close()
        return found

    found = asyncio.run(work())
    again = Journal(folder / "state")
    try:
        stored = again.outcome("same")
    finally:
        again.close()
    assert stored is not None
    return [*found, stored[2]]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("faults", [1, 2])
def test_4_a_wrong_sum_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: int
) -> None:
    """Fault 4: an error in a sum became a wrong proof."""
    made = files("bn254")
    monkeypatch.setattr(Faults, "left", faults)
    for outcome in outcomes(tmp_path, catalogue_of(circom("c", made.zkey)), 2):
        assert outcome.state is State.DONE
        assert json.loads(outcome.public) == ["35"]
        signals = load_public(outcome.public, "bn254")
        assert verify(read_verification_key(made.vk), signals, load_proof(outcome.proof, "bn254"))
    assert Faults.left == 0


@pytest.mark.usefixtures("device")
def test_4_what_stays_wrong_is_a_failed_job_without_a_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = files("bn254")
    monkeypatch.setattr(Faults, "left", 10**6)
    for outcome in outcomes(tmp_path, catalogue_of(circom("c", made.zkey)), 2):
        assert (outcome.state, outcome.code) == (State.FAILED, ProofError.code)
        assert (outcome.proof, outcome.public) == (b"", b"")
        assert outcome.message
    assert Faults.left < 10**6
