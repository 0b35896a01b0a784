"""Whole proofs by the CUDA backend: equal to the CPU's to the last bit for equal r and s, and valid.

The emulator proves the small fixtures; a GPU (marker ``gpu``) all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from circuits import chain, cubic, tangle
from cuzk.backends import cuda
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.buffers import bases_of
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.backends.cuda.memory import MemoryPlan, share
from cuzk.circuit import Circuit
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import FormatError, OutOfMemory
from cuzk.groth16 import BELLMAN, PREPARED, SNARKJS, Proof, ProvingKey
from cuzk.load import load_key, load_witness
from cuzk.prover.resident import reside, workload
from cuzk.prover.session import Prover, Result
from cuzk.setup import Secrets, insecure_setup, prepare
from cuzk.vectors import Points
from cuzk.verifier import verify
from emulator import EmulatedMachine
from independent import accepts

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


def emulated(curve: Curve, *, longest_sum: int | None = None, threads: int = 1) -> CudaBackend:
    return CudaBackend(curve, EmulatedMachine(), longest_sum=longest_sum, threads=threads)


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
    assert set(cuda.report.device_milliseconds) == {"evaluate", "quotient", "commit"}
    assert 0 < cuda.report.device_resident_bytes < cuda.report.device_planned_bytes
    assert verify(key.vk, cpu.public, cuda.proof, insecure_key=insecure)


@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: case[0])
def test_fixtures_on_the_emulator(fixtures: Path, case: Case) -> None:
    check_fixture(fixtures, case, EmulatedMachine())


@pytest.mark.gpu
@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: case[0])
def test_fixtures_on_a_gpu(fixtures: Path, case: Case, gpu_machine: CudaMachine) -> None:
    check_fixture(fixtures, case, gpu_machine)


SECRETS = Secrets(tau=0xACE, alpha=0xBEE, beta=0xCAFE, delta=0xD00D, gamma=0xFADE)


def key_of(circuit: Circuit, recipe: str = SNARKJS) -> ProvingKey:
    matrices = circuit.matrices()
    if recipe == PREPARED:
        return prepare(insecure_setup(matrices, SECRETS, BELLMAN), matrices)
    return insecure_setup(matrices, SECRETS, recipe)


def equal_to_the_cpu(key: ProvingKey, circuit: Circuit, backend: CudaBackend) -> Result:
    """One proof each; the CUDA backend's."""
    results = []
    for device in ("cpu", backend):
        with Prover(key, circuit=circuit.matrices(), device=device, insecure_key=True) as prover:
            results.append(prover.prove_insecure(circuit.witness(), R, S))
    expected, found = results
    assert found.report.retries == 0
    assert same(expected.proof, found.proof)
    return found


@pytest.mark.parametrize(("curve_", "recipe"), [(BN254, SNARKJS), (BLS12_381, BELLMAN)])
def test_another_implementation_accepts(curve_: Curve, recipe: str) -> None:
    circuit = chain(curve_, 6, public=2)
    key = key_of(circuit, recipe)
    found = equal_to_the_cpu(key, circuit, emulated(curve_))
    assert accepts(key.vk, found.public, found.proof)


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN, PREPARED])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_circuits(curve: Curve, recipe: str, seed: int) -> None:
    """The second time with sums cut into chunks."""
    circuit = tangle(curve, seed)
    backend = emulated(curve, longest_sum=20) if seed == 2 else emulated(curve)
    equal_to_the_cpu(key_of(circuit, recipe), circuit, backend)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
def test_thousands_of_constraints(curve: Curve, recipe: str) -> None:
    """Several blocks of every kernel."""
    circuit = chain(curve, 4000, public=3)
    equal_to_the_cpu(key_of(circuit, recipe), circuit, emulated(curve))


@pytest.mark.gpu
@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
@pytest.mark.parametrize("constraints", [5000, 60_000])
def test_many_constraints_on_a_gpu(
    curve: Curve, recipe: str, constraints: int, gpu_machine: CudaMachine
) -> None:
    circuit = chain(curve, constraints, public=3)
    equal_to_the_cpu(key_of(circuit, recipe), circuit, CudaBackend(curve, gpu_machine))


class FlippingMachine(EmulatedMachine):
    """One bit of each of the first ``faults`` sums is wrong when it comes back."""

    faults = 0

    def fetch(self, memory: Memory, array: NDArray[Any]) -> Callable[[], None]:
        fill = super().fetch(memory, array)

        def fill_wrongly() -> None:
            fill()
            if array.any() and self.faults:
                self.faults -= 1
                array[array.any(axis=1).argmax(), 0] ^= np.uint64(1)  # of a point not at infinity

        return fill_wrongly


@pytest.mark.parametrize(("faults", "retries"), [(1, 1), (5, 1), (6, 2), (10, 2)])
def test_a_flipped_bit_is_found_and_made_good(faults: int, retries: int) -> None:
    """Five sums a proof: the first proof is wrong, or the second too and the CPU makes the third."""
    circuit, machine = cubic(BN254), FlippingMachine(SMALL)
    key = key_of(circuit)
    backend = CudaBackend(BN254, machine)
    with Prover(key, circuit=circuit.matrices(), device=backend, insecure_key=True) as prover:
        machine.faults = faults
        result = prover.prove_insecure(circuit.witness(), R, S)
    assert verify(key.vk, [35], result.proof, insecure_key=True)
    assert (result.report.retries, machine.faults) == (retries, 0)
    assert result.report.device == (machine.name if retries == 1 else "cpu")


@pytest.mark.parametrize("stay", [(True, False, True, False, True), (False, True, False, True, False)])  # fmt: skip
def test_points_that_stay_in_host_memory(
    curve: Curve, stay: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resident and streamed sums in one proof, as a plan of a smaller card has them."""

    def some(*args: Any, **given: Any) -> MemoryPlan:
        return replace(share(*args, **given), stay=stay)

    monkeypatch.setattr(cuda, "share", some)
    circuit = cubic(curve)
    key = key_of(circuit)
    backend = CudaBackend(curve, EmulatedMachine(SMALL))
    equal_to_the_cpu(key, circuit, backend)
    backend.plan(workload(key, circuit.matrices()))
    resident = reside(key, circuit.matrices(), backend)
    queries = (resident.a, resident.b_g1, resident.b_g2, resident.l, resident.h)
    points = [bases_of(query.points).points for query in queries]
    assert tuple(isinstance(each, Memory) for each in points) == stay
    away = {f"{len(p)} points in {p.group}" for p in points if isinstance(p, Points)}
    assert {note.partition(":")[0] for note in backend.notes()} == away


def test_no_memory_is_a_typed_error_and_the_device_stays_usable(curve: Curve) -> None:
    circuit, machine = cubic(curve), EmulatedMachine(SMALL)
    key, backend = key_of(circuit), CudaBackend(curve, machine)
    with Prover(key, circuit=circuit.matrices(), device=backend, insecure_key=True) as prover:
        held = machine.alloc(machine.free_bytes() - 4096)
        with pytest.raises(OutOfMemory, match=f"{machine.name}: asked for [0-9]+ bytes"):
            prover.prove(circuit.witness())
        del held
        assert verify(key.vk, [35], prover.prove(circuit.witness()).proof, insecure_key=True)


def test_memory_goes_back(curve: Curve) -> None:
    circuit, machine = cubic(curve), EmulatedMachine()
    key = key_of(circuit)
    with Prover(
        key, circuit=circuit.matrices(), device=CudaBackend(curve, machine), insecure_key=True
    ) as prover:
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
        key = key_of(circuit)
        provers[curve] = Prover(
            key, circuit=circuit.matrices(), device=emulated(curve), insecure_key=True
        )

    def work(curve: Curve) -> None:
        prover = provers[curve]
        result = prover.prove(circuits[curve].witness())
        if (
            not verify(prover.key.vk, result.public, result.proof, insecure_key=True)
            or result.report.retries
        ):
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
        Prover(key_of(circuit), device=emulated(BLS12_381), insecure_key=True)


@pytest.fixture
def machines(gpu_machine: CudaMachine) -> list[CudaMachine]:
    """Two streams of the first GPU."""
    return [gpu_machine, CudaMachine(gpu_machine.card)]


@pytest.mark.gpu
def test_memory_of_a_gpu_goes_back(gpu_machine: CudaMachine, fixtures: Path) -> None:
    """50 proofs and the key unloaded; a first proof loads the kernels, which stay."""
    at = fixtures / "rapidsnark"
    key, witness = load_key(at / "circuit_final.zkey"), load_witness(at / "witness.wtns")

    def free_after(proofs: int) -> int:
        with Prover(key, device=CudaBackend(key.curve, gpu_machine)) as prover:
            for _ in range(proofs):
                prover.prove(witness)
        gpu_machine.finish()
        return gpu_machine.free_bytes()

    base = free_after(1)
    assert free_after(50) == base


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
