"""CASES, group G, on a real GPU (`make gpu`): what an emulated one cannot show."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from circuits import chain
from cuzk import _core
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.machine import Machine
from cuzk.backends.cuda.selftest import fault_of
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import OutOfMemory
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import BELLMAN, ProvingKey
from cuzk.prover.prepare import prepare_key
from cuzk.prover.session import Prover, Result
from cuzk.setup import Secrets, insecure_setup, prepare
from cuzk.vectors import Points, Scalars
from cuzk.verifier import verify

pytestmark = pytest.mark.gpu
CONSTRAINTS = 300
SECRETS = Secrets(tau=0xACE, alpha=0xBEE, beta=0xCAFE, delta=0xD00D, gamma=0xFADE)


@pytest.fixture
def machine(gpu_machine: Machine) -> CudaMachine:
    assert isinstance(gpu_machine, CudaMachine)
    return gpu_machine


@cache
def key_of(curve: Curve) -> ProvingKey:
    return insecure_setup(chain(curve, CONSTRAINTS).matrices(), SECRETS, threads=2)


def proved(prover: Prover) -> Result:
    result = prover.prove(chain(prover.key.curve, CONSTRAINTS).witness())
    assert verify(prover.key.vk, result.public, result.proof)
    assert (result.report.device, result.report.retries) == ("cuda:0", 0)
    return result


@pytest.mark.usefixtures("gpu_machine")
def test_proof(curve: Curve) -> None:
    with Prover(key_of(curve), device="cuda") as prover:
        proved(prover)


def test_self_test(curve: Curve, machine: CudaMachine) -> None:
    assert fault_of(CudaBackend(curve, machine)) == ""


@pytest.mark.parametrize("nbytes", [0, 1, 8, (32 << 20) - 1, 32 << 20, (32 << 20) + 1, 200_000_003])
def test_copies(nbytes: int, machine: CudaMachine) -> None:
    given = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    memory, found = machine.alloc(nbytes), np.zeros(nbytes, np.uint8)
    machine.upload(memory, given)
    machine.download(memory, found)
    assert np.array_equal(given, found)


def test_out_of_memory_leaves_the_device_usable(machine: CudaMachine) -> None:
    with pytest.raises(OutOfMemory, match="cuda:0: asked for"):
        machine.alloc(machine.card.facts.total_bytes * 2)
    memory, found = machine.alloc(8), np.zeros(1, np.uint64)
    machine.fill(memory, 1)
    machine.download(memory, found)
    assert found[0] == 0x0101010101010101


PROOFS = """
import sys
from cuzk import Prover
with Prover(sys.argv[1], device="cuda", threads=2) as prover:
    for _ in range(200):
        proof = prover.prove_insecure(sys.argv[2], 0, 0).proof
        print(b"".join(p.words.tobytes() for p in vars(proof).values()).hex())
"""


@pytest.mark.usefixtures("gpu_machine")
@pytest.mark.parametrize("blocking", ["0", "1"])
def test_g2_identical_bytes(blocking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_zkey(tmp_path / "c.zkey", key_of(BLS12_381))
    write_wtns(tmp_path / "c.wtns", chain(BLS12_381, CONSTRAINTS).witness())
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", blocking)
    code = [sys.executable, "-c", PROOFS, str(tmp_path / "c.zkey"), str(tmp_path / "c.wtns")]
    lines = subprocess.run(code, capture_output=True, text=True, check=True).stdout.split()
    with Prover(key_of(BLS12_381), device="cpu") as prover:
        proof = prover.prove_insecure(chain(BLS12_381, CONSTRAINTS).witness(), 0, 0).proof
    assert len(lines) == 200
    assert set(lines) == {b"".join(p.words.tobytes() for p in vars(proof).values()).hex()}


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("limit", [None, 10_000])
def test_g6_g7_sums(group: str, limit: int | None, curve: Curve, machine: CudaMachine) -> None:
    gpu, cpu = CudaBackend(curve, machine, longest_sum=limit), CpuBackend(curve, 16)
    most = 65537
    base = Points.from_affine(curve, group, [getattr(curve, group)])
    bases = Points(curve, group, np.empty((most, curve.point_words(group)), np.uint64))
    multiples = Scalars.from_ints(curve, list(range(1, most + 1))).words
    _core.fixed_base(curve.name, group, base.words, multiples, bases.words, 16)
    scalars = Scalars.from_ints(curve, [pow(5, 7 * i + 1, curve.r) for i in range(most)])
    for n in (1, 2, 31, 32, 33, 65535, 65536, 65537):
        found = gpu.msm(gpu.put(bases[:n]), gpu.put(scalars[:n]))
        expected = cpu.msm(cpu.put(bases[:n]), cpu.put(scalars[:n]))
        assert found.affine() == expected.affine(), n


@pytest.mark.usefixtures("gpu_machine")
@pytest.mark.parametrize("visible", ["", "-1", "99"])
def test_g9_hidden_devices(visible: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_zkey(tmp_path / "c.zkey", key_of(BN254))
    write_wtns(tmp_path / "c.wtns", chain(BN254, CONSTRAINTS).witness())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    command = [sys.executable, "-m", "cuzk", "prove", str(tmp_path / "c.zkey"), str(tmp_path / "c.wtns"),
               "-o", str(tmp_path / "proof.json"), "--public", str(tmp_path / "public.json"), "--json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["report"]["device"] == "cpu"
    refused = subprocess.run([*command, "--device", "cuda"], capture_output=True, text=True, check=False)  # fmt: skip
    assert refused.returncode == 3
    assert "no NVIDIA GPU is visible" in json.loads(refused.stdout)["error"]["message"]


@pytest.mark.usefixtures("gpu_machine")
def test_g15_four_threads_two_circuits() -> None:
    failures: list[BaseException] = []
    with (
        Prover(key_of(BN254), device="cuda", threads=2) as one,
        Prover(key_of(BLS12_381), device="cuda", threads=2) as other,
    ):

        def work(prover: Prover) -> None:
            try:
                for _ in range(10):
                    proved(prover)
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(p,)) for p in (one, other, one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_g17_memory_goes_back(machine: CudaMachine) -> None:
    with Prover(key_of(BN254), device="cuda", threads=2) as prover:
        proved(prover)
    del prover
    gc.collect()
    before = int(machine.card.driver.cuMemGetInfo()[0])
    with Prover(key_of(BN254), device="cuda", threads=2) as prover:
        for _ in range(50):
            proved(prover)
    del prover
    gc.collect()
    machine.finish()
    machine.card.trim()
    assert abs(int(machine.card.driver.cuMemGetInfo()[0]) - before) <= 4 << 20


def test_a_key_is_prepared(curve: Curve, machine: CudaMachine) -> None:
    """Point for point as by the native core."""
    matrices = chain(curve, CONSTRAINTS).matrices()
    key = insecure_setup(matrices, SECRETS, BELLMAN)
    found = prepare_key(key, matrices, device=CudaBackend(curve, machine))
    expected = prepare(key, matrices, threads=2)
    assert np.array_equal(found.h.words, expected.h.words)
    assert np.array_equal(found.l.points.words, expected.l.points.words)
