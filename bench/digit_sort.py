"""Sorted digits on a GPU: the whole sort, and two ways to the entries of half of the wires.

    python -m bench.digit_sort --curve bls12_381 --sizes 16,20,22,24 --scalars random,witness,ones --stages

Milliseconds between events in the stream, medians, scalars resident. Up to --checked the entries are first
compared with the scalars: keys in order, and sum_i u_i s_i for random u_i, window by window. ``TB/s`` counts
32 bytes per scalar and 28 per entry of the sort; --stages tells the kernels' times apart; --low, --tile,
--segment and --portion cut the work otherwise, --sets gives the bases tables of multiples.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.bucket_sums import timed
from bench.timing import sizes
from cuzk.backends.cuda.digits import Digits, Partition, select, sort_digits
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.backends.cuda.windows import WindowPlan, choose_plan, group_cost
from cuzk.bench.inputs import KINDS, scalars
from cuzk.bench.stages import TimedMachine
from cuzk.curves import Curve, curve_named
from cuzk.errors import KernelError
from cuzk.prover.devices import thread_count
from cuzk.vectors import Scalars

SIGN = 1 << 31
LIMB = 16  # bits: 2^31 products of two limbs fit 64 bits


def downloaded(machine: Machine, digits: Digits) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Keys and rows of the entries there are."""
    count = np.empty(1, np.uint64)
    machine.download(digits.count, count)
    keys, rows = (np.empty(int(count[0]), np.uint32) for _ in range(2))
    machine.download(digits.keys, keys)
    machine.download(digits.rows, rows)
    return keys, rows


def expect_sorted(machine: Machine, curve: Curve, given: Scalars, digits: Digits) -> int:
    """Number of entries; KernelError where they are not in order or not the scalars'."""
    keys, rows = downloaded(machine, digits)
    weights = np.random.default_rng(1).integers(0, 1 << LIMB, len(given), np.int64)
    limbs = given.words.view(np.uint16).reshape(len(given), -1)
    expected = sum(
        int(np.dot(limbs[:, k].astype(np.int64), weights)) << (LIMB * k)
        for k in range(limbs.shape[1])
    )
    plan, found = digits.plan, 0
    bounds = np.searchsorted(keys, np.arange(plan.sets + 1, dtype=np.uint64) * plan.buckets)
    for v in range(plan.sets):
        here = slice(bounds[v], bounds[v + 1])
        table, row = np.divmod(rows[here] & (SIGN - 1), len(given))
        terms = keys[here].astype(np.int64) - (v * plan.buckets - 1)
        terms *= weights[row]
        terms *= 1 - 2 * (rows[here] >> 31).astype(np.int64)
        for t in range(plan.tables):
            found += int(terms[table == t].sum()) << (plan.width * (t * plan.sets + v))
    if (keys[1:] < keys[:-1]).any() or (found - expected) % curve.r:
        raise KernelError(f"{machine.name}: digits: entries are not those of the scalars, in order")
    return len(keys)


def ways(
    curve: Curve, values: Memory, n: int, plan: WindowPlan, cut: Partition, row_of: Memory
) -> dict[str, Callable[[Machine], Digits]]:
    """What is measured, by name."""

    def sort(machine: Machine, table: Memory | None, montgomery: bool) -> Digits:
        return sort_digits(
            machine, curve, values, n, plan,
            montgomery=montgomery, bit_reversed=montgomery, row_of=table, partition=cut,
        )  # fmt: skip

    sorted_once: list[Digits] = []

    def selected(machine: Machine) -> Digits:
        if not sorted_once:
            sorted_once.append(sort(machine, None, montgomery=False))
        return select(machine, curve, sorted_once[0], row_of, n)

    return {
        "sort": lambda machine: sort(machine, None, montgomery=False),
        "sort, Montgomery, reversed": lambda machine: sort(machine, None, montgomery=True),
        "sort of half the wires": lambda machine: sort(machine, row_of, montgomery=False),
        "select of half the wires": selected,
    }


def measure(
    machine: Machine, curve: Curve, kind: str, log_n: int, options: argparse.Namespace
) -> None:
    """One size and one kind of scalars."""
    n = 1 << log_n
    plan = choose_plan(n, curve, group_cost(curve, "g1"))
    if options.width or options.sets:
        plan = WindowPlan.of(curve, options.width or plan.width, sets=options.sets)
    cut = Partition.of(plan, n, machine.processors)
    given_cut = {name: getattr(options, name) for name in ("low", "tile", "segment", "portion")}
    cut = replace(cut, **{name: value for name, value in given_cut.items() if value})
    given = scalars(curve, kind, n, 3, thread_count(None))
    values, row_of = machine.alloc(given.words.nbytes), machine.alloc(4 * n)
    machine.upload(values, given.words)
    table = np.full(n, 2**32 - 1, np.uint32)
    table[::2] = np.arange((n + 1) // 2)
    machine.upload(row_of, table)
    todo = ways(curve, values, n, plan, cut, row_of)
    digits = todo["sort"](machine)
    if log_n <= options.checked:
        expect_sorted(machine, curve, given, digits)
    entries = len(downloaded(machine, digits)[0])
    del digits
    print(
        f"{curve.title} 2^{log_n} {kind}: {plan.windows} windows of {plan.width} bits, {entries} entries, {cut}"
    )
    for name, way in todo.items():
        spent = timed(machine, options.reps, partial(way, machine))
        moved = 32 * n + 28 * entries
        print(
            f"  {name:28s} {spent:9.3f} ms  {entries / spent / 1e6:7.2f} G entries/s"
            + (f"  {moved / spent / 1e9:5.2f} TB/s" if name == "sort" else ""),
            flush=True,
        )
        if options.stages:
            staged = TimedMachine(machine)
            way(staged)
            for kernel, (count, total) in staged.totals().items():
                print(f"      {kernel:24s} {count:4d} x {total / count:9.3f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--curve", type=curve_named, default=curve_named("bls12_381"))
    parser.add_argument("--sizes", type=sizes, default=sizes("16,20,22,24"))
    parser.add_argument("--scalars", type=lambda text: text.split(","), default=[KINDS[0]])
    parser.add_argument("--width", type=int, help="bits of a window; chosen if not given")
    parser.add_argument(
        "--sets", type=int, help="sets of buckets; one for each window if not given"
    )
    parser.add_argument("--low", type=int, help="bits of a key that the second pass sorts by")
    parser.add_argument("--tile", type=int, help="digits in a tile of the first pass")
    parser.add_argument("--segment", type=int, help="entries in a segment of the second pass")
    parser.add_argument(
        "--portion", type=int, help="entries that one block takes in the second pass"
    )
    parser.add_argument("--checked", type=int, default=22, help="log2 of the largest size compared")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--stages", action="store_true")
    options = parser.parse_args()
    from cuzk.backends.cuda.cuda_machine import CudaMachine
    from cuzk.backends.cuda.device import open_card

    machine = CudaMachine(open_card(0))
    for kind in options.scalars:
        for log_n in options.sizes:
            measure(machine, options.curve, kind, log_n, options)


if __name__ == "__main__":
    main()
