"""A stand-in for the module ``cuda.bindings.driver`` over host memory: what :mod:`device` does with a driver,
without one.

It is as lazy as the real one may be: a stream's copies, fills, launches and frees happen when something waits
for them, in order; memory that was freed is given again as soon as the real pool may. Statuses and
enumerations are the real module's. Kernels run in the emulator; ``units``
says which unit a module's code is. ``fail["cuLaunchKernel"] = "ILLEGAL_ADDRESS"`` makes the next call of
that function report so; errors that are sticky in a context stay. ``flips`` are the numbers of copies to the
host in which one bit changes on the way.
"""

# ruff: noqa: ARG002, N802 - names and parameters are the driver's
from __future__ import annotations

import ctypes
import random
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as real
from numpy.typing import NDArray

from cuzk.backends.cuda import device
from cuzk.backends.cuda import kernels as kernel_sources
from cuzk.backends.cuda.driver import STICKY
from cuzk.backends.cuda.machine import Unit
from emulator import kernels, library
from emulator.faults import Fault, What, interrupt_caller, uninterrupted
from emulator.streams import Event, Free, Piece, Stream, Wait

STATIC_SHARED = (
    132  # bytes of each kernel: it counts for what a launch may have without being asked
)
ONE_AT_A_TIME = threading.Lock()  # a unit of the emulator runs one grid
OK = real.CUresult.CUDA_SUCCESS
Answer = tuple[Any, ...]


def status(name: str) -> Any:
    return getattr(real.CUresult, f"CUDA_ERROR_{name}")


@dataclass(eq=False)
class Function:
    unit: Unit
    name: str
    shared: int = (48 << 10) - STATIC_SHARED


class FakeDriver:
    """``devices`` cards of ``memory`` bytes; ``others`` of them are held by another process.

    Streams run when something waits for them, or, with ``eager`` (a seed), some of them some steps after any
    call, in turns: then too little waiting shows, too. ``pinnable`` bytes may be registered.
    """

    def __init__(self, *, devices: int = 1, memory: int = 1 << 30, architecture: int = 90, cuda: int = 13000, eager: int = 0) -> None:  # fmt: skip
        self.devices, self.memory, self.others = devices, memory, 0
        self.pinnable = 1 << 40
        self.registered: dict[int, int] = {}
        self._stamps: dict[int, object] = {}  # of the registrations: the same pages may get another
        self._dice: Any = random.Random(eager) if eager else None  # or what chooses streams itself
        self.architecture, self.cuda = architecture, cuda
        self.units: dict[bytes, Unit] = {}
        self.fail: dict[str, str] = {}
        self.flips: set[int] = set()
        self.downloads = 0
        self.sticky: Any = None
        self.blocks: dict[int, NDArray[np.uint8]] = {}  # device memory
        self.pinned: dict[int, NDArray[np.uint8]] = {}
        self.streams: list[Stream] = []
        self.events: set[Event] = set()
        self.reserved = 0  # what the pool took from the device
        self.calls: list[str] = []
        self.violations: list[str] = []  # what a card would have faulted on
        self._faults: list[Fault] = []
        self._freed: list[Piece] = []  # by frees that their streams have not come to
        self._idle: list[Piece] = []  # host memory stays, whoever still writes into it
        self._pieces: dict[int, Piece] = {}
        self._current = threading.local()
        self._lock = threading.RLock()

    def fault(self, function: str, nth: int, what: What, *, after: bool = False) -> None:
        """The nth call from now of a function, or of any in WORK ("*"), fails, before or after it did its work.

        ``what`` is a status ("OUT_OF_MEMORY"), an exception (KeyboardInterrupt: as one may be raised in the
        caller's thread between two of its calls; in another thread or a finaliser it waits for the next call),
        or a function that is called.
        """
        self._faults.append(Fault(function, nth, what, after))

    @property
    def alive(self) -> dict[str, int]:
        """What has not been given back."""
        return {
            "device": self.used,
            "pinned": len(self.pinned),
            "registered": sum(self.registered.values()),
            "events": len(self.events),
            "streams": len(self.streams),
        }

    def _struck(self, fault: Fault) -> Answer:
        if isinstance(fault.what, str):
            if fault.what in STICKY:
                self.sticky = status(fault.what)
            return (status(fault.what),)
        if isinstance(fault.what, type):
            if fault.after and fault.what is KeyboardInterrupt:
                interrupt_caller()
                return ()
            raise fault.what
        fault.what()
        return ()

    def _due(self, name: str) -> list[Fault]:
        for fault in self._faults:
            fault.left -= fault.function == name or (fault.function == "*" and name in WORK)
        due = [f for f in self._faults if f.left <= 0 and (f.anywhere or not uninterrupted())]
        self._faults = [f for f in self._faults if f not in due]
        return due

    def __getattr__(self, name: str) -> Any:
        """Functions by way of the checks that all share; everything else is the real module's."""
        if not name.startswith("cu") or name.startswith("cuuint"):
            return getattr(real, name)
        function = object.__getattribute__(self, f"_{name}")

        def call(*args: Any) -> Answer:
            with self._lock:
                due = self._due(name)
            for fault in due:
                if not fault.after and (failed := self._struck(fault)):
                    return failed
            with self._lock:
                answer = answered(*args)
            for fault in due:
                if fault.after and (failed := self._struck(fault)):
                    return failed
            return answer

        def answered(*args: Any) -> Answer:
            self.calls.append(name)
            if name == "cuGetErrorString":
                return function(*args)  # type: ignore[no-any-return]
            if (code := self.fail.pop(name, "")) in STICKY:
                self.sticky = status(code)
            elif code:
                return (status(code),)
            if self.sticky is not None:
                return (self.sticky,)
            if name not in WITHOUT_CONTEXT and not getattr(self._current, "set", False):
                return (status("INVALID_CONTEXT"),)
            answer = function(*args)
            if self._dice:
                for stream in self._dice.sample(self.streams, len(self.streams)):
                    if not self._dice.randrange(LONG):
                        stream.busy = not stream.busy
                    stream.run_ahead(0 if stream.busy else self._dice.randrange(4))
            return (OK, *answer) if isinstance(answer, tuple) else (answer,)

        return call

    # Devices and contexts

    def _cuInit(self, flags: int) -> Any:
        return () if self.devices else status("NO_DEVICE")

    def _cuGetErrorString(self, code: Any) -> Answer:
        return OK, b"what " + code.name.encode() + b" means"

    def _cuDeviceGetCount(self) -> Answer:
        return (self.devices,)

    def _cuDeviceGet(self, ordinal: int) -> Any:
        return (ordinal,) if ordinal < self.devices else status("INVALID_DEVICE")

    def _cuDeviceGetAttribute(self, attribute: Any, device: int) -> Answer:
        values = {
            "COMPUTE_CAPABILITY_MAJOR": self.architecture // 10,
            "COMPUTE_CAPABILITY_MINOR": self.architecture % 10,
            "MULTIPROCESSOR_COUNT": 2,
        }
        return (values[attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")],)

    def _cuDeviceGetUuid(self, device: int) -> Answer:
        return (SimpleNamespace(bytes=bytes(range(16 * device, 16 * device + 16))),)

    def _cuDeviceGetName(self, length: int, device: int) -> Answer:
        return (b"Emulated GPU".ljust(length, b"\0"),)

    def _cuDeviceTotalMem(self, device: int) -> Answer:
        return (self.memory,)

    def _cuDriverGetVersion(self) -> Answer:
        return (self.cuda,)

    def _cuDevicePrimaryCtxRetain(self, device: int) -> Answer:
        return (("context", device),)

    def _cuCtxSetCurrent(self, context: Any) -> Answer:
        self._current.set = True
        return ()

    # Memory

    def _cuMemPoolCreate(self, properties: Any) -> Answer:
        return ("pool",)

    def _cuMemPoolSetAttribute(self, pool: Any, name: Any, value: Any) -> Answer:
        return ()

    def _cuMemPoolGetAttribute(self, pool: Any, name: Any) -> Answer:
        reserved = real.CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
        return (real.cuuint64_t(self.reserved if name == reserved else self._held),)

    def _cuMemPoolTrimTo(self, pool: Any, keep: int) -> Answer:
        self.reserved = self._held
        return ()

    @property
    def used(self) -> int:
        """Bytes of device memory, when streams have made the frees that nothing is before."""
        with self._lock:
            for stream in self.streams:
                stream.run_frees()
            return self._held

    @property
    def _held(self) -> int:
        return sum(block.nbytes - 256 for block in self.blocks.values())

    def _cuMemGetInfo(self) -> Answer:
        return self.memory - self.others - self.reserved, self.memory

    def _cuMemAllocFromPoolAsync(self, nbytes: int, pool: Any, stream: Stream) -> Any:
        """What its own stream has given back at once, that of others when they have come to it."""
        if nbytes == 0:
            return status("INVALID_VALUE")
        for found in (self._freed, self._idle):
            for piece in reversed(found):
                if piece.nbytes == nbytes and piece.is_there_for(stream) and (piece.pending or self._fits(nbytes)):  # fmt: skip
                    found.remove(piece)
                    return self._given(piece)
        if not self._fits(nbytes):
            return status("OUT_OF_MEMORY")
        return self._given(Piece(np.full(nbytes + 256, 0xC7, np.uint8), nbytes))

    def _fits(self, nbytes: int) -> bool:
        return self._held + nbytes <= self.memory - self.others

    def _given(self, piece: Piece) -> Answer:
        piece.live = True
        self._pieces[piece.address] = piece
        self.blocks[piece.address] = piece.array
        self.reserved = max(self.reserved, self._held)
        return (piece.address,)

    def _cuMemFreeAsync(self, address: int, stream: Stream) -> Any:
        assert stream.open
        piece = self._pieces.get(address)
        if piece is None or not piece.live:
            return status("INVALID_VALUE")
        piece.live, piece.pending = False, piece.pending + 1
        piece.freed = Wait(stream, stream.queued + 1)
        self._freed.append(piece)

        def free() -> None:
            piece.fill(0xDD)
            piece.pending -= 1
            if piece in self._freed and not piece.pending:
                self._freed.remove(piece)
                del self.blocks[address]
                self._idle.append(piece)

        stream.waiting.append(Free(free))
        return ()

    def _cuMemAllocHost(self, nbytes: int) -> Answer:
        array = np.full(nbytes, 0xC7, np.uint8)
        self.pinned[array.ctypes.data] = array
        return (array.ctypes.data,)

    def _cuMemFreeHost(self, address: int) -> Answer:
        del self.pinned[address]
        return ()

    def _cuMemHostRegister(self, address: int, nbytes: int, flags: int) -> Any:
        if address % 4096 or nbytes % 4096 or not nbytes:
            return status("INVALID_VALUE")
        if any(address < a + n and a < address + nbytes for a, n in self.registered.items()):
            return status("HOST_MEMORY_ALREADY_REGISTERED")
        if sum(self.registered.values()) + nbytes > self.pinnable:
            return status("OUT_OF_MEMORY")
        self.registered[address], self._stamps[address] = nbytes, object()
        return ()

    def _cuMemHostUnregister(self, address: int) -> Any:
        """At once: whether copies still need the pages is for the caller to know."""
        if address not in self.registered:
            return status("HOST_MEMORY_NOT_REGISTERED")
        del self.registered[address], self._stamps[address]
        return ()

    def _locked(self, first: int, nbytes: int) -> object:
        """What holds these bytes in place, False where that is true of a part of them."""
        locked = [(a, n, self._stamps[a]) for a, n in self.registered.items()]
        locked += [(a, array.nbytes, array) for a, array in self.pinned.items()]
        for start, length, holder in locked:
            if start <= first and first + nbytes <= start + length:
                return holder
            if start < first + nbytes and first < start + length:
                return False
        return None

    def _cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: Stream) -> Any:
        """From pinned pages when the stream gets there. Pageable memory is read now: little of it is kept for
        that time, for more the stream is waited for.
        """
        holder = self._locked(source, nbytes)
        if holder is False:
            return status("INVALID_VALUE")
        if holder is None:
            taken = ctypes.string_at(source, nbytes)
            stream.waiting.append(lambda: void(ctypes.memmove(to, taken, nbytes)))
            if nbytes > SHORT:
                stream.run()
            return ()

        def copy() -> None:
            if self._locked(source, nbytes) is holder:
                ctypes.memmove(to, source, nbytes)
            else:
                self._violated(f"copy of {nbytes} bytes from pages that were let go")

        stream.waiting.append(copy)
        return ()

    def _violated(self, what: str) -> None:
        self.violations.append(what)
        self.sticky = status("ILLEGAL_ADDRESS")

    def _cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, stream: Stream) -> Answer:
        flip = self.downloads in self.flips
        self.downloads += 1

        holder = self._locked(to, nbytes)

        def copy() -> None:
            if holder is not None and self._locked(to, nbytes) is not holder:
                self._violated(f"copy of {nbytes} bytes to pages that were let go")
                return
            ctypes.memmove(to, source, nbytes)
            if flip:
                ctypes.c_uint8.from_address(to + nbytes // 3).value ^= 0x10

        stream.waiting.append(copy)
        return ()

    def _cuMemsetD8Async(self, to: int, byte: int, nbytes: int, stream: Stream) -> Answer:
        stream.waiting.append(lambda: void(ctypes.memset(to, byte, nbytes)))
        return ()

    # Streams and events

    def _cuStreamCreate(self, flags: int) -> Answer:
        self.streams.append(Stream())
        return (self.streams[-1],)

    def _cuStreamSynchronize(self, stream: Stream) -> Answer:
        stream.run()
        return ()

    def _cuStreamDestroy(self, stream: Stream) -> Answer:
        stream.run()
        stream.open = False
        self.streams.remove(stream)
        return ()

    def _cuEventCreate(self, flags: int) -> Answer:
        event = Event(not flags & real.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        self.events.add(event)
        return (event,)

    def _cuEventRecord(self, event: Event, stream: Stream) -> Answer:
        if event.stream:
            event.stream.recorded = [e for e in event.stream.recorded if e is not event]
        event.stream, event.place, event.passed = stream, stream.queued, 0.0
        stream.recorded.append(event)
        stream.pass_events()
        return ()

    def _cuEventQuery(self, event: Event) -> Any:
        return status("NOT_READY") if event.stream and not event.passed else ()

    def _cuEventSynchronize(self, event: Event) -> Answer:
        if event.stream is not None:
            event.stream.run(event.place)
        return ()

    def _cuStreamWaitEvent(self, stream: Stream, event: Event, flags: int) -> Answer:
        if event.stream is not None and event.stream is not stream:
            stream.waiting.append(Wait(event.stream, event.place))
            place = max(event.place, stream.follows.get(event.stream, 0))
            stream.follows[event.stream] = place
        return ()

    def _cuEventElapsedTime(self, start: Event, end: Event) -> Any:
        if not (start.timing and end.timing and start.stream and end.stream):
            return status("INVALID_HANDLE")
        if not (start.passed and end.passed):
            return status("NOT_READY")
        return (float(np.float32(1e3 * (end.passed - start.passed))),)

    def _cuEventDestroy(self, event: Event) -> Answer:
        self.events.remove(event)
        return ()

    # Kernels

    def _cuModuleLoadData(self, code: bytes) -> Any:
        return (self.units[code],) if code in self.units else status("INVALID_IMAGE")

    def _cuModuleGetFunction(self, module: Unit, name: bytes) -> Any:
        if name.decode() not in kernels(module):
            return status("NOT_FOUND")
        return (Function(module, name.decode()),)

    def _cuFuncGetParamInfo(self, function: Function, index: int) -> Any:
        count = library(function.unit)[f"parameters_{function.name}"]()
        return (8 * index, 8) if index < count else status("INVALID_VALUE")

    def _cuFuncGetAttribute(self, name: Any, function: Function) -> Answer:
        assert name == real.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        return (STATIC_SHARED,)

    def _cuFuncSetAttribute(self, function: Function, name: Any, value: int) -> Answer:
        function.shared = value
        return ()

    def _cuLaunchKernel(self, function: Function, *grid_and_rest: Any) -> Any:
        blocks, _, _, threads, _, _, shared, stream, places, _ = grid_and_rest
        if shared > function.shared:
            return status("INVALID_VALUE")
        count = library(function.unit)[f"parameters_{function.name}"]()
        addresses = (ctypes.c_uint64 * count).from_address(places)
        words = [ctypes.c_uint64.from_address(a).value for a in addresses]
        array = (ctypes.c_ulonglong * max(count, 1))(*words)
        launcher = library(function.unit)[f"launch_{function.name}"]

        def run() -> None:
            with ONE_AT_A_TIME:
                launcher(
                    ctypes.c_uint(blocks), ctypes.c_uint(threads), ctypes.c_size_t(shared), array
                )

        stream.waiting.append(run)
        return ()


WORK = {
    "cuMemAllocFromPoolAsync", "cuMemAllocHost", "cuMemHostRegister", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
    "cuMemsetD8Async", "cuLaunchKernel", "cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuEventSynchronize",
    "cuStreamWaitEvent", "cuStreamSynchronize",
}  # fmt: skip
LONG = 12  # calls that a stream is busy for, or runs ahead, in the mean
SHORT = 64 << 10  # bytes of pageable memory that the driver keeps for the stream
WITHOUT_CONTEXT = {
    "cuInit", "cuGetErrorString", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGetUuid",
    "cuDeviceGetName", "cuDeviceTotalMem", "cuDriverGetVersion", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
}  # fmt: skip


def void(_: object) -> None:
    """A step of a stream gives nothing."""


def install(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Make ``driver`` the one that :mod:`cuzk.backends.cuda.device` finds; nothing is compiled for it."""

    def build_all(units: list[Unit], architecture: int, _: object) -> dict[Unit, bytes]:
        codes = {unit: f"{unit} for sm_{architecture}".encode() for unit in units}
        driver.units |= {code: unit for unit, code in codes.items()}
        return codes

    monkeypatch.setattr(device, "_bindings", lambda: driver)
    monkeypatch.setattr(device, "_cards", {})
    monkeypatch.setattr(kernel_sources, "build_all", build_all)
    return driver
