"""Compiled kernels kept on disk between processes.

An entry is one file: BLAKE2b-256 of the content, then the content. It is written under another name and
renamed, so a reader sees all of it or none, whichever process wrote it; what does not have its digest
(a full disk, a damaged one) counts as missing. Names carry the digest of all that the content depends
on, so an entry is never out of date.
"""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DIGEST_BYTES = 32


def default_folder() -> Path | None:
    """~/.cache/cuzk/kernels; None for a user without a home."""
    try:
        return Path.home() / ".cache" / "cuzk" / "kernels"
    except RuntimeError:
        return None


@dataclass(frozen=True)
class Cache:
    """A folder of entries; without one, nothing is kept."""

    folder: Path | None

    def get(self, name: str) -> bytes | None:
        """The entry's content, if it is there and whole."""
        if self.folder is None:
            return None
        try:
            entry = (self.folder / name).read_bytes()
        except OSError:
            return None
        content = entry[DIGEST_BYTES:]
        return content if entry[:DIGEST_BYTES] == _digest(content) else None

    def put(self, name: str, content: bytes) -> None:
        """Keep ``content``. A folder that cannot be written costs time only: it is compiled again."""
        if self.folder is None:
            return
        temporary = None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".new-", delete=False) as file:
                temporary = Path(file.name)
                file.write(_digest(content) + content)
            temporary.replace(self.folder / name)
        except OSError:
            if temporary is not None:
                with suppress(OSError):
                    temporary.unlink()


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
