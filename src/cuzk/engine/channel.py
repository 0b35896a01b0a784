"""Messages between the daemon and the process of a worker: numbered, framed and pickled, over a socketpair.

    frame = bytes of the body (u64), number of the call (u64), body (a pickle)

    to the worker      (method, arguments)
    from the worker    (value or Failure, Vitals), with the call's number; 0 for Vitals that nobody asked for

A pickle does what it says when it is read. These come from nowhere but a socket without a name, between a process
and the child that it has started; and the daemon, whose worker reads what strangers sent and might be taken over by
it, lets an answer make nothing but the few types that answers consist of.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cuzk.errors import EngineError

HEADER = struct.Struct("<QQ")
MESSAGE_LIMIT = 64 << 20  # of a request at most 1 MiB is in memory, the rest in a file
ANSWERS = {
    ("cuzk.engine.catalogue", "Device"),
    ("cuzk.engine.catalogue", "Needs"),
    ("cuzk.engine.catalogue", "PartProof"),
    ("cuzk.engine.catalogue", "WholeProof"),
    ("cuzk.engine.channel", "Vitals"),
    ("cuzk.engine.channel", "read_only"),
    ("cuzk.engine.failure", "Failure"),
    ("cuzk.engine.worker", "Loaded"),
}


@dataclass(frozen=True)
class Vitals:
    """Of a worker's process and its device: bytes resident, bytes free in each of the device's memories, and those taken
    whatever is proved."""

    resident: int = 0
    free: Mapping[str, int] = field(default_factory=dict)
    overhead: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def read_only(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """How a read-only mapping is made again."""
    return MappingProxyType(items)


class _Pickler(pickle.Pickler):
    dispatch_table: Mapping[type, Callable[[Any], Any]] = {
        **copyreg.dispatch_table,
        MappingProxyType: lambda mapping: (read_only, (dict(mapping),)),
    }


class _Answers(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ANSWERS:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of an answer")
        return super().find_class(module, name)


def pack(number: int, message: object, limit: int = MESSAGE_LIMIT) -> bytes:
    """A frame; EngineError where the message cannot be pickled, or has more than ``limit`` bytes."""
    body = io.BytesIO()
    body.write(HEADER.pack(0, number))
    try:
        _Pickler(body, protocol=5).dump(message)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise EngineError(f"a message of a worker cannot be pickled: {reason}") from error
    size = body.tell() - HEADER.size
    if size > limit:
        raise EngineError(
            f"a message of a worker: at most {limit} bytes, found {size}; large parts belong in a file"
        )
    body.seek(0)
    body.write(size.to_bytes(8, "little"))
    return body.getvalue()


def answer_of(body: bytes) -> Any:
    """What the daemon reads of its worker; pickle.UnpicklingError and others where it is no answer."""
    return _Answers(io.BytesIO(body)).load()


class Frames:
    """Puts frames together from the pieces in which a socket delivers them."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._kept = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[int, bytes]]:
        """(number, body) of all that are complete; EngineError where one is too long."""
        kept = self._kept
        kept += piece
        while len(kept) >= HEADER.size:
            size, number = HEADER.unpack_from(kept)
            if size > self._limit:
                raise EngineError(
                    f"a message of a worker: at most {self._limit} bytes, found {size}"
                )
            end = HEADER.size + size
            if len(kept) < end:
                return
            body = bytes(memoryview(kept)[HEADER.size : end])
            del kept[:end]
            yield number, body


class Channel:
    """The child's end: one thread receives, any sends."""

    def __init__(self, connection: socket.socket, limit: int = MESSAGE_LIMIT) -> None:
        self._connection = connection
        self._limit = limit
        self._sending = threading.Lock()

    def receive(self) -> tuple[int, bytes]:
        """(number, body) of the next frame; EOFError when the other end is gone."""
        size, number = HEADER.unpack(self._exactly(HEADER.size))
        return number, self._exactly(size)

    def send(self, number: int, message: object) -> None:
        """EngineError where the message cannot be sent, OSError when the other end is gone."""
        frame = pack(number, message, self._limit)
        with self._sending:
            self._connection.sendall(frame)

    def _exactly(self, size: int) -> bytes:
        whole = bytearray(size)
        rest = memoryview(whole)
        while rest:
            got = self._connection.recv_into(rest)
            if not got:
                raise EOFError
            rest = rest[got:]
        return bytes(whole)
