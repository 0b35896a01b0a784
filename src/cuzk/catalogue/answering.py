"""A catalogue for the daemon's event loop, which no file keeps waiting: a network mount may hang for ever.

    look at a circuit's files --> a thread of its own --> in time: its answer
                                                      --> late: what the look before found, if that was a moment ago;
                                                          else the circuit is NOT READY, with that reason

A circuit has one thread at most, so that what hangs takes no other's. The first look that is late costs the caller ``wait``
seconds; as long as it hangs, and until one was prompt again, nobody waits. The threads are no reason for a process to stay.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Event, Thread
from typing import Protocol

from cuzk.engine.catalogue import Catalogue, CircuitEntry, Device, Needs, OpenCircuit, Route
from cuzk.engine.request import Request
from cuzk.errors import CuzkError, NotReady

LOOKING = "look at "
BEGINNING = 0.3  # seconds for a thread whose start a signal broke into
WAIT = 1.0  # seconds: a look at a file of the page cache takes 0.1 ms, and may wait for a processor on a busy machine
GOOD = 30.0  # seconds for which the answer of the look before is taken: no circuit is refused for one slow look


class LookedAt(Catalogue, Protocol):
    """A catalogue whose circuits can be looked at one by one."""

    def blank(self) -> Sequence[CircuitEntry]:
        """All circuits, from the settings alone: no file is touched."""

    def entry(self, circuit: str) -> CircuitEntry:
        """One of them, looked at again."""

    def place(self, request: Request) -> Route:
        """``route`` from the settings alone."""


class Look:
    """One look at a circuit's files: its entry, and what it needs on the devices."""

    def __init__(self, catalogue: LookedAt, circuit: str, devices: Sequence[str]) -> None:
        self.done = Event()
        self.entry: CircuitEntry | None = None
        self.needs: dict[str, Needs | CuzkError] = {}
        self.error: Exception | None = None
        self.began = time.monotonic()
        self.ended = 0.0
        work = (catalogue, circuit, devices)
        Thread(target=self._look, args=work, name=LOOKING + circuit, daemon=True).start()

    def _look(self, catalogue: LookedAt, circuit: str, devices: Sequence[str]) -> None:
        try:
            for device in devices:
                try:
                    self.needs[device] = catalogue.needs(circuit, device)
                except CuzkError as error:
                    self.needs[device] = error
            self.entry = catalogue.entry(circuit)
        except Exception as error:  # raised again where it was asked for
            self.error = error
        self.ended = time.monotonic()
        self.done.set()


def await_looks(seconds: float) -> None:
    """Before a process ends: a look in native code would meet the interpreter's end there, which aborts the process. One that
    hangs in the system is given up."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < seconds:
        looks = [each for each in threading.enumerate() if each.name.startswith(LOOKING)]
        beginning = waited < BEGINNING and any(each.ident is None for each in looks)
        if not beginning and not any(each.is_alive() for each in looks):
            return
        time.sleep(0.005)


class AnsweringCatalogue:
    """A :class:`cuzk.engine.catalogue.Catalogue` of another, for workers on ``devices``. One thread calls it."""

    def __init__(
        self, catalogue: LookedAt, devices: Sequence[str], *, wait: float = WAIT, good: float = GOOD
    ) -> None:
        self._catalogue = catalogue
        self._devices = tuple(devices)
        self._wait = wait
        self._good = good
        self._looks: dict[str, Look] = {}
        self._ended: dict[str, Look] = {}
        """Of each circuit, the last look that ended."""
        self._tardy = set[str]()
        """Circuits whose last look was late: nobody waits for the next one."""

    def entries(self) -> list[CircuitEntry]:
        """All looked at side by side."""
        return self.first(self._wait)

    def first(self, seconds: float) -> list[CircuitEntry]:
        """``entries`` for who may wait: before the event loop runs."""
        blank = self._catalogue.blank()
        for entry in blank:
            self._begin(entry.id)
        until = time.monotonic() + seconds
        return [self._entry(entry, until) for entry in blank]

    def named(self, name: str) -> str:
        """From the settings alone."""
        return self._catalogue.named(name)

    def route(self, request: Request) -> Route:
        """NotReady where the circuit's files are late, too."""
        route = self._catalogue.place(request)
        blank = next(entry for entry in self._catalogue.blank() if entry.id == route.circuit)
        self._begin(route.circuit)
        entry = self._entry(blank, time.monotonic() + self._wait)
        if entry.fault:
            raise NotReady(f"{route.circuit}: not ready: {entry.fault}")
        return route

    def needs(self, circuit: str, device: str) -> Needs:
        """NotReady where the circuit's files are late, too."""
        self._begin(circuit)
        look = self._answer(circuit, time.monotonic() + self._wait)
        if look is None:
            raise NotReady(f"{circuit}: not ready: {self._late(circuit)}")
        found = look.needs[device]
        if isinstance(found, CuzkError):
            raise type(found)(*found.args)
        return found

    def check(self, request: Request) -> None:
        """Not asked here: in a worker."""
        self._catalogue.check(request)

    def device(self, device: str) -> Device:
        """Not asked here: in a worker."""
        return self._catalogue.device(device)

    def open(
        self, circuit: str, device: str, threads: int | None, lanes: int | None
    ) -> OpenCircuit:
        """Not asked here: in a worker."""
        return self._catalogue.open(circuit, device, threads, lanes)

    def _begin(self, circuit: str) -> None:
        look = self._looks.get(circuit)
        if look is not None and look.done.is_set():
            self._take(circuit, look)
        if look is None or look.done.is_set():
            self._looks[circuit] = Look(self._catalogue, circuit, self._devices)

    def _take(self, circuit: str, look: Look) -> None:
        """One that ended."""
        self._ended[circuit] = look
        if look.ended - look.began <= self._wait:
            self._tardy.discard(circuit)

    def _answer(self, circuit: str, until: float) -> Look | None:
        """What the look found, or the one before if that is good still; None: the files are late."""
        look = self._looks[circuit]
        late = circuit in self._tardy or time.monotonic() - look.began > self._wait
        if look.done.wait(0 if late else max(0.0, until - time.monotonic())):
            self._take(circuit, look)
        else:
            self._tardy.add(circuit)
        last = self._ended.get(circuit)
        if last is None or time.monotonic() - last.ended > self._good:
            return None
        if last.error is not None:
            raise last.error
        return last

    def _entry(self, blank: CircuitEntry, until: float) -> CircuitEntry:
        look = self._answer(blank.id, until)
        if look is None or look.entry is None:
            return replace(blank, fault=self._late(blank.id), silent=True)
        return look.entry

    def _late(self, circuit: str) -> str:
        seconds = time.monotonic() - self._looks[circuit].began
        return (
            f"its files have not answered for {seconds:.0f} s: is a disk or a network mount away?"
        )
