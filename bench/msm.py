"""Multi-scalar multiplication on the CPU: 2^12 .. 2^20 random points and scalars, both curves, G1 and G2.

    python -m bench.msm [--json] [--sizes 12-20] [--curve bls12_381] [--group g1] [--threads 1] [--repeat 3]

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
from functools import partial

import numpy as np

from bench.timing import least, sizes
from cuzk import _core
from cuzk.bench.inputs import uniform_below
from cuzk.bench.place import host
from cuzk.curves import CURVES, Curve
from cuzk.vectors import Points, Words, pack, unpack

Row = dict[str, object]
ADDITION = {"g1": 6, "g2": 17}  # field products: in Fp2 a product takes three, a square two


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


def product_ns(curve: Curve) -> float:
    """One product in Fp, many independent ones in a row."""
    n = 4096
    words = uniform_below(curve.p, n, 2, 1)
    out = np.zeros_like(words)
    work = partial(_core.field_op, curve.name, "fp", "multiply", words, words, out)
    return least(work, repeat=200).wall / n * 1e6


def measure(curve: Curve, group: str, logs: list[int], threads: int, repeat: int) -> list[Row]:
    """One row a size."""
    prove_right(curve, group, threads)
    n = 1 << max(logs)
    bases = multiples(curve, group, uniform_below(curve.r, n, 3, 1), threads)
    scalars = uniform_below(curve.r, n, 4, 1)
    product = product_ns(curve)
    rows: list[Row] = []
    for log_n in logs:
        n = 1 << log_n
        time = least(partial(msm, curve, group, bases[:n], scalars[:n], threads), repeat=repeat)
        width = _core.msm_width(curve.name, n)
        additions = n * ((curve.r.bit_length() - 1) // width + 1)
        rows.append(
            {
                "curve": curve.name,
                "group": group,
                "log_n": log_n,
                "threads": threads,
                "width": width,
                "wall_ms": round(time.wall, 2),
                "cpu_ms": round(time.cpu, 2),
                "ns_per_point": round(time.cpu / n * 1e6),
                "ns_per_addition": round(time.cpu / additions * 1e6),
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
    rows = unpack(uniform_below(CURVES["bls12_381"].r, n, 4, 1))
    scalars = [arkworks.Scalar.from_le_bytes(s.to_bytes(32, "little")) for s in rows]
    time = least(partial(arkworks.G1Point.multiexp_unchecked, points, scalars), repeat=repeat)
    return [
        {
            "curve": "bls12_381 by arkworks",
            "group": "g1",
            "log_n": log_n,
            "wall_ms": round(time.wall, 2),
            "cpu_ms": round(time.cpu, 2),
            "ns_per_point": round(time.cpu / n * 1e6),
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="MSM on the CPU; proves itself right, then times")
    parser.add_argument(
        "--sizes", type=sizes, default=sizes("12-20"), help="log2 of n: 12-20 or 12,16"
    )
    parser.add_argument("--curve", choices=["bn254", "bls12_381"], action="append")
    parser.add_argument("--group", choices=["g1", "g2"], action="append")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.curve or ["bn254", "bls12_381"]:
        for group in options.group or ["g1", "g2"]:
            rows += measure(CURVES[name], group, options.sizes, options.threads, options.repeat)
    rows += peer(min(16, max(options.sizes)), options.repeat)
    if options.json:
        print(json.dumps({"machine": host(), "rows": rows}))
        return
    print(*host().values(), sep=", ")
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
