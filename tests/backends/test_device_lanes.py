"""Lanes of one device over one residence: from two threads, on streams that run ahead, nothing may be missing."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from test_backend import random_matrix

from cuzk.backends import Backend, Buffer, Workload
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend, device
from cuzk.backends.cuda.transfers import Transfers
from cuzk.curves import BN254
from cuzk.errors import OutOfMemory
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Points, Scalars
from emulator import EmulatedMachine
from emulator.driver import FakeDriver, install

WIRES, LOG_N, TIMEOUT = 24, 5, 120


@dataclass(frozen=True)
class Key:
    """Something that stays: a matrix, a query over some wires, and one over all rows."""

    matrix: SparseMatrix
    some: Points
    wires: NDArray[np.uint32]
    all_rows: Points


@dataclass(frozen=True)
class Put:
    """The same on a backend."""

    matrix: Buffer
    some: Buffer
    all_rows: Buffer


def key() -> Key:
    cpu = CpuBackend(BN254, 1)
    one = cpu.put(Points.from_affine(BN254, "g1", [BN254.g1]))
    made = [cpu.msm(one, cpu.put(Scalars.from_ints(BN254, [k + 2]))) for k in range(1 << LOG_N)]
    points = Points.concatenate(made)
    some = Points(BN254, "g1", points.words[3:14])
    wires = np.arange(1, 23, 2, dtype=np.uint32)
    return Key(random_matrix(BN254, 20, WIRES), some, wires, points)


def put(backend: Backend, given: Key) -> Put:
    return Put(backend.put(given.matrix), backend.put(given.some), backend.put(given.all_rows))


def work(backend: Backend, there: Put, given: Key, seed: int) -> list[bytes]:
    """What a proof does: a product, an extension to a coset, a scaled product there, two sums."""
    root, shift = BN254.root_of_unity(LOG_N), BN254.coset_shift(LOG_N)
    witness = Scalars.from_ints(BN254, [pow(seed, i, BN254.r) for i in range(WIRES)])
    w = backend.stage(witness)
    a = backend.product(there.matrix, w, 1 << LOG_N)
    b = backend.pointwise(a, scale=7)
    a, b = backend.extend([a, b], root, shift)
    h = backend.pointwise(a, b, scale=seed, into=a)
    sums = [backend.start_msm(there.some, w, given.wires), backend.start_msm(there.all_rows, h)]
    backend.settle(w)
    return [h_sum().words.tobytes() for h_sum in sums] + [backend.get(h).words.tobytes()]


@pytest.fixture(scope="module")
def given() -> Key:
    return key()


@pytest.fixture(scope="module")
def expected(given: Key) -> list[list[bytes]]:
    cpu = CpuBackend(BN254, 1)
    return [work(cpu, put(cpu, given), given, seed) for seed in (3, 4, 5, 6)]


def from_threads(jobs: list[Callable[[], object]]) -> list[object]:
    found: list[object] = [None] * len(jobs)

    def run(i: int) -> None:
        try:
            found[i] = jobs[i]()
        except BaseException as error:
            found[i] = error.with_traceback(None)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    return found


SLOW = pytest.mark.slow


@pytest.mark.parametrize("points", ["auto", "host"])
@pytest.mark.parametrize(
    ("eager", "vectors"),
    [(0, "ahead"), (7, "ahead"), (8, "inside")]
    + [pytest.param(seed, "ahead", marks=SLOW) for seed in range(20, 40)],
)
def test_two_lanes_from_two_threads(
    eager: int,
    vectors: str,
    points: str,
    given: Key,
    expected: list[list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each puts something for both, and each is first to need something: maps, tables, constants."""
    driver = install(FakeDriver(eager=eager), monkeypatch)
    transfers = Transfers(vectors=vectors, points=points, pinning="always")
    prove_on_two_lanes(transfers, given, expected)
    gc.collect()
    assert driver.alive == dict.fromkeys(driver.alive, 0)
    assert driver.violations == []


def prove_on_two_lanes(transfers: Transfers, given: Key, expected: list[list[bytes]]) -> None:
    first = CudaBackend(BN254, device.open_machine(0, BN254), transfers=transfers)
    second = first.beside()
    there = Put(first.put(given.matrix), second.put(given.some), first.put(given.all_rows))
    assert first.resident_bytes() == second.resident_bytes()
    found = from_threads(
        [
            lambda: [work(first, there, given, seed) for seed in (3, 4)],
            lambda: [work(second, there, given, seed) for seed in (5, 6)],
        ]
    )
    assert found == [expected[:2], expected[2:]]
    assert first.notes() == second.notes() == []


def test_what_stays_is_there_once(given: Key, expected: list[list[bytes]]) -> None:
    """A second lane's proofs add nothing to what is resident, nor tables to the memory in use."""
    machine = EmulatedMachine()
    first = CudaBackend(BN254, machine)
    there = put(first, given)
    assert work(first, there, given, 3) == expected[0]
    resident, used = first.resident_bytes(), machine.used
    second, launches = first.beside(), len(machine.launches)
    assert work(second, there, given, 4) == expected[1]
    gc.collect()
    made = {kernel for kernel, _, _ in machine.launches[launches:]}
    assert "number_rows" not in made
    assert "first_twiddles" not in made
    assert second.resident_bytes() == first.resident_bytes() == resident
    constant = 256
    assert machine.used <= used + constant  # the factor of another seed
    del there
    gc.collect()
    assert first.resident_bytes() == 0


def test_a_lane_that_finds_no_memory_leaves_the_other(given: Key, expected: list[list[bytes]]) -> None:  # fmt: skip
    machine = EmulatedMachine()
    first = CudaBackend(BN254, machine)
    there, second = put(first, given), first.beside()
    assert work(first, there, given, 3) == expected[0]
    gc.collect()
    used, machine.limit = machine.used, machine.used + 100
    with pytest.raises(OutOfMemory):
        work(second, there, given, 4)
    gc.collect()
    assert machine.used == used
    machine.limit = 1 << 30
    assert work(first, there, given, 5) == expected[2]
    assert work(second, there, given, 6) == expected[3]


def test_lanes_follow_one_plan(given: Key) -> None:
    """Also those that were there before it; as many as fit, and one where they do not."""
    query = ("g1", len(given.all_rows))
    asked = Workload(LOG_N, WIRES, ((20, 40, 5),), (query,), lanes=2)
    machine = EmulatedMachine()
    first = CudaBackend(BN254, machine)
    second = first.beside()
    assert (first.lanes, second.lanes) == (1, 1)
    both = first.plan(asked)
    assert (first.lanes, second.lanes, first.beside().lanes) == (2, 2, 2)
    one = Workload(LOG_N, WIRES, ((20, 40, 5),), (query,))
    alone = first.plan(one)
    assert first.lanes == 1
    assert alone < both
    machine.limit = machine.used + (both + alone) // 2
    assert first.notes() == []
    assert first.plan(asked) <= machine.limit
    assert second.lanes == 1
    assert first.notes() == ["2 proofs at a time: the device's memory has room for 1"]


def test_points_without_room_stay_in_host_memory(given: Key) -> None:
    """As planned, as asked for, or because memory has gone to others: said in all cases but the second."""
    points, machine = given.some, EmulatedMachine()
    backend = CudaBackend(BN254, machine)
    backend.plan(Workload(LOG_N, WIRES, (), (("g1", len(points)),)))
    kept = backend.put(points)
    assert backend.resident_bytes() == points.words.nbytes
    assert backend.notes() == []
    assert isinstance(backend.put(given.all_rows).data.points, Points)  # type: ignore[attr-defined]
    told = "32 points in g1: they stay in host memory: the plan has no room for their 2048 bytes"
    assert backend.notes() == [told]
    del kept
    machine.limit = machine.used  # since the plan all has gone to others
    assert isinstance(backend.put(points).data.points, Points)  # type: ignore[attr-defined]
    (note,) = backend.notes()
    assert note.startswith("11 points in g1: they stay in host memory: cuda:emulated: asked for ")
    asked = CudaBackend(BN254, EmulatedMachine(), transfers=Transfers(points="host"))
    asked.put(points)
    assert asked.notes() == []


def test_a_timeline_is_all_lanes(given: Key) -> None:
    from cuzk.timeline import Timeline

    first = CudaBackend(BN254, EmulatedMachine())
    second, timeline = first.beside(), Timeline()
    first.timeline = timeline
    assert second.timeline is timeline
    second.put(given.some)
    assert second.machine.timeline is timeline
