"""The entries of a sum by rows and by columns of buckets, for their line sums (``lines.cu``).

Where rounds of affine additions have left about one entry a bucket, the sums of rows and columns come
straight from the entries: the same rounds over coarser keys, at 5 M + 1 S an addition where the buckets'
sums take 12 M + 2 S, and no bucket is written.
"""

from __future__ import annotations

from cuzk.backends.cuda.digits import Digits, words
from cuzk.backends.cuda.machine import Machine, Memory, Unit, grid
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve

THREADS = 256
BLOCKS = 8  # per processor
SCAN_THREADS = 1024


def coarse(plan: WindowPlan, bits: int) -> WindowPlan:
    """As many windows as there are sets of buckets, with 2^``bits`` keys each."""
    return WindowPlan((plan.sets - 1) * (bits + 1), bits + 1, plan.sets)


def by_row(machine: Machine, curve: Curve, digits: Digits, low: int) -> Digits:
    """Keys are rows of 2^``low`` buckets."""
    keys = words(machine, digits.capacity)
    launch(machine, curve, digits, "row_keys", digits.keys, digits.count, low, keys)
    plan = coarse(digits.plan, digits.plan.width - 1 - low)
    return Digits(plan, keys, digits.rows, digits.count, digits.capacity, fewer=digits.fewer)


def by_column(machine: Machine, curve: Curve, digits: Digits, low: int) -> Digits:
    """Keys are columns, 2^``low`` a window."""
    plan, high = coarse(digits.plan, low), digits.plan.width - 1 - low
    cursors = words(machine, plan.total_buckets + 1)
    keys, rows = (words(machine, digits.capacity) for _ in range(2))
    machine.fill(cursors, 0)
    given = (digits.keys, digits.count, low, high)
    launch(machine, curve, digits, "count_columns", *given, cursors)
    unit = Unit("lines.cu", curve)
    machine.launch(unit, "scan_columns", 1, SCAN_THREADS, cursors, plan.total_buckets)
    launch(
        machine, curve, digits, "place_columns",
        digits.keys, digits.rows, digits.count, low, high, cursors, keys, rows,
    )  # fmt: skip
    return Digits(plan, keys, rows, digits.count, digits.capacity, fewer=digits.fewer)


def launch(
    machine: Machine, curve: Curve, digits: Digits, kernel: str, *args: Memory | int
) -> None:
    """Queue a kernel over all entries; how many there are it reads itself."""
    blocks = grid(machine, digits.capacity, THREADS, BLOCKS)
    machine.launch(Unit("lines.cu", curve), kernel, blocks, THREADS, *args)
