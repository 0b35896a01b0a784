"""What copies to a GPU cost, by where the bytes are: the rates that the rules of ``backends/cuda`` rest on.

    python -m bench.bus [--gib 2] [--json]

Every row: median of three, GiB/s of copying and, where pages are locked or
buffers are filled first, what that costs by itself.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.backends.cuda.driver import Driver
from cuzk.errors import BackendError

PORTABLE, READ_ONLY = 1, 8  # CU_MEMHOSTREGISTER_*
MEBIBYTE = 1 << 20
Bytes = NDArray[np.uint8]


class Bus:
    """One stream of device 0 and a buffer of ``nbytes`` on it."""

    def __init__(self, nbytes: int) -> None:
        from cuda.bindings import driver as bindings

        self.driver = Driver(bindings, "cuda:0")
        self.driver.cuInit(0)
        device = self.driver.cuDeviceGet(0)
        self.context = self.driver.cuDevicePrimaryCtxRetain(device)
        self.enter()
        self.title = self.driver.cuDeviceGetName(256, device).split(b"\0")[0].decode()
        self.stream = self.driver.cuStreamCreate(1)
        self.memory = int(self.driver.cuMemAlloc(nbytes))
        self.nbytes = nbytes

    def enter(self) -> None:
        """The context of the calling thread."""
        self.driver.cuCtxSetCurrent(self.context)

    def seconds(self, work: Callable[[], object]) -> float:
        """From idle to idle."""
        self.driver.cuStreamSynchronize(self.stream)
        start = perf_counter()
        work()
        self.driver.cuStreamSynchronize(self.stream)
        return perf_counter() - start

    def copy(self, address: int, piece: int) -> None:
        """All of it, in pieces."""
        for at in range(0, self.nbytes, piece):
            size = min(piece, self.nbytes - at)
            self.driver.cuMemcpyHtoDAsync(self.memory + at, address + at, size, self.stream)

    def rate(self, address: int, piece: int | None = None) -> float:
        """GiB/s."""
        times = [self.seconds(lambda: self.copy(address, piece or self.nbytes)) for _ in range(3)]
        return self.nbytes / 2**30 / median(times)


def pinned(bus: Bus) -> Iterator[dict[str, Any]]:
    """Memory that the driver allocated."""
    start = perf_counter()
    address = int(bus.driver.cuMemAllocHost(bus.nbytes))
    cost = (perf_counter() - start) / (bus.nbytes / 2**30)
    for piece in (bus.nbytes, 32 * MEBIBYTE, 4 * MEBIBYTE, MEBIBYTE, MEBIBYTE // 16):
        yield {"memory": "allocated pinned", "piece": piece, "gib_s": bus.rate(address, piece), "lock_s_gib": cost}  # fmt: skip
    bus.driver.cuMemFreeHost(address)


def registered(bus: Bus, name: str, array: Bytes, flags: int) -> Iterator[dict[str, Any]]:
    """An array's pages, locked and let go."""
    start = -(-array.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    nbytes = (array.ctypes.data + array.nbytes - start) // mmap.PAGESIZE * mmap.PAGESIZE
    gib, row = nbytes / 2**30, {"memory": name, "flags": flags}
    locks, unlocks = [], []
    for turn in range(3):
        before = perf_counter()
        try:
            bus.driver.cuMemHostRegister(start, nbytes, flags)
        except BackendError as error:
            yield row | {"refused": str(error)}
            return
        locks.append((perf_counter() - before) / gib)
        if turn == 2:
            row["gib_s"] = gib / bus.seconds(
                lambda: bus.driver.cuMemcpyHtoDAsync(bus.memory, start, nbytes, bus.stream)
            )
        before = perf_counter()
        bus.driver.cuMemHostUnregister(start)
        unlocks.append((perf_counter() - before) / gib)
    yield row | {"lock_s_gib": median(locks), "unlock_s_gib": median(unlocks)}


def staged(bus: Bus, array: Bytes, threads: int, slots: int, slot: int) -> dict[str, Any]:
    """Through pinned buffers that threads fill."""
    driver = bus.driver
    places = [int(driver.cuMemAllocHost(slot)) for _ in range(slots)]
    buffers = [np.ctypeslib.as_array((ctypes.c_uint8 * slot).from_address(p)) for p in places]
    events = [driver.cuEventCreate(2) for _ in range(slots)]

    def run(pool: ThreadPoolExecutor) -> None:
        for turn, at in enumerate(range(0, bus.nbytes, slot)):
            i = turn % slots
            place, buffer, event = places[i], buffers[i], events[i]
            if turn >= slots:
                driver.cuEventSynchronize(event)
            size = min(slot, bus.nbytes - at)
            step = -(-size // threads)
            cuts = [(first, min(first + step, size)) for first in range(0, size, step)]
            parts = [(buffer[a:b], array[at + a : at + b]) for a, b in cuts]
            for done in [pool.submit(np.copyto, *part) for part in parts]:
                done.result()
            driver.cuMemcpyHtoDAsync(bus.memory + at, place, size, bus.stream)
            driver.cuEventRecord(event, bus.stream)

    with ThreadPoolExecutor(threads) as pool:
        times = [bus.seconds(lambda: run(pool)) for _ in range(3)]
    for place, event in zip(places, events, strict=True):
        driver.cuMemFreeHost(place)
        driver.cuEventDestroy(event)
    return {
        "memory": "staged",
        "threads": threads,
        "slots": slots,
        "slot": slot,
        "gib_s": bus.nbytes / 2**30 / median(times),
    }


def rows(bus: Bus) -> Iterator[dict[str, Any]]:
    """All of them."""
    yield from pinned(bus)
    array = np.random.default_rng(1).integers(0, 256, bus.nbytes, np.uint8)
    yield {"memory": "pageable", "gib_s": bus.rate(array.ctypes.data)}
    yield from registered(bus, "registered array", array, PORTABLE)
    with tempfile.NamedTemporaryFile() as file:
        array.tofile(file.name)
        mapped = np.memmap(file.name, np.uint8, "r")
        yield {"memory": "pageable, mapped file", "gib_s": bus.rate(mapped.ctypes.data)}
        for flags in (PORTABLE | READ_ONLY, PORTABLE):
            yield from registered(bus, "registered mapped file", mapped, flags)
        yield staged(bus, mapped, 8, 2, 32 * MEBIBYTE) | {"memory": "staged, mapped file"}
    for threads in (1, 2, 4, 8, 12, 16):
        yield staged(bus, array, threads, 2, 32 * MEBIBYTE)
    for slots, slot in ((4, 32), (4, 16), (4, 8), (2, 64), (3, 32)):
        yield staged(bus, array, 8, slots, slot * MEBIBYTE)


def main() -> None:
    """Print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    bus = Bus(int(options.gib * 2**30))
    print(bus.title)
    for row in rows(bus):
        shown = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
        print(json.dumps(shown) if options.json else "  ".join(f"{k} {v}" for k, v in shown.items()), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
