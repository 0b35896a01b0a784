"""Multi-scalar multiplication on the CPU: 2^12 .. 2^20 random points and scalars, both curves, G1 and G2.

    python bench/msm.py [--json] [--log-n 12-20] [--curve bls12_381] [--group g1] [--threads 1] [--repeat 3]

Every group is first proved right on a small case (scalars times multiples of the generator, against one
fixed-base multiplication of their sum). The floor is what the batched affine additions alone would cost at
the measured rate of the field's multiplication: n additions a window, five products and a square each.
Times are the least of ``--repeat`` runs: wall clock, and processor time, which other jobs disturb less.
With py_arkworks_bls12381 installed, its multiexp_unchecked at 2^16 is timed in the same run.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuzk import _core
from cuzk.curves import CURVES, Curve
from cuzk.vectors import Points, Words, pack, unpack

Row = dict[str, object]
ADDITION = {"g1": 6, "g2": 17}  # field products: in Fp2 a product takes three, a square two


def random_words(modulus: int, count: int, n: int, seed: int) -> Words:
    """(n, count) words, below the modulus by the top one: uniform enough for timing."""
    words = np.random.default_rng(seed).integers(0, 2**64, size=(n, count), dtype=np.uint64)
    words[:, -1] %= np.uint64(modulus >> (64 * count - 64))
    return words


def multiples(curve: Curve, group: str, scalars: Words, threads: int) -> Words:
    """scalars[i] G."""
    flat = curve.g1 if group == "g1" else curve.g2
    base = Points.from_affine(curve, group, [flat]).words
    out = np.zeros((len(scalars), curve.point_words(group)), dtype=np.uint64)
    _core.fixed_base(curve.name, group, base, scalars, out, threads)
    return out


def msm(curve: Curve, group: str, bases: Words, scalars: Words, threads: int) -> Words:
    out = np.zeros((1, bases.shape[1]), dtype=np.uint64)
    _core.msm(curve.name, group, bases, scalars, None, out, threads)
    return out


def prove_right(curve: Curve, group: str, threads: int) -> None:
    rng = random.Random(1)
    for n in (3, 100, 1000):
        logs, scalars = ([rng.randrange(curve.r) for _ in range(n)] for _ in range(2))
        found = msm(
            curve, group, multiples(curve, group, pack(logs, 4), 1), pack(scalars, 4), threads
        )
        total = sum(k * s for k, s in zip(logs, scalars, strict=True)) % curve.r
        if not np.array_equal(found, multiples(curve, group, pack([total], 4), 1)):
            raise SystemExit(f"{curve.name} {group}: wrong sum of {n} points")


class Least(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def least(repeat: int, work: Callable[[], object]) -> Least:
    """The least of each over the runs."""
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Least(min(walls), min(cpus))


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown CPU"


def product_ns(curve: Curve) -> float:
    """One product in Fp, many independent ones in a row."""
    n = 4096
    words = random_words(curve.p, curve.fp_words, n, seed=2)
    out = np.zeros_like(words)
    work = partial(_core.field_op, curve.name, "fp", "multiply", words, words, out)
    return least(200, work).wall / n * 1e9


def measure(curve: Curve, group: str, sizes: list[int], threads: int, repeat: int) -> list[Row]:
    """One row a size."""
    prove_right(curve, group, threads)
    n = 1 << max(sizes)
    bases = multiples(curve, group, random_words(curve.r, 4, n, seed=3), threads)
    scalars = random_words(curve.r, 4, n, seed=4)
    product = product_ns(curve)
    rows: list[Row] = []
    for log_n in sizes:
        n = 1 << log_n
        time = least(repeat, partial(msm, curve, group, bases[:n], scalars[:n], threads))
        width = _core.msm_width(curve.name, n)
        additions = n * ((curve.r.bit_length() - 1) // width + 1)
        rows.append(
            {
                "curve": curve.name,
                "group": group,
                "log_n": log_n,
                "threads": threads,
                "width": width,
                "wall_ms": round(time.wall * 1e3, 2),
                "cpu_ms": round(time.cpu * 1e3, 2),
                "ns_per_point": round(time.cpu / n * 1e9),
                "ns_per_addition": round(time.cpu / additions * 1e9),
                "product_ns": round(product, 1),
                "floor_ms": round(additions * ADDITION[group] * product / 1e6, 2),
            }
        )
    return rows


def peer(log_n: int, repeat: int) -> list[Row]:
    """arkworks on the same kind of input; one thread, as it comes from PyPI."""
    try:
        import py_arkworks_bls12381 as arkworks
    except ImportError:
        return []
    n = 1 << log_n
    few = [arkworks.G1Point.hash_to_curve(i.to_bytes(4, "big"), b"bench") for i in range(256)]
    points = [few[i % 256] + few[i // 256 % 256] for i in range(n)]
    rows = unpack(random_words(CURVES["bls12_381"].r, 4, n, seed=4))
    scalars = [arkworks.Scalar.from_le_bytes(s.to_bytes(32, "little")) for s in rows]
    time = least(repeat, partial(arkworks.G1Point.multiexp_unchecked, points, scalars))
    return [
        {
            "curve": "bls12_381 by arkworks",
            "group": "g1",
            "log_n": log_n,
            "wall_ms": round(time.wall * 1e3, 2),
            "cpu_ms": round(time.cpu * 1e3, 2),
            "ns_per_point": round(time.cpu / n * 1e9),
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="MSM on the CPU; proves itself right, then times")
    parser.add_argument("--log-n", default="12-20", help="sizes, as 12-20 or 12,16")
    parser.add_argument("--curve", choices=["bn254", "bls12_381"], action="append")
    parser.add_argument("--group", choices=["g1", "g2"], action="append")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    low, _, high = options.log_n.partition("-")
    sizes = list(range(int(low), int(high) + 1)) if high else [int(k) for k in low.split(",")]
    rows: list[Row] = []
    for name in options.curve or ["bn254", "bls12_381"]:
        for group in options.group or ["g1", "g2"]:
            rows += measure(CURVES[name], group, sizes, options.threads, options.repeat)
    rows += peer(min(16, max(sizes)), options.repeat)
    if options.json:
        print(json.dumps({"cpu": cpu_name(), "path": _core.path(), "rows": rows}))
        return
    print(cpu_name(), _core.path())
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
