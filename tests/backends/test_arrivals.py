"""Copies ahead of the work that needs them: order, errors, and that nothing is left behind."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.backends.cuda import device
from cuzk.backends.cuda.arrivals import Feeder
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.curves import BN254
from emulator import EmulatedMachine
from emulator.driver import FakeDriver, install

PAGES = 3 * 4096 + 77


def rows(count: int, nbytes: int = PAGES) -> list[NDArray[np.uint8]]:
    random = np.random.default_rng(count)
    return [random.integers(0, 256, nbytes, np.uint8) for _ in range(count)]


def staging_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("staging")]


@pytest.fixture(params=["emulator", "lazy", "eager"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Machine:
    if request.param == "emulator":
        return EmulatedMachine()
    install(FakeDriver(eager=7 if request.param == "eager" else 0), monkeypatch)
    return device.open_machine(0, BN254)


def contents(machine: Machine, memory: Memory) -> NDArray[np.uint8]:
    found = np.zeros(memory.nbytes, np.uint8)
    machine.download(memory, found)
    return found


@pytest.mark.parametrize("pinned", ["none", "all", "every other"])
def test_what_is_sent_arrives(machine: Machine, pinned: str) -> None:
    sources = rows(9)
    pins = [
        machine.pin(row) if pinned == "all" or (pinned != "none" and i % 2) else None
        for i, row in enumerate(sources)
    ]
    with Feeder(machine) as feeder:
        memory = [feeder.alloc(row.nbytes) for row in sources]
        sent = zip(memory, sources, pins, strict=True)
        arrivals = [feeder.send(to, row, pin) for to, row, pin in sent]
        for arrival, to, row in zip(arrivals, memory, sources, strict=True):
            arrival.before(machine)
            assert np.array_equal(contents(machine, to), row)
        for arrival, row in zip(arrivals, sources, strict=True):
            arrival.done()
            row[:] = 0
    assert staging_threads() == []
    spans = [span for span in machine.timeline.spans() if span.name == "copy to device"]
    assert [span.facts for span in spans] == [
        {"bytes": PAGES, "how": "pinned" if pin else "staged"} for pin in pins
    ]
    assert {span.track for span in spans} == {f"{machine.name} copy"}
