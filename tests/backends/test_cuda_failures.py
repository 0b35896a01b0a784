"""What fails in the middle of a proof: every allocation and every launch in turn, sums that nobody collects.

Every outcome is the right proof or a typed error; afterwards no memory is missing and the next proof is right.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from circuits import chain
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend, device, msm
from cuzk.backends.cuda.machine import Memory, Unit
from cuzk.curves import BN254, Curve
from cuzk.errors import BackendError, KernelError, OutOfMemory
from cuzk.groth16 import Proof, ProvingKey
from cuzk.prover.session import Prover
from cuzk.setup import Secrets, insecure_setup
from cuzk.vectors import Points, Scalars
from emulator import EmulatedMachine
from emulator.driver import FakeDriver, install

SECRETS = Secrets(tau=0xACE, alpha=0xBEE, beta=0xCAFE, delta=0xD00D, gamma=0xFADE)
CIRCUIT = chain(BN254, 5, public=2)
KEY = cache(lambda: insecure_setup(CIRCUIT.matrices(), SECRETS))
R, S = 2**200 + 17, 2**240 + 99


class FailingMachine(EmulatedMachine):
    """The allocation or the launch before which ``allocs`` or ``launches_left`` come to 0 fails, and only that.

    On whichever stream: the first machine counts.
    """

    allocs = launches_left = 0
    _main: FailingMachine

    def alloc(self, nbytes: int) -> Memory:
        self._main.allocs -= 1
        if self._main.allocs == 0:
            raise OutOfMemory(f"{self.name}: asked for {nbytes} bytes: this one fails")
        return super().alloc(nbytes)

    def launch(
        self, unit: Unit, kernel: str, blocks: int, threads: int, *args: Memory | int, shared: int = 0
    ) -> None:  # fmt: skip
        self._main.launches_left -= 1
        if self._main.launches_left == 0:
            raise KernelError(f"{self.name}: kernel {kernel}: this one fails")
        super().launch(unit, kernel, blocks, threads, *args, shared=shared)


@contextmanager
def prover_on(machine: EmulatedMachine) -> Iterator[Prover]:
    backend = CudaBackend(BN254, machine)
    with Prover(KEY(), circuit=CIRCUIT.matrices(), device=backend, insecure_key=True) as prover:
        yield prover


def proved(prover: Prover) -> bytes:
    result = prover.prove_insecure(CIRCUIT.witness(), R, S)
    assert result.report.retries == 0
    return encoded(result.proof)


def encoded(proof: Proof) -> bytes:
    return b"".join(points.words.tobytes() for points in vars(proof).values())


@cache
def expected() -> bytes:
    with Prover(KEY(), circuit=CIRCUIT.matrices(), device="cpu", insecure_key=True) as prover:
        return proved(prover)


def points_of(key: ProvingKey) -> list[Points]:
    return [key.a.points, key.b_g1.points, key.b_g2.points, key.l.points, key.h]


def counted(what: str) -> int:
    """Allocations or launches of a prover's second proof."""
    machine = FailingMachine()
    with prover_on(machine) as prover:
        proved(prover)
        setattr(machine, what, 0)
        proved(prover)
        return -int(getattr(machine, what))


def fails_at(what: str, number: int, kind: type[BackendError]) -> bool:
    """Is it an error that one step fails? The proof is right otherwise, and so is the next one."""
    machine = FailingMachine()
    with prover_on(machine) as prover:
        proved(prover)
        gc.collect()
        base, failed = machine.used, False
        setattr(machine, what, number)
        try:
            assert proved(prover) == expected()
        except kind as error:
            assert "this one fails" in str(error)  # noqa: PT017 - not all of them fail
            failed = True
        assert getattr(machine, what) <= 0
        gc.collect()
        assert machine.used == base
        assert proved(prover) == expected()
        gc.collect()
        assert machine.used == base
    return failed


PARTS = [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 30))]


@pytest.mark.parametrize("part", PARTS)
def test_an_allocation_fails(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum is cut into chunks, down to single points; everything else ends the proof."""
    monkeypatch.setattr(msm, "FEWEST", 1)
    total = counted("allocs")
    assert total > 50
    failed = [
        fails_at("allocs", number, OutOfMemory) for number in range(1 + part, total + 1, len(PARTS))
    ]
    assert not all(failed)  # a sum goes on in shorter chunks


@pytest.mark.parametrize("part", PARTS)
def test_a_launch_fails(part: int) -> None:
    total = counted("launches_left")
    assert total > 50
    steps = range(1 + part, total + 1, len(PARTS))
    failed = [fails_at("launches_left", number, KernelError) for number in steps]
    assert any(failed)  # the witness's check alone is made again on the CPU


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_amount_of_memory(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From too little for the key to enough for everything."""
    monkeypatch.setattr(msm, "FEWEST", 1)
    limits = range(1000 + 4000 * part, 3 << 19, 32000)
    outcomes = [proof_within(limit) for limit in limits]
    assert outcomes[0] == "put"
    assert outcomes[-1] == "right"


def proof_within(limit: int) -> str:
    machine, backend = EmulatedMachine(limit), None
    try:
        backend = CudaBackend(BN254, machine)
        with Prover(KEY(), circuit=CIRCUIT.matrices(), device=backend, insecure_key=True) as prover:
            try:
                assert proved(prover) == expected()
                outcome = "right"
            except OutOfMemory:
                outcome = "proof"
    except OutOfMemory:
        outcome = "put"
    del backend
    gc.collect()
    assert machine.used == 0
    return outcome


def test_sums_that_nobody_collects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their pinned buffers serve again, and what is queued behind them is right."""
    driver = install(FakeDriver(), monkeypatch)
    backend = CudaBackend(BN254, device.open_machine(0, BN254))
    points, scalars = some_points(9), Scalars.from_ints(BN254, range(5, 14))
    bases, w = backend.put(points), backend.put(scalars)
    cpu = CpuBackend(BN254, 1)
    right = cpu.msm(cpu.put(points), cpu.put(scalars)).words.tobytes()
    assert backend.msm(bases, w).words.tobytes() == right
    backend.machine.finish()
    pinned, used = len(driver.pinned), driver.used
    for _ in range(5):
        backend.start_msm(bases, w)
        gc.collect()
    kept, dropped = backend.start_msm(bases, w), backend.start_msm(bases, w)
    del dropped
    assert backend.msm(bases, w).words.tobytes() == right
    assert kept().words.tobytes() == right
    assert len(driver.pinned) == pinned + 1
    backend.machine.finish()
    assert driver.used == used


def test_a_sum_collected_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same again, and later sums do not share a buffer because of it."""
    install(FakeDriver(), monkeypatch)
    backend = CudaBackend(BN254, device.open_machine(0, BN254))
    cpu = CpuBackend(BN254, 1)
    points = some_points(3)
    bases = backend.put(points)
    vectors = [Scalars.from_ints(BN254, [k, 2, 3]) for k in (1, 7, 9)]
    right = [cpu.msm(cpu.put(points), cpu.put(v)).words.tobytes() for v in vectors]
    first, *others = [backend.put(v) for v in vectors]
    collect = backend.start_msm(bases, first)
    assert [collect().words.tobytes() for _ in range(2)] == [right[0]] * 2
    started = [backend.start_msm(bases, v) for v in others]
    assert [sum_().words.tobytes() for sum_ in started] == right[1:]


def some_points(n: int) -> Points:
    cpu = CpuBackend(BN254, 1)
    one = cpu.put(Points.from_affine(BN254, "g1", [BN254.g1]))
    return Points.concatenate(
        [cpu.msm(one, cpu.put(Scalars.from_ints(BN254, [k + 2]))) for k in range(n)]
    )


def test_a_second_key_on_the_same_backend(curve: Curve) -> None:
    """Its points find room beside the first one's, and the first one's sums are not cut to its length."""
    machine = EmulatedMachine(64 << 20)
    backend, provers, expected_proofs = CudaBackend(curve, machine), [], []
    circuits = [chain(curve, 40), chain(curve, 3)]
    for circuit in circuits:
        matrices = circuit.matrices()
        key = insecure_setup(matrices, SECRETS)
        before, used = backend.resident_bytes(), machine.used
        with Prover(key, circuit=matrices, device="cpu", insecure_key=True) as prover:
            expected_proofs.append(encoded(prover.prove_insecure(circuit.witness(), R, S).proof))
        provers.append(Prover(key, circuit=matrices, device=backend, insecure_key=True))
        points = sum(query.words.nbytes for query in points_of(key))
        assert backend.resident_bytes() - before > points
        assert machine.used - used > points

    def sums_of_first() -> int:
        machine.launches.clear()
        result = provers[0].prove_insecure(circuits[0].witness(), R, S)
        assert (encoded(result.proof), result.report.retries) == (expected_proofs[0], 0)
        return sum(kernel == "accumulate_slices" for kernel, _, _ in machine.launches)

    alone = sums_of_first()
    second = provers[1].prove_insecure(circuits[1].witness(), R, S)
    assert encoded(second.proof) == expected_proofs[1]
    assert alone == sums_of_first() == 5
