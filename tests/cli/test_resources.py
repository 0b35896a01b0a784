"""What a daemon takes of a machine: devices by name, limits of memory, what is kept for CRITICAL jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from cuzk.backends.cuda.device import ordinal_of
from cuzk.catalogue.catalogue import Catalogue
from cuzk.cli import resources
from cuzk.cli.resources import headroom, memory_limits, usable_devices
from cuzk.config import MemorySettings
from cuzk.engine.catalogue import CircuitEntry, Needs
from cuzk.engine.limits import host_limit, host_memory
from cuzk.errors import DeviceUnavailable

GIB = 1 << 30
Gpus = Callable[[str], None]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Gpus:
    """A driver that is there; what the process that counts does."""
    monkeypatch.setattr(resources, "DRIVER", tmp_path)
    return lambda code: monkeypatch.setattr(resources, "COUNT", code)


def test_auto_is_every_gpu(driver: Gpus) -> None:
    driver("print(3)")
    assert usable_devices(("auto",), no_gpu=False) == ["cuda:0", "cuda:1", "cuda:2"]
    assert usable_devices(("auto",), no_gpu=True) == ["cpu"]
    assert usable_devices(("cuda:1", "cuda", "cpu"), no_gpu=False) == [
        "cuda:1",
        "cuda:0",
        "cuda:2",
        "cpu",
    ]


def test_without_a_driver_it_is_the_cpu(
    driver: Gpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver("print(3)")
    monkeypatch.setattr(resources, "DRIVER", tmp_path / "none")
    assert usable_devices(("auto",), no_gpu=False) == ["cpu"]


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "import os; os.abort()"])
def test_a_driver_that_does_not_work_is_said(
    driver: Gpus, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver(code)
    assert usable_devices(("auto",), no_gpu=False) == ["cpu"]
    assert "no GPU can be used" in caplog.text
    with pytest.raises(DeviceUnavailable, match="cuzk doctor"):
        usable_devices(("cuda",), no_gpu=False)


def test_a_gpu_that_must_not_be_used(driver: Gpus) -> None:
    driver("print(3)")
    for name in ("cuda", "cuda:1"):
        with pytest.raises(DeviceUnavailable, match=f"CUZK_NO_GPU forbids {name}"):
            usable_devices((name,), no_gpu=True)


def test_25_a_gpu_is_its_number_however_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fault 25: work went to another GPU than was meant. By another name than its memory's a GPU had no limit, and two
    names of one GPU were two workers."""
    answer = "import sys; print({'GPU-1011': 1, 'GPU-2021': 0}[sys.argv[1]])"
    monkeypatch.setattr(resources, "NUMBER", answer)
    asked = ("cuda:GPU-1011", "cuda:001", "cuda:GPU-2021", "cpu", "cuda:0")
    assert usable_devices(asked, no_gpu=False) == ["cuda:1", "cuda:0", "cpu"]


def test_25_a_gpu_that_is_not_there_is_told_as_the_command_line_does() -> None:
    with pytest.raises(DeviceUnavailable) as here:
        ordinal_of("GPU-abcd")
    with pytest.raises(DeviceUnavailable) as there:
        usable_devices(("cuda:GPU-abcd",), no_gpu=False)
    assert str(there.value) == f"devices: cuda:GPU-abcd: {here.value}"


def test_limits_are_the_settings_or_the_machines() -> None:
    said = MemorySettings.model_validate({"host": "8GiB", "pinned": "1GiB", "device": "20GiB"})
    expected = {"host": 8 * GIB, "pinned": GIB, "cuda:0": 20 * GIB, "cuda:1": 20 * GIB}
    assert memory_limits(said, ["cuda:0", "cuda:1"]) == expected
    found = memory_limits(MemorySettings.model_validate({"margin": "1GiB"}), ["cpu"])
    assert found["host"] == host_limit(host_memory(), GIB)
    assert 0 <= found["pinned"] <= found["host"] // 2
    assert set(found) == {"host", "pinned"}


class Circuits:
    """A PoRep, a WinningPoSt, and one without its key."""

    def entries(self) -> list[CircuitEntry]:
        return [
            CircuitEntry("porep", "porep-c2", "p"),
            CircuitEntry("winning", "winning-post", "w"),
            CircuitEntry("gone", "winning-post", "g", fault="not there"),
        ]

    def needs(self, circuit: str, device: str) -> Needs:
        assert circuit == "winning"
        return Needs(key={"host": 100, device: 30}, partition={"host": 20, device: 5})


def test_a_winning_posts_room_is_kept_but_never_more_than_half() -> None:
    circuits = cast(Catalogue, Circuits())
    devices = ["cuda:0", "cuda:1"]
    found = headroom(MemorySettings(), circuits, devices, {"host": 1000, "cuda:1": 40})
    assert found == {"host": 120, "cuda:0": 35, "cuda:1": 20}
    said = MemorySettings.model_validate({"headroom": "1MiB"})
    assert headroom(said, circuits, devices, {"host": 1000}) == {"host": 1 << 20}
