"""What the CUDA backend asks of a device: memory, copies and launches in the order of one stream.

Two machines have this shape: :class:`cuzk.backends.cuda.device.CudaMachine` over the CUDA driver, and the
emulator of the tests, which runs the same kernel sources compiled by the host's C++ compiler. All work is
ordered: a call returns when the work is queued; ``download``, ``finish`` and what ``fetch`` returns wait for
it. Memory goes back when the last :class:`Memory` that shares its owner is dropped, in stream order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import Curve
from cuzk.errors import KernelError


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


@runtime_checkable
class Machine(Protocol):
    """One device, one stream."""

    name: str  # "cuda:0"
    title: str  # "NVIDIA H200"
    processors: int  # streaming multiprocessors

    def alloc(self, nbytes: int) -> Memory:
        """Uninitialised memory, aligned to 256 bytes; OutOfMemory where there is none."""
        ...

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """Copy a C-contiguous array to the start of ``memory``; the array may change when this returns."""
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
