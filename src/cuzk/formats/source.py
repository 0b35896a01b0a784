"""The bytes of one input, wherever they are; and the way all output files are written.

Files are mapped, never read whole: what is not looked at costs nothing, and the operating system may
drop what was. A file must not shrink while it is mapped: what is read behind its new end is a SIGBUS, which
kills the process. A prover looks before each proof (``expect_whole``) and so has an error instead, but for a
file that is cut during a proof. Nor may a buffer given as input change while a key made of it is in use.
Who must not die and needs little of a file opens it by :func:`cuzk.formats.on_demand.on_demand`.
"""

from __future__ import annotations

import io
import mmap
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import CuzkError, FormatError

Bytes = NDArray[np.uint8]
Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap | NDArray[np.generic]
Chunk: TypeAlias = bytes | bytearray | memoryview
Readable: TypeAlias = "str | os.PathLike[str] | Buffer | BinaryIO | Source"

IN_MEMORY = "<bytes>"
COPY_BYTES = 16 << 20


@dataclass(frozen=True)
class Source:
    """``data``: all bytes, read-only, a view; ``name``: what to call them in messages."""

    name: str
    data: Bytes
    mapping: mmap.mmap | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    def at(self, offset: int, length: int) -> Bytes:
        """So many bytes, fewer where the input ends: a view. What reads a file's beginning asks for nothing else."""
        return self.data[offset : offset + length]

    @classmethod
    def open(cls, what: Readable, expected: str = "a file") -> Source:
        """A path (str is one too) is mapped; a buffer is viewed; an open binary file is mapped or read
        from its position on. Raises FormatError where there is nothing to read, saying what was ``expected``.
        """
        if isinstance(what, Source):
            return what
        if isinstance(what, str | os.PathLike):
            return _open_path(what, expected)
        if hasattr(what, "read") and not isinstance(what, mmap.mmap):
            return _open_file(cast(BinaryIO, what), expected)
        return _in_memory(IN_MEMORY, what, expected)

    def expect_whole(self) -> None:
        """FormatError where the file is shorter now than when it was mapped: reading on would be a SIGBUS."""
        if self.mapping is not None and (size := self.mapping.size()) < len(self.mapping):
            raise FormatError(
                f"{self.name}: expected {len(self.mapping)} bytes as when it was opened, found {size}: "
                "the file was cut short while in use; load it again"
            )

    def words(self, offset: int, length: int) -> NDArray[np.uint64]:
        """64-bit words of ``length`` bytes at ``offset``, aligned: a view where they lie at a multiple of 8.

        Elsewhere a copy. A section of iden3's files begins wherever the one before it ended, so about half
        of those that hold points lie at 4 mod 8. x86-64 and aarch64 would load such words all the same,
        but the compiler of the native code may count on alignment (a vectorised loop that peels up to 16
        bytes would fault), and loads through memcpy everywhere would tie every kernel to this one format.
        A copy costs 5 to 15 ms for the 32 MiB that are misaligned in a key of 2^17 constraints (one core of an
        EPYC, first touch included), and no memory to speak of: the mapped pages behind it are given back.
        """
        raw = self.data[offset : offset + length]
        if raw.ctypes.data % 8 == 0:
            return raw.view("<u8")
        copy = np.empty(length, dtype=np.uint8)
        for start in range(0, length, COPY_BYTES):
            copy[start : start + COPY_BYTES] = raw[start : start + COPY_BYTES]
            self.forget(offset + start, min(COPY_BYTES, length - start))
        copy.flags.writeable = False
        return copy.view("<u8")

    def forget(self, offset: int, length: int) -> None:
        """These bytes will not be read again soon: they need not stay resident. They stay readable."""
        if self.mapping is None or not hasattr(mmap, "MADV_DONTNEED"):
            return
        begin = (
            offset + len(self.mapping) - self.size
        )  # data may begin behind the mapping's first byte
        first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (begin + length) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            self.mapping.madvise(mmap.MADV_DONTNEED, first, last - first)


def octets(array: NDArray[np.generic]) -> memoryview:
    """The bytes of an array, C order; a copy only where it is not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def printable(text: str) -> str:
    """``text`` in one line: control characters and what is no text at all are escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a pipe (save it to a file first)"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _open_path(what: str | os.PathLike[str], expected: str) -> Source:
    file, shown = open_regular(what, expected)
    with file:
        try:
            return _map(file, shown, expected)
        except (OSError, ValueError) as error:
            raise FormatError(f"{shown}: expected {expected}, found {_reason(error)}") from None


def open_regular(what: str | os.PathLike[str], expected: str) -> tuple[io.FileIO, str]:
    """A regular file, to be closed, and its path as messages show it. FormatError for anything else."""
    path = os.fsdecode(what)
    shown = printable(path) or '""'
    try:
        mode = Path(path).stat().st_mode  # before opening: a pipe would wait for its writer
        if not stat.S_ISREG(mode):
            raise FormatError(f"{shown}: expected {expected}, found {_kind(mode)}")
        return open(path, "rb", buffering=0), shown  # noqa: PTH123
    except (OSError, ValueError) as error:
        raise FormatError(f"{shown}: expected {expected}, found {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no file of that name"
    if isinstance(error, PermissionError):
        return "one that may not be read (permission denied)"
    return (isinstance(error, OSError) and error.strerror) or printable(str(error))


def _map(file: io.FileIO, shown: str, expected: str, position: int = 0) -> Source:
    size = os.fstat(file.fileno()).st_size
    if size <= position:
        raise FormatError(f"{shown}: expected {expected}, found an empty file")
    mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data = np.frombuffer(mapping, dtype=np.uint8)[position:]
    return Source(os.path.basename(shown), data, mapping)  # noqa: PTH119


def _open_file(file: BinaryIO, expected: str) -> Source:
    label = getattr(file, "name", IN_MEMORY)
    shown = printable(label) if isinstance(label, str) else IN_MEMORY
    try:
        raw = getattr(file, "raw", file)
        if isinstance(raw, io.FileIO) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            if file.writable():
                file.flush()
            return _map(raw, shown, expected, file.tell())
        if isinstance(file, io.BytesIO):
            return _in_memory(shown, file.getbuffer()[file.tell() :], expected)
        content = file.read()
    except (OSError, ValueError) as error:
        raise FormatError(f"{shown}: expected {expected}, found {_reason(error)}") from None
    if not isinstance(content, bytes):
        raise FormatError(f"{shown}: expected a file opened in binary mode, found text mode")
    return _in_memory(shown, content, expected)


def _in_memory(name: str, what: object, expected: str) -> Source:
    try:
        view = memoryview(what).cast("B")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise FormatError(
            f"{name}: expected {expected} as a path, contiguous bytes or an open binary file, "
            f"found {type(what).__name__}"
        ) from None
    if not len(view):
        raise FormatError(f"{name}: expected {expected}, found no bytes")
    data = np.frombuffer(view, dtype=np.uint8)
    data.flags.writeable = False
    return Source(name, data)


def write_atomically(path: str | os.PathLike[str], chunks: Iterable[Chunk]) -> None:
    """All of ``chunks`` or nothing: a temporary file beside the target takes its place when complete.

    On any error the target stays as it was. A symlink is followed; the target's mode is kept, a new
    file's follows the umask; what is no regular file (/dev/null, a pipe) is written in place. Raises
    CuzkError where the operating system refuses.
    """
    write_together({path: chunks})


def write_together(files: Mapping[str | os.PathLike[str], Iterable[Chunk]]) -> None:
    """Several files as by :func:`write_atomically`; none takes its place before all are complete."""
    with ExitStack() as cleanup:
        complete = []
        for path, chunks in files.items():
            with _refusals(path):
                mode = _mode(path)
                if mode is not None and not stat.S_ISREG(mode):
                    _fill(os.open(path, os.O_WRONLY | os.O_CLOEXEC), chunks)
                    continue
                target = Path(os.path.realpath(path))
                temporary = target.parent / f".cuzk-{secrets.token_hex(8)}.tmp"
                cleanup.callback(temporary.unlink, missing_ok=True)
                _fill_new(temporary, mode, chunks)
                complete.append((path, temporary, target))
        for path, temporary, target in complete:
            with _refusals(path):
                temporary.replace(target)


@contextmanager
def _refusals(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the operating system refuses, as CuzkError with the name that the caller gave."""
    try:
        yield
    except (OSError, ValueError) as error:
        shown = printable(os.fsdecode(os.fspath(path)))
        reason = (isinstance(error, OSError) and error.strerror) or printable(str(error))
        raise CuzkError(f"{shown}: cannot be written: {reason}") from None


def _mode(path: str | os.PathLike[str]) -> int | None:
    """Type and permissions of what is there now."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(0, "expected the name of a file, found a directory")
    return mode


def _fill_new(temporary: Path, mode: int | None, chunks: Iterable[Chunk]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666)  # the umask applies
    _fill(descriptor, chunks, sync=True)
    if mode is not None:
        temporary.chmod(stat.S_IMODE(mode))


def _fill(descriptor: int, chunks: Iterable[Chunk], *, sync: bool = False) -> None:
    with os.fdopen(descriptor, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        if sync:  # or a power failure after the rename may leave an empty file
            file.flush()
            os.fsync(descriptor)
