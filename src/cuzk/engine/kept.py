"""What a worker's process keeps of requests between their check and their preparation: a payload is sent once.

    check(request, number)     kept there under the number, where it carries bytes in memory
    prepare(circuit, number)   taken from there; the request itself where it is not kept
    drop(number)               let go of: refused, forgotten, pushed out, or gone from the daemon, too

The daemon alone decides, and messages arrive in order: so the process has exactly what is in the daemon's books. A
number is of one check: a new try of an id never gets what an earlier one sent. Books are of one life of the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from weakref import ref

from cuzk.engine.request import Request

MOST = 64
MOST_BYTES = 32 << 20


@dataclass(frozen=True)
class Entry:
    """A request that is kept there, and here only for as long as others have it."""

    number: int
    nbytes: int
    request: ref[Request]


class Kept:
    """The daemon's books, by the requests' ids. ``drop`` sends the message; all on one event loop."""

    def __init__(
        self, drop: Callable[[int], None], *, most: int = MOST, most_bytes: int = MOST_BYTES
    ) -> None:
        self._drop = drop
        self._most = most
        self._most_bytes = most_bytes
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self._entries: dict[str, Entry] = {}
        self._nbytes = 0

    def add(self, request: Request) -> int:
        """The number to keep it under, in place of an earlier one of its id; 0: not to be kept."""
        self.remove(request.id)
        nbytes = sum(len(part.data) for part in request.payload if part.data)
        if not nbytes or nbytes > self._most_bytes:
            return 0
        while len(self._entries) >= self._most or self._nbytes + nbytes > self._most_bytes:
            self.remove(next(iter(self._entries)))
        number, job = next(self._numbers), request.id
        self._entries[job] = Entry(number, nbytes, ref(request, lambda _: self._gone(job, number)))
        self._nbytes += nbytes
        return number

    def take(self, request: Request) -> int:
        """The number of this very request, which is kept no longer; 0 where it is not."""
        entry = self._entries.get(request.id)
        if entry is None or entry.request() is not request:
            return 0
        self._nbytes -= self._entries.pop(request.id).nbytes
        return entry.number

    def remove(self, job: str, number: int = 0) -> None:
        """Have it dropped: what is kept of this id, if it has this number."""
        entry = self._entries.get(job)
        if entry is not None and number in (0, entry.number):
            self._nbytes -= self._entries.pop(job).nbytes
            self._drop(entry.number)

    def _gone(self, job: str, number: int) -> None:
        """In whichever thread let go of it."""
        with suppress(RuntimeError):  # the loop is closed, and the process gone
            self._loop.call_soon_threadsafe(self.remove, job, number)
