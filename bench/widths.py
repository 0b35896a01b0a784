"""Whole sums on a GPU by width of the windows, with tables of the points' multiples and without.

    python -m bench.widths --curve bls12_381 --group g1 --sizes 16,20,24 --around 2

Milliseconds between events in the stream (digits, sort, buckets, reduction), medians, inputs resident; every
sum is compared with what the logarithms say. The width that the cost model takes (windows.py) has a star.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np

from bench.timing import sizes
from cuzk.backends.cuda.digits import sort_digits
from cuzk.backends.cuda.sums import start_sum
from cuzk.backends.cuda.tables import table_bytes, tabulate
from cuzk.backends.cuda.windows import WIDTHS, WindowPlan, choose_plan, group_cost
from cuzk.bench.inputs import KINDS, distinct, known_points, scalars
from cuzk.bench.logarithms import dot
from cuzk.curves import Curve, curve_named
from cuzk.errors import KernelError
from cuzk.prover.devices import thread_count
from cuzk.setup.scalars import multiple

REPS = 3


class Subject:
    """n points and scalars on a machine."""

    def __init__(self, machine: Any, curve: Curve, group: str, n: int, kind: str) -> None:
        threads = thread_count(None)
        known, factors = (
            known_points(curve, group, distinct(n), threads),
            scalars(curve, kind, n, 3, threads),
        )
        words = known.repeated(n, threads).words
        self.machine, self.curve, self.group, self.n = machine, curve, group, n
        self.points, self.values = (
            machine.alloc(words.nbytes),
            machine.alloc(factors.words.nbytes),
        )
        machine.upload(self.points, words)
        machine.upload(self.values, factors.words)
        expected = multiple(curve, group, dot(factors, known.logarithms, 0, threads))
        self.expected = expected.words.tobytes()

    def rows(self, around: int, sets: int | None) -> Iterator[str]:
        """One line a width, ``around`` the chosen one."""
        cost = group_cost(self.curve, "g1")
        chosen = choose_plan(self.n, self.curve, cost, sets=sets)
        for width in range(chosen.width - around, chosen.width + around + 1):
            plan = WindowPlan.of(self.curve, width, sets=sets)
            needed = table_bytes(self.curve, self.group, self.n, plan)
            if width not in WIDTHS or (sets and 1.5 * needed > self.machine.free_bytes()):
                continue
            star = "*" if plan == chosen else " "
            times = self.times(plan)
            yield f"    {plan.windows:3} windows of {width:2} bits, {plan.sets:3} sets {star} {times}"

    def times(self, plan: WindowPlan) -> str:
        machine = self.machine
        points, note = self.points, ""
        if plan.tables > 1:
            begin = machine.mark()
            points = tabulate(machine, self.curve, self.group, self.points, self.n, plan)
            note = f"  (tables {machine.milliseconds(begin, machine.mark()):9.1f})"
        spent = []
        for _ in range(REPS + 1):
            begin = machine.mark()
            digits = sort_digits(
                machine, self.curve, self.values, self.n, plan, montgomery=False, bit_reversed=False
            )
            sorted_at = machine.mark()
            collect = start_sum(machine, self.curve, self.group, points, digits)
            end = machine.mark()
            if collect().tobytes() != self.expected:
                raise KernelError(f"{machine.name}: {plan}: the sum is not that of the logarithms")
            parts = (begin, sorted_at), (sorted_at, end)
            spent.append([machine.milliseconds(*part) for part in parts])
        sort, rest = (median(column) for column in np.array(spent[1:]).T)
        return f"{sort + rest:9.3f} = {sort:7.3f} + {rest:9.3f}{note}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--curve", default="bls12_381")
    parser.add_argument("--group", choices=["g1", "g2"], default="g1")
    parser.add_argument("--sizes", default="16,18,20,22", type=sizes)
    parser.add_argument("--scalars", choices=KINDS, default="random")
    parser.add_argument("--around", type=int, default=2)
    parser.add_argument("--only", choices=["plain", "tables"])
    options = parser.parse_args()
    from cuzk.backends.cuda.cuda_machine import CudaMachine
    from cuzk.backends.cuda.device import open_card

    machine, curve = CudaMachine(open_card(0)), curve_named(options.curve)
    for log_n in options.sizes:
        subject = Subject(machine, curve, options.group, 1 << log_n, options.scalars)
        for name, sets in (("plain", None), ("tables", 1)):
            if options.only in (None, name):
                print(
                    f"{curve.title} {options.group} 2^{log_n} {name}, ms = sort + sums", flush=True
                )
                for row in subject.rows(options.around, sets):
                    print(row, flush=True)


if __name__ == "__main__":
    main()
