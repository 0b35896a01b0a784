"""Bucket sums on a GPU: slices alone, and after rounds of batched affine additions, over the same sorted entries.

    python -m bench.bucket_sums --curve bls12_381 --group g1 --sizes 20,22,24 --depths 64,128 --stages

Milliseconds between events in the stream, medians, points and entries resident: buckets filled, with the additions
a second if every entry were one, and the whole sum but for its last steps on the host. Before anything is timed
both ways give the sum that the points' logarithms say. --stages tells the launches of the whole sum apart
(those above 0.5 %).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np

from bench.timing import sizes
from cuzk.backends.cuda.digits import Digits, sort_digits
from cuzk.backends.cuda.machine import Machine, Memory, Unit
from cuzk.backends.cuda.sums import Group, fill_buckets, start_sum
from cuzk.backends.cuda.tree import Tuning, shorten
from cuzk.backends.cuda.windows import WindowPlan, choose_plan, group_cost
from cuzk.bench.inputs import KINDS, distinct, known_points, scalars
from cuzk.bench.logarithms import dot
from cuzk.bench.stages import TimedMachine
from cuzk.curves import Curve, curve_named
from cuzk.errors import KernelError
from cuzk.prover.devices import thread_count
from cuzk.setup.scalars import multiple
from cuzk.vectors import Words

NO_ROUNDS = Tuning(1 << 62)


class Inputs(NamedTuple):
    """Points and sorted entries on a machine, and their sum."""

    points: Memory
    digits: Digits
    expected: bytes


class NumberedMachine(TimedMachine):
    """Tells the launches of one kernel apart: round 0, round 1, ..."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._launched: dict[str, int] = {}

    def launch(
        self,
        unit: Unit,
        kernel: str,
        blocks: int,
        threads: int,
        *args: Memory | int,
        shared: int = 0,
    ) -> None:
        number = self._launched[kernel] = self._launched.get(kernel, -1) + 1
        work = partial(self._machine.launch, unit, kernel, blocks, threads, *args, shared=shared)
        self._timed(f"{kernel} {number}", work)


class Row(NamedTuple):
    """One way of filling the buckets; milliseconds, median."""

    name: str
    entries: int
    buckets: float
    whole: float
    stages: dict[str, tuple[int, float]]

    def text(self) -> str:
        rate = self.entries / self.buckets / 1e6
        filled = f"buckets {self.buckets:9.3f} ms, {rate:6.3f} G additions/s"
        lines = [f"  {self.name:24s} {filled}; whole {self.whole:9.3f} ms"]
        for kernel, (_, spent) in self.stages.items():
            if spent > 0.005 * self.whole:
                lines.append(f"      {kernel:24s} {spent:9.3f} ms")
        return "\n".join(lines)


def inputs(
    machine: Machine,
    curve: Curve,
    group: str,
    n: int,
    kind: str,
    plan: WindowPlan,
    threads: int,
) -> Inputs:
    """n points (2^16 different ones) and the entries of n scalars."""
    known = known_points(curve, group, distinct(n), threads)
    factors = scalars(curve, kind, n, 3, threads)
    words = known.repeated(n, threads).words
    points, values = machine.alloc(words.nbytes), machine.alloc(factors.words.nbytes)
    machine.upload(points, words)
    machine.upload(values, factors.words)
    digits = sort_digits(machine, curve, values, n, plan, montgomery=False, bit_reversed=False)
    expected = multiple(curve, group, dot(factors, known.logarithms, 0, threads))
    return Inputs(points, digits, expected.words.tobytes())


def measure(
    machine: Machine,
    curve: Curve,
    group: str,
    given: Inputs,
    ways: dict[str, Tuning],
    reps: int,
    stages: bool,
) -> Iterator[Row]:
    """Slices, then every tuning of the rounds; KernelError where a sum is wrong."""
    count = np.empty(1, np.uint64)
    machine.download(given.digits.count, count)

    def fill(tuning: Tuning) -> None:
        lists = shorten(machine, curve, group, given.points, given.digits, 0, tuning)
        fill_buckets(Group(machine, curve, group), *lists)

    def whole(on: Machine | NumberedMachine, tuning: Tuning) -> Callable[[], Words]:
        return start_sum(on, curve, group, given.points, given.digits, tuning)

    for name, tuning in {"slices": NO_ROUNDS, **ways}.items():
        if whole(machine, tuning)().tobytes() != given.expected:
            raise KernelError(f"{machine.name}: {name}: the sum is not that of the logarithms")
        buckets = timed(machine, reps, partial(fill, tuning))
        total = timed(machine, reps, partial(whole, machine, tuning))
        totals: dict[str, tuple[int, float]] = {}
        if stages:
            staged = NumberedMachine(machine)
            whole(staged, tuning)
            totals = staged.totals()
        yield Row(name, int(count[0]), buckets, total, totals)


def timed(machine: Machine, reps: int, work: Callable[[], object]) -> float:
    """The median of ``reps`` calls after one more."""
    samples = []
    for _ in range(reps + 1):
        start = machine.mark()
        work()
        samples.append(machine.milliseconds(start, machine.mark()))
    return median(samples[1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--curve", type=curve_named, default=curve_named("bls12_381"))
    parser.add_argument("--group", choices=("g1", "g2"), default="g1")
    parser.add_argument("--sizes", type=sizes, default=sizes("20,22,24"))
    parser.add_argument("--scalars", choices=KINDS, default="random")
    parser.add_argument("--width", type=int, help="bits of a window; chosen if not given")
    parser.add_argument(
        "--depths", type=lambda text: [int(d) for d in text.split(",")], default=[128]
    )
    parser.add_argument("--chunk", type=int, default=27, help="log2 of the entries taken at once")
    parser.add_argument("--least", type=int, default=19, help="log2 of the fewest pairs of a round")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--stages", action="store_true")
    options = parser.parse_args()
    from cuzk.backends.cuda.cuda_machine import CudaMachine
    from cuzk.backends.cuda.device import open_card

    machine, curve, threads = CudaMachine(open_card(0)), options.curve, thread_count(None)
    ways = {
        f"rounds, depth {depth}": Tuning(1 << options.least, 1 << options.chunk, depth=depth)
        for depth in options.depths
    }
    for log_n in options.sizes:
        n = 1 << log_n
        plan = choose_plan(n, curve, group_cost(curve, options.group))
        if options.width:
            plan = WindowPlan.of(curve, options.width)
        given = inputs(machine, curve, options.group, n, options.scalars, plan, threads)
        print(
            f"{curve.title} {options.group} 2^{log_n}, {plan.windows} windows of {plan.width} bits",
            flush=True,
        )
        for row in measure(
            machine, curve, options.group, given, ways, options.reps, options.stages
        ):
            print(row.text(), flush=True)


if __name__ == "__main__":
    main()
