"""The largest sizes, on a machine that computes nothing: what is launched and allocated for up to 2^28 wires.

Grids, shared memory and parameters fit the device, entries and rows fit 32 bits, and a proof's sums take no more
memory than the plan was told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from numpy.typing import NDArray

from cuzk.backends import Buffer, Workload
from cuzk.backends.cuda.buffers import Bases, Vector
from cuzk.backends.cuda.digits import CAPACITY, ROWS, Partition, sort_digits
from cuzk.backends.cuda.machine import Memory, Pin, Unit
from cuzk.backends.cuda.memory import share
from cuzk.backends.cuda.msm import Sums
from cuzk.backends.cuda.ntt import Transforms
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import KernelError, OutOfMemory, PinningRefused
from cuzk.timeline import Span, Timeline

H200 = 139 << 30
BLOCK_SHARED = 227 << 10
STATIC_SHARED = 9 << 10  # the most that a kernel has of its own (tree_place)


class Ledger:
    """Addresses that nothing is behind; counts bytes, and the most at once."""

    name, title, processors = "cuda:nothing", "nothing", 132
    track = "cuda:nothing compute"

    def __init__(self, limit: int = H200) -> None:
        self.limit, self.used, self.most = limit, 0, 0
        self.launches: list[tuple[str, int, int]] = []
        self.timeline = Timeline()

    def beside(self, role: str) -> Ledger:  # noqa: ARG002 - one book for all streams
        return self

    def after(self, mark: object) -> None:
        assert mark is None

    def pin(self, array: NDArray[Any]) -> Pin:
        raise PinningRefused(f"{self.name}: {array.nbytes} bytes are nowhere")

    def send(self, memory: Memory, array: NDArray[Any]) -> None:
        raise KernelError(f"{self.name}: {array.nbytes} of {memory.nbytes} bytes are not pinned")

    def alloc(self, nbytes: int) -> Memory:
        if self.used + nbytes > self.limit:
            raise OutOfMemory(f"asked for {nbytes} bytes, {self.free_bytes()} are free")
        self.used += nbytes
        self.most = max(self.most, self.used)
        return Memory(1 << 40, nbytes, Owner(self, nbytes))

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        assert array.nbytes <= memory.nbytes

    def upload_plain(self, memory: Memory, array: NDArray[Any]) -> None:
        self.upload(memory, array)

    def download(self, memory: Memory, array: NDArray[Any]) -> None:
        assert array.nbytes <= memory.nbytes
        array[:] = 0

    def fetch(self, memory: Memory, array: NDArray[Any]) -> Callable[[], None]:
        assert array.nbytes <= min(memory.nbytes, 256 << 10)
        return lambda: None

    def fill(self, memory: Memory, byte: int) -> None:
        assert 0 <= byte < 256 <= 256 + memory.nbytes

    def launch(
        self, unit: Unit, kernel: str, blocks: int, threads: int, *args: Memory | int, shared: int = 0
    ) -> None:  # fmt: skip
        assert 0 <= blocks < 1 << 31, (unit.file, kernel, blocks)
        assert 1 <= threads <= 1024
        assert 0 <= shared <= BLOCK_SHARED - (STATIC_SHARED if unit.file == "tree.cu" else 1 << 10)
        assert all(0 <= arg < 1 << 64 for arg in args if isinstance(arg, int))
        self.launches.append((kernel, blocks, threads))

    def free_bytes(self) -> int:
        return self.limit - self.used

    def finish(self) -> None:
        pass

    def mark(self) -> None:
        pass

    def milliseconds(self, start: object, end: object) -> float:
        assert start is end is None
        return 0.0

    def wait(self, mark: object) -> None:
        assert mark is None

    def moment(self, mark: object) -> float:
        assert mark is None
        return 0.0

    def record(self, name: str, start: object, end: object, **facts: str | int | float) -> None:
        assert start is end is None
        self.timeline.add(Span(self.track, name, 0.0, 0.0, facts))


class Owner:
    def __init__(self, ledger: Ledger, nbytes: int) -> None:
        self.ledger, self.nbytes = ledger, nbytes

    def __del__(self) -> None:
        self.ledger.used -= self.nbytes


def scalars_of(machine: Ledger, curve: Curve, n: int, *, montgomery: bool) -> Buffer:
    memory = machine.alloc(8 * curve.fr_words * n)
    return Buffer(curve, "scalar", n, montgomery, Vector(memory, bit_reversed=montgomery))


def points_of(machine: Ledger, curve: Curve, group: str, n: int) -> Buffer:
    memory = machine.alloc(8 * curve.point_words(group) * n)
    return Buffer(curve, group, n, True, Bases(memory))


@pytest.mark.parametrize("log_n", [0, 5, 12, 16, 20, 22, 24, 25, 26, 27, 28])
def test_sums_of_a_proof(curve: Curve, log_n: int) -> None:
    """The five sums as the prover queues them, beside nothing but points: within what share() counts for them."""
    n = 1 << log_n
    queries = [("g1", n), ("g1", n), ("g2", n), ("g1", max(n - 3, 1)), ("g1", n)]
    machine = Ledger(1 << 42)
    sums = Sums(machine, curve, 1, None)
    w, h = (scalars_of(machine, curve, n, montgomery=m) for m in (False, True))
    bases = [points_of(machine, curve, group, count) for group, count in queries]
    base = machine.used
    maps = 4 * n * len(queries)
    asked = max(sums.bytes_of(group, n) + sums.extra_bytes(group, n) for group in ("g1", "g2"))
    machine.limit = base + maps + asked
    for buffer in bases[:-1]:
        sums.start(buffer, w, range(n - buffer.length, n))
    sums.start(bases[-1], h, None)
    assert machine.most - base <= maps + asked
    assert sums.longest is None
    kernels = [kernel for kernel, _, _ in machine.launches]
    assert kernels.count("scan_coarse") == 2
    w.data = None
    assert machine.used <= base + maps - w.length * 8 * curve.fr_words


@pytest.mark.parametrize("log_n", [20, 24, 26, 28])
def test_planned_on_an_h200(curve: Curve, log_n: int) -> None:
    """With the plan's chunks and tables; what has no room on the device is copied chunk by chunk."""
    n = 1 << log_n
    queries = tuple((group, n) for group in ("g1", "g1", "g2", "g1", "g1"))
    machine = Ledger()
    sums = Sums(machine, curve, 1, None)
    work = Workload(log_n, n, ((n, 3 * n, 2), (n, 3 * n, 2)), queries, repeated=True)
    plan = share(
        curve, work, machine.limit, sums.bytes_of, sums.extra_bytes, None, sums.table_plans(n)
    )
    assert plan.total <= machine.limit
    assert n * sums.plan(n).windows < CAPACITY
    if plan.windows:
        assert plan.windows.tables * n <= ROWS
        assert n * plan.windows.windows < CAPACITY


def test_tables_never_have_more_rows_than_a_row_can_name(curve: Curve) -> None:
    """However much memory there is."""
    sums = Sums(Ledger(1 << 60), curve, 1, None)
    for log_n in (20, 27, 28):
        n = 1 << log_n
        for plan in sums.table_plans(n):
            assert plan.tables * n <= ROWS
            sort_digits(Ledger(1 << 60), curve, Memory(0, 0, None), n, plan, montgomery=False, bit_reversed=False)  # fmt: skip


@pytest.mark.parametrize("width", range(2, 25))
@pytest.mark.parametrize("sets", [None, 1, 2, 5])
def test_shared_memory_of_the_sort(curve: Curve, width: int, sets: int | None) -> None:
    """Every width and every number of processors: tiles and segments fit the kernels' words."""
    if sets and -(-WindowPlan.of(curve, width).windows // sets) > 32:
        with pytest.raises(KernelError, match="expected 1 to 32 tables"):
            WindowPlan.of(curve, width, sets=sets)
        return
    plan = WindowPlan.of(curve, width, sets=sets)
    for n in (0, 1, 33, 1000, 98_900, 1 << 17, 1 << 22, (ROWS // plan.tables) // 2):
        for processors in (1, 2, 40, 132, 400):
            if n * plan.windows >= CAPACITY:
                continue
            cut = Partition.of(plan, n, processors)
            assert 1 <= cut.tile <= 1 << 16  # places in a tile have 16 bits
            assert 1 <= cut.segment < cut.segment + cut.portion < 1 << 31
            assert cut.low < min(width, 16)
            assert plan.total_buckets < 1 << 31
        machine = Ledger(1 << 42)
        if n * plan.windows < CAPACITY:
            sort_digits(machine, curve, Memory(0, 0, None), n, plan, montgomery=False, bit_reversed=False)  # fmt: skip


@pytest.mark.parametrize("log_n", [0, 3, 4, 11, 20, 28])
def test_transforms(log_n: int) -> None:
    for curve in (BN254, BLS12_381):
        machine = Ledger()
        transforms = Transforms(machine, curve)
        root, shift = curve.root_of_unity(log_n), 5
        if log_n < curve.two_adicity:
            shift = curve.root_of_unity(log_n + 1)
        vectors = [machine.alloc(32 << log_n) for _ in range(3)]
        base = machine.used
        transforms.extend(vectors[0], log_n, root, shift, second=vectors[1])
        transforms.extend(vectors[2], log_n, root, shift)
        assert machine.used - base <= Transforms.table_bytes(curve, log_n)
