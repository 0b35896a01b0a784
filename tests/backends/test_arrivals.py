"""Copies ahead of the work that needs them: order, errors, and that nothing is left behind."""

from __future__ import annotations

import gc
import itertools
import signal
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.backends.cuda import device
from cuzk.backends.cuda.arrivals import Arrival, Feeder
from cuzk.backends.cuda.machine import Machine, Memory, Pin
from cuzk.curves import BN254
from cuzk.errors import KernelError, OutOfMemory
from emulator import EmulatedMachine
from emulator.driver import FakeDriver, install
from until import PATIENCE, until

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


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("pinned", [(True,), (False,), (True, False, False)])
def test_double_buffers(
    seed: int, pinned: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent as far ahead as there are buffers; a buffer is filled again after what read it, by either way."""
    driver = install(FakeDriver(eager=seed), monkeypatch)
    machine = device.open_machine(0, BN254)
    sources, ways = rows(10), itertools.cycle(pinned)
    pins = [machine.pin(row) if next(ways) else None for row in sources]
    found, waits, read = np.zeros((10, 64), np.uint8), [], {}
    with Feeder(machine) as feeder:
        buffers = [feeder.alloc(PAGES) for _ in range(2)]
        arrivals = [feeder.send(buffers[i], sources[i], pins[i]) for i in range(2)]
        for i in range(10):
            arrivals[i].before(machine)
            waits.append(machine.fetch(buffers[i & 1].part(100, 64), found[i]))
            read[i] = machine.mark()
            if i + 2 < 10:
                feeder.after(read[i])
                arrivals.append(feeder.send(buffers[i & 1], sources[i + 2], pins[i + 2]))
        for wait in waits:
            wait()
    assert np.array_equal(found, [row[100:164] for row in sources])
    del pins
    gc.collect()
    assert (driver.registered, driver.violations) == ({}, [])


class Slow(EmulatedMachine):
    """Each upload waits for ``go``; the ``wrong``th fails."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Semaphore(0)
        self.begun = threading.Event()
        self.wrong: dict[int, Exception] = {}
        self.uploads = itertools.count()

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        self.begun.set()
        self.go.acquire()
        if error := self.wrong.get(next(self.uploads)):
            raise error
        super().upload(memory, array)


def sent(feeder: Feeder, count: int, pin: Pin | None = None) -> list[Arrival]:
    return [feeder.send(feeder.alloc(8), np.zeros(8, np.uint8), pin) for _ in range(count)]


def test_sending_does_not_wait() -> None:
    """Nor does what is sent from pinned pages overtake what is staged."""
    machine, row = Slow(), np.zeros(8, np.uint8)
    with Feeder(machine) as feeder:
        pin = machine.pin(row)
        arrivals = sent(feeder, 2)
        arrivals.append(feeder.send(feeder.alloc(8), row, pin))
        feeder.after(machine.mark())
        arrivals += sent(feeder, 1)
        assert machine.events == []
        assert staging_threads() != []
        for _ in range(3):
            machine.go.release()
        for arrival in arrivals:
            arrival.before(machine)
        arrivals[1].done()
    copies = [event for event in machine.events if event.startswith("copy")]
    assert copies == [
        "copy#1: upload 8 bytes", "copy#2: upload 8 bytes", "copy#3: send 8 bytes", "copy: after compute#0",
        "copy#4: upload 8 bytes",
    ]  # fmt: skip
    others = [event for event in machine.events if event not in copies]
    assert others == [*(f"compute: after copy#{k}" for k in (1, 2, 3, 4)), "host: wait for copy#2"]
    assert staging_threads() == []


def test_an_error_reaches_whoever_waits() -> None:
    """And those who wait for what was sent later, until one was told; then copies are made again."""
    machine = Slow()
    machine.wrong[1] = OutOfMemory("no pages")
    with Feeder(machine) as feeder:
        arrivals = sent(feeder, 4)
        for _ in range(2):
            machine.go.release()
        arrivals[0].before(machine)
        joined()
        late = sent(feeder, 1)
        for arrival in (*arrivals[1:], *late):
            with pytest.raises(OutOfMemory, match="no pages"):
                arrival.before(machine)
            with pytest.raises(OutOfMemory, match="no pages"):
                arrival.done()
        machine.go.release()
        sent(feeder, 1)[0].done()


def test_an_error_that_nobody_waits_for_is_forgotten_with_its_copies() -> None:
    """An interrupt left them: the next proof's do not suffer from it."""
    machine = Slow()
    machine.wrong[0] = OutOfMemory("no pages")
    with Feeder(machine) as feeder:
        arrivals = sent(feeder, 3)
        machine.go.release()
        joined()
        del arrivals
        gc.collect()
        machine.go.release()
        sent(feeder, 1)[0].done()


def test_order_outlives_an_error() -> None:
    """What was said of later copies holds for them, though copies before failed."""
    machine = Slow()
    machine.wrong[0] = OutOfMemory("no pages")
    with Feeder(machine) as feeder:
        arrivals = sent(feeder, 2)
        feeder.after(machine.mark())
        machine.go.release()
        with pytest.raises(OutOfMemory):
            arrivals[1].done()
        machine.go.release()
        sent(feeder, 1)[0].done()
    assert machine.events == ["copy: after compute#0", "copy#1: upload 8 bytes", "host: wait for copy#1"]  # fmt: skip


def joined() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("staging"):
            thread.join()


def go_on_when_closed(machine: Slow, feeder: Feeder) -> None:
    until(lambda: feeder._line._closed)
    machine.go.release()


def test_closed_in_the_middle() -> None:
    """The copy under way is finished, the others are given up, their memory goes back."""
    machine = Slow()
    feeder = Feeder(machine)
    arrivals = sent(feeder, 3)
    assert machine.begun.wait(PATIENCE)
    thread = threading.Thread(target=go_on_when_closed, args=(machine, feeder))
    thread.start()
    feeder.close()
    thread.join()
    assert staging_threads() == []
    arrivals[0].done()
    for arrival in arrivals[1:]:
        with pytest.raises(KernelError, match="expected an open feeder, found it closed"):
            arrival.before(machine)
    with pytest.raises(KernelError, match="expected an open feeder, found it closed"):
        sent(feeder, 1)
    feeder.close()
    del arrival, arrivals
    gc.collect()
    assert machine.used == 0


def test_interrupted_while_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the caller's thread, at the worst time."""
    machine, waits = Slow(), threading.Event()
    main = threading.main_thread().ident
    assert main

    def interrupt(feeder: Feeder) -> None:
        assert waits.wait(PATIENCE)
        signal.pthread_kill(main, signal.SIGINT)
        go_on_when_closed(machine, feeder)

    def work() -> None:
        with Feeder(machine) as feeder:
            arrivals = sent(feeder, 3)
            ready = feeder._line.ready
            wait = ready.wait

            def told() -> bool:
                waits.set()
                return wait()

            monkeypatch.setattr(ready, "wait", told)
            threads.append(threading.Thread(target=interrupt, args=(feeder,)))
            threads[0].start()
            arrivals[2].before(machine)

    threads: list[threading.Thread] = []
    with pytest.raises(KeyboardInterrupt):
        work()
    threads.pop().join()
    assert staging_threads() == []
    monkeypatch.undo()
    gc.collect()
    assert machine.used == 0


def test_dropped_without_being_closed() -> None:
    """Nothing that was not begun is copied, and the thread goes by itself."""
    machine = Slow()
    feeder = Feeder(machine)
    sent(feeder, 3)
    assert machine.begun.wait(PATIENCE)
    del feeder
    gc.collect()
    machine.go.release()
    joined()
    assert machine.events == ["copy#1: upload 8 bytes"]
    assert machine.used == 0


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(1, 40, 3))
def test_cut_anywhere(nth: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the driver or an interrupt at any of its calls: nothing is left, and the next copies are right."""
    for what in ("OUT_OF_MEMORY", KeyboardInterrupt):
        driver = install(FakeDriver(eager=nth), monkeypatch)
        machine = device.open_machine(0, BN254)
        expected = [row[:64] for row in rows(4)]

        def work(machine: Machine) -> list[NDArray[np.uint8]]:
            sources = rows(4)
            with Feeder(machine) as feeder:
                pins = [machine.pin(row) if i % 2 else None for i, row in enumerate(sources)]
                memory = [feeder.alloc(PAGES) for _ in sources]
                sending = zip(memory, sources, pins, strict=True)
                arrivals = [feeder.send(to, row, pin) for to, row, pin in sending]
                for arrival in arrivals:
                    arrival.before(machine)
                return [contents(machine, to)[:64] for to in memory]

        driver.fault("*", nth, what, after=after)
        with suppress(OutOfMemory, KeyboardInterrupt):
            work(machine)
        gc.collect()
        assert staging_threads() == []
        assert (driver.registered, driver.violations) == ({}, [])
        assert np.array_equal(work(machine), expected)
        del machine
        gc.collect()
        alive = driver.alive
        if what is not KeyboardInterrupt and not after:
            assert set(alive.values()) == {0}
