"""Circuits that prove nothing and do as they are told, for tests of what runs them.

A script is words separated by ";": "sleep 0.1", "wait FILE" (until it exists; FILE.begun exists from then on),
"kill 9", "abort", "exit 3", "raise FormatError what", "say what" (to stderr), "touch FILE", "native 60" (in C, holding
the GIL), "pipe FILE" (in C until a byte comes out of that pipe, which is its own then), "held FILE" (likewise, holding the
GIL), "lock" (an answer that is no data), "big 1000" (an answer of that many bytes), "requests ID"
(how many requests of that id are in memory), "times FILE" (the rest as often as the number in FILE says, if it is
there; counted down).
Of a step of a request it is the field of the step's name, of a load what the catalogue has for the circuit.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakSet

import cuzk.errors
from cuzk.engine.catalogue import CircuitEntry, Device, Needs, PartProof, Route, WholeProof
from cuzk.engine.request import Payload, Priority, Request

LONGEST_WAIT = 120.0  # seconds: a test that has failed does not hang
PREPARED: WeakSet[Prepared] = WeakSet()
STAGED: WeakSet[StagedPart] = WeakSet()


def request_of(name: str, payload: bytes | Payload = b"payload", **fields: Any) -> Request:
    part = payload if isinstance(payload, Payload) else Payload.of(payload)
    return Request(
        id=name, kind="circuit", priority=Priority.NORMAL, fields=fields, payload=(part,)
    )


def proof_of(name: str, payload: bytes, partition: int) -> bytes:
    return f"{name}/{partition}/{sha256(payload).hexdigest()}".encode()


def act(script: object) -> Any:
    """Do it; what "lock" gives."""
    given = None
    for words in str(script or "").split(";"):
        word, _, rest = words.strip().partition(" ")
        if word == "times":
            # a test may be writing it just now: then it is not there yet
            left = int(Path(rest).read_text() or 0) if Path(rest).exists() else 0
            if not left:
                return None
            Path(f"{rest}.new").write_text(str(left - 1))
            Path(f"{rest}.new").replace(rest)
        elif word:
            given = getattr(Acts, word)(rest) or given
    return given


class Acts:
    @staticmethod
    def sleep(seconds: str) -> None:
        time.sleep(float(seconds))

    @staticmethod
    def wait(path: str) -> None:
        Path(f"{path}.begun").touch()
        until = time.monotonic() + LONGEST_WAIT
        while not Path(path).exists():
            if time.monotonic() > until:
                raise TimeoutError(path)
            time.sleep(0.002)

    @staticmethod
    def touch(path: str) -> None:
        Path(path).touch()

    @staticmethod
    def kill(number: str) -> None:
        os.kill(os.getpid(), int(number))
        signal.pause()

    @staticmethod
    def abort(_: str) -> None:
        os.abort()

    @staticmethod
    def exit(status: str) -> None:
        os._exit(int(status))

    @staticmethod
    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    @staticmethod
    def native(seconds: str) -> None:
        ctypes.PyDLL(None).sleep(int(seconds))

    @staticmethod
    def pipe(path: str) -> None:
        _byte(path, ctypes.CDLL(None))

    @staticmethod
    def held(path: str) -> None:
        _byte(path, ctypes.PyDLL(None))

    @staticmethod
    def lock(_: str) -> object:
        return Lock()

    @staticmethod
    def requests(name: str) -> object:
        return str(sum(isinstance(o, Request) and o.id == name for o in gc.get_objects()))

    @staticmethod
    def big(nbytes: str) -> object:
        return bytes(int(nbytes))


def _byte(path: str, library: ctypes.CDLL) -> None:
    """FILE.begun exists from then on. What a test has not opened any more lets all through."""
    file = os.open(path, os.O_RDONLY)
    Path(f"{path}.begun").touch()
    library.read(file, ctypes.create_string_buffer(1), ctypes.c_size_t(1))
    os.close(file)


def _raise(text: str) -> None:
    name, _, what = text.partition(" ")
    if hasattr(cuzk.errors, name):
        raise getattr(cuzk.errors, name)(what)
    raise {"ValueError": ValueError, "MemoryError": MemoryError}[name](what)


setattr(Acts, "raise", staticmethod(_raise))


class Prepared:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.data = b"".join(part.view() for part in request.payload)
        self.itself = None
        PREPARED.add(self)


class PreparedLarge(Prepared):
    nbytes = 12345


class StagedPart:
    nbytes = 7

    def __init__(self, prepared: Prepared, partition: int) -> None:
        self.prepared, self.partition = prepared, partition
        STAGED.add(self)


@dataclass
class ToyCircuit:
    circuit: str
    slot_count: int
    closed: str = ""

    def needs(self) -> Needs:
        return Needs(key={"host": 1000}, partition={"host": 10})

    def tier(self) -> str:
        return "hot"

    def slots(self) -> int:
        return self.slot_count

    def prepare(self, request: Request) -> Prepared:
        act(request.fields.get("prepare"))
        return PreparedLarge(request) if "large" in request.fields else Prepared(request)

    def prove(self, prepared: Prepared, partition: int) -> PartProof:
        began = time.time()
        given = act(prepared.request.fields.get("prove"))
        proof = proof_of(prepared.request.id, prepared.data, partition)
        milliseconds = {"all": given} if given else {"all": 1.5}
        span = ("host", "msm", began, time.time())
        return PartProof(proof, milliseconds, self.circuit, (span,))

    def finish(self, prepared: Prepared, parts: list[PartProof]) -> WholeProof:
        act(prepared.request.fields.get("finish"))
        return WholeProof(b"+".join(part.proof for part in parts), b"[]")

    def close(self) -> None:
        if self.closed:
            Path(self.closed).touch()


class StagingToy(ToyCircuit):
    def needs(self) -> Needs:
        return replace(super().needs(), ahead={"host": 7})

    def stage(self, prepared: Prepared, partition: int) -> StagedPart:
        act(prepared.request.fields.get("stage"))
        return StagedPart(prepared, partition)

    def prove_staged(self, prepared: Prepared, partition: int, staged: StagedPart) -> PartProof:
        assert (staged.prepared, staged.partition) == (prepared, partition)
        return replace(self.prove(prepared, partition), public=b"staged")


@dataclass(frozen=True)
class ToyCatalogue:
    """``loads``: circuits and what they do when they are opened; ``device_does``: when the device is asked for."""

    loads: Mapping[str, str] = field(default_factory=lambda: {"toy": ""})
    slots: int = 2
    device_does: str = ""
    closed: str = ""
    """A file that is there when a circuit was closed."""
    extra: Any = None
    stages: bool = False
    """Whether its circuits stage partitions."""

    def entries(self) -> list[CircuitEntry]:
        return [CircuitEntry(id=name, kind="circuit", key=f"{name}.zkey") for name in self.loads]

    def named(self, name: str) -> str:
        return name

    def route(self, request: Request) -> Route:
        return Route("toy", int(request.fields.get("partitions", 1)))

    def needs(self, circuit: str, device: str) -> Needs:  # noqa: ARG002
        return Needs()

    def check(self, request: Request) -> None:
        act(request.fields.get("check"))

    def device(self, device: str) -> Device:
        act(self.device_does)
        return Device(f"Toy {device}", {device: 100}, {device: 40})

    def open(self, circuit: str, device: str, threads: int | None, lanes: int | None) -> ToyCircuit:
        act(self.loads[circuit])
        kind = StagingToy if self.stages else ToyCircuit
        return kind(f"{circuit} on {device}, {threads}, {lanes}", self.slots, self.closed)
