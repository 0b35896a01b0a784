"""From sorted entries to the sum of an MSM: buckets, then c points per window, then one point.

The device sums pairs in long lists (``tree.py``), fills the buckets (``accumulate.cu``), adds them up by rows
and columns, or the entries at once where about one a bucket is left (``lines.py``), and folds the lines of
every window to c points with weights 2^e (``reduce.cu``); Horner's rule over the 256 or so points runs on
the host. Costs stand in the kernels' headers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuzk import _core
from cuzk.backends.cuda.digits import Digits
from cuzk.backends.cuda.lines import by_column, by_row
from cuzk.backends.cuda.machine import Machine, Memory, Unit, ceil
from cuzk.backends.cuda.tree import Tuning, shorten, tuning_of
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve
from cuzk.vectors import Words

THREADS = 128  # of a block, wherever a thread holds a sum
SHORTEST_SLICE = 8  # entries; below it the pieces of the slices outnumber the additions saved


@dataclass(frozen=True)
class Group:
    """The sums of one group on one machine."""

    machine: Machine
    curve: Curve
    name: str  # "g1", "g2"

    @property
    def sum_bytes(self) -> int:
        """A sum in extended form: X, Y, ZZ, ZZZ."""
        return 16 * self.curve.point_words(self.name)

    @property
    def resident_threads(self) -> int:
        """Threads that the machine holds at once in the kernels here (``sum_blocks`` of sum.hpp)."""
        blocks = 4 if self.sum_bytes <= 128 else 3 if self.sum_bytes <= 256 else 2
        return self.machine.processors * blocks * THREADS

    def alloc(self, sums: int) -> Memory:
        """Room for that many."""
        return self.machine.alloc(sums * self.sum_bytes)

    def launch(
        self,
        file: str,
        kernel: str,
        blocks: int,
        threads: int,
        *args: Memory | int,
        shared: int = 0,
    ) -> None:
        """Queue a kernel of this curve and group."""
        unit = Unit(file, self.curve, self.name)
        self.machine.launch(unit, kernel, blocks, threads, *args, shared=shared)

    def slices(self, capacity: int) -> int:
        """Into how many the entries are cut: one per resident thread, fewer where they would be short."""
        return THREADS * ceil(
            min(self.resident_threads, ceil(max(capacity, 1), SHORTEST_SLICE)), THREADS
        )

    def run_threads(self) -> int:
        """Pieces that a block merges: their sums fit the 48 KiB of shared memory that any block may have."""
        return 128 if self.sum_bytes <= 256 else 64


@dataclass(frozen=True)
class Fold:
    """How the 2^(low + high) buckets of a window, or of all that share a set, are laid out as 2^high rows."""

    plan: WindowPlan

    @property
    def low(self) -> int:
        """log2 of the columns."""
        return (self.plan.width - 1) // 2

    @property
    def high(self) -> int:
        """log2 of the rows."""
        return self.plan.width - 1 - self.low

    @property
    def top(self) -> int:
        """Buckets of the last set that can be there: the top window's digits are at most 2^(bits left)."""
        if self.plan.tables > 1:  # others share its set
            return self.plan.buckets
        return 1 << min(self.plan.bits % self.plan.width, self.plan.width - 1)

    @property
    def exponents(self) -> list[int]:
        """Of the points that are left, in their order: per set its bits, then the plain sum."""
        weights = [*range(self.plan.width - 1), 0]
        return [w * self.plan.width + e for w in range(self.plan.sets) for e in weights]


def start_sum(
    machine: Machine,
    curve: Curve,
    group: str,
    points: Memory,
    digits: Digits,
    tuning: Tuning | None = None,
) -> Callable[[], Words]:
    """Queue the sum of all entries; the function returned waits for it: (1, point_words), affine, Montgomery.

    ``points`` are affine, infinity allowed, and must have a row for every row of ``digits``.
    """
    sums, fold = Group(machine, curve, group), Fold(digits.plan)
    tuning = tuning or tuning_of(curve, group)
    rows, columns = lines_of_all(sums, points, digits, fold, tuning)
    return collected(sums, rows, columns, fold)


def lines_of_all(
    sums: Group, points: Memory, digits: Digits, fold: Fold, tuning: Tuning
) -> tuple[Memory, Memory]:
    """Row and column sums of all windows: from the entries where rounds pay, else by way of buckets."""
    short_points, short = shortened(sums, points, digits, tuning)
    if short is not digits and fold.low and digits.plan.total_buckets >= tuning.least_pairs:
        return lines_of_entries(sums, short_points, short, fold, tuning)
    return lines_of_buckets(sums, fill_buckets(sums, short_points, short), fold)


def collected(sums: Group, rows: Memory, columns: Memory, fold: Fold) -> Callable[[], Words]:
    """Queue what leads from lines to the sum; the function returned waits for it."""
    machine, curve, group = sums.machine, sums.curve, sums.name
    words = np.empty((len(fold.exponents), 2 * curve.point_words(group)), np.uint64)
    wait = machine.fetch(fold_lines(sums, rows, columns, fold), words)

    def collect() -> Words:
        wait()
        out = np.empty((1, curve.point_words(group)), np.uint64)
        exponents = np.array(fold.exponents, np.uint32)
        _core.weighted_sum(curve.name, group, words, exponents, out)
        return out

    return collect


def fill_buckets(sums: Group, points: Memory, digits: Digits, kept: Memory | None = None) -> Memory:
    """The sum of every bucket in extended form, infinity where it is empty: by slices of equal length.

    ``kept`` are buckets that hold sums already: they are added to.
    """
    return fill_keys(
        sums, points, digits.keys, digits.rows, digits.count, digits.capacity,
        digits.plan.total_buckets, kept,
    )  # fmt: skip


def fill_keys(
    sums: Group,
    points: Memory,
    keys: Memory,
    rows: Memory,
    count: Memory,
    capacity: int,
    n: int,
    kept: Memory | None = None,
) -> Memory:
    """n sums: the signed points of each key's entries, sorted by key; on top of those in ``kept``."""
    buckets = kept or sums.alloc(n)
    if not kept:
        sums.machine.fill(buckets, 0)
    slices = sums.slices(capacity)
    piece_keys, pieces = sums.machine.alloc(8 * slices), sums.alloc(2 * slices)
    sums.launch(
        "accumulate.cu", "accumulate_kept" if kept else "accumulate_slices", slices // THREADS, THREADS,
        points, keys, rows, count, buckets, piece_keys, pieces,
    )  # fmt: skip
    merge_pieces(sums, piece_keys, pieces, 2 * slices, buckets, kept=kept is not None)
    return buckets


def merge_pieces(
    sums: Group, keys: Memory, pieces: Memory, n: int, buckets: Memory, *, kept: bool
) -> None:
    """Sum the runs of equal key among ``n`` pieces into their buckets, level by level."""
    threads = sums.run_threads()
    blocks = 0
    while blocks != 1:
        blocks = ceil(n, threads)
        next_keys, next_pieces = sums.machine.alloc(8 * blocks), sums.alloc(2 * blocks)
        shared = threads * (sums.sum_bytes + 8)
        sums.launch(
            "accumulate.cu", "merge_kept" if kept else "merge_pieces", blocks, threads,
            keys, pieces, n, buckets, next_keys, next_pieces, shared=shared,
        )  # fmt: skip
        keys, pieces, n = next_keys, next_pieces, 2 * blocks


def shortened(
    sums: Group, points: Memory, digits: Digits, tuning: Tuning, room: Memory | None = None
) -> tuple[Memory, Digits]:
    """After the rounds that pay, with enough memory left for the buckets."""
    machine, curve, name = sums.machine, sums.curve, sums.name
    reserved = sum_bytes(machine, curve, name, digits.plan, digits.capacity)
    return shorten(machine, curve, name, points, digits, reserved, tuning, room)


def lines_of_entries(
    sums: Group, points: Memory, digits: Digits, fold: Fold, tuning: Tuning
) -> tuple[Memory, Memory]:
    """Row and column sums of all windows from about one entry a bucket."""
    machine, curve = sums.machine, sums.curve
    rows = by_row(machine, curve, digits, fold.low)
    row_sums = fill_buckets(sums, *shortened(sums, points, rows, tuning))
    columns = by_column(machine, curve, digits, fold.low)
    return row_sums, fill_buckets(sums, *shortened(sums, points, columns, tuning))


def lines_of_buckets(sums: Group, buckets: Memory, fold: Fold) -> tuple[Memory, Memory]:
    """Row and column sums of all windows."""
    windows, low, high = fold.plan.sets, fold.low, fold.high
    lines = (windows << low) + (windows << high)
    row_team, column_team = team(sums, lines, low), team(sums, lines, high)
    row_blocks = ceil((windows << high) * row_team, THREADS)
    column_blocks = ceil((windows << low) * column_team, THREADS)
    rows, columns = sums.alloc(windows << high), sums.alloc(windows << low)
    sums.launch(
        "reduce.cu", "sum_lines", row_blocks + column_blocks, THREADS,
        buckets, windows, low, high, fold.top, row_team, column_team, row_blocks, rows, columns,
        shared=THREADS * sums.sum_bytes,
    )  # fmt: skip
    return rows, columns


def fold_lines(sums: Group, rows: Memory, columns: Memory, fold: Fold) -> Memory:
    """c points per window; their weights are ``fold.exponents``."""
    threads = min(THREADS, max(32, 1 << fold.high))
    folded = sums.alloc(len(fold.exponents))
    sums.launch(
        "reduce.cu", "sum_bits", len(fold.exponents), threads,
        rows, columns, fold.low, fold.high, folded, shared=threads * sums.sum_bytes,
    )  # fmt: skip
    return folded


def team(sums: Group, lines: int, log_length: int) -> int:
    """Threads that share a line of 2^log_length sums, one of ``lines`` in all: what takes the least time.

    One warp keeps a quarter of a processor busy, so a round of additions takes as long as the warps that
    a quarter has in it, but one addition at least.
    """

    quarters = 4 * sums.machine.processors

    def rounds(size: int) -> int:
        blocks = ceil(lines * size, THREADS)
        serial = ((1 << log_length) // size - 1) * ceil(lines * size, 32 * quarters)
        warps = [ceil(THREADS >> level, 32) for level in range(1, size.bit_length())]
        return serial + sum(ceil(blocks * each, quarters) for each in warps)

    return min((1 << k for k in range(min(log_length, 7) + 1)), key=rounds)


def sum_bytes(machine: Machine, curve: Curve, group: str, plan: WindowPlan, capacity: int) -> int:
    """Device memory that a sum takes at its height beside points and digits: buckets and pieces, or folds."""
    sums, fold = Group(machine, curve, group), Fold(plan)
    level, pieces, per_block = 2 * sums.slices(capacity), 0, sums.run_threads()
    while level > 2:
        pieces += level
        level = 2 * ceil(level, per_block)
    folds = (plan.sets << fold.low) + (plan.sets << fold.high) + len(fold.exponents)
    beside = max((pieces + 2) * (sums.sum_bytes + 4), folds * sums.sum_bytes)
    return plan.total_buckets * sums.sum_bytes + beside
