"""What the CUDA backend asks of a device: memory, copies and launches in the order of one stream.

Two machines have this shape: :class:`cuzk.backends.cuda.cuda_machine.CudaMachine` over the CUDA driver, and the
emulator of the tests, which runs the same kernel sources compiled by the host's C++ compiler. All work is
ordered: a call returns when the work is queued; ``download``, ``finish`` and what ``fetch`` returns wait for
it. ``beside`` gives another stream of the device; between streams nothing is ordered but by ``after``.

Memory goes back when the last :class:`Memory` that shares its owner is dropped, in the order of the stream
that allocated it and behind all that other streams were given to do with it until then; none of them waits
for that. Another stream may use it once it is ``after`` a mark that the allocating stream made since: what is
copied ahead of other work is copied to memory of the stream that copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.timeline import Timeline


@dataclass(frozen=True)
class Memory:
    """``nbytes`` bytes of device memory at ``address``; ``owner`` keeps them allocated."""

    address: int
    nbytes: int
    owner: object

    def part(self, offset: int, nbytes: int) -> Memory:
        """The bytes [offset, offset + nbytes), sharing the owner."""
        if not 0 <= offset <= offset + nbytes <= self.nbytes:
            raise KernelError(
                f"cuda: expected a part within {self.nbytes} bytes, found {offset} + {nbytes}"
            )
        return Memory(self.address + offset, nbytes, self.owner)


@dataclass(frozen=True)
class Unit:
    """One source file of ``native/gpu`` compiled for one curve and, where it computes in one, one group."""

    file: str  # "vector.cu"
    curve: Curve
    group: str = ""  # "g1", "g2" or not needed

    @property
    def defines(self) -> dict[str, str]:
        """Preprocessor symbols: CUZK_CURVE is the struct of curve_constants.hpp, CUZK_GROUP is G1 or G2."""
        symbols = {"CUZK_CURVE": {"bn254": "Bn254", "bls12_381": "Bls12381"}[self.curve.name]}
        if self.group:
            symbols["CUZK_GROUP"] = self.group.upper()
        return symbols


class Pin(Protocol):
    """Pinned pages: let go when this is released or dropped; that waits for copies that were queued from them."""

    nbytes: int

    def release(self) -> None:
        """Let go of the pages."""
        ...


@runtime_checkable
class Machine(Protocol):
    """One device, one stream."""

    name: str  # "cuda:0"
    title: str  # "NVIDIA H200"
    processors: int  # streaming multiprocessors
    track: str  # of the timeline: "cuda:0 compute"
    timeline: Timeline  # of copies and waits, for all streams beside one another: set on one, it is all theirs

    def beside(self, role: str) -> Machine:
        """A further stream of this device, its work unordered with this one's; ``role`` names its track."""
        ...

    def after(self, mark: Any) -> None:
        """What is queued from now on comes after a mark of another stream; the host does not wait."""
        ...

    def pin(self, array: NDArray[Any]) -> Pin:
        """Lock the pages of a C-contiguous array so that ``send`` can copy from them; PinningRefused, with
        the reason, where the system does not let them. The array is kept alive and pinned by the Pin.
        """
        ...

    def send(self, memory: Memory, array: NDArray[Any]) -> None:
        """Queue a copy from a pinned array or a C-contiguous part of one; both stay as they are until it is done.

        KernelError where it is not pinned.
        """
        ...

    def wait(self, mark: Any) -> None:
        """Until a mark is passed; KernelError where work before it failed. From any thread at any time."""
        ...

    def moment(self, mark: Any) -> float:
        """When a mark was passed, in seconds of ``time.perf_counter``; waits for it."""
        ...

    def record(self, name: str, start: Any, end: Any, **facts: str | int | float) -> None:
        """Put the span between two marks of this stream on the timeline."""
        ...

    def alloc(self, nbytes: int) -> Memory:
        """Uninitialised memory, aligned to 256 bytes; OutOfMemory where there is none."""
        ...

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy a C-contiguous array to the start of ``memory``; the array may change when this returns."""
        ...

    def upload_plain(self, memory: Memory, array: NDArray[Any]) -> None:
        """The driver's own copy from pageable memory, on one thread at 8 GB/s; the array stays as it is until
        it is done.
        """
        ...

    def download(self, memory: Memory, array: NDArray[Any]) -> None:
        """Fill a C-contiguous array from the start of ``memory``; waits."""
        ...

    def fetch(self, memory: Memory, array: NDArray[Any]) -> Callable[[], None]:
        """Queue a copy of a few results; the function returned waits for it, and for no later work, and fills
        the array. It is called once; ``memory`` may be dropped before.
        """
        ...

    def fill(self, memory: Memory, byte: int) -> None:
        """Set every byte."""
        ...

    def launch(
        self,
        unit: Unit,
        kernel: str,
        blocks: int,
        threads: int,
        *args: Memory | int,
        shared: int = 0,
    ) -> None:
        """Queue a kernel. Every parameter is 64 bits wide: a pointer (Memory) or a ``size`` (int).

        ``shared`` is its dynamic shared memory in bytes. No blocks: nothing is done.
        """
        ...

    def free_bytes(self) -> int:
        """Device memory that is still free."""
        ...

    def mark(self) -> Any:
        """A moment in the stream: when all work queued so far is done."""
        ...

    def milliseconds(self, start: Any, end: Any) -> float:
        """Device time between two marks; waits for the second."""
        ...

    def finish(self) -> None:
        """Wait for all work queued so far; KernelError where some of it failed."""
        ...


def ceil(n: int, d: int) -> int:
    """n / d, rounded up."""
    return -(-n // d)


def grid(machine: Machine, items: int, per_block: int, per_processor: int) -> int:
    """Blocks for so many items; at most ``per_processor``, whose threads then take more than one item."""
    return min(ceil(items, per_block), per_processor * machine.processors)


def uploaded(machine: Machine, array: NDArray[Any]) -> Memory:
    """A copy of an array of any layout, on the device."""
    memory = machine.alloc(array.nbytes)
    if array.nbytes:
        machine.upload(memory, np.ascontiguousarray(array))
    return memory
