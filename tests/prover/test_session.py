"""Prover: what it checks, keeps, reports and refuses."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from circuits import chain, cubic
from cuzk import _core
from cuzk.backends import Buffer
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import device as cuda_device
from cuzk.circuit import Circuit
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import (
    CircuitError,
    CuzkError,
    DeviceUnavailable,
    FormatError,
    InsecureKeyError,
    OutOfMemory,
    ProofError,
    UnsatisfiedError,
)
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import BELLMAN, SNARKJS, Proof, ProvingKey
from cuzk.prover import placement
from cuzk.prover.session import Prover
from cuzk.vectors import Points, Scalars, Words
from cuzk.verifier import verify
from native_threads import native_threads
from reference_setup import TOXIC, key_from


@cache
def key_of(curve: Curve, recipe: str = SNARKJS) -> ProvingKey:
    return key_from(cubic(curve).matrices(), recipe=recipe)


def without_c(key: ProvingKey) -> ProvingKey:
    """As a .zkey has it."""
    matrices = key.matrices
    assert matrices is not None
    return replace(key, matrices=replace(matrices, c=None))


def bytes_of(proof: Proof) -> list[bytes]:
    return [p.words.tobytes() for p in (proof.a, proof.b, proof.c)]


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
def test_proof_verifies(curve: Curve, recipe: str) -> None:
    with Prover(key_of(curve, recipe)) as prover:
        result = prover.prove(cubic(curve).witness())
    assert result.public == [35]
    assert verify(key_of(curve, recipe).vk, [35], result.proof)
    assert not verify(key_of(curve, recipe).vk, [36], result.proof)


def test_two_proofs_differ_and_both_verify(curve: Curve) -> None:
    key, witness = key_of(curve), cubic(curve).witness()
    with Prover(key) as prover:
        first, second = (prover.prove(witness).proof for _ in range(2))
    for x, y in zip(bytes_of(first), bytes_of(second), strict=True):
        assert x != y
    assert verify(key.vk, [35], first)
    assert verify(key.vk, [35], second)


def test_threads_do_not_change_the_proof(curve: Curve) -> None:
    proofs = []
    for threads in (1, 2, None):
        with Prover(key_of(curve), threads=threads) as prover:
            result = prover.prove_insecure(cubic(curve).witness(), 0, 0)
        assert threads is None or result.report.threads == threads
        proofs.append(bytes_of(result.proof))
    assert proofs[0] == proofs[1] == proofs[2]


def test_one_key_for_many_witnesses(curve: Curve) -> None:
    with Prover(key_of(curve)) as prover:
        for x in (0, 1, 5, 10**6):
            assert prover.prove(cubic(curve, x).witness()).public == [x**3 + x + 5]


opened: list[str] = []
listening = threading.Event()


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and listening.is_set():
        opened.append(str(arguments[0]))


@pytest.fixture
def openings() -> Iterator[list[str]]:
    """Every file that Python opens while the test runs."""
    if not hasattr(_listen, "added"):
        sys.addaudithook(_listen)
        _listen.added = True  # type: ignore[attr-defined]
    opened.clear()
    listening.set()
    yield opened
    listening.clear()


def test_later_proofs_open_no_file(tmp_path: Path, openings: list[str]) -> None:
    write_zkey(tmp_path / "c.zkey", key_of(BN254))
    witness = cubic(BN254).witness()
    with Prover(tmp_path / "c.zkey") as prover:
        assert any("c.zkey" in name for name in openings)
        prover.prove(witness)
        (tmp_path / "c.zkey").unlink()
        openings.clear()
        reports = [prover.prove(witness).report for _ in range(9)]
    assert [name for name in openings if not name.startswith("/proc/")] == []
    assert len({report.load_ms for report in reports}) == 1  # the key was read once


def test_every_form_of_key_and_witness(tmp_path: Path) -> None:
    write_zkey(tmp_path / "c.zkey", key_of(BN254))
    write_wtns(tmp_path / "c.wtns", cubic(BN254).witness())
    key, witness = (tmp_path / name for name in ("c.zkey", "c.wtns"))
    for form in (Path, str, Path.read_bytes, lambda p: bytearray(p.read_bytes()),
                 lambda p: memoryview(p.read_bytes()), lambda p: io.BytesIO(p.read_bytes())):  # fmt: skip
        with Prover(form(key)) as prover:
            assert prover.prove(form(witness)).public == [35]


def test_no_thread_outlives_a_proof(curve: Curve) -> None:
    others, tasks = set(threading.enumerate()), native_threads()
    with Prover(key_of(curve), threads=4) as prover:
        prover.prove(cubic(curve).witness())
        assert native_threads() <= tasks
        assert set(threading.enumerate()) <= others


def test_a_script_ends_by_itself(tmp_path: Path) -> None:
    write_zkey(tmp_path / "c.zkey", key_of(BN254))
    write_wtns(tmp_path / "c.wtns", cubic(BN254).witness())
    code = (
        "import cuzk, sys\n"
        "prover = cuzk.Prover(sys.argv[1], threads=2)\n"  # never closed
        "print(prover.prove(sys.argv[2]).public)\n"
    )
    source = Path(placement.__file__).resolve().parents[2]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, tmp_path / "c.zkey", tmp_path / "c.wtns"],
        capture_output=True, text=True, timeout=120, check=False, env={"PYTHONPATH": str(source)},
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "[35]\n", "")


def test_report(curve: Curve) -> None:
    key = key_of(curve)
    with Prover(key, threads=2) as prover:
        report = prover.prove(cubic(curve).witness()).report
    assert (report.device, report.threads, report.retries) == ("cpu", 2, 0)
    assert "opening a GPU takes" in report.reason
    assert report.arithmetic == _core.path()
    assert (report.constraints, report.wires, report.public, report.domain) == (2, 4, 1, 4)
    assert (report.curve, report.recipe) == (curve.name, SNARKJS)
    assert report.circuit_digest == cubic(curve).matrices().digest
    assert report.peak_bytes > 10 << 20
    assert set(report.versions) == {"cuzk", "numpy", "python"}
    ms = report.milliseconds
    msms = {f"commit.{name}" for name in ("a", "b_g1", "b_g2", "l", "h")}
    phases = {"check", "evaluate", "quotient", "commit", "assemble", "verify"}
    assert set(ms) == {"load", "total", "wait"} | phases | msms
    assert (report.lanes, report.transfers) == (1, [])
    on_device = report.device_milliseconds
    assert set(on_device) == {"evaluate", "quotient", "commit"}
    assert all(0 <= spent <= ms[name] for name, spent in on_device.items())
    assert sum(ms[name] for name in phases) <= ms["total"]
    assert sum(ms[name] for name in msms) <= ms["commit"]
    assert report.total_ms == ms["total"]
    assert json.loads(json.dumps(report.as_dict()))["milliseconds"] == ms


def test_phases_are_announced_in_order() -> None:
    heard: list[str] = []
    with Prover(key_of(BN254), on_phase=heard.append) as prover:
        prover.prove(cubic(BN254).witness())
    assert [name for name in heard if "." not in name] == [
        "total", "check", "evaluate", "quotient", "commit", "assemble", "verify",
    ]  # fmt: skip


def refusal(kind: type[CuzkError], key: ProvingKey, witness: Scalars, **options: object) -> str:
    with Prover(key, **options) as prover, pytest.raises(kind) as failure:  # type: ignore[arg-type]
        prover.prove(witness)
    text = str(failure.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("change", [-1, 1])
def test_witness_of_another_length(curve: Curve, change: int) -> None:
    values = [*cubic(curve).witness().ints(), 5][: 4 + change]
    text = refusal(CircuitError, key_of(curve), Scalars.from_ints(curve, values))
    assert f"expected 4 wires as {curve.name} test key has, found {4 + change}" in text


@pytest.mark.parametrize(("ours", "theirs"), [(BN254, BLS12_381), (BLS12_381, BN254)])
def test_witness_of_the_other_curve(ours: Curve, theirs: Curve) -> None:
    text = refusal(CircuitError, key_of(ours), cubic(theirs).witness())
    assert ours.title in text
    assert theirs.title in text


def test_witness_without_the_constant(curve: Curve) -> None:
    text = refusal(FormatError, key_of(curve), Scalars.from_ints(curve, [2, 35, 3, 9]))
    assert "wire 0: expected the constant 1, found 2" in text


def test_witness_value_not_below_r(curve: Curve) -> None:
    words = cubic(curve).witness().words.copy()
    words[2] = Scalars.from_ints(curve, [-1]).words[0]
    words[2, 0] += 1
    assert "wire 2: expected a value below r" in refusal(
        FormatError, key_of(curve), Scalars(curve, words)
    )


def test_witness_in_montgomery_form_is_taken(curve: Curve) -> None:
    witness = Scalars.from_ints(curve, [1, 35, 3, 9], montgomery=True)
    with Prover(key_of(curve)) as prover:
        assert prover.prove(witness).public == [35]


def test_false_witness_with_a_circuit_names_the_constraint(curve: Curve) -> None:
    witness = Scalars.from_ints(curve, [1, 35, 3, 10])
    text = refusal(
        UnsatisfiedError, without_c(key_of(curve)), witness, circuit=cubic(curve).matrices()
    )
    assert "constraint 0 of 2 is not satisfied: (w[2]) * (w[2]) = (w[3])" in text
    witness = Scalars.from_ints(curve, [1, 36, 3, 9])
    text = refusal(
        UnsatisfiedError, without_c(key_of(curve)), witness, circuit=cubic(curve).matrices()
    )
    assert "constraint 1 of 2 is not satisfied" in text
    assert "(w[1] + -w[2] + -5)" in text
    assert "36" not in text  # the witness is secret, messages are not


def test_false_witness_without_a_circuit_fails_the_self_check(curve: Curve) -> None:
    witness = Scalars.from_ints(curve, [1, 35, 3, 10])
    text = refusal(ProofError, without_c(key_of(curve)), witness)
    assert "withheld" in text


def test_dropped_coefficient_fails_the_self_check(curve: Curve) -> None:
    """A key that evaluates another circuit than the one it was made for."""
    key = key_of(curve)
    m = key.matrices
    assert m is not None
    values = m.a.coefficients.copy()
    values[0] = 1  # +1 became -1
    broken = replace(m, a=replace(m.a, coefficients=values), c=None)
    refusal(ProofError, replace(key, matrices=broken), cubic(curve).witness())


def moved(points: Points) -> Words:
    """Another point of the curve."""
    return Points.from_affine(
        points.curve, points.group, [getattr(points.curve, points.group)]
    ).words


def off_curve(points: Points) -> Words:
    """One bit flipped: no point of the curve."""
    row = points.words[-1:].copy()
    row[0, 0] ^= np.uint64(1)
    return row


def out_of_range(points: Points) -> Words:
    """Coordinates that are no field elements."""
    return np.full_like(points.words[-1:], 2**64 - 1)


@pytest.mark.parametrize("damage", [moved, off_curve, out_of_range])
@pytest.mark.parametrize("name", ["h", "a", "b_g1", "b_g2", "l"])
def test_damaged_points_fail_the_self_check(
    curve: Curve, name: str, damage: Callable[[Points], Words]
) -> None:
    key = key_of(curve)
    query = getattr(key, name)
    points: Points = query if name == "h" else query.points
    last = int(np.flatnonzero(~points.is_infinity())[-1])
    words = points.words.copy()
    words[last : last + 1] = damage(points[: last + 1])
    changed = Points(curve, points.group, words)
    fields: dict[str, Any] = {name: changed if name == "h" else replace(query, points=changed)}
    refusal(ProofError, replace(key, **fields), cubic(curve).witness())


class FlakyBackend(CpuBackend):
    """Its first ``faults`` sums in G2 come out wrong."""

    name = "flaky"
    faults = 1

    def msm(self, bases: Buffer, scalars: Buffer, wires: object = None) -> Points:
        total = super().msm(bases, scalars, wires)
        if bases.kind == "g2" and bases.length > 3 and FlakyBackend.faults:
            FlakyBackend.faults -= 1
            return Points.from_affine(self.curve, "g2", [self.curve.g2])
        return total


@pytest.mark.parametrize("faults", [0, 1, 2, 3])
def test_wrong_result_is_retried_then_made_on_the_cpu(
    faults: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flaky(device: str, curve: Curve, threads: int, _: object = None) -> tuple[CpuBackend, str]:
        kind = CpuBackend if device == "cpu" else FlakyBackend
        return kind(curve, threads), "test"

    monkeypatch.setattr(placement, "open_device", flaky)
    monkeypatch.setattr(FlakyBackend, "faults", faults)
    with Prover(key_of(BN254)) as prover:
        result = prover.prove(cubic(BN254).witness())
    assert result.report.retries == min(faults, 2)
    assert result.report.device == ("flaky" if faults < 2 else "cpu")
    assert verify(key_of(BN254).vk, [35], result.proof)


def test_circuit_of_another_size(curve: Curve) -> None:
    key = key_of(curve)
    other = chain(curve, 6, public=2).matrices()
    with pytest.raises(CircuitError) as failure:
        Prover(key, circuit=other)
    text = str(failure.value)
    assert "public signals 1 and 2" in text
    assert "constraints 2 and 6" in text
    assert other.digest[:16] in text


def test_circuit_of_equal_size(curve: Curve) -> None:
    circuit = Circuit(curve)
    out = circuit.public(35)
    x = circuit.private(3)
    square = circuit.product(x, x)
    circuit.enforce(square, square, out - x - 5)  # x^4: one coefficient moved
    with pytest.raises(CircuitError, match="they differ in B at constraint 1"):
        Prover(key_of(curve), circuit=circuit.matrices())


def test_key_without_circuit(curve: Curve) -> None:
    bare = replace(key_of(curve, BELLMAN), matrices=None)
    with pytest.raises(CircuitError, match="holds no circuit"):
        Prover(bare)
    with Prover(bare, circuit=cubic(curve).matrices()) as prover:
        assert prover.prove(cubic(curve).witness()).public == [35]


def test_known_delta_is_refused(curve: Curve) -> None:
    toxic = replace(TOXIC, delta=1)
    key = key_from(cubic(curve).matrices(), toxic)
    with pytest.raises(InsecureKeyError, match="delta = 1"):
        Prover(key)
    key = key_from(cubic(curve).matrices(), replace(TOXIC, gamma=TOXIC.delta))
    with pytest.raises(InsecureKeyError, match="delta = gamma"):
        Prover(key)
    with Prover(key, insecure_key=True) as prover:
        assert prover.prove(cubic(curve).witness()).public == [35]


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_absent_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> object:
        raise DeviceUnavailable("no GPU here")

    monkeypatch.setattr(cuda_device, "open_machine", absent)
    with pytest.raises(
        DeviceUnavailable, match=f"^device {device}: no GPU here; or take auto or cpu$"
    ):
        Prover(key_of(BN254), device=device)


@pytest.mark.parametrize("device", ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU"])
def test_unknown_device(device: str) -> None:
    with pytest.raises(FormatError, match="expected auto, cpu, cuda, cuda:N or cuda:GPU-UUID"):
        Prover(key_of(BN254), device=device)


@pytest.mark.parametrize("threads", [0, -1, 10**6])
def test_threads_out_of_range(threads: int) -> None:
    with pytest.raises(FormatError, match=f"threads: expected 1 to 4096, found {threads}"):
        Prover(key_of(BN254), threads=threads)


def test_memory_limit(curve: Curve) -> None:
    with Prover(key_of(curve), threads=1) as prover:
        needed = prover.prove(cubic(curve).witness()).report.planned_bytes
    with pytest.raises(OutOfMemory, match=f"needs {needed} bytes of memory"):
        Prover(key_of(curve), threads=1, memory=needed - 1)
    with Prover(key_of(curve), threads=1, memory=needed) as prover:
        prover.prove(cubic(curve).witness())
    # of each proof in work: four over the domain and the witness; 200 bytes a row for its sums
    vectors = 32 * (16 + 4) + 200 * 4
    with Prover(key_of(curve), threads=1, lanes=3) as prover:
        report = prover.prove(cubic(curve).witness()).report
    assert report.planned_bytes == needed + 2 * vectors


def test_closed_prover() -> None:
    prover = Prover(key_of(BN254))
    prover.close()
    with pytest.raises(CuzkError, match="closed"):
        prover.prove(cubic(BN254).witness())


def test_provers_in_threads() -> None:
    """Calls of one Prover wait for each other; each gets its own result."""
    values: dict[int, list[int]] = {}
    with Prover(key_of(BN254), threads=1) as prover:

        def work(x: int) -> None:
            values[x] = prover.prove(cubic(BN254, x).witness()).public

        workers = [threading.Thread(target=work, args=(x,)) for x in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert values == {x: [x**3 + x + 5] for x in range(4)}
