"""A file of which nothing is mapped: bytes are read when they are asked for.

    mapped     cut in place, or a disk's error: SIGBUS, the process dies
    on demand  the same: FormatError

For the daemon, which looks at the beginnings of keys while others may be writing them. Whoever needs all of a file maps it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import FormatError, InternalError
from cuzk.formats.source import Bytes, Source, open_regular


@contextmanager
def on_demand(path: str | os.PathLike[str], expected: str) -> Iterator[Source]:
    """A file for as long as the block runs. FormatError as :meth:`Source.open` has it, and for what is not there any
    more, or cannot be read, when it is asked for."""
    file, shown = open_regular(path, expected)
    with file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise FormatError(f"{shown}: expected {expected}, found an empty file")
        yield OnDemand(os.path.basename(shown), file, size)  # noqa: PTH119


class OnDemand(Source):
    """Each ``at`` and ``words`` is a read of its own, into memory of its own; ``data`` there is none."""

    def __init__(self, name: str, file: io.FileIO, size: int) -> None:
        for field, value in (("name", name), ("mapping", None), ("_file", file), ("_size", size)):
            object.__setattr__(self, field, value)

    _file: io.FileIO
    _size: int

    @property
    def data(self) -> Bytes:
        """Whoever needs all of it maps it."""
        raise InternalError(f"{self.name}: expected a look at parts of it, found one at the whole")

    @property
    def size(self) -> int:
        """Bytes, when it was opened."""
        return self._size

    def at(self, offset: int, length: int) -> Bytes:
        """So many bytes, fewer where the file ended when it was opened."""
        start, stop, _ = slice(offset, offset + length).indices(self._size)
        found = np.empty(max(0, stop - start), dtype=np.uint8)
        done = 0
        while done < len(found):
            done += self._read(found[done:], start + done)
        found.flags.writeable = False
        return found

    def words(self, offset: int, length: int) -> NDArray[np.uint64]:
        """64-bit words."""
        return self.at(offset, length).view("<u8")

    def _read(self, into: Bytes, offset: int) -> int:
        try:
            count = os.preadv(self._file.fileno(), [into.data], offset)
        except OSError as error:
            raise FormatError(
                f"{self.name}: expected {len(into)} bytes at offset {offset}, found {error.strerror}"
            ) from None
        if not count:
            raise FormatError(
                f"{self.name}: expected {self._size} bytes as when it was opened, found its end at {offset}: "
                "the file was cut short while it was read"
            )
        return count
