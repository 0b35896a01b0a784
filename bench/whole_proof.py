"""A whole Filecoin proof of a C1, from its file: ``python -m bench.whole_proof C1 --keys DIR [--threads 2]``.

Makes a key of the circuit in DIR where there is none, then reads, checks, loads, proves and verifies; milliseconds and
the process's peak after each step. A proof that does not verify, or verifies for another seed, stops the run.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from bench.timing import Meter
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.own_keys import own_key, write_key
from cuzk.filecoin.parameters import Parameters
from cuzk.filecoin.prove import CircuitProver
from cuzk.filecoin.statement import SealStatement, Statement
from cuzk.filecoin.task import Task, seal_task
from cuzk.filecoin.templates.catalogue import circuit_of
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.verify import check_proof
from cuzk.formats.bellman import read_vk
from cuzk.prover.report import peak_bytes
from cuzk.verifier import Verifier


class Steps:
    """Times a step and prints it."""

    def __init__(self) -> None:
        self.meter = Meter()

    def __call__(self, name: str) -> None:
        spent = self.meter.medians()[name]
        print(
            f"{name:10} {spent['wall_ms']:10.1f} ms {spent['cpu_ms']:10.1f} ms CPU, "
            f"peak {peak_bytes() / 1e9:5.2f} GB",
            flush=True,
        )


def key_folder(circuit: CircuitShape, parameters: Parameters, folder: Path, threads: int) -> Steps:
    """The key's files are in ``folder`` afterwards."""
    steps = Steps()
    if not (folder / f"{parameters.stem}.params").exists():
        with steps.meter("setup"):
            folder.mkdir(parents=True, exist_ok=True)
            write_key(own_key(circuit, threads=threads), parameters, folder)
        steps("setup")
    return steps


def measure(
    circuit: CircuitShape, task: Task, other: Statement, folder: Path, threads: int, steps: Steps
) -> None:
    """Loads, proves, verifies; ``other`` is a statement that the proof is none of."""
    parameters = Parameters(task.proof.kind, task.proof.shape)
    params, vk = (folder / f"{parameters.stem}.{suffix}" for suffix in ("params", "vk"))
    with steps.meter("load"):
        prover = CircuitProver(circuit, params, insecure_key=True, threads=threads, device="cpu")
    steps("load")
    with prover, steps.meter("prove"):
        whole = prover.prove(task)
    steps("prove")
    for name, milliseconds in {**whole.milliseconds, **whole.reports[0].milliseconds}.items():
        print(f"    {name:10} {milliseconds:10.1f} ms")
    with steps.meter("verify"):
        verifier = Verifier(read_vk(vk), insecure_key=True, threads=threads)
        reason = check_proof(verifier, task.statement, whole.data)
    steps("verify")
    if reason:
        raise SystemExit(f"the proof does not verify: {reason}")
    if not check_proof(verifier, other, whole.data):
        raise SystemExit("the proof verifies for another statement, too")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("c1")
    parser.add_argument("--keys", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    c1 = read_c1(options.c1)
    parameters = Parameters(c1.proof.kind, c1.proof.shape)
    circuit = circuit_of(parameters)
    steps = key_folder(circuit, parameters, options.keys, options.threads)
    with steps.meter("read"):
        c1 = read_c1(options.c1)
    steps("read")
    with steps.meter("check"):
        task = seal_task(c1, threads=options.threads)
    steps("check")
    assert isinstance(task.statement, SealStatement)
    other = replace(task.statement, seed=bytes(31) + b"\1")
    measure(circuit, task, other, options.keys, options.threads, steps)


if __name__ == "__main__":
    main()
