"""What somebody wants proved, as it came: the engine reads none of it but its id, priority and deadline."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType

from cuzk.errors import EngineError

PIECE = 1 << 20  # bytes that are read at a time
Field = int | str | bytes


class Priority(IntEnum):
    """Higher goes first; numbers are those of cuzk.v1.Priority."""

    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


@dataclass(frozen=True)
class Payload:
    """Bytes of a request, in memory or in the journal's directory: ``size`` of them from ``offset`` of ``path``."""

    data: bytes | None = field(default=None, repr=False)  # may be a witness: never in a log
    path: Path | None = None
    offset: int = 0
    size: int = 0

    @classmethod
    def of(cls, data: bytes) -> Payload:
        """Bytes in memory."""
        return cls(data=data, size=len(data))

    def view(self) -> memoryview:
        """The bytes, read-only; of a file a map of its own, gone with the last reference to it."""
        if self.path is None:
            return memoryview(self.data or b"")
        if not self.size:
            return memoryview(b"")
        start = self.offset % mmap.ALLOCATIONGRANULARITY
        with self.path.open("rb") as file:
            mapped = mmap.mmap(
                file.fileno(),
                self.size + start,
                access=mmap.ACCESS_READ,
                offset=self.offset - start,
            )
        return memoryview(mapped)[start:]

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes one piece after the other, each until the next is asked for. Of a file they are read, not mapped:
        to unmap 255 MiB holds up all threads of Python for 10 ms."""
        if self.path is None:
            yield self.data or b""
            return
        piece, left = memoryview(bytearray(min(PIECE, self.size))), self.size
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.offset)
            while left and (count := file.readinto(piece[:left])):
                yield piece[:count]
                left -= count
        if left:
            raise EngineError(f"{self.path}: {left} of {self.size} bytes are missing")


@dataclass(frozen=True)
class Request:
    """One request. ``id`` is the caller's or one made here; ``kind`` the name of what is to be proved.

    ``fields`` are the rest of the message by their names in the .proto, those that were set; ``payload`` its large
    parts, in order: vanilla proofs, or a witness. ``deadline`` is in seconds of the epoch.
    """

    id: str
    kind: str
    """ "porep-c2", "snap-update", "window-post", "winning-post" or "circuit"."""
    priority: Priority
    fields: Mapping[str, Field] = field(default_factory=lambda: MappingProxyType({}))
    payload: tuple[Payload, ...] = ()
    deadline: float | None = None
    client: str = ""
    """Who asked, for limits and the log."""
    named: bool = True
    """The caller gave the id, and may come back with it."""

    @property
    def nbytes(self) -> int:
        """Of the payload."""
        return sum(part.size for part in self.payload)

    def digest(self) -> bytes:
        """32 bytes of BLAKE2b over all that is to be proved: the same for a repeat, whoever sends it when.

        Hashes the payload (1 GB/s, without the GIL): not for an event loop where that is large.
        """
        state = blake2b(digest_size=32)
        parts = [self.kind.encode()]
        for name in sorted(self.fields):
            value = self.fields[name]
            parts += [name.encode(), value if isinstance(value, bytes) else repr(value).encode()]
        for part in parts:
            state.update(len(part).to_bytes(8, "little"))
            state.update(part)
        for payload in self.payload:
            state.update(payload.size.to_bytes(8, "little"))
            for piece in payload.pieces():
                state.update(piece)
        return state.digest()
