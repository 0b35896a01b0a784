"""The digits of scalars as entries (key, row), sorted by key: ``native/gpu/digits.cu`` and ``select.cu``.

key = v 2^(c-1) + |d| - 1 for digit d of a window of bucket set v, row = index of the base with the entry's
sign in bit 31; how many entries there are only the device knows. Bases with tables of their multiples
(:mod:`cuzk.backends.cuda.tables`): row = t stride + index for a window of table t. Nothing here waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.backends.cuda.machine import Machine, Memory, Unit
from cuzk.backends.cuda.windows import WindowPlan, choose_plan
from cuzk.curves import Curve
from cuzk.errors import KernelError

__all__ = ["Digits", "Partition", "WindowPlan", "choose_plan", "first_not_canonical", "select", "sort_digits"]  # fmt: skip

THREADS = 512
SHARED_BYTES = 112 << 10  # of a block: two fit in the 228 KB of a processor
BLOCKS = 2  # per processor; a block takes tile after tile
COUNTERS = 4  # the same where only a histogram is in shared memory
SCALARS = 2 * THREADS  # the most in a tile
ENTRIES = 22 * THREADS  # the most in a segment
ONE_PASS = 8192  # keys that a single partition sorts: up to 2^12 scalars
SELECTED = 16 * THREADS  # entries in a tile of `select`
CAPACITY = 2**32  # places of entries are 32 bits
ROWS = 2**31 - 1  # rows leave one bit for the sign, and one word that is none


@dataclass(frozen=True)
class Digits:
    """Entries [0, count) sorted by key; ``capacity`` bounds the count."""

    plan: WindowPlan
    keys: Memory  # u32 each
    rows: Memory  # u32 each: row | sign << 31
    count: Memory  # u64
    capacity: int
    stride: int = 0  # rows of a table


@dataclass(frozen=True)
class Partition:
    """How the sort is cut: bins of 2^``low`` keys, tiles of scalars, segments of entries.

    Both passes write runs of (items of a tile) / (bins): the square root of the keys balances them.
    """

    low: int
    tile: int
    segment: int

    @classmethod
    def of(cls, plan: WindowPlan, n: int, processors: int) -> Partition:
        """The largest tiles that shared memory holds and that leave none of the processors idle."""
        keys = plan.total_buckets
        low = 0 if keys <= ONE_PASS else min(13, ((keys - 1).bit_length() + 1) // 2)
        left = SHARED_BYTES - 4 * (2 * bins(plan, low) + 1)
        tile = min(SCALARS, left // (6 * plan.windows))
        segment = min(ENTRIES, (SHARED_BYTES - 4 * ((2 << low) + 1)) // 6)
        share = -(-n // (BLOCKS * processors))  # of a block
        fair_tile, fair_segment = max(32, share), max(1024, share * plan.windows)
        return cls(low, min(tile, fair_tile), min(segment, fair_segment))


def bins(plan: WindowPlan, low: int) -> int:
    """Bins of 2^low keys that hold all keys."""
    return -(-plan.total_buckets >> low)


def sort_digits(
    machine: Machine,
    curve: Curve,
    scalars: Memory,
    n: int,
    plan: WindowPlan,
    *,
    montgomery: bool,
    bit_reversed: bool,
    row_of: Memory | None = None,
    stride: int | None = None,
    partition: Partition | None = None,
) -> Digits:
    """Entries of ``n`` scalars below r; the row of a scalar is its index in natural order.

    With ``row_of`` (u32[n], see :mod:`cuzk.backends.cuda.rows`) it is row_of[index], and scalars of row
    2^32 - 1 give nothing. A table of the bases has ``stride`` rows (n where it is not given). Takes 14
    bytes an entry, of which 8 remain.
    """
    capacity, stride = n * plan.windows, n if stride is None else stride
    if capacity >= CAPACITY or n > ROWS:
        raise KernelError(
            f"cuda: digits: expected n * windows below 2^32, found {n} * {plan.windows}: use wider windows"
        )
    expect_rows(plan, stride)
    if plan.bits != (curve.r // 2).bit_length():
        raise KernelError(
            f"cuda: digits: expected windows for {curve.title}, found some for {plan.bits} bits"
        )
    if bit_reversed and n.bit_count() != 1:
        raise KernelError(f"cuda: digits: expected 2^k scalars in bit-reversed order, found {n}")
    cut = partition or Partition.of(plan, n, machine.processors)
    out = empty(machine, plan, capacity, stride)
    log_reversed = n.bit_length() - 1 if bit_reversed else 0
    table: Memory | int = row_of or 0
    cuts = (plan.width, plan.windows, plan.sets, cut.low)
    source = (scalars, table, n, int(montgomery), log_reversed, *cuts)
    _Sort(machine, Unit("digits.cu", curve), cut, source, out).queue()
    return out


def empty(machine: Machine, plan: WindowPlan, capacity: int, stride: int) -> Digits:
    """Room for entries; the count is not set."""
    keys, rows = (words(machine, capacity) for _ in range(2))
    return Digits(plan, keys, rows, machine.alloc(8), capacity, stride)


def expect_rows(plan: WindowPlan, stride: int) -> None:
    """KernelError where the rows of all tables are too many for their 31 bits."""
    if plan.tables * stride > ROWS:
        raise KernelError(
            f"cuda: digits: expected less than 2^31 rows in all tables, found {plan.tables} * {stride}"
        )


def words(machine: Machine, count: int) -> Memory:
    """u32[count], never of no bytes at all."""
    return machine.alloc(4 * max(count, 1))


@dataclass(frozen=True)
class _Sort:
    machine: Machine
    unit: Unit
    cut: Partition
    source: tuple[Memory | int, ...]
    out: Digits

    def queue(self) -> None:
        """Coarse count, scan and scatter; then the same inside each bin."""
        machine, cut, out, low = self.machine, self.cut, self.out, self.cut.low
        count = bins(out.plan, low)
        counts, starts, cursors, segments = (words(machine, count + 1) for _ in range(4))
        machine.fill(counts, 0)
        scalars = out.capacity // out.plan.windows
        blocks = self.blocks(scalars, THREADS, COUNTERS)
        self.launch("count_coarse", blocks, *self.source, count, counts, shared=4 * count)
        scanned = (starts, cursors, segments, out.count)
        shared = 4 * (count + 1)
        self.launch("scan_coarse", 1, counts, count, cut.segment, *scanned, shared=shared)
        two = low > 0
        lows = machine.alloc(2 * max(out.capacity, 1)) if two else 0
        grouped = words(machine, out.capacity) if two else out.rows
        shared = 4 * (2 * count + 1) + 6 * cut.tile * out.plan.windows
        blocks = self.blocks(scalars, cut.tile, BLOCKS)
        target = (out.stride, cursors, lows, out.keys, grouped)
        self.launch("scatter_coarse", blocks, *self.source, count, cut.tile, *target, shared=shared)
        if two:
            self.queue_fine(lows, grouped, starts, segments, count)

    def queue_fine(
        self, lows: Memory | int, rows: Memory, starts: Memory, segments: Memory, count: int
    ) -> None:
        low, segment, out = self.cut.low, self.cut.segment, self.out
        places = words(self.machine, count << low)
        self.machine.fill(places, 0)
        work = -(-out.capacity // segment) + count  # segments at most
        bounds = (starts, segments, count, low, segment)
        blocks = self.blocks(work, 1, COUNTERS)
        self.launch("count_fine", blocks, lows, *bounds, places, shared=4 << low)
        blocks = self.blocks(count, 1, BLOCKS)
        self.launch("scan_fine", blocks, starts, count, low, places, shared=4 * ((1 << low) + 1))
        shared = 4 * ((2 << low) + 1) + 6 * segment
        target = (places, out.keys, out.rows)
        blocks = self.blocks(work, 1, BLOCKS)
        self.launch("scatter_fine", blocks, lows, rows, *bounds, *target, shared=shared)

    def blocks(self, items: int, tile: int, per_processor: int) -> int:
        return min(-(-items // tile), per_processor * self.machine.processors)

    def launch(self, kernel: str, blocks: int, *args: Memory | int, shared: int = 0) -> None:
        self.machine.launch(self.unit, kernel, blocks, THREADS, *args, shared=shared)


def select(
    machine: Machine,
    curve: Curve,
    digits: Digits,
    row_of: Memory,
    wires: int,
    *,
    stride: int | None = None,
) -> Digits:
    """The entries whose wire has a row, with that row; their order is kept.

    ``row_of`` is u32[wires], 2^32 - 1 where a wire has none; every row of ``digits`` is that of a wire and
    a table of ``wires`` rows. The tables that the new rows are of have ``stride`` rows (``wires`` where it
    is not given). Takes 12 bytes an entry, of which 8 remain.
    """
    stride = wires if stride is None else stride
    if wires > ROWS:
        raise KernelError(f"cuda: select: expected less than 2^31 wires, found {wires}")
    if digits.stride != wires:
        raise KernelError(f"cuda: select: expected digits of {wires} wires, found {digits.stride}")
    expect_rows(digits.plan, stride)
    unit = Unit("select.cu", curve)
    tiles = -(-digits.capacity // SELECTED)
    out = empty(machine, digits.plan, digits.capacity, stride)
    kept, renumbered = words(machine, tiles + 1), words(machine, digits.capacity)
    blocks = min(tiles, BLOCKS * machine.processors)
    entries = (digits.rows, digits.count, row_of)
    machine.launch(unit, "renumber", blocks, THREADS, *entries, wires, stride, renumbered, kept)
    machine.launch(unit, "scan_selected", 1, THREADS, digits.count, kept, out.count)
    chosen = (digits.keys, renumbered, digits.count, kept)
    machine.launch(unit, "write_selected", blocks, THREADS, *chosen, out.keys, out.rows)
    return out


def first_not_canonical(machine: Machine, curve: Curve, scalars: Memory, n: int) -> Memory:
    """u64: index of the first scalar that is not below r, 2^64 - 1 where there is none."""
    first = machine.alloc(8)
    machine.fill(first, 0xFF)
    blocks = min(-(-n // 256), 8 * machine.processors)
    machine.launch(Unit("digits.cu", curve), "first_not_canonical", blocks, 256, scalars, n, first)
    return first
