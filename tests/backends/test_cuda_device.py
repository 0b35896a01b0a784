"""The machine over the CUDA driver, with a driver that is as lazy as it may be (tests/emulator/driver.py)."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.backends.cuda import cuda_machine, device, kernels, staging
from cuzk.backends.cuda.cache import Cache
from cuzk.backends.cuda.card import Card
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.machine import Memory, Unit
from cuzk.curves import BLS12_381, Curve
from cuzk.errors import DeviceUnavailable, KernelError, OutOfMemory
from cuzk.vectors import Scalars
from emulator.driver import STATIC_SHARED, FakeDriver, install

VECTOR = Unit("vector.cu", BLS12_381)


QUEUEING = ["cuMemcpyHtoDAsync", "cuEventRecord", "cuEventSynchronize"]
MAKING = ["cuEventCreate", "cuMemAllocHost"]


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver(memory=1 << 22)


@pytest.fixture
def card(driver: FakeDriver, tmp_path: Path) -> Card:
    card = Card(driver, 0, Cache(tmp_path))
    driver.units[kernels.build(VECTOR, 90, card.cache)] = VECTOR
    return card


@pytest.fixture
def machine(card: Card) -> CudaMachine:
    return CudaMachine(card)


def test_what_a_card_is(card: Card) -> None:
    facts = card.facts
    assert (facts.name, facts.title, facts.architecture) == ("cuda:0", "Emulated GPU", 90)
    assert facts.uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert (facts.processors, facts.total_bytes, facts.driver) == (2, 1 << 22, (13, 0))


def test_kernel_over_the_driver(machine: CudaMachine) -> None:
    curve, n = BLS12_381, 300
    a, b = ([pow(seed, i + 2, curve.r) for i in range(n)] for seed in (3, 5))
    memory = []
    for row in (a, b):
        words = Scalars.from_ints(curve, row, montgomery=True).words.copy()
        memory.append(machine.alloc(words.nbytes))
        machine.upload(memory[-1], words)
        words[:] = 0  # the array may change as soon as upload returns
    out = machine.alloc(memory[0].nbytes)
    machine.launch(VECTOR, "pointwise", 2, 128, *memory, 0, 0, out, n)
    del memory  # stream-ordered: the kernel still has it
    gc.collect()
    found = np.empty((n, 4), np.uint64)
    machine.download(out, found)
    expected = [x * y % curve.r for x, y in zip(a, b, strict=True)]
    assert Scalars(curve, found, montgomery=True).ints() == expected


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinned memory of 256 to 1024 bytes."""
    for name, value in (("LEAST_BYTES", 256), ("MOST_BYTES", 1024), ("SHORTEST_PIECE", 96)):
        monkeypatch.setattr(staging, name, value)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("eager", [0, 1, 2, 3])
def test_copies_through_pinned_memory(
    eager: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lengths in any order, so that pieces lie anywhere in the circle; streams run ahead as they like."""
    monkeypatch.setattr(staging, "COPIERS", threads)
    driver, random = install(FakeDriver(eager=eager), monkeypatch), np.random.default_rng(eager)
    machine = CudaMachine(device.open_card(0))
    lengths = [0, 1, 95, 700, 97, 1023, 1024, 1025, 300, 54321, 2, 2000, 96, 8192]
    rows = [random.integers(0, 256, n, np.uint8) for n in [*lengths, *random.permutation(lengths)]]
    memory = [machine.alloc(len(row)) for row in rows]
    for to, row in zip(memory, rows, strict=True):
        source = row.copy()
        machine.upload(to, source)
        source[:] = 0  # it has been read
    for to, row in zip(memory, rows, strict=True):
        found = np.zeros(len(row), np.uint8)
        machine.download(to, found)
        assert np.array_equal(found, row)
    assert [len(array) for array in driver.pinned.values()] == [1024]
    del machine, memory, to
    gc.collect()
    assert driver.alive["pinned"] == driver.alive["events"] == 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("call", "what", "after"),
    [
        *((call, "OUT_OF_MEMORY", False) for call in (*QUEUEING, *MAKING)),
        *((call, KeyboardInterrupt, False) for call in (*QUEUEING, *MAKING)),
        *((call, KeyboardInterrupt, True) for call in (*QUEUEING, *MAKING)),
    ],
)
def test_a_copy_that_breaks_off(
    call: str, what: type | str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever that is, the next copy is right, and the array is nobody's."""
    broken = 0
    for nth in range(1, 12):
        driver = install(FakeDriver(eager=nth), monkeypatch)
        machine = CudaMachine(device.open_card(0))
        source, found = np.arange(6000).astype(np.uint8), np.zeros(6000, np.uint8)
        memory, other = machine.alloc(6000), machine.alloc(6000)
        machine.upload(other, source[:200])
        held = sys.getrefcount(source)
        driver.fault(call, nth, what, after=after)
        try:
            machine.upload(memory, source)
        except (OutOfMemory, KeyboardInterrupt):
            broken += 1
        driver._faults.clear()
        gc.collect()
        assert sys.getrefcount(source) == held
        machine.upload(other, source[::-1].copy())
        machine.download(other, found)
        assert np.array_equal(found, source[::-1])
        del machine, memory, other
        gc.collect()
        assert driver.alive["pinned"] == driver.alive["events"] == 0
    assert broken


def test_results_are_fetched_while_work_is_queued(machine: CudaMachine, driver: FakeDriver) -> None:
    """Each as it was at its place in the stream; a buffer serves again after its result was taken."""
    waits, found = [], np.zeros((3, 100), np.uint8)
    for i, row in enumerate(found):
        memory = machine.alloc(100)
        machine.fill(memory, 5 + i)
        waits.append(machine.fetch(memory, row))
        machine.fill(memory, 99)
        del memory
    for wait in reversed(waits):
        wait()
    assert found.tolist() == [[5] * 100, [6] * 100, [7] * 100]
    pinned = len(driver.pinned)
    memory = machine.alloc(100)
    machine.fill(memory, 8)
    machine.fetch(memory, found[0])()
    assert (found[0] == 8).all()
    assert len(driver.pinned) == pinned
    with pytest.raises(
        KernelError, match=r"cuda: fetch: expected at most 262144 bytes, found 262145"
    ):
        machine.fetch(machine.alloc(262145), np.empty(262145, np.uint8))


def test_fill_and_part(machine: CudaMachine) -> None:
    memory = machine.alloc(64)
    machine.fill(memory, 7)
    machine.fill(memory.part(16, 32), 9)
    machine.fill(memory.part(64, 0), 1)
    found = np.empty((4, 2), np.uint64)
    machine.download(memory, found)
    assert found.tobytes() == b"\7" * 16 + b"\t" * 32 + b"\7" * 16


def test_memory_goes_back(machine: CudaMachine, driver: FakeDriver) -> None:
    before = machine.free_bytes()
    memory = machine.alloc(1 << 20)
    part = memory.part(0, 8)
    del memory
    gc.collect()
    machine.finish()
    assert driver.used == 1 << 20
    assert machine.free_bytes() == before - (1 << 20)
    del part
    gc.collect()
    machine.finish()
    assert driver.used == 0
    assert machine.free_bytes() == before


def test_out_of_memory_leaves_the_device_usable(machine: CudaMachine) -> None:
    with pytest.raises(OutOfMemory, match=r"cuda:0: asked for 8388608 bytes, 4194304 of 4194304"):
        machine.alloc(1 << 23)
    assert machine.alloc(1 << 21).nbytes == 1 << 21


def test_memory_that_is_being_freed_counts(machine: CudaMachine) -> None:
    for _ in range(5):
        machine.fill(machine.alloc(3 << 20), 1)  # dropped at once, freed when the stream gets there


def test_what_another_process_holds_is_not_free(machine: CudaMachine, driver: FakeDriver) -> None:
    driver.others = 3 << 20
    assert machine.free_bytes() == 1 << 20
    with pytest.raises(OutOfMemory):
        machine.alloc(2 << 20)


def test_everything_is_given_back_at_the_end(card: Card, driver: FakeDriver) -> None:
    machine = CudaMachine(card)
    memory = machine.alloc(100)
    machine.upload(memory, np.arange(100, dtype=np.uint8))
    assert machine.milliseconds(machine.mark(), machine.mark()) >= 0
    del machine
    gc.collect()
    assert driver.streams  # its memory lives
    assert driver.used == 100
    del memory
    gc.collect()
    assert (driver.streams, driver.pinned, driver.events, driver.used, driver.reserved) == ([], {}, set(), 0, 0)  # fmt: skip


def test_dropped_in_a_ring(card: Card, driver: FakeDriver) -> None:
    machine = CudaMachine(card)
    ring: list[object] = [machine.alloc(100), machine, machine.alloc(200), machine.mark()]
    ring.append(ring)
    del machine, ring
    gc.collect()
    assert (driver.streams, driver.events, driver.used) == ([], set(), 0)


def test_calls_from_other_threads(machine: CudaMachine) -> None:
    memory = machine.alloc(8)
    found = np.zeros(1, np.uint64)

    def work() -> None:
        machine.fill(memory, 1)
        machine.download(memory, found)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] == 0x0101010101010101


def test_sticky_error_says_so_and_stays(machine: CudaMachine, driver: FakeDriver) -> None:
    memory = machine.alloc(8)
    driver.fail["cuStreamSynchronize"] = "ILLEGAL_ADDRESS"
    with pytest.raises(KernelError, match=r"ILLEGAL_ADDRESS \(.*\); the device is lost"):
        machine.finish()
    with pytest.raises(KernelError, match="ILLEGAL_ADDRESS"):
        machine.fill(memory, 0)
    assert "cuStreamSynchronize: ILLEGAL_ADDRESS" in machine.card.driver.lost
    del memory  # nothing is raised where nobody could catch it


@pytest.mark.parametrize(
    ("call", "code", "expected"),
    [
        ("cuLaunchKernel", "LAUNCH_OUT_OF_RESOURCES", KernelError),
        ("cuMemcpyHtoDAsync", "INVALID_VALUE", KernelError),
        ("cuMemAllocHost", "OUT_OF_MEMORY", OutOfMemory),
        ("cuMemcpyHtoDAsync", "NOT_INITIALIZED", DeviceUnavailable),  # after a fork, say
    ],
)
def test_statuses(machine: CudaMachine, driver: FakeDriver, call: str, code: str, expected: type) -> None:  # fmt: skip
    row = np.zeros((1, 4), np.uint64)
    memory = machine.alloc(row.nbytes)
    driver.fail[call] = code
    with pytest.raises(expected, match=f"cuda:0: {call}: {code}"):
        upload_and_launch(machine, memory, row)
    assert machine.card.driver.lost == ""
    machine.upload(memory, row)


def upload_and_launch(machine: CudaMachine, memory: Memory, row: NDArray[np.uint64]) -> None:
    machine.upload(memory, row)
    machine.launch(VECTOR, "pointwise", 1, 32, memory, 0, 0, 0, memory, 1)


def test_wrong_launches(machine: CudaMachine) -> None:
    memory = machine.alloc(32)
    with pytest.raises(KernelError, match="kernel pointwise: expected 6 arguments, found 1"):
        machine.launch(VECTOR, "pointwise", 1, 32, memory)
    with pytest.raises(KernelError, match="NOT_FOUND"):
        machine.launch(VECTOR, "nothing", 1, 32, memory)
    machine.launch(VECTOR, "nothing", 0, 32)
    with pytest.raises(KernelError, match="expected a size to allocate, found -1"):
        machine.alloc(-1)
    with pytest.raises(KernelError, match="at most 32 bytes, found 64"):
        machine.upload(memory, np.zeros(8, np.uint64))


def test_much_shared_memory_is_asked_for(machine: CudaMachine, driver: FakeDriver) -> None:
    memory = machine.alloc(32)
    launch: Callable[[int], None] = lambda shared: machine.launch(  # noqa: E731
        VECTOR, "pointwise", 1, 32, memory, 0, 0, 0, memory, 0, shared=shared
    )
    unasked = (48 << 10) - STATIC_SHARED  # a block's static shared memory is part of its 48 KiB
    launch(unasked)
    assert "cuFuncSetAttribute" not in driver.calls
    for shared in (unasked + 1, 48 << 10, 100 << 10, 64 << 10, 100 << 10):
        launch(shared)
    machine.finish()
    assert driver.calls.count("cuFuncSetAttribute") == 3


def test_machine_comes_with_the_kernels_of_a_curve(
    driver: FakeDriver, curve: Curve, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(driver, monkeypatch)
    device.open_machine(0, curve)
    assert set(driver.units.values()) == set(kernels.units(curve))
    assert driver.calls.count("cuModuleLoadData") == len(driver.units)
    device.open_machine(0, curve)
    assert driver.calls.count("cuModuleLoadData") == len(driver.units)


def test_launches_have_room_for_so_many_arguments() -> None:
    with pytest.raises(KernelError, match=r"expected at most 32 arguments of a kernel, found 33"):
        cuda_machine._arguments.filled([0] * 33)
