"""Bytes of the host on their way to a device, on a stream of their own beside the one that computes.

    feeder = Feeder(machine)
    memory = feeder.alloc(array.nbytes)
    arrival = feeder.send(memory, array, pin)   # returns at once
    arrival.before(machine)                     # what the machine is given from now on comes after the copy

Pinned pages are copied by the device itself, and the caller's thread only queues that (3 us). All else is
staged by one thread, which lives while there is something to stage. Copies are made in the order of ``send``,
whichever way they go. Memory of ``alloc`` may be filled at once; memory that another stream allocated or read
may be filled ``after`` a mark that this stream made since.
"""

from __future__ import annotations

import contextvars
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from cuzk.backends.cuda.machine import Machine, Memory, Pin
from cuzk.errors import BackendError, KernelError


@dataclass(eq=False)
class _Failure:
    """What went wrong; while it is held by an arrival and nobody was told, later copies fail with it."""

    error: Exception
    told: bool = False


class Arrival:
    """One copy, from the moment it was asked for."""

    def __init__(self, line: _Line) -> None:
        self._line = line
        self._mark: Any = None
        self._failure: _Failure | None = None

    def before(self, machine: Machine) -> None:
        """What ``machine`` is given from now on comes after the copy; the host waits until that is queued.

        Raises what went wrong with this copy, or with one before it that nobody has been told of.
        """
        machine.after(self._queued())

    def done(self) -> None:
        """Wait for the copy itself: the array may change, its pages may be let go. Raises as ``before``."""
        self._line.machine.wait(self._queued())

    def answer(self, mark: Any, failure: _Failure | None = None) -> None:
        """For the line: queued, or failed."""
        self._mark, self._failure = mark, failure

    def _queued(self) -> Any:
        with self._line.ready:
            if self._mark is None and self._failure is None:
                with self._line.machine.timeline.span("wait for staging"):
                    while self._mark is None and self._failure is None:
                        self._line.ready.wait()
            if self._failure is not None:
                self._failure.told = True
                # a copy: the frames that it is raised through hold the arrival, and through it the error
                raise copy(self._failure.error) from self._failure.error.__cause__
        return self._mark


class _Line:
    """The copies of a stream in their order: made at once where none waits, else by a thread.

    The thread is working, or nothing is left to do: none is ever idle. It knows the line and not the feeder,
    which can be dropped while it works.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.ready = threading.Condition()  # over an RLock: a finaliser may come in between
        self._closed = False
        self._failure: Callable[[], _Failure | None] = lambda: None
        self._steps: deque[tuple[Callable[[], Any], Arrival | None]] = deque()
        self._working = False
        # one works; more may be about to find nothing to do
        self._threads: list[threading.Thread] = []

    def add(self, step: Callable[[], Any], arrival: Arrival | None, *, quick: bool) -> None:
        """``step`` queues something and gives a mark behind it; a quick one is not worth a thread.

        Without an arrival it orders what comes after it, and is taken even where copies before it failed.
        """
        with self.ready:
            if self._closed:
                raise self._ended()
            failure = self._failure()
            if arrival and failure and not failure.told:
                arrival.answer(None, failure)
            elif quick and not self._working and not self._steps:
                mark = step()
                if arrival:
                    arrival.answer(mark)
            else:
                context = contextvars.copy_context()  # what the copy is about, for the timeline
                self._steps.append((partial(context.run, step), arrival))
                if not self._working:
                    name = f"staging for {self.machine.name}"  # a track of the host's
                    thread = threading.Thread(target=self._work, name=name)
                    self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]
                    thread.start()

    def close(self) -> None:
        """Give up what was not begun; returns when no thread works here."""
        self.stop()
        for thread in filter(threading.Thread.is_alive, self._threads):
            thread.join()

    def stop(self) -> None:
        """The same without waiting, for a finaliser, which may find any lock taken that the thread needs."""
        with self.ready:
            self._closed = True
            given_up = self._fail(self._ended(), None) if self._steps else None
        del given_up

    def _ended(self) -> KernelError:
        return KernelError(f"{self.machine.name}: send: expected an open feeder, found it closed")

    def _told(self, error: BaseException) -> Exception:
        if isinstance(error, Exception):
            return error
        kind = type(error).__name__
        return KernelError(f"{self.machine.name}: send: the thread that stages was ended ({kind})")

    def _work(self) -> None:
        with self.ready:
            if self._working:
                return
            self._working = True
        while self._one():
            pass

    def _one(self) -> bool:
        with self.ready:
            if not self._steps:
                self._working = False
                return False
            step, arrival = self._steps.popleft()
        try:
            mark = step()
        except BaseException as error:  # whatever ends this thread: nobody waits for it in vain
            if isinstance(error, BackendError):
                error.__traceback__ = None  # its frames hold memory, and the message says it all
            with self.ready:
                given_up = self._fail(self._told(error), arrival)
            del given_up
        else:
            with self.ready:
                if arrival:
                    arrival.answer(mark)
                self.ready.notify_all()
        return True

    def _fail(self, error: Exception, arrival: Arrival | None) -> object:
        """That copy and all that wait; what orders later ones still does.

        Gives what they held, to be dropped when nothing is locked: pins are let go.
        """
        failure = _Failure(error)
        waiting, self._steps = self._steps, deque()
        if arrival:
            arrival.answer(None, failure)
        for step, other in waiting:
            if other:
                other.answer(None, failure)
            else:
                with suppress(BackendError):  # of a device that is lost, as the next copy will say
                    step()
        self._failure = weakref.ref(failure)
        self.ready.notify_all()
        return waiting


class Feeder:
    """A stream beside ``machine`` for copies to the device; ``role`` names its track.

    Calls come from any thread. It ends with ``close``, as a context, or when the last reference to it is
    dropped: copies that were not begun are given up, and no thread is left.
    """

    def __init__(self, machine: Machine, role: str = "copy") -> None:
        self._machine = machine.beside(role)
        self._line = _Line(self._machine)
        weakref.finalize(self, self._line.stop)

    def alloc(self, nbytes: int) -> Memory:
        """Memory that nothing queued anywhere still uses: a copy into it waits for no other stream."""
        return self._machine.alloc(nbytes)

    def send(self, memory: Memory, array: NDArray[Any], pin: Pin | None = None) -> Arrival:
        """Copy a C-contiguous array to the start of ``memory``; it stays as it is until the arrival is done.

        ``pin`` holds pages that the array lies in; without one the array is staged.
        """
        arrival, machine = Arrival(self._line), self._machine
        # a partial: its frame holds no closure, as an error's would
        copying = partial(_copy, machine, memory, array, pin)
        self._line.add(copying, arrival, quick=pin is not None)
        return arrival

    def after(self, mark: Any) -> None:
        """Copies that are sent from now on come after a mark of another stream: buffers are used again."""
        machine = self._machine
        self._line.add(lambda: machine.after(mark), None, quick=True)

    def close(self) -> None:
        """Give up copies that were not begun; their arrivals raise KernelError."""
        self._line.close()

    def __enter__(self) -> Feeder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _copy(machine: Machine, memory: Memory, array: NDArray[Any], pin: Pin | None) -> Any:
    if pin is None:
        machine.upload(memory, array)
    else:
        machine.send(memory, array)
    return machine.mark()
