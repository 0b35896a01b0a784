"""A real GPU as a :class:`~cuzk.backends.cuda.machine.Machine`: one stream over the CUDA driver.

Its calls may come from any thread, one at a time; frees from any at any time.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.backends.cuda import kernels
from cuzk.backends.cuda.card import Card
from cuzk.backends.cuda.clock import Origin
from cuzk.backends.cuda.machine import Memory, Pin, Unit
from cuzk.backends.cuda.stream import Block, Mark, Stream
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.timeline import Span, Timeline

TO_DEVICE, TO_HOST = "copy to device", "copy to host"
UNNOTICED = (
    1e-3  # seconds of an allocation; from memory that the pool holds it takes some microseconds
)


@dataclass
class _Family:
    """What machines beside one another share."""

    timeline: Timeline


class CudaMachine:
    """One stream of a card."""

    def __init__(self, card: Card, role: str = "compute", family: _Family | None = None) -> None:
        self.card = card
        self.name = card.facts.name
        self.title = card.facts.title
        self.processors = card.facts.processors
        self.track = f"{self.name} {role}"
        self._family = family or _Family(Timeline())
        card.enter()
        self._stream = Stream(card, card.queues.open())
        self._origin: Origin | None = None  # of the last mark: kept for the next

    def beside(self, role: str) -> CudaMachine:
        """Another stream of the card."""
        return CudaMachine(self.card, role, self._family)

    @property
    def timeline(self) -> Timeline:
        """All machines' beside this one, too."""
        return self._family.timeline

    @timeline.setter
    def timeline(self, timeline: Timeline) -> None:
        self._family.timeline = timeline

    def after(self, mark: Mark) -> None:
        """cuStreamWaitEvent; what the stream stood still is the time between two marks around it."""
        start = self.mark()
        self.card.driver.cuStreamWaitEvent(self._stream.handle, mark.event, 0)
        self.record(f"wait for {mark.track}", start, self.mark())

    def pin(self, array: NDArray[Any]) -> Pin:
        """Whole pages of it, by the driver."""
        self.card.enter()
        return self.card.pins.pin(array)

    def send(self, memory: Memory, array: NDArray[Any]) -> None:
        """Straight from the array's pages."""
        source, to = _bytes(memory, array), self._used(memory)
        first, stream = source.ctypes.data, self._stream

        def copy(start: int, end: int) -> None:
            self.card.driver.cuMemcpyHtoDAsync(
                to + start - first, start, end - start, stream.handle
            )

        with self._copying(TO_DEVICE, source.nbytes, "pinned"):
            self.card.pins.send(source, stream.queue, copy)

    def prepare(self, curve: Curve) -> None:
        """Compile (or take from the cache) and load every kernel of a curve."""
        self.card.prepare(kernels.units(curve))

    def alloc(self, nbytes: int) -> Memory:
        """From the card's pool; what takes long, as where that grows, is a span."""
        if nbytes < 0:
            raise KernelError(f"{self.name}: expected a size to allocate, found {nbytes}")
        self.card.enter()
        start = perf_counter()
        block = self._stream.allocate(nbytes)
        if (end := perf_counter()) > start + UNNOTICED:
            self.timeline.over("allocate", start, end, {"bytes": nbytes})
        return Memory(block.address, nbytes, block)

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Through pinned memory; returns when ``array`` has been read."""
        source = _bytes(memory, array)
        facts = {"bytes": source.nbytes}
        with (
            self._copying(TO_DEVICE, source.nbytes, "staged"),
            self.timeline.span("stage", **facts),
        ):
            self._stream.staging.upload(self._used(memory), source, self._waiting)

    def upload_plain(self, memory: Memory, array: NDArray[Any]) -> None:
        """Through the driver's buffers."""
        source = _bytes(memory, array)
        with self._copying(TO_DEVICE, source.nbytes, "pageable"), self._waiting("a copy"):
            self.card.driver.cuMemcpyHtoDAsync(
                self._used(memory), source.ctypes.data, source.nbytes, self._stream.handle
            )

    def download(self, memory: Memory, array: NDArray[Any]) -> None:
        """Through pinned memory; waits."""
        target = _bytes(memory, array)
        with (
            self._copying(TO_HOST, target.nbytes, "staged"),
            self._waiting("a copy"),
        ):
            self._stream.staging.download(self._used(memory), target)

    def fetch(self, memory: Memory, array: NDArray[Any]) -> Callable[[], None]:
        """Through a pinned buffer of its own."""
        target = _bytes(memory, array)
        with self._copying(TO_HOST, target.nbytes, "pinned"):
            fill = self._stream.staging.fetch(self._used(memory), target)

        def wait() -> None:
            self.card.enter()  # and the stream lives as long as this function
            with self._waiting("a result"):
                fill()

        return wait

    def fill(self, memory: Memory, byte: int) -> None:
        """Set every byte."""
        self.card.enter()
        if memory.nbytes:
            self.card.driver.cuMemsetD8Async(
                self._used(memory), byte, memory.nbytes, self._stream.handle
            )

    def launch(
        self,
        unit: Unit,
        kernel: str,
        blocks: int,
        threads: int,
        *args: Memory | int,
        shared: int = 0,
    ) -> None:
        """Queue a kernel; its unit is compiled and loaded if it is not yet."""
        if not blocks:
            return
        self.card.enter()
        found = self.card.kernel(unit, kernel)
        found.expect(len(args), shared)
        places = _arguments.filled(
            [self._used(arg) if isinstance(arg, Memory) else arg for arg in args]
        )
        self.card.driver.cuLaunchKernel(
            found.function, blocks, 1, 1, threads, 1, 1, shared, self._stream.handle, places, 0
        )

    def free_bytes(self) -> int:
        """Device memory that an allocation can still have."""
        self.card.enter()
        return self.card.free_bytes()

    def finish(self) -> None:
        """Wait for the stream."""
        self.card.enter()
        with self._waiting(self.track):
            self.card.driver.cuStreamSynchronize(self._stream.handle)

    def mark(self) -> Mark:
        """A point in the stream, for :meth:`milliseconds` and :meth:`moment`."""
        self.card.enter()
        self._origin = self.card.clock.origin()
        return Mark.of(self._stream, self._origin, self.track)

    def milliseconds(self, start: Mark, end: Mark) -> float:
        """Device time between two marks; waits for the second."""
        self.card.enter()
        self.card.driver.cuEventSynchronize(end.event)
        return float(self.card.driver.cuEventElapsedTime(start.event, end.event))

    def wait(self, mark: Mark) -> None:
        """cuEventSynchronize."""
        self.card.enter()
        with self._waiting(mark.track):
            self.card.driver.cuEventSynchronize(mark.event)

    def moment(self, mark: Mark) -> float:
        """By the card's clock."""
        self.card.enter()
        self.card.driver.cuEventSynchronize(mark.event)
        return mark.moment()

    def record(self, name: str, start: Mark, end: Mark, **facts: str | int | float) -> None:
        """Read when both marks were passed."""
        card, track = self.card, self.track  # not the machine: it holds the timeline

        def resolve(wait: bool) -> Span | None:
            card.enter()
            if wait:
                card.driver.cuEventSynchronize(end.event)
            elif not end.passed():
                return None
            return Span(track, name, start.moment(), end.moment(), facts)

        self.timeline.later(resolve)

    @contextmanager
    def _copying(self, name: str, nbytes: int, how: str) -> Iterator[None]:
        """A copy on the timeline, as long as the stream takes for it."""
        start = self.mark()
        yield
        self.record(name, start, self.mark(), bytes=nbytes, how=how)

    def _waiting(self, what: str) -> AbstractContextManager[None]:
        """A wait of the calling thread on the timeline."""
        return self.timeline.span(f"wait for {what}")

    def _used(self, memory: Memory) -> int:
        """Its address; memory of another stream is freed only after what this one does with it."""
        block = memory.owner
        if isinstance(block, Block):
            block.lend(self._stream)
        return memory.address


class _Arguments(threading.local):
    """Room for a launch's arguments and their places, one a thread: the driver reads them before it returns."""

    MOST = 32

    def __init__(self) -> None:
        self._words = (ctypes.c_uint64 * self.MOST)()
        first = ctypes.addressof(self._words)
        self._places = (ctypes.c_uint64 * self.MOST)(*range(first, first + 8 * self.MOST, 8))
        self._address = ctypes.addressof(self._places)

    def filled(self, words: list[ctypes.c_uint64 | int]) -> int:
        """Where the driver finds where they are."""
        if len(words) > self.MOST:
            raise KernelError(
                f"cuda: expected at most {self.MOST} arguments of a kernel, found {len(words)}"
            )
        self._words[: len(words)] = words
        return self._address


_arguments = _Arguments()


def _bytes(memory: Memory, array: NDArray[Any]) -> NDArray[np.uint8]:
    if not array.flags.c_contiguous or array.nbytes > memory.nbytes:
        raise KernelError(
            f"cuda: expected a C-contiguous array of at most {memory.nbytes} bytes, found {array.nbytes}"
        )
    return array.reshape(-1).view(np.uint8)
