"""What a GPU's arithmetic does in registers: chains of products, squares, sums and point additions.

    python -m bench.rates [--curve bls12_381] [--json] [--steps 2000]

Every thread repeats one operation on its own values (``native/gpu/rates.cu``, ``point_rates.cu``); the rate is
operations a second of the whole device, by events in its stream. Before it is timed, each chain is run for
two steps and compared with Python's integers. ``floor`` is the rate if nothing but multiplications took time:
one H200's 8.34 T products of 32 x 32 bits a second (132 SMs, 32 a clock at 1.97 GHz; half ones count half).
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from cuzk.backends.cuda.machine import Machine, Unit
from cuzk.bench.inputs import known_points
from cuzk.constants import Fp2, fp2_mul, to_montgomery, words
from cuzk.curves import CURVES, Curve
from cuzk.errors import KernelError
from cuzk.setup.scalars import multiple
from cuzk.vectors import pack, unpack

Array = NDArray[np.uint64]
THREADS = 128
PRODUCTS_PER_SECOND = 8.34e12
ROWS = 64  # different operands; threads repeat them


@dataclass(frozen=True)
class Chain:
    """One kernel: elements a thread reads and writes, operations a step, products that one of them takes.

    ``blocks`` of THREADS threads are resident on a multiprocessor (the kernel's launch bounds): one wave.
    """

    unit: Unit
    kernel: str
    inputs: int
    outputs: int
    operations: int
    products: float  # of 32 x 32 bits; 0: no multiplications
    blocks: int

    def floor(self) -> float:
        """G operations a second if nothing but products took time."""
        return PRODUCTS_PER_SECOND / self.products / 1e9 if self.products else 0.0


@dataclass(frozen=True)
class Rate:
    """Operations a second, in thousand millions."""

    curve: str
    group: str
    kernel: str
    giga: float
    floor: float
    milliseconds: float


def reduction(count: int) -> float:
    """Multiplications by ``count`` 64-bit words: N^2 by the modulus, N halves for the quotients, N limbs."""
    limbs = 2 * count
    return limbs * limbs + limbs / 2


def costs(count: int) -> tuple[float, float, float]:
    """A product, a square, two products with one reduction."""
    limbs, least = 2 * count, reduction(count)
    return limbs * limbs + least, limbs * (limbs + 1) / 2 + least, 2 * limbs * limbs + least


def field_chains(curve: Curve) -> list[Chain]:
    """Operations in Fp and Fr."""
    unit, chains = Unit("rates.cu", curve), []
    for field, count in (("fp", curve.fp_words), ("fr", curve.fr_words)):
        product, square, pair = costs(count)
        if field == "fr" and curve.name == "bls12_381":  # r = 1 - 2^32 modulo 2^64
            product, square, pair = 112, 112, 224
        many, fewer = (8, 6) if count == 4 else (6, 5)
        chains += [
            Chain(unit, f"multiply_{field}", 2, 2, 2, product, many),
            Chain(unit, f"square_{field}", 1, 1, 2, square, many),
            Chain(unit, f"pairs_{field}", 4, 4, 2, pair, fewer),
            Chain(unit, f"add_{field}", 2, 2, 2, 0, 8),
        ]
    return chains


def point_chains(curve: Curve, group: str) -> list[Chain]:
    """Operations on a group's points, and on their coordinates where those are in Fp2."""
    unit, (product, square, both) = Unit("point_rates.cu", curve, group), costs(curve.fp_words)
    if group == "g2":  # three products, two reductions; two products
        product, square = 3 * product - reduction(curve.fp_words), 2 * product
        both = 2 * product
    size = curve.fp_words * (2 if group == "g2" else 1)
    roomy = {4: 4, 6: 3, 8: 3, 12: 2}[size]
    mixed = 6 * product + both + 2 * square
    chains = [
        Chain(unit, "add_mixed", 4, 4, 1, mixed, roomy),
        Chain(unit, "add_mixed_crowded", 4, 4, 1, mixed, roomy + 1),
        Chain(unit, "add_full", 8, 4, 1, mixed + 4 * product, 3 if size == 4 else 2),
        Chain(unit, "double_sum", 4, 4, 1, mixed - 2 * product + square, roomy),
    ]
    if group == "g2":
        chains.append(Chain(unit, "multiply_coordinate", 2, 2, 2, product, roomy))
        chains.append(Chain(unit, "square_coordinate", 1, 1, 2, square, roomy))
    return chains


def pair(flat: Sequence[int]) -> Fp2:
    """One or two elements as one of Fp2."""
    return flat[0], flat[1] if len(flat) > 1 else 0


def field_operands(chain: Chain) -> tuple[Array, Callable[[Array, int], bool]]:
    """Rows of operands, and the check of what ``steps`` steps make of them."""
    curve = chain.unit.curve
    p, count = (curve.r, curve.fr_words) if chain.kernel.endswith("fr") else (curve.p, curve.fp_words)  # fmt: skip
    parts = 2 if chain.kernel.endswith("coordinate") else 1
    rng = random.Random(5)
    operands = pack([rng.randrange(p) for _ in range(ROWS * chain.inputs * parts)], count)
    shrink = pow(2, -64 * count, p)

    def elements(array: Array) -> list[Fp2]:
        flat = unpack(array.reshape(-1, count))
        return [pair(flat[i : i + parts]) for i in range(0, len(flat), parts)]

    def product(a: Fp2, b: Fp2) -> Fp2:
        c = fp2_mul(a, b, p)
        return c[0] * shrink % p, c[1] * shrink % p

    def plus(a: Fp2, b: Fp2, sign: int = 1) -> Fp2:
        return (a[0] + sign * b[0]) % p, (a[1] + sign * b[1]) % p

    def step(x: list[Fp2]) -> None:
        name = chain.kernel.split("_")[0]
        if name == "multiply":
            x[0] = product(x[0], x[1])
            x[1] = product(x[1], x[0])
        elif name == "square":
            x[0] = product(x[0], x[0])
            x[0] = product(x[0], x[0])
        elif name == "add":
            x[0] = plus(x[0], x[1])
            x[1] = plus(x[0], x[1], -1)
        else:
            x[0] = plus(product(x[0], x[1]), product(x[2], x[3]))
            x[2] = plus(product(x[2], x[3]), product(x[0], x[1]), -1)

    def right(found: Array, steps: int) -> bool:
        rows = elements(operands)
        expected = []
        for i in range(0, len(rows), chain.inputs):
            row = rows[i : i + chain.inputs]
            for _ in range(steps):
                step(row)
            expected += row[: chain.outputs]
        return elements(found) == expected

    return operands.reshape(ROWS, -1), right


def point_operands(chain: Chain) -> tuple[Array, Callable[[Array, int], bool]]:
    """Points of known logarithms, in pairs; the check is one multiplication of the generator a row."""
    curve, group = chain.unit.curve, chain.unit.group
    known = known_points(curve, group, 2 * ROWS, 1)
    logs, per = known.logarithms.ints(), curve.coordinates(group) // 2
    operands, count, p = known.points.words, curve.fp_words, curve.p
    if not chain.kernel.startswith("add_mixed"):  # ZZ = ZZZ = 1
        one = words(to_montgomery(1, p, count), count) + [0] * count * (per - 1)
        operands = np.hstack([operands, np.tile(np.array(2 * one, np.uint64), (2 * ROWS, 1))])
    if chain.kernel == "double_sum":
        operands = operands[::2]
    shrink = pow(2, -64 * count, p)

    def logarithm(i: int, steps: int) -> int:
        a, b = logs[2 * i], logs[2 * i + 1]
        return a << steps if chain.kernel == "double_sum" else a + steps * b

    def right(found: Array, steps: int) -> bool:
        for i, row in enumerate(found.reshape(ROWS, 4, per, count)):
            x, y, zz, zzz = (pair([v * shrink % p for v in unpack(c)]) for c in row)
            affine = multiple(curve, group, logarithm(i, steps) % curve.r).affine()
            if affine is None:
                return False
            want_x, want_y = pair(affine[:per]), pair(affine[per:])
            if not any(zz) or fp2_mul(want_x, zz, p) != x or fp2_mul(want_y, zzz, p) != y:
                return False
        return True

    return np.ascontiguousarray(operands).reshape(ROWS, -1), right


def measure(machine: Machine, chain: Chain, steps: int, blocks: int, reps: int) -> Rate:
    """KernelError where the chain's values are wrong, else its rate."""
    of_points = chain.unit.group != "" and not chain.kernel.endswith("coordinate")
    rows, right = (point_operands if of_points else field_operands)(chain)
    threads = blocks * THREADS
    operands = np.tile(rows, (-(-threads // ROWS), 1))[:threads]
    results = np.empty((threads, rows.shape[1] * chain.outputs // chain.inputs), np.uint64)
    source, out = machine.alloc(operands.nbytes), machine.alloc(results.nbytes)
    machine.upload(source, operands)

    def run(steps: int) -> None:
        machine.launch(chain.unit, chain.kernel, blocks, THREADS, source, out, steps)

    run(2)
    machine.download(out, results)
    if not right(results[:ROWS], 2) or not right(results[-ROWS:], 2):
        raise KernelError(f"{machine.name}: {chain.kernel}: two steps are not what integers give")
    samples = []
    for _ in range(reps):
        start = machine.mark()
        run(steps)
        samples.append(machine.milliseconds(start, machine.mark()))
    spent = median(samples)
    curve, giga = chain.unit.curve, threads * steps * chain.operations / spent / 1e6
    return Rate(curve.name, chain.unit.group, chain.kernel, giga, chain.floor(), spent)


def chains(curve: Curve) -> Iterator[Chain]:
    """All of a curve's."""
    yield from field_chains(curve)
    for group in ("g1", "g2"):
        yield from point_chains(curve, group)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--curve", choices=["bn254", "bls12_381"], action="append")
    parser.add_argument("--steps", type=int, default=2000, help="a fifth of it for points")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    from cuzk.backends.cuda.cuda_machine import CudaMachine
    from cuzk.backends.cuda.device import open_card

    machine = CudaMachine(open_card(0))
    rates = []
    for name in options.curve or ["bls12_381", "bn254"]:
        for chain in chains(CURVES[name]):
            steps = options.steps // 5 if chain.unit.group else options.steps
            blocks = chain.blocks * machine.processors
            rate = measure(machine, chain, steps, blocks, options.reps)
            rates.append(asdict(rate))
            if not options.json:
                of = f"{rate.giga / rate.floor:4.0%} of {rate.floor:6.2f}" if rate.floor else ""
                print(f"{rate.curve:10s}{rate.group:3s} {rate.kernel:20s}{rate.giga:9.2f} G/s  {of}", flush=True)  # fmt: skip
    if options.json:
        print(json.dumps(rates))


if __name__ == "__main__":
    main()
