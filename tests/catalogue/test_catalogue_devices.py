"""What a worker's device says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from served import catalogue_of

import cuzk.catalogue.devices as devices
from cuzk.backends.cuda import device
from cuzk.errors import DeviceUnavailable
from cuzk.prover.devices import thread_count
from emulator.driver import FakeDriver, install
from emulator.nvml import FakeNvml


def test_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Some CPU @ 1 GHz\n")
    found = catalogue_of().device("cpu")
    threads = thread_count(None)
    assert found.title == f"Some CPU @ 1 GHz, {threads} thread{'s' if threads > 1 else ''}"
    assert not found.total
    assert not found.free
    (tmp_path / "cpuinfo").unlink()
    assert catalogue_of().device("cpu").title.endswith(found.title.rpartition(", ")[2])


def test_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(FakeDriver(), monkeypatch)
    found = catalogue_of().device("cuda")
    assert found.total.keys() == found.free.keys() == {"cuda:0"}
    assert 0 < found.free["cuda:0"] <= found.total["cuda:0"]
    assert found.title
    assert found.overhead == {"cuda:0": {"context": 0, "other programs": 0}}
    driver.context, driver.others = 500, 3000
    found = catalogue_of().device("cuda")
    assert found.overhead == {"cuda:0": {"context": 500, "other programs": 3000}}
    assert found.free["cuda:0"] == found.total["cuda:0"] - 3500
    with pytest.raises(DeviceUnavailable, match="cuda:7: 1 device is visible"):
        catalogue_of().device("cuda:7")


def test_a_gpu_whose_driver_does_not_tell_programs_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(FakeDriver(), monkeypatch)
    driver.context, driver.others = 500, 3000
    monkeypatch.setattr(device, "_nvml", lambda: FakeNvml(driver, knows=False))
    assert catalogue_of().device("cuda").overhead == {
        "cuda:0": {"context and other programs": 3500}
    }


def test_a_name_of_none() -> None:
    with pytest.raises(DeviceUnavailable, match=r"expected cpu, cuda, cuda:N or .* found 'tpu'"):
        catalogue_of().device("tpu")
