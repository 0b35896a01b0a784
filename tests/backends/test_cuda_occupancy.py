"""What takes a card's memory, on a stand-in for the driver and for NVML."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.device import open_card
from cuzk.backends.cuda.occupancy import Occupancy, ProcessMemory
from emulator.driver import FakeDriver, install
from emulator.nvml import FakeNvml

GPU = "GPU-00010203"


def test_a_pool_is_nobodys_overhead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Used or not; every byte of the card is somebody's, or free."""
    driver = install(FakeDriver(memory=1 << 20), monkeypatch)
    driver.context, driver.others = 1000, 200_000
    card = open_card(0)
    card.enter()
    machine = CudaMachine(card)
    held = machine.alloc(4096)
    for _ in range(2):
        found = card.occupancy()
        assert (found.own, found.others, found.pool) == (1000, 200_000, 4096)
        assert found.free + found.pool + 201_000 == found.total == 1 << 20
        del held
        machine.finish()
        held = machine.alloc(16)
    assert held.nbytes == 16
    driver.others = 0
    assert card.occupancy().others == 0


def test_numbers_of_two_moments_make_none_below_zero() -> None:
    """Somebody else freed, or this process took, between two questions."""
    assert Occupancy(1000, 900, 200, 150).own == 0
    assert Occupancy(1000, 900, 200, 150).others == 0
    assert Occupancy(1000, 300, 100, 900).own == 600
    assert Occupancy(1000, 300, 100, 900).others == 0
    assert Occupancy(1000, 300, 100, None).own is None
    assert Occupancy(1000, 300, 100, None).others == 600


class Rows:
    """NVML with these processes, or an error."""

    NvmlError = FakeNvml.NvmlError

    def __init__(self, *rows: tuple[int, int], error: str = "") -> None:
        self.rows, self.error = rows, error

    def init_v2(self) -> None:
        if self.error == "init_v2":
            raise RuntimeError("libnvidia-ml.so.1: no such file")

    def device_get_handle_by_uuid(self, uuid: str) -> str:
        if self.error == "handle":
            raise self.NvmlError("Not Found")
        return uuid

    def device_get_compute_running_processes_v3(self, handle: str) -> list[Any]:
        assert handle == GPU
        if self.error == "rows":
            raise self.NvmlError("Not Supported")
        return [SimpleNamespace(pid=pid, used_gpu_memory=n) for pid, n in self.rows]


def test_what_nvml_knows_of_this_process() -> None:
    me = os.getpid()
    assert ProcessMemory(Rows((me + 1, 7), (me, 55)), GPU).nbytes() == 55
    assert ProcessMemory(Rows((me + 1, 7)), GPU).nbytes() is None
    assert ProcessMemory(Rows((me, 2**64 - 1)), GPU).nbytes() is None  # as under WSL
    assert ProcessMemory(None, GPU).nbytes() is None
    for error in ("init_v2", "handle", "rows"):
        assert ProcessMemory(Rows((me, 55), error=error), GPU).nbytes() is None
