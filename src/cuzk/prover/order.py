"""Whose turn it is on a device that several proofs share: one rule instead of one lock.

    place   at most so many proofs are in work at once and hold the device's buffers; first come, first served.
            One that needs the device alone has all places when nobody else is in work
    turn    of the proofs in work the oldest that has not queued its kernels has the turn, nobody else: kernels
            are queued in the order in which places were taken. Where there are more places than proofs that may
            compute at once, those beyond it wait for their turn until one of these has left: memory has room for
            their witness, not for their vectors

What comes before a turn (copies) and after it (waiting for results, the last steps on the host) overlaps.
Nobody waits for a ticket that left or whose thread is gone (another thread's in a forked process). A thread
that holds a place and proves again, in a hook of the caller's, shares its own place and turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")
PATIENCE = 1.0  # seconds after which a sleeper looks whether the others' threads are still there


class Retired(Exception):
    """The order gives no more places: a message between parts, nobody's error."""


class Order(Generic[T]):
    """The places of one device and who has them."""

    def __init__(self, places: Sequence[T], at_once: int | None = None) -> None:
        self._places = tuple(places)
        self._at_once = at_once or len(self._places)
        self._waiting: list[Ticket[T]] = []
        self._working: list[Ticket[T]] = []  # the oldest first
        self._watching: list[Ticket[T]] = []  # for the end
        self._lines = (self._waiting, self._working, self._watching)
        self._retired = False
        # Both kinds of lock are taken and let go in C, where no interrupt comes between; this one is
        # re-entrant, as a signal's handler may close the prover.
        self._lock = threading.RLock()

    @property
    def places(self) -> int:
        """How many."""
        return len(self._places)

    @property
    def at_once(self) -> int:
        """Of them how many may compute."""
        return self._at_once

    def ticket(self, *, alone: bool = False) -> Ticket[T]:
        """For one proof by the calling thread; nothing is held yet."""
        return Ticket(self, alone=alone)

    def retire(self) -> None:
        """Whoever has no place gets Retired, now and later."""
        self._retired = True
        self._ring()

    def await_others(self) -> None:
        """Sleep until no other thread has a place."""
        with self.ticket() as ticket:
            with self._lock:
                self._watching.append(ticket)
            self._sleep_until(ticket, lambda: all(t.thread is ticket.thread for t in self._working))

    def enter(self, ticket: Ticket[T]) -> T:
        """Sleep until there is a place for it."""
        with self._lock:
            self._waiting.append(ticket)
        self._sleep_until(ticket, lambda: self._admit(ticket))
        self._ring()
        return self._places[ticket.place]

    def await_turn(self, ticket: Ticket[T]) -> None:
        """Sleep until all that is older has queued, and nobody else does."""
        self._sleep_until(ticket, lambda: self._give_turn(ticket))

    def end_turn(self, ticket: Ticket[T]) -> None:
        """The next one's."""
        ticket.queued, ticket.queueing = True, False
        self._ring()

    def drop(self, ticket: Ticket[T]) -> None:
        """Wherever it is; any number of times."""
        with self._lock:
            for line in self._lines:
                if ticket in line:
                    line.remove(ticket)
        self._ring()

    def _admit(self, ticket: Ticket[T]) -> bool:
        if self._retired:
            raise Retired
        outer = next((t for t in self._working if t.thread is ticket.thread), None)
        if outer:
            ticket.place = outer.place
            self._working.insert(self._working.index(outer), ticket)
        else:
            taken = {t.place for t in self._working}
            free = [place for place in range(len(self._places)) if place not in taken]
            shut = any(t.alone for t in self._working) or (ticket.alone and taken)
            if shut or not free or self._waiting[0] is not ticket:
                return False
            ticket.place = free[0]
            self._working.append(ticket)
        self._waiting.remove(ticket)
        return True

    def _give_turn(self, ticket: Ticket[T]) -> bool:
        others = [t for t in self._working if t.thread is not ticket.thread]
        if any(t.queueing for t in others) or sum(t.queued for t in others) >= self._at_once:
            return False
        ticket.queueing = next(t for t in self._working if not t.queued) is ticket
        return ticket.queueing

    def _sleep_until(self, ticket: Ticket[T], ready: Callable[[], bool]) -> None:
        while True:
            with self._lock:
                for line in self._lines:
                    line[:] = [t for t in line if t.thread.is_alive()]
                if ready():
                    return
            ticket.bell.acquire(timeout=PATIENCE)

    def _ring(self) -> None:
        """Wake all who sleep; a bell that rang before it was listened to is heard then."""
        with self._lock:
            for line in self._lines:
                for ticket in line:
                    if ticket.bell.locked():
                        ticket.bell.release()


class Ticket(Generic[T]):
    """One proof's; leaving its ``with`` block gives up whatever it has."""

    def __init__(self, order: Order[T], *, alone: bool = False) -> None:
        self._order = order
        self.alone = alone
        self.thread = threading.current_thread()
        self.bell = threading.Lock()
        self.place = -1
        self.queueing = False
        self.queued = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._order.drop(self)
