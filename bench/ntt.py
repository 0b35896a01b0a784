"""Times the NTT of the native core: ``python -m bench.ntt --sizes 12-22 --threads 1 --json``.

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
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from bench.timing import Timing, least, sizes
from cuzk import _core
from cuzk.bench.inputs import uniform_below
from cuzk.bench.place import host
from cuzk.curves import CURVES, Curve
from cuzk.vectors import Scalars, Words


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


def prove_right(curve: Curve, threads: int) -> None:
    """y_j = sum_i x_i (g w^j)^i for 64 points, and back."""
    n, g, r, root = 64, 7, curve.r, curve.root_of_unity(6)
    words = uniform_below(r, n, n, 1)
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
    a, b = (uniform_below(curve.r, n, seed, 1) for seed in (1, 2))
    out = np.empty_like(a)
    work = partial(_core.pointwise, curve.name, a, b, None, one, out, 1)
    return least(work, seconds=seconds).cpu / n


def measure(curve: Curve, log_n: int, threads: int, seconds: float) -> Row:
    n = 1 << log_n
    words, table = uniform_below(curve.r, n, n, 1), np.empty((n // 2, 4), np.uint64)
    root = element(curve, curve.root_of_unity(log_n))
    shifts = {1: element(curve, 1), 7: element(curve, 7)}

    def transform(shift: int, inverse: bool) -> Timing:
        arguments = words, root, shifts[shift], inverse, threads, table
        return least(partial(_core.ntt, curve.name, *arguments), seconds=seconds)

    making = least(partial(_core.twiddles, curve.name, root, table, threads), seconds=seconds)
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
        bit_reverse=least(partial(_core.bit_reverse, words, threads), seconds=seconds),
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
        print(
            f"{host()['cpu']}, {options.threads} threads, {options.path}; ms elapsed and of the processor"
        )
        print(f"{'curve':10} {'log':>3} " + " ".join(f"{n:>19}" for n in names) + f" {'floor':>9}")
    for name in options.curves:
        prove_right(CURVES[name], options.threads)
        for log_n in options.sizes:
            rows.append(measure(CURVES[name], log_n, options.threads, options.seconds))
            if not options.json:
                print(show(rows[-1]), flush=True)
    if options.json:
        print(json.dumps({"machine": host(), "rows": [asdict(row) for row in rows]}))


if __name__ == "__main__":
    main()
