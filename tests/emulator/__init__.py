"""A machine for the CUDA backend without a GPU: its kernels, compiled for the host, run in emulated grids.

Slow and exact: the same sources, indices and launches as on a GPU, one block after the other. What it
cannot show is what only hardware does: PTX, what happens between two barriers at once, speed.

Three variables make it stricter, for `make sanitize`: CUZK_SANITIZE=1 builds with the address and undefined
behaviour sanitizers (their libraries must be preloaded) and ends memory at its last byte; CUZK_SHUFFLE=seed runs
blocks, and threads between barriers, in random order; CUZK_POISON=byte is what memory nobody wrote holds.
"""

from __future__ import annotations

import copy
import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cuzk
from cuzk import constants
from cuzk.backends.cuda.machine import Memory, Pin, Unit
from cuzk.errors import KernelError, OutOfMemory, PinningRefused
from cuzk.timeline import Span, Timeline

HERE = Path(__file__).parent
NATIVE = Path(cuzk.__file__).parent / "native"
CACHE = Path(tempfile.gettempdir()) / f"cuzk-emulator-{os.getuid()}"
KERNEL = re.compile(r"^KERNEL\([^)]*\)\s*(\w+)\(", re.MULTILINE)
ONE_GRID = threading.Lock()  # the emulator's state is one per process
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
COMPILER = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-fPIC", "-shared", "-w", "-fno-strict-aliasing"]  # fmt: skip

LIBC = ctypes.CDLL(None)
SANITIZE = os.environ.get("CUZK_SANITIZE") == "1"
SEED = int(os.environ.get("CUZK_SHUFFLE", "0"))
POISON = int(os.environ.get("CUZK_POISON", "0xC7"), 0)
if SANITIZE:  # kernels make pointers beyond arrays that they do not follow: no pointer-overflow
    COMPILER += ["-g1", "-fsanitize=address,undefined", "-fno-sanitize=pointer-overflow", "-fno-sanitize-recover=all"]  # fmt: skip


class Options(ctypes.Structure):
    """``emulator::Options`` of grid.hpp."""

    _fields_ = [("seed", ctypes.c_ulonglong), ("poison", ctypes.c_int)]


def kernels(unit: Unit) -> list[str]:
    """Names of a source file's kernels."""
    return KERNEL.findall((NATIVE / "gpu" / unit.file).read_text())


def included(source: Path) -> set[Path]:
    """The file and all of the project's that it includes."""
    found, open_ends = {source}, [source]
    while open_ends:
        for name in INCLUDE.findall(open_ends.pop().read_text()):
            for path in (NATIVE / name, NATIVE / "gpu" / name):
                if path.exists() and path not in found:
                    found.add(path)
                    open_ends.append(path)
    return found


@cache
def library(unit: Unit) -> ctypes.CDLL:
    """The unit as a shared library, built once per state of the sources."""
    symbols = {
        **unit.defines,
        "CUZK_PATH": "emulated",
        "CUZK_LIMBS": "1",
    }  # the arithmetic of the device
    trampolines = "\n".join(
        f'extern "C" void launch_{name}(unsigned b, unsigned t, size_t s, const unsigned long long* a) '
        f"{{ emulator::launch({name}, b, t, s, a); }}\n"
        f'extern "C" unsigned parameters_{name}() {{ return emulator::parameters({name}); }}'
        for name in kernels(unit)
    )
    options = 'extern "C" emulator::Options* emulator_options() { return &emulator::options; }'
    text = f'#include "grid.hpp"\n#include "gpu/{unit.file}"\n{trampolines}\n{options}\n'
    flags = [f"-D{name}={value}" for name, value in sorted(symbols.items())]
    sources = sorted(included(NATIVE / "gpu" / unit.file) | {HERE / "grid.hpp"})
    state = "".join(
        [text, constants.header(), *flags, *COMPILER, *(p.read_text() for p in sources)]
    )
    digest = hashlib.blake2b(state.encode(), digest_size=12).hexdigest()
    built = (
        CACHE / f"{Path(unit.file).stem}-{unit.curve.name}-{unit.group or 'scalars'}-{digest}.so"
    )
    if not built.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            work = Path(folder)
            (work / "curve_constants.hpp").write_text(constants.header())
            (work / "unit.cpp").write_text(text)
            paths = [f"-I{path}" for path in (HERE, NATIVE, NATIVE / "gpu", work)]
            subprocess.run([*COMPILER, *flags, *paths, str(work / "unit.cpp"), "-o", str(work / "unit.so")], check=True)  # fmt: skip
            (work / "unit.so").rename(built)
    loaded = ctypes.CDLL(str(built))
    loaded.emulator_options.restype = ctypes.POINTER(Options)
    loaded.emulator_options()[0] = Options(SEED, POISON)
    return loaded


class Moment(float):
    """Seconds; ``place`` says what was done by then: "copy#3", three pieces of work of that stream."""

    place = ""


class EmulatedMachine:
    """:class:`cuzk.backends.cuda.machine.Machine` on the host; ``limit`` bytes of memory.

    ``refused`` counts allocations that did not fit; ``launches`` records (kernel, blocks, threads) in order.
    Streams beside it do their work at once, too: what is missing between them only the stand-in for the driver
    shows (``driver.py``). ``pinnable`` False: pages cannot be pinned.

    ``events`` is what was asked for, of all streams in the order of asking, each with its number in its stream
    where it is work: "copy#1: send 96 bytes", "compute: after copy#1", "compute#1: launch accumulate_slices",
    "compute#2: fetch 96 bytes", "host: wait for compute#2".
    """

    name = "cuda:emulated"
    title = "emulator"
    processors = 2

    def __init__(self, limit: int = 1 << 32) -> None:
        self.limit = limit
        self.launches: list[tuple[str, int, int]] = []
        self.refused = 0
        self.pinnable = True
        self.track = f"{self.name} compute"
        self._timelines = [Timeline()]
        self.pins: dict[int, tuple[int, int]] = {}
        self.events: list[str] = []
        self._role = "compute"
        self._done: dict[str, int] = {}  # pieces of work, by role
        self._live: dict[int, int] = {}
        self._main: EmulatedMachine = self

    def beside(self, role: str) -> EmulatedMachine:
        other = copy.copy(self)  # the books are shared
        other.track = f"{self.name} {role}"
        other._role = role
        return other

    @property
    def timeline(self) -> Timeline:
        return self._timelines[0]

    @timeline.setter
    def timeline(self, timeline: Timeline) -> None:
        self._timelines[0] = timeline

    def _work(self, what: str) -> str:
        count = self._done[self._role] = self._done.get(self._role, 0) + 1
        self.events.append(f"{self._role}#{count}: {what}")
        return f"{self._role}#{count}"

    def after(self, mark: Moment) -> None:
        assert mark <= time.perf_counter()
        self.events.append(f"{self._role}: after {mark.place}")

    def pin(self, array: NDArray[Any]) -> Pin:
        if not self._main.pinnable:
            raise PinningRefused(f"{self.name}: the emulator was told to refuse")
        return _Pin(self.pins, array)

    def send(self, memory: Memory, array: NDArray[Any]) -> None:
        first, last = array.ctypes.data, array.ctypes.data + array.nbytes
        if not any(a <= first and last <= b for a, b in list(self.pins.values())):
            raise KernelError("cuda: send: expected an array that is pinned")
        self._work(f"send {array.nbytes} bytes")
        self._copy("copy to device", memory.address, array.ctypes.data, array.nbytes, "pinned")

    def wait(self, mark: Moment) -> None:
        assert mark <= time.perf_counter()
        self.events.append(f"host: wait for {mark.place}")

    def moment(self, mark: float) -> float:
        return mark

    def record(self, name: str, start: float, end: float, **facts: str | int | float) -> None:
        self.timeline.add(Span(self.track, name, start, end, facts))

    def _copy(self, name: str, to: int, source: int, nbytes: int, how: str) -> None:
        start = self.mark()
        ctypes.memmove(to, source, nbytes)
        self.record(name, start, self.mark(), bytes=nbytes, how=how)

    @property
    def used(self) -> int:
        """Bytes allocated now."""
        return sum(list(self._live.values()))  # other threads free at any time

    def alloc(self, nbytes: int) -> Memory:
        if self.used + nbytes > self._main.limit:
            self._main.refused += 1
            raise OutOfMemory(
                f"{self.name}: asked for {nbytes} bytes, {self.free_bytes()} are free"
            )
        block = _Block(self._live, nbytes)
        return Memory(block.address, nbytes, block)

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        expect_contiguous(array, memory)
        self._work(f"upload {array.nbytes} bytes")
        self._copy("copy to device", memory.address, array.ctypes.data, array.nbytes, "staged")

    def upload_plain(self, memory: Memory, array: NDArray[Any]) -> None:
        expect_contiguous(array, memory)
        self._work(f"upload {array.nbytes} bytes")
        self._copy("copy to device", memory.address, array.ctypes.data, array.nbytes, "pageable")

    def download(self, memory: Memory, array: NDArray[Any]) -> None:
        expect_contiguous(array, memory)
        self._work(f"download {array.nbytes} bytes")
        self._copy("copy to host", array.ctypes.data, memory.address, array.nbytes, "staged")

    def fetch(self, memory: Memory, array: NDArray[Any]) -> Callable[[], None]:
        expect_contiguous(array, memory)
        place = self._work(f"fetch {array.nbytes} bytes")
        found = ctypes.string_at(
            memory.address, array.nbytes
        )  # as it is now, not when it is asked for

        def fill() -> None:
            self.events.append(f"host: wait for {place}")
            ctypes.memmove(array.ctypes.data, found, len(found))

        return fill

    def fill(self, memory: Memory, byte: int) -> None:
        self._work(f"fill {memory.nbytes} bytes")
        ctypes.memset(memory.address, byte, memory.nbytes)

    def launch(
        self,
        unit: Unit,
        kernel: str,
        blocks: int,
        threads: int,
        *args: Memory | int,
        shared: int = 0,
    ) -> None:
        if not blocks:
            return
        self.launches.append((kernel, blocks, threads))
        self._work(f"launch {kernel}")
        words = [a.address if isinstance(a, Memory) else a for a in args]
        expected = library(unit)[f"parameters_{kernel}"]()
        if len(words) != expected:
            raise KernelError(
                f"{self.name}: kernel {kernel}: expected {expected} arguments, found {len(words)}"
            )
        array = (ctypes.c_ulonglong * max(len(words), 1))(*words)
        launcher = library(unit)[f"launch_{kernel}"]
        with ONE_GRID:
            launcher(ctypes.c_uint(blocks), ctypes.c_uint(threads), ctypes.c_size_t(shared), array)

    def free_bytes(self) -> int:
        return self._main.limit - self.used

    def finish(self) -> None:
        self.events.append(f"host: wait for {self._role}#{self._done.get(self._role, 0)}")

    def mark(self) -> Moment:
        mark = Moment(time.perf_counter())
        mark.place = f"{self._role}#{self._done.get(self._role, 0)}"
        return mark

    def milliseconds(self, start: float, end: float) -> float:
        return 1e3 * (end - start)


class _Block:
    """Memory that starts as rubbish and leaves the books when it is dropped."""

    def __init__(self, books: dict[int, int], nbytes: int) -> None:
        if SANITIZE:  # of the allocator itself, which knows where it ends
            place = ctypes.c_void_p()
            if LIBC.posix_memalign(
                ctypes.byref(place), ctypes.c_size_t(256), ctypes.c_size_t(nbytes)
            ):
                raise MemoryError
            self.address = place.value or 0
            ctypes.memset(self.address, POISON, nbytes)
        else:
            self.array = np.full(nbytes + 256, POISON, np.uint8)
            self.address = (self.array.ctypes.data + 255) // 256 * 256
        self._books = books
        books[id(self)] = nbytes

    def __del__(self) -> None:
        self._books.pop(id(self), None)
        if SANITIZE:
            LIBC.free(ctypes.c_void_p(self.address))


class _Pin:
    def __init__(self, books: dict[int, tuple[int, int]], array: NDArray[Any]) -> None:
        self.nbytes = array.nbytes
        self._books, self._array = books, array
        books[id(self)] = array.ctypes.data, array.ctypes.data + array.nbytes

    def release(self) -> None:
        self._books.pop(id(self), None)

    def __del__(self) -> None:
        self.release()


def expect_contiguous(array: NDArray[Any], memory: Memory) -> None:
    if not array.flags.c_contiguous or array.nbytes > memory.nbytes:
        raise ValueError(f"expected a contiguous array of at most {memory.nbytes} bytes")
