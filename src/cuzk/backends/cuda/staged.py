"""Vectors on their way to a device.

:class:`Ahead`: allocated, copied and looked through for scalars that are not below r on a stream of their own, so that
neither the copy nor the compute work waits for the other; the compute stream comes after it when a kernel
first asks for the vector. :class:`Inside`: all of it by the compute stream at that time, from pageable memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from cuzk import _core
from cuzk.backends.cuda.digits import first_not_canonical
from cuzk.backends.cuda.machine import Machine
from cuzk.backends.cuda.pinning import HeldPages, Note, Pinning
from cuzk.errors import BackendError, FormatError
from cuzk.vectors import Scalars

NONE = 2**64 - 1


class Staged:
    """``values``, copied by ``stream`` to ``memory``, which the compute stream may use after :meth:`arrive`."""

    def __init__(self, stream: Machine, values: Scalars) -> None:
        self._stream = stream
        self._values = values
        self._words = np.ascontiguousarray(values.words)
        self._bad = np.full(1, NONE, np.uint64)
        self._wait: Callable[[], None] | None = None
        self._settled = False
        self.memory = stream.alloc(self._words.nbytes)

    def arrive(self) -> None:
        """What the compute stream is given from now on comes after copy and check."""
        raise NotImplementedError

    def settle(self, what: str, threads: int) -> None:
        """Wait for both, and once say FormatError of the first ``what`` that is not below r."""
        if self._settled:
            return
        self._settled = True
        self.arrive()
        if self._wait:
            self._wait()
        if int(self._bad[0]) != NONE:  # said by a device: asked again before anybody is blamed
            expect_canonical(self._values, what, threads)

    def _check(self) -> None:
        """Queue the question for the first that is not below r."""
        first = first_not_canonical(self._stream, self._values.curve, self.memory, len(self._words))
        self._wait = self._stream.fetch(first, self._bad)


class Ahead(Staged):
    """Copied now; from locked pages where ``pinning`` says so."""

    def __init__(
        self, compute: Machine, stream: Machine, values: Scalars, pinning: Pinning, note: Note
    ) -> None:
        self._pages: HeldPages | None = None
        super().__init__(stream, values)
        self._compute: Machine | None = compute
        if len(self._words):
            self._pages = pinning.vector(stream, self._words, note)
            if self._pages:
                stream.send(self.memory, self._words)
            else:
                stream.upload(self.memory, self._words)
        self._check()
        self._mark: Any = stream.mark()

    def arrive(self) -> None:
        """By an event; once."""
        compute, self._compute = self._compute, None
        if compute:
            compute.after(self._mark)

    def settle(self, what: str, threads: int) -> None:
        """And let go of the pages."""
        super().settle(what, threads)
        self._let_go()

    def __del__(self) -> None:
        if self._pages:
            with suppress(BackendError):
                self._stream.finish()  # the copy may still be under way
        self._let_go()

    def _let_go(self) -> None:
        pages, self._pages = self._pages, None
        if pages:
            pages.release()


class Inside(Staged):
    """Copied by its compute stream in its turn."""

    _copied = False

    def arrive(self) -> None:
        """Queue it, once."""
        if self._copied:
            return
        self._copied = True
        if len(self._words):
            self._stream.upload_plain(self.memory, self._words)
        self._check()


def expect_canonical(values: Scalars, what: str, threads: int) -> None:
    """FormatError names the first scalar that is not below r, by the CPU."""
    bad = _core.first_not_canonical(values.curve.name, "fr", values.words, threads)
    if bad >= 0:
        raise FormatError(
            f"{what} {bad}: expected a value below the scalar field's prime of "
            f"{values.curve.title}, found {int.from_bytes(values.words[bad].tobytes(), 'little'):#x}"
        )
