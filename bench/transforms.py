"""Transforms on a GPU by themselves: directions, cosets, pairs and sizes of tiles.

    python -m bench.transforms --curve bls12_381 --sizes 16,20,22,24 --tiles 10,11 --stages

Milliseconds between events in the stream, medians, vectors and tables resident. ``bound`` is the share that
multiplications alone would take of the time (N log_n / 2 products by constants, 7/8 N less without a coset;
bench/floors.py). Results up to --checked are first compared with the native core's. Also the rate of
butterflies in registers, and the time that the table takes to make.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np

from bench.bucket_sums import timed
from bench.floors import BY_CONSTANT, PRODUCTS_PER_MS
from bench.timing import sizes
from cuzk import _core
from cuzk.backends.cuda.machine import Machine, Memory, Unit
from cuzk.backends.cuda.ntt import Transforms
from cuzk.bench.inputs import uniform
from cuzk.bench.stages import TimedMachine
from cuzk.curves import Curve, curve_named
from cuzk.errors import KernelError
from cuzk.prover.devices import thread_count
from cuzk.vectors import Scalars

Way = Callable[[Transforms], None]


def ways(curve: Curve, log_n: int, a: Memory, b: Memory) -> dict[str, tuple[float, Way]]:
    """By name: products by constants of one element, and the work."""
    root, g = curve.root_of_unity(log_n), curve.coset_shift(log_n)
    plain, coset = log_n / 2 - 7 / 8, log_n / 2

    def transform(t: Transforms, second: Memory | None, *, inverse: bool, shift: int) -> None:
        t.transform(a, log_n, root, inverse=inverse, shift=shift, second=second)

    def extend(t: Transforms, second: Memory | None) -> None:
        t.extend(a, log_n, root, g, second=second)

    return {
        "forward": (plain, partial(transform, second=None, inverse=False, shift=1)),
        "inverse": (plain, partial(transform, second=None, inverse=True, shift=1)),
        "forward, coset": (coset, partial(transform, second=None, inverse=False, shift=g)),
        "inverse, coset": (coset, partial(transform, second=None, inverse=True, shift=g)),
        "forward, two": (2 * plain, partial(transform, second=b, inverse=False, shift=1)),
        "extend": (plain + coset, partial(extend, second=None)),
        "extend, two": (2 * (plain + coset), partial(extend, second=b)),
    }


def expect_values(transforms: Transforms, machine: Machine, curve: Curve, given: Scalars, a: Memory) -> None:  # fmt: skip
    """KernelError where a coset transform is not the native core's."""
    log_n, threads = len(given).bit_length() - 1, thread_count(None)
    constants = [curve.root_of_unity(log_n), curve.coset_shift(log_n)]
    root, shift = (Scalars.from_ints(curve, [x], montgomery=True).words for x in constants)
    wanted, found = given.words.copy(), np.empty_like(given.words)
    _core.ntt(curve.name, wanted, root, shift, False, threads)
    machine.upload(a, given.words)
    transforms.transform(a, log_n, constants[0], inverse=False, shift=constants[1])
    machine.download(a, found)
    if not np.array_equal(found, wanted):
        raise KernelError(f"{machine.name}: ntt of 2^{log_n}: expected the native core's values")


def butterflies(machine: Machine, curve: Curve, reps: int, steps: int = 1000) -> float:
    """G butterflies a second in registers."""
    blocks, threads = 4 * machine.processors, 128
    count = 3 * blocks * threads
    words = uniform(curve, count, 2, 1).words
    source, out = machine.alloc(words.nbytes), machine.alloc(words.nbytes)
    machine.upload(source, words)
    unit = Unit("loose_rates.cu", curve)
    work = partial(machine.launch, unit, "butterfly_fr", blocks, threads, source, out, steps)
    return 2 * steps * blocks * threads / timed(machine, reps, work) / 1e6


def measure(machine: Machine, curve: Curve, log_n: int, options: argparse.Namespace) -> None:
    """One size."""
    given = Scalars(curve, uniform(curve, 1 << log_n, 3, thread_count(None)).words, montgomery=True)
    a, b = machine.alloc(given.words.nbytes), machine.alloc(given.words.nbytes)
    machine.upload(b, given.words)
    for tile in options.tiles:
        transforms = Transforms(machine, curve, log_tile=tile)
        start = machine.mark()
        transforms.extend(b, log_n, curve.root_of_unity(log_n), curve.coset_shift(log_n))
        first = machine.milliseconds(start, machine.mark())
        if log_n <= options.checked:
            expect_values(transforms, machine, curve, given, a)
        print(
            f"{curve.title} 2^{log_n}, tiles of 2^{tile}: first use with its table {first:.3f} ms"
        )
        for name, (products, work) in ways(curve, log_n, a, b).items():
            spent = timed(machine, options.reps, partial(work, transforms))
            least = (products * BY_CONSTANT[curve.name] / PRODUCTS_PER_MS) * (1 << log_n)
            print(f"  {name:16s} {spent:9.3f} ms  bound {least / spent:5.2f}", flush=True)
            if options.stages:
                staged = TimedMachine(machine)
                timed_apart = Transforms(staged, curve, log_tile=tile)
                work(timed_apart)  # makes the table
                staged.begin()
                work(timed_apart)
                for kernel, (calls, total) in staged.totals().items():
                    print(f"      {kernel:16s} {calls:3d} x {total / calls:9.3f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--curve", type=curve_named, default=curve_named("bls12_381"))
    parser.add_argument("--sizes", type=sizes, default=sizes("16,20,22,24"))
    parser.add_argument("--tiles", type=sizes, default=sizes("10,11"))
    parser.add_argument("--checked", type=int, default=20, help="log2 of the largest size compared")
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--stages", action="store_true")
    options = parser.parse_args()
    from cuzk.backends.cuda.cuda_machine import CudaMachine
    from cuzk.backends.cuda.device import open_card

    machine = CudaMachine(open_card(0))
    rate = butterflies(machine, options.curve, options.reps)
    print(f"{options.curve.title}: {rate:.1f} G butterflies/s in registers", flush=True)
    for log_n in options.sizes:
        measure(machine, options.curve, log_n, options)


if __name__ == "__main__":
    main()
