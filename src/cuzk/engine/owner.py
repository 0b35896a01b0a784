"""One daemon per folder: a lock that the kernel gives up with the process, in a file that says whose it is.

    owner     "PID\\n", under flock(LOCK_EX) as long as the process lives

A file left by kill -9 is not locked, and is taken at once. The file itself stays: who deletes it deletes another's.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from cuzk.errors import EngineError, Unavailable


class Owner:
    """The lock, held from the start. Unavailable, with the owner's pid, where another has it.

    A child made by fork alone (without exec) shares it, and holds it when its parent has died.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EngineError(
                f"{path}: cannot be opened: {error.strerror}; is the folder on a disk that can be written?"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = owner_pid(self._file)
            os.close(self._file)
            raise Unavailable(
                f"{path.parent}: in use by {holder}: stop that daemon, or give this one another state folder"
            ) from None
        except OSError as error:
            os.close(self._file)
            raise EngineError(f"{path}: cannot be locked: {error.strerror}") from None

    def release(self) -> None:
        """Once."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def owner_pid(file: int) -> str:
    """ "process 123", or "another process" in the moment between its lock and its pid."""
    text = os.pread(file, 20, 0).decode("ascii", "replace").strip()
    return f"process {text}" if text.isdigit() else "another process"
