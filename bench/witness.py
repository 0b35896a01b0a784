"""Witnesses of Filecoin's circuits: ``python -m bench.witness [C1 ...] [--post VPROOF --sectors 100] [--threads 1]``.

For each C1 (its first partition) and for some sectors of a WindowPoSt: the wires, then A, B, C times them, each once
with memory that is new to the process and then the least of some runs; the process's peak. A witness whose public
inputs are not those that a verifier derives, or that breaks a row, stops the run.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable

import numpy as np

from bench.timing import least
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.public import porep_inputs, post_inputs
from cuzk.filecoin.registered import registered
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.porep import porep
from cuzk.filecoin.templates.post import window
from cuzk.filecoin.vanilla import read_post
from cuzk.filecoin.witness.assign import assign
from cuzk.filecoin.witness.data import Data, porep_data, post_data
from cuzk.filecoin.witness.rows import PlacedMatrices
from cuzk.vectors import Scalars

Case = tuple[CircuitShape, Data, Scalars]


def of_c1(file: str) -> Case:
    c1 = read_c1(file)
    public = porep_inputs(c1.proof, c1.replica_id, c1.comm_d, c1.comm_r, c1.seed, 0)
    return porep(Library(), c1.proof.shape), porep_data(c1, 0), public


def of_post(file: str, sectors: int) -> Case:
    """The one sector again and again."""
    post = read_post([file], registered("post", "StackedDrgWindow32GiBV1_2"))
    data = post_data(post)
    shape = window(Library(), post.proof.shape).with_units(sectors)
    public = post_inputs(post.comm_r, post.replica.index, sectors)
    return shape, Data(data.header, data.units[:sectors]), public


def report(shape: CircuitShape, what: str, work: Callable[[], object], size: int) -> None:
    first, others = least(work, repeat=1), least(work, repeat=4)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{shape.name:14} {what:5} first {first.cpu:8.1f} ms CPU, then {others.cpu:8.1f} ms CPU"
        f" {others.wall:8.1f} ms, {1e6 * others.cpu / size:6.1f} ns each, peak {peak:5} MiB"
    )


def measure(case: Case, threads: int) -> None:
    shape, data, public = case
    wires = Scalars(public.curve, np.empty((0, 4), dtype=np.uint64))

    def witness() -> None:
        nonlocal wires
        wires = assign(shape, data, threads=threads)

    report(shape, "wires", witness, shape.inputs + shape.aux)
    if wires.words[1 : shape.inputs].tobytes() != public.words.tobytes():
        raise SystemExit(f"{shape.name}: the public inputs are not those that a verifier derives")
    placed, kept = PlacedMatrices.of(shape), [public] * 3
    for i in range(3):

        def product(i: int = i) -> None:
            size = 1 << shape.log_domain
            (kept[i],) = placed.products(wires, size, which=[i], threads=threads)

        report(shape, "abc"[i], product, shape.constraints)
    if len(broken := placed.broken(wires, threads=threads)):
        raise SystemExit(f"{shape.name}: row {broken[0]} does not hold")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("c1", nargs="*")
    parser.add_argument("--post")
    parser.add_argument("--sectors", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for file in options.c1:
        measure(of_c1(file), options.threads)
    if options.post:
        measure(of_post(options.post, options.sectors), options.threads)


if __name__ == "__main__":
    main()
