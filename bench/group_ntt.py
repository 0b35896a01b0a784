"""Keys prepared on a GPU: transforms over points, the sparse combination, and all of it.

    python -m bench.group_ntt --curve bls12_381 --sizes 16,18,20 --stages

Bellman keys of random points for dense circuits (``cuzk.bench.synthetic``), prepared as ``cuzk.prepare_key`` does;
seconds of wall time with copies and what the host does, the least of ``--reps``. ``heavy`` is a
combination with a coefficient of full length for every row. Each result passes the check of ``prepare_key`` (a random
linear combination of all its points); a key of 2^8 rows is first compared with the native core's. Beside the
transform stands its floor, the 32-bit products of its scalings alone at the card's rate; --stages tells its kernels
apart.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from bench.timing import least, sizes
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.group_ntt import DevicePoints
from cuzk.backends.cuda.machine import Machine
from cuzk.bench.inputs import uniform
from cuzk.bench.stages import TimedMachine
from cuzk.bench.synthetic import dense, synthetic_key
from cuzk.curves import Curve, curve_named
from cuzk.errors import KernelError
from cuzk.groth16 import BELLMAN, ProvingKey
from cuzk.prover.devices import thread_count
from cuzk.prover.prepare import check_prepared, prepare_key
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.setup import prepare
from cuzk.vectors import Points, Scalars

WIDE = {"bn254": 174e3, "bls12_381": 398e3}  # IMAD.WIDE of a scaling
WIDE_RATE = 8.34e12  # of an H200 a second
COMPARED = 8  # log2 of the rows of the key that the native core prepares, too


def measure(machine: Machine, curve: Curve, log_n: int, reps: int, stages: bool) -> None:
    """One size; KernelError where a key is wrong."""
    threads, n = thread_count(None), 1 << log_n
    key, matrices = inputs(curve, log_n, threads)
    device, backend = DevicePoints(machine, curve, threads), CudaBackend(curve, machine)
    points = Points(curve, "g1", np.resize(key.h.words, (n, key.h.words.shape[1])))
    one, root = Scalars.from_ints(curve, [1], montgomery=True), curve.root_of_unity(log_n)
    rows = full_length(curve, n, threads)
    work = {
        "transform": lambda: device.transform(points, one, root),
        "combination": lambda: device.combine(transposed(matrices), points, key.l.points),
        "heavy": lambda: device.combine(rows, points, Points.empty(curve, "g1")),
        "key": lambda: prepare(key, matrices, threads=threads, on=device),
        "key, checked": lambda: prepare_key(key, matrices, device=backend, threads=threads),
    }
    floor = (n // 2 * log_n - n + 1 + n) * WIDE[curve.name] / WIDE_RATE
    print(f"{curve.title} 2^{log_n}; floor of a transform {floor:.3f} s")
    for name, run in work.items():
        print(f"  {name:14s} {least(run, repeat=reps).wall / 1e3:9.3f} s", flush=True)
    if stages:
        staged = TimedMachine(machine)
        DevicePoints(staged, curve, threads).transform(points, one, root)
        for stage, (count, total) in staged.totals().items():
            print(f"      {stage:24s} {count:4d} x {total / count:9.3f} ms", flush=True)


def inputs(curve: Curve, log_n: int, threads: int) -> tuple[ProvingKey, Matrices]:
    """A key of random points and its circuit."""
    matrices, _ = dense(curve, log_n, threads)
    return synthetic_key(matrices, BELLMAN, threads).key, matrices


def transposed(matrices: Matrices) -> SparseMatrix:
    """C by wires."""
    if matrices.c is None:
        raise KernelError("bench: expected a circuit with C")
    return matrices.c.transposed(matrices.wires)


def full_length(curve: Curve, n: int, threads: int) -> SparseMatrix:
    """A permutation of n points, every coefficient another number of full length."""
    values = Scalars.from_ints(curve, [1, -1], montgomery=True).words
    scalars = uniform(curve, n, 5, threads).words  # any word below r is some value's form
    each = np.arange(n, dtype=np.uint32)
    table = Scalars(curve, np.concatenate([values, scalars]), montgomery=True)
    return SparseMatrix(np.arange(n + 1, dtype=np.uint64), each[::-1].copy(), each + 2, table)


def compare(machine: Machine, curve: Curve) -> None:
    """KernelError where the device's key is not the native core's, or where the check passes a wrong one."""
    threads, backend = thread_count(None), CudaBackend(curve, machine)
    key, matrices = inputs(curve, COMPARED, threads)
    made = prepare_key(key, matrices, device=backend, threads=threads)
    right = prepare(key, matrices, threads=threads)
    pairs = ((made.h, right.h), (made.l.points, right.l.points))
    if not all(np.array_equal(one.words, other.words) for one, other in pairs):
        raise KernelError(f"{machine.name}: the key is not the native core's")
    wrong = replace(made, h=Points(curve, "g1", np.roll(made.h.words, 1, axis=0)))
    try:
        check_prepared(key, wrong, matrices, backend, threads)
    except KernelError:
        return
    raise KernelError(f"{machine.name}: a wrong key passed its check")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--curve", type=curve_named, default=curve_named("bls12_381"))
    parser.add_argument("--sizes", type=sizes, default=sizes("16,18,20"))
    parser.add_argument("--reps", type=int, default=2)
    parser.add_argument("--stages", action="store_true")
    options = parser.parse_args()
    from cuzk.backends.cuda.cuda_machine import CudaMachine
    from cuzk.backends.cuda.device import open_card

    machine = CudaMachine(open_card(0))
    compare(machine, options.curve)
    for log_n in options.sizes:
        measure(machine, options.curve, log_n, options.reps, options.stages)


if __name__ == "__main__":
    main()
