"""Vectors on their way to a device, each looked through there for scalars that are not below r.

    copy stream      a | b | c |
    check stream       a   b   c
    compute stream   work of proofs before | behind a's check: first kernel that reads a | ...

:class:`Ahead`: neither the copy nor the compute work waits for the other; the compute stream comes after copy and
check when a kernel first asks for the vector. :class:`Inside`: both are the compute stream's, at that time, from
pageable memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from cuzk import _core
from cuzk.backends.cuda.arrivals import Arrival, Feeder
from cuzk.backends.cuda.digits import first_not_canonical
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.backends.cuda.pinning import HeldPages, Note, Pinning
from cuzk.errors import FormatError
from cuzk.vectors import Scalars

NONE = 2**64 - 1


class Staged(ABC):
    """``values`` in ``memory``, which the compute stream may use after :meth:`arrive`."""

    def __init__(self, values: Scalars, memory: Memory, reader: Machine) -> None:
        self.memory = memory
        self._values = values
        self._words = np.ascontiguousarray(values.words)
        self._reader = reader  # looks for the first that is not below r
        self._bad = np.full(1, NONE, np.uint64)
        self._wait: Callable[[], None] | None = None
        self._settled = False

    @abstractmethod
    def arrive(self) -> None:
        """What the compute stream is given from now on comes after copy and check."""

    def settle(self, what: str, threads: int) -> None:
        """Wait for both, and once say FormatError of the first ``what`` that is not below r."""
        if self._settled:
            return
        self._queue()
        if self._wait:
            self._wait()
        self._settled = True
        if int(self._bad[0]) != NONE:  # said by a device: asked again before anybody is blamed
            expect_canonical(self._values, what, threads)

    @abstractmethod
    def _queue(self) -> None:
        """Copy and check, if they are not queued."""

    def _check(self) -> None:
        n, curve = len(self._words), self._values.curve
        first = first_not_canonical(self._reader, curve, self.memory, n)
        self._wait = self._reader.fetch(first, self._bad)


class Ahead(Staged):
    """Copied from now on by ``feeder``, from locked pages where ``pinning`` says so."""

    def __init__(
        self,
        compute: Machine,
        reader: Machine,
        feeder: Feeder,
        values: Scalars,
        pinning: Pinning,
        note: Note,
    ) -> None:
        self._pages: HeldPages | None = None
        super().__init__(values, feeder.alloc(values.words.nbytes), reader)
        self._compute: Machine | None = compute
        self._feeder = feeder
        self._arrival: Arrival | None = None
        self._mark: Any = None
        if len(self._words):
            self._pages = pinning.vector(reader, self._words, note)
            self._arrival = feeder.send(self.memory, self._words, self._pages)
        if self._pages:  # else the check is queued when somebody asks: it waits for the staging
            self._queue()

    def arrive(self) -> None:
        """By an event; once."""
        if self._compute:
            self._queue()
            self._compute.after(self._mark)
            self._compute = None

    def settle(self, what: str, threads: int) -> None:
        """And let go of the pages: whatever else happens they are, once nothing is copied from them any more."""
        pages, self._pages = self._pages, None
        try:
            super().settle(what, threads)
        finally:
            if pages and self._settled:
                pages.release()

    def _queue(self) -> None:
        if self._mark is None:
            if self._arrival:
                self._arrival.before(self._reader)
            self._check()
            self._mark = self._reader.mark()


class Inside(Staged):
    """Copied by its compute stream in its turn."""

    def __init__(self, compute: Machine, values: Scalars) -> None:
        super().__init__(values, compute.alloc(values.words.nbytes), compute)

    def arrive(self) -> None:
        """The stream's own order."""
        self._queue()

    def _queue(self) -> None:
        if self._wait is None:
            if len(self._words):
                self._reader.upload_plain(self.memory, self._words)
            self._check()


def expect_canonical(values: Scalars, what: str, threads: int) -> None:
    """FormatError names the first scalar that is not below r, by the CPU."""
    bad = _core.first_not_canonical(values.curve.name, "fr", values.words, threads)
    if bad >= 0:
        raise FormatError(
            f"{what} {bad}: expected a value below the scalar field's prime of "
            f"{values.curve.title}, found {int.from_bytes(values.words[bad].tobytes(), 'little'):#x}"
        )
