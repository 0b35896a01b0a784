"""Times the NTT of the native core: ``python bench/ntt.py --sizes 12-22 --threads 1 --json``.

A small transform is compared with direct evaluation in Python integers before anything is timed. The floor
is what the products of the butterflies alone would take at the rate of a long loop of products,

    (n/2 log n - (n - 1)) * product,

n - 1 butterflies having the constant 1. Times are the best of several runs, in milliseconds: elapsed, and of
the processor (all threads), which other programs on the machine disturb less.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from cuzk import _core
from cuzk.curves import CURVES, Curve
from cuzk.vectors import Scalars, Words

Timing = tuple[float, float]  # elapsed, processor (ms)


@dataclass(frozen=True)
class Row:
    curve: str
    log_n: int
    threads: int
    path: str
    forward: Timing
    inverse: Timing
    coset_forward: Timing
    coset_inverse: Timing
    twiddles: Timing
    bit_reverse: Timing
    floor: float  # ms of one processor


def element(curve: Curve, value: int) -> Words:
    return Scalars.from_ints(curve, [value], montgomery=True).words


def random_vector(n: int) -> Words:
    words = np.random.default_rng(n).integers(0, 2**64, (n, 4), np.uint64)
    words[:, 3] >>= 3  # below either prime
    return words


def best(work: Callable[[], object], seconds: float) -> Timing:
    """Repeats for about ``seconds``, at least three times."""
    elapsed = processor = float("inf")
    end, runs = time.perf_counter() + seconds, 0
    while runs < 3 or time.perf_counter() < end:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        elapsed = min(elapsed, time.perf_counter() - wall)
        processor = min(processor, time.process_time() - cpu)
        runs += 1
    return round(elapsed * 1e3, 4), round(processor * 1e3, 4)


def prove_right(curve: Curve, threads: int) -> None:
    """y_j = sum_i x_i (g w^j)^i for 64 points, and back."""
    n, g, r, root = 64, 7, curve.r, curve.root_of_unity(6)
    words = random_vector(n)
    x = Scalars(curve, words, montgomery=True).ints()
    out = words.copy()
    arguments = element(curve, root), element(curve, g)
    _core.ntt(curve.name, out, *arguments, False, threads)
    order = [int(f"{j:06b}"[::-1], 2) for j in range(n)]
    expected = [sum(v * pow(g * pow(root, j, r), i, r) for i, v in enumerate(x)) % r for j in order]
    if Scalars(curve, out, montgomery=True).ints() != expected:
        sys.exit(f"{curve.title}: the transform of 64 points is wrong")
    _core.ntt(curve.name, out, *arguments, True, threads)
    if (out != words).any():
        sys.exit(f"{curve.title}: the inverse of 64 points is wrong")


def product_rate(curve: Curve, seconds: float) -> float:
    """Milliseconds of one product, in a loop over the second-level cache."""
    n, one = 4096, element(curve, 1)
    a, b, out = random_vector(n), random_vector(n)[::-1].copy(), np.empty((n, 4), np.uint64)
    return best(lambda: _core.pointwise(curve.name, a, b, None, one, out, 1), seconds)[1] / n


def measure(curve: Curve, log_n: int, threads: int, seconds: float) -> Row:
    n = 1 << log_n
    words, table = random_vector(n), np.empty((n // 2, 4), np.uint64)
    root = element(curve, curve.root_of_unity(log_n))
    shifts = {1: element(curve, 1), 7: element(curve, 7)}

    def transform(shift: int, inverse: bool) -> Timing:
        return best(
            lambda: _core.ntt(curve.name, words, root, shifts[shift], inverse, threads, table),
            seconds,
        )

    making = best(lambda: _core.twiddles(curve.name, root, table, threads), seconds)
    products = n * log_n // 2 - (n - 1)
    return Row(
        curve.name,
        log_n,
        threads,
        _core.path(),
        forward=transform(1, False),
        inverse=transform(1, True),
        coset_forward=transform(7, False),
        coset_inverse=transform(7, True),
        twiddles=making,
        bit_reverse=best(lambda: _core.bit_reverse(words, threads), seconds),
        floor=round(products * product_rate(curve, seconds / 4), 4),
    )


def show(row: Row) -> str:
    columns = (
        row.forward,
        row.inverse,
        row.coset_forward,
        row.coset_inverse,
        row.twiddles,
        row.bit_reverse,
    )
    cells = " ".join(f"{wall:9.2f} {cpu:9.2f}" for wall, cpu in columns)
    return f"{row.curve:10} {row.log_n:3} {cells} {row.floor:9.2f}"


def sizes(text: str) -> range:
    low, _, high = text.partition("-")
    if int(low) < 1:
        raise argparse.ArgumentTypeError("expected sizes from 1")
    return range(int(low), int(high or low) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="NTT of the native core")
    parser.add_argument("--curves", nargs="+", default=["bn254", "bls12_381"])
    parser.add_argument(
        "--sizes", type=sizes, default=sizes("12-22"), help="log2 of n: 12-22, or 20"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--path", choices=_core.paths(), default=_core.path())
    parser.add_argument("--seconds", type=float, default=1.0, help="per figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    _core.use_path(options.path)
    rows = []
    if not options.json:
        names = ("forward", "inverse", "coset fwd", "coset inv", "twiddles", "bit rev")
        print(f"{options.threads} threads, {options.path}; ms elapsed and of the processor")
        print(f"{'curve':10} {'log':>3} " + " ".join(f"{n:>19}" for n in names) + f" {'floor':>9}")
    for name in options.curves:
        prove_right(CURVES[name], options.threads)
        for log_n in options.sizes:
            rows.append(measure(CURVES[name], log_n, options.threads, options.seconds))
            if not options.json:
                print(show(rows[-1]), flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
