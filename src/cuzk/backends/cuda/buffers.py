"""What a buffer of the CUDA backend holds, and the small kernels over it (``vector.cu``)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cuzk.backends import Buffer
from cuzk.backends.cuda.digits import Digits, WindowPlan
from cuzk.backends.cuda.machine import Machine, Memory, Pin, Unit, grid, uploaded
from cuzk.backends.cuda.ready import Ready
from cuzk.backends.cuda.rows import number_rows
from cuzk.backends.cuda.sparse import DeviceMatrix
from cuzk.backends.cuda.staged import Staged
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.vectors import Points

THREADS = 256

Wires = range | NDArray[np.uint32]


@dataclass(frozen=True)
class Vector:
    """Scalars of one lane and, once a sum asked for them, their digits."""

    memory: Memory
    bit_reversed: bool = False
    digits: dict[WindowPlan, Digits] = field(default_factory=dict)


@dataclass(frozen=True)
class WireMap:
    """Which row of a query a wire has: u32[wires]; None: each its own. ``finite`` points are not infinity.

    ``distinct`` is false where a wire is repeated: then there is no such map.
    """

    row_of: Memory | None
    finite: int
    distinct: bool
    wires: Wires  # keeps an array alive by whose identity this is found again


@dataclass(eq=False)
class Bases:
    """Points on the device, or as they were put where they do not fit.

    ``tables`` (:mod:`cuzk.backends.cuda.tables`) begin with the points and go with the windows of one plan.
    ``pages`` hold the pages of points that stay in host memory, as long as this is used. Lanes make ``maps`` under
    ``lock``; a map's count was waited for, so that its rows are there for all.
    """

    points: Memory | Points
    tables: Memory | None = None
    plan: WindowPlan | None = None
    indices: dict[int, tuple[Memory, Ready, Wires]] = field(default_factory=dict)
    maps: dict[tuple[int, ...], WireMap] = field(default_factory=dict)
    ready: Ready | None = None
    pages: Pin | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def point_bytes(self) -> int:
        """Device memory of the points and their tables."""
        points = self.tables or self.points
        return points.nbytes if isinstance(points, Memory) else 0

    @property
    def nbytes(self) -> int:
        """Device memory that stays taken."""
        indices = sum(memory.nbytes for memory, *_ in self.indices.values())
        maps = sum(m.row_of.nbytes for m in self.maps.values() if m.row_of)
        return self.point_bytes + indices + maps

    def index_of(self, machine: Machine, wires: Wires) -> Memory | None:
        """An array's copy on the device, made once: the array is kept alive, found again by its identity."""
        if isinstance(wires, range):
            return None
        with self.lock:
            if id(wires) not in self.indices:
                self.indices[id(wires)] = uploaded(machine, wires), Ready(machine), wires
            memory, ready, _ = self.indices[id(wires)]
        ready.before(machine)
        return memory


def vector_of(buffer: Buffer, verb: str) -> Vector:
    """The scalars of a buffer of this lane that was not consumed; what is queued from now on may use them."""
    if not isinstance(buffer.data, Vector):
        found = "one already consumed" if buffer.data is None else f"one of {buffer.kind}"
        raise KernelError(f"cuda: {verb}: expected a buffer of scalars, found {found}")
    if isinstance(buffer.staged, Staged):
        buffer.staged.arrive()
    return buffer.data


def montgomery_vector(buffer: Buffer, verb: str) -> Vector:
    """The same, in the form that arithmetic needs."""
    if not buffer.montgomery:
        raise KernelError(f"cuda: {verb}: expected scalars in Montgomery form, found plain ones")
    return vector_of(buffer, verb)


def bases_of(buffer: Buffer) -> Bases:
    """The points of a buffer; the lane that uses them comes after ``ready``."""
    if not isinstance(buffer.data, Bases):
        raise KernelError(f"cuda: expected a buffer of points, found one of {buffer.kind}")
    return buffer.data


def matrix_of(buffer: Buffer) -> DeviceMatrix:
    """The matrix of a buffer."""
    if not isinstance(buffer.data, DeviceMatrix):
        raise KernelError(f"cuda: product: expected a matrix, found a buffer of {buffer.kind}")
    return buffer.data


def order(value: Vector, n: int) -> int:
    """How the kernels of ``vector.cu`` are told: log2(n) + 1 if bit-reversed, else 0."""
    return n.bit_length() if value.bit_reversed else 0


def blocks(machine: Machine, n: int) -> int:
    """Enough for n threads, at most what fills the device eight times over."""
    return grid(machine, n, THREADS, 64)


def natural(machine: Machine, curve: Curve, value: Vector, n: int) -> Vector:
    """Itself, or a copy."""
    return in_other_order(machine, curve, value, n) if value.bit_reversed else value


def in_other_order(machine: Machine, curve: Curve, value: Vector, n: int) -> Vector:
    """A copy, bit-reversed if the vector is not."""
    out = machine.alloc(8 * curve.fr_words * n)
    machine.launch(
        Unit("vector.cu", curve), "gather", blocks(machine, n), THREADS,
        value.memory, 0, 0, 1, out, n, n.bit_length(),
    )  # fmt: skip
    return Vector(out, not value.bit_reversed)


def gathered(
    machine: Machine,
    curve: Curve,
    value: Vector,
    n: int,
    wires: Wires,
    index: Memory | None = None,
) -> Memory:
    """The elements at ``wires`` of a vector of n, in that order; ``index`` is an array's copy on the device."""
    count = len(wires)
    out = machine.alloc(8 * curve.fr_words * count)
    start, step, index = (0, 0, index) if index else run_of(machine, wires)
    machine.launch(
        Unit("vector.cu", curve), "gather", blocks(machine, count), THREADS,
        value.memory, index or 0, start, step % 2**64, out, count, order(value, n),
    )  # fmt: skip
    return out


def run_of(machine: Machine, wires: Wires) -> tuple[int, int, Memory | None]:
    """Start and step of a range, or an array's copy on the device."""
    if isinstance(wires, range):
        return wires.start, wires.step, None
    return 0, 0, uploaded(machine, wires)


def map_key(wires: Wires, n: int) -> tuple[int, ...]:
    """A range by its numbers, an array by its identity: the map keeps it alive."""
    return (wires.start, wires.step, len(wires), n) if isinstance(wires, range) else (id(wires), n)


def map_of(
    machine: Machine, curve: Curve, group: str, points: Memory, wires: Wires, n: int
) -> WireMap:
    """The rows that n scalars have in a query of which every point has one of ``wires``; waits for a count.

    An array counts as distinct where it rises, as those of all keys do.
    """
    if not isinstance(wires, range) and not (wires[1:] > wires[:-1]).all():
        return WireMap(None, 0, False, wires)
    rows = number_rows(machine, curve, group, points, len(wires), wires, n)
    infinite = np.empty(1, np.uint64)
    machine.download(rows.infinite, infinite)
    if int(infinite[0]) > len(wires):
        raise KernelError(
            f"{machine.name}: expected at most {len(wires)} points at infinity, found {infinite[0]}"
        )
    finite = len(wires) - int(infinite[0])
    each_its_own = finite == n and (not isinstance(wires, range) or wires == range(n))
    return WireMap(None if each_its_own else rows.row_of, finite, True, wires)
