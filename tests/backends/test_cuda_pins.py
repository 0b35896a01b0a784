"""Pinned pages over the stand-in driver: what is locked, what copies need it, and that all of it is let go."""

from __future__ import annotations

import gc
import mmap
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.backends.cuda.cache import Cache
from cuzk.backends.cuda.card import Card
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.pins import PORTABLE, READ_ONLY
from cuzk.errors import KernelError, PinningRefused
from emulator.driver import FakeDriver

PAGE = mmap.PAGESIZE


@pytest.fixture(params=[0, 3])  # lazy, and running ahead
def driver(request: pytest.FixtureRequest) -> FakeDriver:
    return FakeDriver(memory=1 << 22, eager=request.param)


@pytest.fixture
def machine(driver: FakeDriver, tmp_path: Path) -> CudaMachine:
    return CudaMachine(Card(driver, 0, Cache(tmp_path)))


def pages(count: int, *, offset: int = 0) -> NDArray[np.uint8]:
    """``offset`` bytes behind the start of a page, ``count`` pages long, random."""
    whole = np.random.default_rng(count).integers(0, 256, (count + 2) * PAGE, np.uint8)
    start = -whole.ctypes.data % PAGE + offset
    return whole[start : start + count * PAGE]


@pytest.mark.parametrize("offset", [0, 1, 17, PAGE - 1])
@pytest.mark.parametrize(("first", "last"), [(0, 4 * PAGE), (5, 4 * PAGE - 5), (0, 3), (PAGE, 2 * PAGE), (3 * PAGE + 1, 4 * PAGE)])  # fmt: skip
def test_parts_of_pinned_arrays_are_sent(
    machine: CudaMachine, driver: FakeDriver, offset: int, first: int, last: int
) -> None:
    array = pages(4, offset=offset)
    pin = machine.pin(array)
    assert sum(driver.registered.values()) == machine.card.pins.nbytes
    assert machine.card.pins.nbytes == (4 if offset == 0 else 3) * PAGE
    memory, found = machine.alloc(last - first), np.zeros(last - first, np.uint8)
    machine.send(memory, array[first:last])
    machine.download(memory, found)
    assert np.array_equal(found, array[first:last])
    pin.release()
    pin.release()
    assert (driver.registered, machine.card.pins.nbytes) == ({}, 0)
    with pytest.raises(KernelError, match="expected an array that is pinned"):
        machine.send(memory, array[first:last])


def test_letting_go_waits_for_copies(driver: FakeDriver, tmp_path: Path) -> None:
    """Of all streams, though nobody waited: an error or an interrupt came first."""
    machine = CudaMachine(Card(driver, 0, Cache(tmp_path)))
    for _ in range(5):
        array = pages(3)
        expected = array.copy()
        pin = machine.pin(array)
        streams = [machine, machine.beside("copy"), machine.beside("other")]
        memory = [stream.alloc(array.nbytes) for stream in streams]
        for stream, to in zip(streams, memory, strict=True):
            stream.send(to, array)
        pin.release()
        array[:] = 0
        for stream, to in zip(streams, memory, strict=True):
            found = np.zeros(array.nbytes, np.uint8)
            stream.download(to, found)
            assert np.array_equal(found, expected)
    assert driver.violations == []


def test_pages_let_go_too_early_are_noticed(machine: CudaMachine, driver: FakeDriver) -> None:
    """By the driver: the copies were not ours to wait for."""
    array = pages(3)
    pin = machine.pin(array)
    memory, stream = machine.alloc(array.nbytes), machine._stream.handle
    driver._dice = None
    driver.cuMemcpyHtoDAsync(memory.address, array.ctypes.data, array.nbytes, stream)
    pin.release()
    machine.finish()
    with pytest.raises(KernelError, match="ILLEGAL_ADDRESS"):
        machine.finish()
    assert driver.violations == [f"copy of {3 * PAGE} bytes from pages that were let go"]


def test_one_array_many_holders(machine: CudaMachine, driver: FakeDriver) -> None:
    """Also parts of it, which need no pages of their own; the last one unlocks."""
    array = pages(4, offset=9)
    pins = [machine.pin(array), machine.pin(array), machine.pin(array[: PAGE + 5]), machine.pin(array[:3])]  # fmt: skip
    assert driver.calls.count("cuMemHostRegister") == 1
    for pin in pins[:-1]:
        pin.release()
        pin.release()
        assert machine.card.pins.nbytes == 3 * PAGE
    memory = machine.alloc(3)
    machine.send(memory, array[:3])
    del pin, pins
    gc.collect()
    assert driver.registered == {}


def test_refused(machine: CudaMachine, driver: FakeDriver) -> None:
    """With the reason; nothing of it stays, and the device is as usable as before."""
    with pytest.raises(PinningRefused, match="cuda:0: 4095 bytes hold no whole page"):
        machine.pin(pages(1)[1:])
    driver.pinnable = 2 * PAGE
    array = pages(3)
    with pytest.raises(PinningRefused, match="cuda:0: cuMemHostRegister: OUT_OF_MEMORY"):
        machine.pin(array)
    assert machine.card.pins.nbytes == 0
    with pytest.raises(KernelError, match="expected a C-contiguous array"):
        machine.pin(array[::2])
    pin = machine.pin(array[: 2 * PAGE])
    with pytest.raises(PinningRefused, match="ALREADY_REGISTERED"):
        machine.pin(array[PAGE:])  # overlaps: neither a part nor apart
    with pytest.raises(KernelError, match="expected an array that is pinned"):
        machine.send(machine.alloc(array.nbytes), array)
    pin.release()
    assert machine.card.driver.lost == ""
    assert driver.alive["registered"] == 0


def test_a_lost_card_is_no_refusal(machine: CudaMachine, driver: FakeDriver) -> None:
    driver.fault("cuMemHostRegister", 1, "ILLEGAL_ADDRESS")
    with pytest.raises(KernelError, match="the device is lost"):
        machine.pin(pages(2))


def test_read_only_arrays(
    machine: CudaMachine, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is told; one that cannot do it is asked for the usual."""
    flags: list[int] = []
    register = driver._cuMemHostRegister

    def noted(address: int, nbytes: int, flag: int) -> object:
        flags.append(flag)
        return register(address, nbytes, flag)

    monkeypatch.setattr(driver, "_cuMemHostRegister", noted)
    array = pages(2)
    array.flags.writeable = False
    machine.pin(array).release()
    driver.fault("cuMemHostRegister", 1, "NOT_SUPPORTED")
    machine.pin(array).release()
    assert flags == [PORTABLE | READ_ONLY, PORTABLE]
    assert driver.registered == {}


@pytest.mark.parametrize("function", ["cuMemHostRegister", "cuMemcpyHtoDAsync", "cuEventRecord", "cuEventSynchronize", "cuMemHostUnregister"])  # fmt: skip
@pytest.mark.parametrize("after", [False, True])
def test_interrupted(machine: CudaMachine, driver: FakeDriver, function: str, after: bool) -> None:
    """Anywhere between pinning and letting go: no page stays locked, and no copy loses its pages."""
    array = pages(3)
    expected, found = array.copy(), np.zeros(array.nbytes, np.uint8)
    memory = machine.alloc(array.nbytes)
    machine.finish()

    def work() -> None:
        pin = machine.pin(array)
        machine.send(memory, array)
        pin.release()

    driver.fault(function, 1 if function != "cuEventRecord" else 3, KeyboardInterrupt, after=after)
    with pytest.raises(KeyboardInterrupt):
        work()
    gc.collect()
    assert (driver.registered, driver.violations) == ({}, [])
    work()
    array[:] = 0
    machine.download(memory, found)
    assert np.array_equal(found, expected)
    assert (driver.registered, driver.violations) == ({}, [])


def test_many_threads(machine: CudaMachine, driver: FakeDriver) -> None:
    """Two lanes pin, send from and let go of the same arrays, as they come."""
    arrays = [pages(2, offset=k) for k in range(3)]
    failures: list[BaseException] = []

    def lane(seed: int) -> None:
        try:
            stream = machine.beside(f"copy {seed}")
            memory = stream.alloc(2 * PAGE)
            found = np.zeros(2 * PAGE, np.uint8)
            for k in np.random.default_rng(seed).integers(0, 3, 20):
                pin = stream.pin(arrays[k])
                stream.send(memory, arrays[k])
                pin.release()
                stream.download(memory, found)
                assert np.array_equal(found, arrays[k])
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=lane, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (driver.registered, driver.violations) == ({}, [])
