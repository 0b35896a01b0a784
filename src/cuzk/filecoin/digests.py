"""Digests of large files, remembered: a key of 44 GiB takes most of a minute to hash.

One small file for every file that was hashed, named by its path: the digest with the size, the inode and the
times of the last change that it was made for. Another size, time or inode, or an entry that cannot be read,
means hashing again. A file that changed in the last seconds is not remembered, as a second change within the
resolution of the clock would not be seen.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from cuzk.errors import CuzkError, FormatError
from cuzk.formats.bellman import key_digest
from cuzk.formats.source import Source, printable, write_atomically

SETTLED_SECONDS = 2


def default_folder() -> Path | None:
    """~/.cache/cuzk/digests; None for a user without a home."""
    try:
        return Path.home() / ".cache" / "cuzk" / "digests"
    except RuntimeError:
        return None


@dataclass(frozen=True)
class DigestCache:
    """A folder of entries; without one, or with one that cannot be written, files are hashed every time."""

    folder: Path | None

    def digest(self, path: Path) -> str:
        """Filecoin's digest of a file: the first 32 hexadecimal digits of its BLAKE2b-512."""
        path = path.resolve()
        before = _state(path)
        entry = None
        if self.folder is not None:
            entry = self.folder / f"{sha256(bytes(path)).hexdigest()[:32]}.json"
            if (known := _remembered(entry, before)) is not None:
                return known
        digest = key_digest(Source.open(path, "a parameter file").data)
        if _state(path) != before:
            raise FormatError(
                f"{path.name}: expected a file at rest, found it changing while it was hashed"
            )
        if entry is not None and time.time() - before["changed_ns"] / 1e9 > SETTLED_SECONDS:
            content = json.dumps({"path": printable(str(path)), **before, "digest": digest}) + "\n"
            with suppress(CuzkError, OSError):  # costs time only
                entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomically(entry, [content.encode()])
        return digest


def _state(path: Path) -> dict[str, int]:
    """What differs when the content does."""
    try:
        status = path.stat()
    except OSError as error:
        raise FormatError(
            f"{printable(str(path))}: expected a parameter file, found {error.strerror or error}"
        ) from None
    return {
        "size": status.st_size,
        "inode": status.st_ino,
        "modified_ns": status.st_mtime_ns,
        "changed_ns": status.st_ctime_ns,
    }


def _remembered(entry: Path, state: dict[str, int]) -> str | None:
    try:
        found = json.loads(entry.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or any(
        found.get(name) != value for name, value in state.items()
    ):
        return None
    digest = found.get("digest")
    return digest if isinstance(digest, str) else None
