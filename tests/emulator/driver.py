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

from cuzk.backends.cuda import device
from cuzk.backends.cuda import kernels as kernel_sources
from cuzk.backends.cuda.driver import STICKY
from cuzk.backends.cuda.machine import Unit
from emulator import kernels, library
from emulator.answers import OK, Answer, status
from emulator.copies import Copies
from emulator.device_memory import DeviceMemory
from emulator.faults import Fault, What, interrupt_caller, uninterrupted
from emulator.nvml import FakeNvml
from emulator.streams import Event, Stream, Wait

STATIC_SHARED = (
    132  # bytes of each kernel: it counts for what a launch may have without being asked
)
ONE_AT_A_TIME = threading.Lock()  # a unit of the emulator runs one grid


@dataclass(eq=False)
class Function:
    unit: Unit
    name: str
    shared: int = (48 << 10) - STATIC_SHARED


class FakeDriver(DeviceMemory, Copies):
    """``devices`` cards of ``memory`` bytes; ``others`` of them are held by another process.

    Streams run when something waits for them, or, with ``eager`` (a seed), some of them some steps after any
    call, in turns: then too little waiting shows, too. ``pinnable`` bytes may be registered.
    """

    def __init__(self, *, devices: int = 1, memory: int = 1 << 30, architecture: int = 90, cuda: int = 13000, eager: int = 0) -> None:  # fmt: skip
        DeviceMemory.__init__(self, memory)
        Copies.__init__(self)
        self.devices = devices
        self._dice: Any = random.Random(eager) if eager else None  # or what chooses streams itself
        self.architecture, self.cuda = architecture, cuda
        self.units: dict[bytes, Unit] = {}
        self.fail: dict[str, str] = {}
        self.streams: list[Stream] = []
        self.events: set[Event] = set()
        self.calls: list[str] = []
        self._faults: list[Fault] = []
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

    @property
    def used(self) -> int:
        """Bytes of device memory, when streams have made the frees that nothing is before."""
        with self._lock:
            for stream in self.streams:
                stream.run_frees()
            return self._held

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
WITHOUT_CONTEXT = {
    "cuInit", "cuGetErrorString", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGetUuid",
    "cuDeviceGetName", "cuDeviceTotalMem", "cuDriverGetVersion", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
}  # fmt: skip


def install(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Make ``driver`` the one that :mod:`cuzk.backends.cuda.device` finds; nothing is compiled for it."""

    def build_all(units: list[Unit], architecture: int, _: object) -> dict[Unit, bytes]:
        codes = {unit: f"{unit} for sm_{architecture}".encode() for unit in units}
        driver.units |= {code: unit for unit, code in codes.items()}
        return codes

    monkeypatch.setattr(device, "_bindings", lambda: driver)
    monkeypatch.setattr(device, "_nvml", lambda: FakeNvml(driver))
    monkeypatch.setattr(device, "_cards", {})
    monkeypatch.setattr(kernel_sources, "build_all", build_all)
    return driver
