"""Files that do not answer: their circuit is NOT READY, at once from then on, and nothing else is disturbed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest
from files import files
from served import catalogue_of, circom, witness_request

from cuzk.catalogue import answering as module
from cuzk.catalogue.answering import AnsweringCatalogue, Look, LookedAt
from cuzk.catalogue.catalogue import Catalogue
from cuzk.engine.catalogue import CircuitEntry, Route
from cuzk.errors import NotReady
from until import until

LATE = r"its files have not answered for \d+ s: is a disk or a network mount away\?"
WAIT = 1.0
SOON = 60.0  # seconds: no bound on speed, an end for a test that would hang


class Hanging(Catalogue):
    """A real one, whose circuit "hangs" is on a mount that does not answer until ``gate``."""

    gate: Event
    held: set[str]
    looks = 0

    def entry(self, circuit: str) -> CircuitEntry:
        if circuit.startswith("hangs"):
            self.looks += 1
            self.held.add(circuit)
            assert self.gate.wait(SOON)
        return super().entry(circuit)

    def holds(self, circuit: str) -> bool:
        """Whether a look at it goes on only when the gate opens."""
        return circuit in self.held and not self.gate.is_set()


class Clock:
    """Time goes on where somebody waits for what hangs, and nowhere else."""

    now = 0.0

    def __init__(self, catalogue: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = self

        class Done(Event):
            circuit = ""

            def wait(self, timeout: float | None = None) -> bool:
                assert timeout is not None
                until(lambda: self.is_set() or catalogue.holds(self.circuit))
                found = self.is_set()
                clock.now += 0.0 if found else timeout
                return found

        class TimedLook(Look):
            def __init__(self, catalogue: LookedAt, circuit: str, devices: Sequence[str]) -> None:
                super().__init__(catalogue, circuit, devices)
                assert isinstance(self.done, Done)
                self.done.circuit = circuit

        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(module, "Event", Done)
        monkeypatch.setattr(module, "Look", TimedLook)


def hanging(*more: str) -> Hanging:
    made = files("bn254")
    names = ("hangs", "good", *more)
    settings = catalogue_of(*(circom(name, made.zkey) for name in names))
    settings.__class__ = Hanging
    assert isinstance(settings, Hanging)
    settings.gate, settings.held = Event(), set()
    return settings


def test_a_mount_that_hangs_is_its_own_circuits_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    made = files("bn254")
    catalogue = hanging("hangs-2", "hangs-3")
    clock = Clock(catalogue, monkeypatch)
    answering = AnsweringCatalogue(catalogue, ["cpu"], wait=WAIT)
    others = set(threading.enumerate())
    try:
        answering.entries()
        assert clock.now == WAIT, "side by side"
        for _ in range(20):
            faults = {entry.id: entry.fault for entry in answering.entries()}
            with pytest.raises(NotReady, match=f"^hangs: not ready: {LATE}$"):
                answering.route(witness_request("hangs", made.wtns))
            with pytest.raises(NotReady, match=LATE):
                answering.needs("hangs", "cpu")
            assert answering.route(witness_request("good", made.wtns)) == Route("good", 1)
            assert answering.needs("good", "cpu") == catalogue.needs("good", "cpu")
        assert clock.now == WAIT, "nobody waits for it any more"
        assert faults["good"] == ""
        assert catalogue.looks == 3, "one look of each, as long as it hangs"
        until(lambda: len(set(threading.enumerate()) - others) == 3)  # those of the good one end
        names = sorted(thread.name for thread in set(threading.enumerate()) - others)
        assert names == ["look at hangs", "look at hangs-2", "look at hangs-3"]
    finally:
        catalogue.gate.set()


def test_a_mount_that_is_back_is_ready_again(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = hanging()
    clock = Clock(catalogue, monkeypatch)
    answering = AnsweringCatalogue(catalogue, ["cpu"], wait=WAIT)
    try:
        assert [bool(entry.fault) for entry in answering.entries()] == [True, False]
    finally:
        catalogue.gate.set()
    until(lambda: not any(entry.fault for entry in answering.entries()))
    assert answering.entries() == catalogue.entries()
    assert clock.now == WAIT


def test_one_slow_look_refuses_nobody() -> None:
    """What was found a moment ago holds, and then no longer."""
    catalogue = hanging()
    catalogue.gate.set()
    answering = AnsweringCatalogue(catalogue, ["cpu"], wait=0.05, good=SOON)
    brief = AnsweringCatalogue(catalogue, ["cpu"], wait=0.05, good=0.0)
    request = witness_request("hangs", files("bn254").wtns)
    for one in (answering, brief):
        one.first(SOON)
    catalogue.gate.clear()
    try:
        for _ in range(3):
            assert answering.route(request) == Route("hangs", 1)
            assert answering.needs("hangs", "cpu") == catalogue.needs("hangs", "cpu")
            with pytest.raises(NotReady, match=LATE):
                brief.route(request)
    finally:
        catalogue.gate.set()


def test_what_is_seen_is_what_the_files_are_now(tmp_path: Path) -> None:
    made = files("bn254")
    catalogue = catalogue_of(circom("c", tmp_path / "c.zkey"))
    answering = AnsweringCatalogue(catalogue, ["cpu"], wait=SOON)
    assert "no file of that name" in answering.entries()[0].fault
    (tmp_path / "c.zkey").write_bytes(made.zkey.read_bytes())
    assert answering.route(witness_request("c", made.wtns)) == Route("c", 1)
    assert answering.entries() == catalogue.entries()
    (tmp_path / "c.zkey").unlink()
    with pytest.raises(NotReady, match="no file of that name"):
        answering.route(witness_request("c", made.wtns))


PROCESS = """
import sys, threading
sys.path[:] = eval(sys.argv[1])
from test_answering import AnsweringCatalogue, hanging
answering = AnsweringCatalogue(hanging(), ["cpu"], wait=0.1)
print(answering.entries()[0].fault)
"""


def test_a_look_that_hangs_keeps_no_process_from_its_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, repr(sys.path)],
        capture_output=True, text=True, timeout=SOON * 0.9, check=True,
    )  # fmt: skip
    assert "have not answered" in done.stdout
