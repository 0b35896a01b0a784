"""Large parts of requests: files that are written as a message arrives, and are not read here.

    payloads/<16 hex digits>     0600, one message's bytes; a Payload is a range of it

A file belongs to its spool until a job is accepted with it, then to the job: it stays where it is, and is unlinked
when the job ends. Files of nobody (kill -9 while a message arrived) are unlinked at the next start.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Iterable
from pathlib import Path

from cuzk.engine.request import Payload
from cuzk.errors import EngineError

LOG = logging.getLogger(__name__)
RESERVE_BYTES = 64 << 20  # left free for the database: what runs can end, whatever arrives


class Spool:
    """One file. ``size`` are the bytes written so far; ``expected`` those that were announced."""

    def __init__(self, owner: Spools, path: Path, expected: int) -> None:
        self.path = path
        self.size = 0
        self.expected = expected
        self._owner = owner
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._kept = False
        self._discarded = False

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Append; EngineError where the disk is full."""
        if self._file < 0:
            raise EngineError(f"{self.path}: written to after its request was accepted or dropped")
        rest = memoryview(chunk).cast("B")
        while rest:
            try:
                written = os.pwrite(self._file, rest, self.size)
            except OSError as error:
                raise EngineError(
                    f"{self.path}: cannot write {len(rest)} bytes after {self.size}: {error.strerror}; "
                    f"{self._owner.free()} bytes are free: make room on that disk"
                ) from None
            self.size += written
            rest = rest[written:]

    def payload(self, offset: int, size: int) -> Payload:
        """A range of what is written."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise EngineError(
                f"{self.path}: {size} bytes from {offset} asked for, {self.size} written"
            )
        return Payload(path=self.path, offset=offset, size=size)

    def discard(self) -> None:
        """Close; delete what no job has. Again: nothing."""
        with self._owner.lock:
            self._close()
            nobodys = not self._discarded and not self._kept
            self._discarded = True
        if nobodys:  # without the lock: 256 MiB take 16 ms, and an event loop may want a spool
            self._owner.drop(self.path)

    def keep(self) -> None:
        """A job has it now."""
        self._close()
        self._kept = True

    def give_back(self) -> None:
        """The job was not accepted: the spool's again, and deleted where that was discarded meanwhile."""
        self._kept = False
        if self._discarded:
            self._owner.drop(self.path)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Spools:
    """The folder of all of them. Used from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self._open: dict[str, Spool] = {}
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EngineError(f"{folder}: cannot be made: {error.strerror}") from None

    def free(self) -> int:
        """Bytes that the disk has for us."""
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize

    def new(self, expected: int = 0) -> Spool:
        """A file for a message of about ``expected`` bytes; EngineError where the disk has no room for it and for
        what others announced."""
        with self.lock:
            promised = sum(max(0, spool.expected - spool.size) for spool in self._open.values())
            needed, free = expected + promised + RESERVE_BYTES, self.free()
            if needed > free:
                raise EngineError(
                    f"{self.folder}: a request of {expected} bytes needs {needed} bytes free, with what arrives now "
                    f"and a reserve: there are {free}; make room on that disk"
                )
            path = self.folder / secrets.token_hex(8)
            try:
                spool = Spool(self, path, expected)
            except OSError as error:
                raise EngineError(f"{path}: cannot be made: {error.strerror}") from None
            self._open[path.name] = spool
            return spool

    def name(self, path: Path) -> str:
        """What the journal calls a payload's file; EngineError for one that is not here: a bug."""
        if path.parent != self.folder:
            raise EngineError(f"{path}: a payload outside of {self.folder}")
        return path.name

    def keep(self, names: Iterable[str]) -> None:
        """A job has these: their spools' ``discard`` deletes them no more."""
        with self.lock:
            for name in names:
                if name in self._open:
                    self._open[name].keep()

    def give_back(self, names: Iterable[str]) -> None:
        """That job was not accepted."""
        with self.lock:
            for name in names:
                if name in self._open:
                    self._open[name].give_back()

    def sync(self, names: Iterable[str]) -> None:
        """Bytes and names are on the disk; EngineError where that fails. Blocks."""
        try:
            for path in [*(self.folder / name for name in names), self.folder]:
                file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(file)
                finally:
                    os.close(file)
        except OSError as error:
            raise EngineError(f"{path}: cannot be kept: {error.strerror}") from None

    def accepted(self, names: Iterable[str]) -> None:
        """No spool's any more."""
        with self.lock:
            for name in names:
                self._open.pop(name, None)

    def drop(self, path: Path) -> None:
        """Unlink a file and forget its spool. One that stays is told, and tried again at the next start."""
        with self.lock:
            self._open.pop(path.name, None)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            LOG.warning("%s: cannot be deleted: %s", path, error.strerror)

    def sweep(self, known: set[str]) -> None:
        """Unlink all files that no job has; before the first spool."""
        for path in self.folder.iterdir():
            if path.name not in known:
                self.drop(path)

    def lost(self, name: str, end: int) -> str:
        """Why a payload that reaches to byte ``end`` of a file is not there; "" where it is."""
        try:
            size = (self.folder / name).stat().st_size
        except FileNotFoundError:
            return "is gone"
        return "" if size >= end else f"has {size} bytes, expected {end}"

    def close(self) -> None:
        """Discard what is left."""
        for spool in list(self._open.values()):
            spool.discard()
