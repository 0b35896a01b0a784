"""The digits of scalars as entries (key, row), sorted by key: ``native/gpu/digits.cu`` and ``select.cu``.

key = v 2^(c-1) + |d| - 1 for digit d of a window of bucket set v, row = index of the base with the entry's
sign in bit 31; how many entries there are only the device knows. Bases with tables of their multiples
(:mod:`cuzk.backends.cuda.tables`): row = t stride + index for a window of table t. Nothing here waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.backends.cuda.machine import Machine, Memory, Unit, ceil, grid
from cuzk.backends.cuda.windows import WindowPlan, choose_plan
from cuzk.curves import Curve
from cuzk.errors import KernelError

__all__ = ["Digits", "Partition", "WindowPlan", "choose_plan", "first_not_canonical", "select", "sort_digits"]  # fmt: skip

THREADS = 512
SHARED_BYTES = 112 << 10  # of a block: two fit in the 228 KB of a processor
BLOCKS = 2  # per processor; a block takes tile after tile
COUNTERS = 3  # the same where only a histogram is in shared memory
COARSE = 1024  # the most bins of a set of buckets: a tile's runs in them have 16 entries
BINS = 16384  # the most bins in all, 64 KiB: three histograms fit
LOWS = 13  # the most bits that a bin leaves: as many counters and bases leave room for entries
TILE = 1 << 14  # the most digits in a tile
SEGMENT = 36 * THREADS  # the most entries in a segment
PORTION = 16  # the most segments that one block takes
FEW_DIGITS = 2 * THREADS  # of a tile
FEW_ENTRIES = 8 * THREADS  # of a bin: a thread loads 8 at once, fewer take as long
SELECTED = 16 * THREADS  # entries in a tile of `select`
CAPACITY = 2**32  # places of entries are 32 bits
ROWS = 2**31 - 1  # rows leave one bit for the sign, and one word that is none


@dataclass(frozen=True)
class Digits:
    """Entries [0, count) sorted by key; ``capacity`` bounds the count, ``fewer`` tells what it is for even keys."""

    plan: WindowPlan
    keys: Memory  # u32 each
    rows: Memory  # u32 each: row | sign << 31
    count: Memory  # u64
    capacity: int
    stride: int = 0  # rows of a table
    fewer: int | None = None

    @property
    def likely(self) -> int:
        """How many entries rounds are planned for."""
        return self.capacity if self.fewer is None else self.fewer


@dataclass(frozen=True)
class Partition:
    """How the sort is cut: bins of 2^``low`` keys, tiles of a window's digits, segments of entries.

    Blocks share the bins of more than ``portion`` entries; one block takes any other, a segment at a time.
    """

    low: int
    tile: int
    segment: int
    portion: int

    @classmethod
    def of(cls, plan: WindowPlan, n: int, processors: int) -> Partition:
        """The fewest bins that fit a segment if no digit is zero, but enough for all processors."""
        blocks = BLOCKS * processors
        share = n * plan.windows // blocks
        low = least = least_low(plan)
        most = max(
            FEW_ENTRIES, share // 4
        )  # of a bin: turns of unequal length leave few blocks idle
        while 0 < least <= low < min(LOWS, plan.width - 1):
            if per_bin(plan, n, low + 1) > min(most, room(low + 1) * 15 // 16):
                break
            low += 1
        turns = ceil(n * plan.windows, blocks * TILE)
        parts = max(1, turns * blocks // plan.windows)  # of a window
        tile = min(max(FEW_DIGITS, 32 * ceil(n, 32 * parts)), tile_room(plan, low))
        segment = room(low)
        portion = max(5 * per_bin(plan, n, low) // 4, min(4 * segment, share), FEW_ENTRIES)
        return cls(low, tile, segment, min(portion, PORTION * segment))


def least_low(plan: WindowPlan) -> int:
    """The fewest bits that leave no more bins than there may be."""
    low = 0
    while plan.buckets >> low > COARSE or bins(plan, low) > BINS:
        low += 1
    return low


def per_bin(plan: WindowPlan, n: int, low: int) -> int:
    """Entries of a bin of 2^low keys where no digit is zero and all are equally frequent."""
    return n * plan.windows // bins(plan, low)


def room(low: int) -> int:
    """Entries of a segment that shared memory holds, beside a counter and a base for each of 2^low keys."""
    return min(SEGMENT, (SHARED_BYTES - 4 * ((2 << low) + 1)) // 6)


def tile_room(plan: WindowPlan, low: int) -> int:
    """Digits of a tile that shared memory holds, beside a counter and a base for each bin of a set."""
    return min(TILE, (SHARED_BYTES - 4 * (2 * (plan.buckets >> low) + 1)) // (6 * 32) * 32)


def bins(plan: WindowPlan, low: int) -> int:
    """Bins of 2^low keys, those of each set of buckets apart; low < c."""
    return plan.sets * (plan.buckets >> low)


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
    sort = _Sort(machine, Unit("digits.cu", curve), cut, n, row_of or 0, log_reversed, out)
    sort.queue(scalars, montgomery)
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
    n: int
    row_of: Memory | int
    log_reversed: int
    out: Digits

    def queue(self, scalars: Memory, montgomery: bool) -> None:
        """Digits; coarse scan and scatter; then the portions of the bins."""
        machine, cut, out, plan = self.machine, self.cut, self.out, self.out.plan
        count = bins(plan, cut.low)
        counts, starts, cursors = (words(machine, count + 1) for _ in range(3))
        machine.fill(counts, 0)
        fine = cut.low > 0
        digits = out.keys if fine else words(machine, out.capacity)  # room until the keys come
        cuts = (plan.width, plan.windows, plan.sets, cut.low)
        source = (scalars, self.row_of, self.n, int(montgomery), self.log_reversed)
        blocks = grid(machine, self.n, THREADS, COUNTERS)
        self.launch("recode", blocks, *source, *cuts, count, digits, counts, shared=4 * count)
        portions = machine.alloc(12 * (count + out.capacity // cut.portion + 1))
        ends = words(machine, 2)
        scanned = (starts, cursors, portions, ends, out.count)
        self.launch("scan_coarse", 1, counts, count, cut.portion, *scanned, shared=4 * (count + 1))
        lows = machine.alloc(2 * max(out.capacity, 1)) if fine else 0
        grouped = words(machine, out.capacity) if fine else out.rows
        blocks = grid(machine, ceil(self.n, cut.tile) * plan.windows, 1, BLOCKS)
        made = (digits, self.row_of, self.n, self.log_reversed)
        target = (cut.tile, out.stride, cursors, lows, out.keys, grouped)
        shared = 4 * (2 * (plan.buckets >> cut.low) + 1) + 6 * cut.tile
        self.launch("scatter_coarse", blocks, *made, *cuts, *target, shared=shared)
        if fine:
            self.queue_fine(lows, grouped, starts, portions, ends)

    def queue_fine(
        self, lows: Memory | int, rows: Memory, starts: Memory, portions: Memory, ends: Memory
    ) -> None:
        low, segment, out = self.cut.low, self.cut.segment, self.out
        count = bins(out.plan, low)
        places = words(self.machine, count << low)
        self.machine.fill(places, 0)
        shared_portions = 2 * (out.capacity // self.cut.portion) + 1  # at most
        work = (portions, ends, low)
        blocks = grid(self.machine, shared_portions, 1, COUNTERS)
        self.launch("count_fine", blocks, lows, *work, places, shared=4 << low)
        blocks = grid(self.machine, shared_portions, 1, BLOCKS)
        self.launch("scan_fine", blocks, starts, *work, places, shared=4 * ((1 << low) + 1))
        blocks = grid(self.machine, count + out.capacity // self.cut.portion, 1, BLOCKS)
        shared = 4 * ((2 << low) + 1) + 6 * segment
        target = (segment, places, out.keys, out.rows)
        self.launch("scatter_fine", blocks, lows, rows, *work, *target, shared=shared)

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
    tiles = ceil(digits.capacity, SELECTED)
    out = empty(machine, digits.plan, digits.capacity, stride)
    kept, renumbered = words(machine, tiles + 1), words(machine, digits.capacity)
    blocks = grid(machine, tiles, 1, BLOCKS)
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
    blocks = grid(machine, n, 256, 8)
    machine.launch(Unit("digits.cu", curve), "first_not_canonical", blocks, 256, scalars, n, first)
    return first
