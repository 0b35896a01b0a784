"""Vectors that are staged: what arrives, what waits for what, and that nothing stays locked."""

from __future__ import annotations

import gc
import mmap
import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.backends.cuda import CudaBackend, device
from cuzk.backends.cuda.pinning import MARGIN, Pinning
from cuzk.backends.cuda.transfers import CHOICES, Transfers
from cuzk.curves import BN254
from cuzk.errors import FormatError, KernelError, PinningRefused
from cuzk.vectors import Points, Scalars
from emulator import EmulatedMachine
from emulator.driver import FakeDriver, install
from until import PATIENCE

R = BN254.r
N = 512  # 16 KiB: whole pages wherever they begin
WAYS = [
    Transfers(vectors=vectors, pinning=pinning)
    for vectors, pinning in (("ahead", "always"), ("ahead", "never"), ("inside", "auto"))
]


def ident(transfers: Transfers) -> str:
    return f"{transfers.vectors}-{transfers.pinning}"


@pytest.fixture(params=[0, 5, 6], ids=lambda seed: f"seed{seed}")
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(FakeDriver(eager=request.param), monkeypatch)


def opened(transfers: Transfers) -> CudaBackend:
    return CudaBackend(BN254, device.open_machine(0, BN254), transfers=transfers)


def values(seed: int, n: int = N) -> list[int]:
    return [pow(seed, i + 3, R) for i in range(n)]


def montgomery(x: list[int]) -> Scalars:
    return Scalars(BN254, Scalars.from_ints(BN254, x, montgomery=True).words.copy(), True)


def expect_nothing_left(driver: FakeDriver) -> None:
    """The thread that stages, too, which ends by itself when it has nothing to do."""
    for thread in threading.enumerate():
        if thread.name.startswith("staging"):
            thread.join(PATIENCE)
            assert not thread.is_alive()
    gc.collect()
    assert (driver.registered, driver.used, driver.pinned) == ({}, 0, {})
    assert driver.alive == dict.fromkeys(driver.alive, 0)
    assert driver.violations == []


@pytest.mark.parametrize("transfers", WAYS, ids=ident)
def test_what_is_staged_is_there(driver: FakeDriver, transfers: Transfers) -> None:
    """Used at once, settled later, consumed in between; the arrays change once they were settled."""
    backend = opened(transfers)
    a, b, c = (values(seed) for seed in (5, 7, 11))
    given = [montgomery(x) for x in (a, b, c)]
    buffers = [backend.stage(x) for x in given]
    first, second, third = buffers
    product = backend.pointwise(first, second, third, into=first)
    root = BN254.root_of_unity(N.bit_length() - 1)
    back = backend.ntt(backend.ntt(product, root, inverse=True), root)
    for buffer, scalars in zip(buffers, given, strict=True):
        backend.settle(buffer)
        scalars.words[:] = 0
    assert driver.registered == {}
    result = backend.get(back)
    assert isinstance(result, Scalars)
    assert result.ints() == [(x * y - z) % R for x, y, z in zip(a, b, c, strict=True)]
    assert backend.notes() == []
    del backend, buffers, buffer, product, back, first, second, third
    expect_nothing_left(driver)


@pytest.mark.parametrize("transfers", WAYS, ids=ident)
@pytest.mark.parametrize("used", [False, True])
def test_a_scalar_that_is_not_below_r(driver: FakeDriver, transfers: Transfers, used: bool) -> None:
    """Found also where the vector was consumed and overwritten before it was settled."""
    backend = opened(transfers)
    scalars = montgomery(values(3))
    scalars.words[77] = 2**64 - 1
    other, buffer = backend.stage(montgomery([0] * N)), backend.stage(scalars)
    if used:
        backend.pointwise(other, buffer, into=buffer)
        backend.machine.finish()
    with pytest.raises(FormatError, match=r"scalar 77: expected a value below"):
        backend.settle(buffer)
    backend.settle(buffer)
    backend.settle(other)
    assert driver.registered == {}
    del backend, buffer, other
    expect_nothing_left(driver)


@pytest.mark.parametrize("transfers", WAYS, ids=ident)
def test_a_staged_vector_that_nobody_settles(driver: FakeDriver, transfers: Transfers) -> None:
    backend = opened(transfers)
    for seed in range(3, 6):
        buffer = backend.stage(montgomery(values(seed)))
    result = backend.get(buffer)
    assert isinstance(result, Scalars)
    assert result.ints() == values(5)
    del buffer
    gc.collect()
    assert driver.registered == {}
    del backend
    expect_nothing_left(driver)


def test_copies_wait_for_no_compute_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector is settled while the compute stream has not begun what it was given before."""
    driver = install(FakeDriver(), monkeypatch)
    for transfers in WAYS[:2]:
        backend = opened(transfers)
        x = backend.put(montgomery(values(3)))
        backend.machine.finish()
        backend.pointwise(x, x)
        before = len(driver.streams[0].waiting)
        assert before
        buffer = backend.stage(montgomery(values(7)))
        backend.settle(buffer)
        assert len(driver.streams[0].waiting) == before
        result = backend.get(buffer)
        assert isinstance(result, Scalars)
        assert result.ints() == values(7)
        del backend, x, buffer
        expect_nothing_left(driver)


def test_pages_that_cannot_be_locked_are_copied_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(FakeDriver(), monkeypatch)
    driver.pinnable = 0
    backend = opened(WAYS[0])
    for _ in range(2):
        result = backend.get(backend.put(montgomery(values(3))))
        assert isinstance(result, Scalars)
        assert result.ints() == values(3)
    (note,) = backend.notes()
    assert note.startswith(f"a vector ({32 * N} bytes): copied through buffers: cuda:0: ")
    assert backend.notes() == []


def test_points_in_host_memory_are_locked_while_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    driver = install(FakeDriver(), monkeypatch)
    one = Points.from_affine(BN254, "g1", [BN254.g1])
    points = Points(BN254, "g1", np.repeat(one.words, N, axis=0))
    for pinning in CHOICES["pinning"]:
        backend = opened(Transfers(points="host", pinning=pinning))
        first, second = backend.put(points), backend.put(points)
        assert backend.resident_bytes() == 0
        assert bool(driver.registered) == (pinning != "never")
        sums = [backend.msm(x, backend.put(Scalars.from_ints(BN254, values(3)))) for x in (first, second)]  # fmt: skip
        assert sums[0].affine() == sums[1].affine() == multiple_of_generator(sum(values(3)))
        del first
        gc.collect()
        assert bool(driver.registered) == (pinning != "never")
        del second
        gc.collect()
        assert driver.registered == {}
        del backend
        expect_nothing_left(driver)


def multiple_of_generator(k: int) -> object:
    from test_backend import multiple

    return multiple(BN254, "g1", k)


def test_rule_of_pinning() -> None:
    """Vectors only where all is to be locked; points wherever they may be; nothing without a whole page."""
    machine, told = EmulatedMachine(), list[str]()
    long, none = np.zeros(1 << 20, np.uint8), np.zeros(mmap.PAGESIZE, np.uint8)

    def pinned(how: str, array: NDArray[np.uint8]) -> tuple[bool, bool]:
        pinning = Pinning(how)
        one, other = pinning.vector, pinning.points
        return tuple(way(machine, array, told.append) is not None for way in (one, other))  # type: ignore[return-value]

    assert [pinned(how, long) for how in ("auto", "always", "never")] == [
        (False, True),
        (True, True),
        (False, False),
    ]
    assert pinned("always", none) == (False, False)
    assert told == []
    assert machine.pins == {}


def test_no_more_than_a_part_of_what_is_left_is_locked() -> None:
    machine, told = EmulatedMachine(), list[str]()
    pinning = Pinning("always", available=lambda: 100_000)
    first = pinning.vector(machine, np.zeros(40_000, np.uint8), told.append)
    assert first is not None
    assert pinning.locked_bytes == 40_000
    assert pinning.points(machine, np.zeros(40_000, np.uint8), told.append) is None
    assert "points in host memory (40000 bytes): copied through buffers: " in told[0]
    assert f"40000 bytes are locked, {(100_000 - 40_000) // MARGIN} more may be" in told[0]
    first.release()
    first.release()
    assert pinning.locked_bytes == 0
    machine.pinnable = False
    assert pinning.points(machine, np.zeros(40_000, np.uint8), told.append) is None
    assert (pinning.locked_bytes, machine.pins) == (0, {})
    with pytest.raises(PinningRefused):
        pinning.reserve(60_000)


def test_choices_are_checked() -> None:
    for name, known in CHOICES.items():
        for value in known:
            assert getattr(Transfers(**{name: value}), name) == value
        with pytest.raises(FormatError, match=f"transfers: {name}: expected .*, found 'some'"):
            Transfers(**{name: "some"})


def test_a_copy_that_fails_is_said_where_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(FakeDriver(), monkeypatch)
    for transfers in WAYS[:2]:
        backend = opened(transfers)
        driver.fail["cuMemcpyHtoDAsync"] = "INVALID_VALUE"
        with pytest.raises(KernelError, match="INVALID_VALUE"):
            backend.put(montgomery(values(3)))
        gc.collect()
        assert driver.registered == {}
        result = backend.get(backend.put(montgomery(values(5))))
        assert isinstance(result, Scalars)
        assert result.ints() == values(5)
        del backend
        expect_nothing_left(driver)
