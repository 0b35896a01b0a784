"""Whole proofs by the CUDA backend: equal to the CPU's to the last bit for equal r and s, and valid.

The emulator proves the small fixtures; a GPU (marker ``gpu``) all of them.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from circuits import chain, cubic
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.buffers import bases_of
from cuzk.backends.cuda.device import CudaMachine, open_card
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.backends.cuda.memory import SPARED
from cuzk.circuit import Circuit
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import FormatError, OutOfMemory
from cuzk.groth16 import BELLMAN, SNARKJS, Proof, ProvingKey
from cuzk.load import load_key, load_witness
from cuzk.prover.resident import reside, workload
from cuzk.prover.session import Prover
from cuzk.verifier import verify
from emulator import EmulatedMachine
from independent import accepts
from reference_setup import key_from

R, S = 2**200 + 17, 2**240 + 99
SMALL = 64 << 20  # bytes of device memory

Case = tuple[str, str, str, str, bool]  # folder, key, witness, circuit, insecure (delta is known)
FIXTURES = [
    ("co-snarks/bn254/multiplier2", "circuit.zkey", "witness.wtns", "circuit.r1cs", False),
    ("co-snarks/bls12_381/multiplier2", "circuit.zkey", "witness.wtns", "circuit.r1cs", False),
    ("co-snarks/bn254/poseidon", "circuit.zkey", "witness.wtns", "circuit.r1cs", True),
    ("co-snarks/bls12_381/poseidon", "circuit.zkey", "witness.wtns", "circuit.r1cs", False),
    ("co-snarks/bls12_381/kyc", "kyc.zkey", "witness.wtns", "kyc.r1cs", False),
    ("rapidsnark", "circuit_final.zkey", "witness.wtns", "", False),
    ("groth16-zorch", "multiplier_3.zkey", "multiplier_3.wtns", "", False),
]
SLOW_ON_THE_EMULATOR = {"co-snarks/bls12_381/kyc", "rapidsnark"}


def emulated(curve: Curve, **options: int) -> CudaBackend:
    return CudaBackend(curve, EmulatedMachine(), **options)


def same(left: Proof, right: Proof) -> bool:
    pairs = ((left.a, right.a), (left.b, right.b), (left.c, right.c))
    return all(np.array_equal(x.words, y.words) for x, y in pairs)


def check_fixture(fixtures: Path, case: Case, machine: Machine) -> None:
    folder, key_name, witness, circuit, insecure = case
    at = fixtures / folder
    key = load_key(at / key_name, insecure_key=insecure)
    w, r1cs = load_witness(at / witness), at / circuit if circuit else None
    backend, results = CudaBackend(key.curve, machine), []
    for device in ("cpu", backend):
        with Prover(key, circuit=r1cs, device=device, insecure_key=insecure) as prover:
            results.append(prover.prove_insecure(w, R, S))
    cpu, cuda = results
    assert same(cpu.proof, cuda.proof)
    assert cuda.report.retries == 0
    assert cuda.report.device == backend.name
    assert 0 < cuda.report.device_resident_bytes < cuda.report.device_planned_bytes
    assert verify(key.vk, cpu.public, cuda.proof, insecure_key=insecure)


@pytest.mark.parametrize("case", [
    pytest.param(case, marks=[pytest.mark.slow] if case[0] in SLOW_ON_THE_EMULATOR else [], id=case[0])
    for case in FIXTURES
])  # fmt: skip
def test_fixtures_on_the_emulator(fixtures: Path, case: Case) -> None:
    check_fixture(fixtures, case, EmulatedMachine())


@pytest.mark.gpu
@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: case[0])
def test_fixtures_on_a_gpu(fixtures: Path, case: Case, gpu_machine: CudaMachine) -> None:
    check_fixture(fixtures, case, gpu_machine)


RECIPES = [SNARKJS, BELLMAN]


def equal_to_the_cpu(key: ProvingKey, circuit: Circuit, backend: CudaBackend) -> Proof:
    """One proof each; the CUDA backend's, verified by py_ecc, too."""
    with Prover(key, circuit=circuit.matrices(), device="cpu") as prover:
        expected = prover.prove_insecure(circuit.witness(), R, S)
    with Prover(key, circuit=circuit.matrices(), device=backend) as prover:
        found = prover.prove_insecure(circuit.witness(), R, S)
    assert found.report.retries == 0
    assert same(expected.proof, found.proof)
    assert accepts(key.vk, found.public, found.proof)
    return found.proof


@pytest.mark.parametrize("recipe", RECIPES)
def test_another_implementation_accepts(curve: Curve, recipe: str) -> None:
    circuit = chain(curve, 6, public=2)
    equal_to_the_cpu(key_from(circuit.matrices(), recipe=recipe), circuit, emulated(curve))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("longest", [1, 3])
def test_sums_cut_into_chunks(curve: Curve, recipe: str, longest: int) -> None:
    circuit = cubic(curve)
    key = key_from(circuit.matrices(), recipe=recipe)
    equal_to_the_cpu(key, circuit, emulated(curve, longest_sum=longest))


def planned(key: ProvingKey, circuit: Circuit) -> int:
    machine = EmulatedMachine(SMALL)
    backend = CudaBackend(key.curve, machine)
    return backend.plan(workload(key, circuit.matrices()))


def test_points_that_stay_in_host_memory(curve: Curve) -> None:
    """Another process holds so much that some of the key's points have no room."""
    circuit = cubic(curve)
    key = key_from(circuit.matrices())
    whole = planned(key, circuit)
    machine = EmulatedMachine(SMALL)
    usable = whole - key.b_g2.points.words.nbytes
    held = machine.alloc(SMALL - usable - usable // (SPARED - 1) - 1)
    backend = CudaBackend(curve, machine)
    equal_to_the_cpu(key, circuit, backend)
    resident = reside(key, circuit.matrices(), backend)
    queries = (resident.a, resident.b_g1, resident.b_g2, resident.l, resident.h)
    stay = [isinstance(bases_of(query.points).points, Memory) for query in queries]
    assert any(stay)
    assert not all(stay)
    del held


def test_no_memory_is_a_typed_error_and_the_device_stays_usable(curve: Curve) -> None:
    circuit, machine = cubic(curve), EmulatedMachine(SMALL)
    key, backend = key_from(circuit.matrices()), CudaBackend(curve, machine)
    with Prover(key, circuit=circuit.matrices(), device=backend) as prover:
        held = machine.alloc(machine.free_bytes() - 4096)
        with pytest.raises(OutOfMemory, match=f"{machine.name}: asked for [0-9]+ bytes"):
            prover.prove(circuit.witness())
        del held
        assert verify(key.vk, [35], prover.prove(circuit.witness()).proof)


def test_memory_goes_back(curve: Curve) -> None:
    circuit, machine = cubic(curve), EmulatedMachine()
    key = key_from(circuit.matrices())
    with Prover(key, circuit=circuit.matrices(), device=CudaBackend(curve, machine)) as prover:
        after = []
        for _ in range(3):
            prover.prove(circuit.witness())
            after.append(machine.used)
        assert len(set(after)) == 1
    assert machine.used == 0


def test_two_circuits_from_four_threads() -> None:
    circuits = {BN254: cubic(BN254), BLS12_381: chain(BLS12_381, 3)}
    provers, failures = {}, []
    for curve, circuit in circuits.items():
        key = key_from(circuit.matrices())
        provers[curve] = Prover(key, circuit=circuit.matrices(), device=emulated(curve))

    def work(curve: Curve) -> None:
        prover = provers[curve]
        result = prover.prove(circuits[curve].witness())
        if not verify(prover.key.vk, result.public, result.proof) or result.report.retries:
            failures.append(curve.name)

    threads = [threading.Thread(target=work, args=(curve,)) for curve in [*circuits] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for prover in provers.values():
        prover.close()


def test_a_backend_of_another_curve_is_refused() -> None:
    circuit = cubic(BN254)
    with pytest.raises(FormatError, match="expected a backend for BN254, found one for BLS12-381"):
        Prover(key_from(circuit.matrices()), device=emulated(BLS12_381))


@pytest.fixture
def machines() -> list[CudaMachine]:
    """Two streams of the first GPU."""
    card = open_card(0)
    return [CudaMachine(card), CudaMachine(card)]


@pytest.mark.gpu
def test_memory_of_a_gpu_goes_back(gpu_machine: CudaMachine, fixtures: Path) -> None:
    """50 proofs and the key unloaded."""
    base = gpu_machine.free_bytes()
    at = fixtures / "rapidsnark"
    key, witness = load_key(at / "circuit_final.zkey"), load_witness(at / "witness.wtns")
    backend = CudaBackend(key.curve, gpu_machine)
    with Prover(key, device=backend) as prover:
        for _ in range(50):
            prover.prove(witness)
    del backend, prover
    gpu_machine.finish()
    assert gpu_machine.free_bytes() == base


@pytest.mark.gpu
@pytest.mark.parametrize("left", [64 << 20, 256 << 20])
def test_a_gpu_that_others_fill(gpu_machine: CudaMachine, fixtures: Path, left: int) -> None:
    """Everything but ``left`` bytes is taken, before the key is put."""
    at = fixtures / "rapidsnark"
    key, witness = load_key(at / "circuit_final.zkey"), load_witness(at / "witness.wtns")
    held = gpu_machine.alloc(gpu_machine.free_bytes() - left)
    with Prover(key, device=CudaBackend(key.curve, gpu_machine)) as prover:
        result = prover.prove(witness)
    assert result.report.retries == 0
    assert verify(key.vk, result.public, result.proof)
    del held


@pytest.mark.gpu
def test_zero_blinding_gives_equal_bytes(gpu_machine: CudaMachine, fixtures: Path) -> None:
    """200 proofs with r = s = 0."""
    at = fixtures / "rapidsnark"
    key, witness = load_key(at / "circuit_final.zkey"), load_witness(at / "witness.wtns")
    with Prover(key, device="cpu") as prover:
        expected = prover.prove_insecure(witness, 0, 0).proof
    with Prover(key, device=CudaBackend(key.curve, gpu_machine)) as prover:
        assert all(same(prover.prove_insecure(witness, 0, 0).proof, expected) for _ in range(200))


@pytest.mark.gpu
def test_two_circuits_from_four_threads_on_a_gpu(
    machines: list[CudaMachine], fixtures: Path
) -> None:
    """Each circuit has a stream of its own."""
    folders = ("rapidsnark/circuit_final.zkey", "co-snarks/bls12_381/poseidon/circuit.zkey")
    provers, witnesses, failures = [], [], []
    for machine, name in zip(machines, folders, strict=True):
        key = load_key(fixtures / name)
        provers.append(Prover(key, device=CudaBackend(key.curve, machine)))
        witnesses.append(load_witness((fixtures / name).parent / "witness.wtns"))

    def work(i: int) -> None:
        for _ in range(10):
            result = provers[i].prove(witnesses[i])
            if result.report.retries:
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
