"""A whole Filecoin proof of a C1, from its file or of a sparse sector, under a key made here:

    python -m bench.whole_proof C1 --keys DIR [--device auto] [--threads N]
    python -m bench.whole_proof --sparse 32GiB --skip-files --partitions 3 --device cuda:0 --grow --trace trace.json

Makes a key of the circuit in DIR where there is none (``--skip-files``: in memory, and nothing is written), then checks
the C1, loads, proves the partitions, and verifies each by its own public inputs, all of them also as one proof from
public data. Milliseconds and the process's peak after each step. A proof that does not verify, or verifies for another
seed, stops the run.

On a GPU the next partition's witness is made while one is proved (``--alone``: when it was). Then a partition's time is
that from the end of the one before it, and the last lines say how much of it the device's compute streams were busy.
``--trace``: what happened when, loading included, for ui.perfetto.dev.

``--grow``: virtual machines may get their memory as they use it and tell less before; the pages are then touched first.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from bench.grow_memory import grow_memory
from bench.sparse_sector import seal_of, sparse_c1
from bench.timing import Meter
from cuzk.errors import CuzkError
from cuzk.filecoin.c1 import C1, read_c1
from cuzk.filecoin.key_sizes import proving_bytes, setup_bytes
from cuzk.filecoin.own_keys import own_key, write_key
from cuzk.filecoin.parameters import Parameters
from cuzk.filecoin.prove import CircuitProver, PartitionProof
from cuzk.filecoin.statement import SealStatement, Statement
from cuzk.filecoin.task import Task, seal_task
from cuzk.filecoin.templates.catalogue import circuit_of
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.verify import check_proof
from cuzk.formats.bellman import read_vk
from cuzk.groth16 import ProvingKey, VerifyingKey
from cuzk.prover.devices import thread_count
from cuzk.prover.plan import installed_bytes
from cuzk.prover.report import peak_bytes
from cuzk.timeline import Span, ordered
from cuzk.trace import chrome_trace
from cuzk.verifier import Verifier

MARGIN = (
    8 << 30
)  # beside what a key and a proof are counted to take: the machine's own, the driver's


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


@dataclass(frozen=True)
class Key:
    """A key in memory, or its file; and what verifies its proofs."""

    proving: ProvingKey | Path
    verifying: VerifyingKey


def key_in_memory(circuit: CircuitShape, threads: int, steps: Steps) -> Key:
    """A new one."""
    with steps.meter("setup"):
        key = own_key(circuit, threads=threads)
    steps("setup")
    return Key(key, key.vk)


def key_in_files(
    circuit: CircuitShape, parameters: Parameters, folder: Path, threads: int, steps: Steps
) -> Key:
    """The files are in ``folder`` afterwards."""
    params, vk = (folder / f"{parameters.stem}.{suffix}" for suffix in ("params", "vk"))
    if not params.exists():
        with steps.meter("setup"):
            folder.mkdir(parents=True, exist_ok=True)
            write_key(own_key(circuit, threads=threads), parameters, folder)
        steps("setup")
    return Key(params, read_vk(vk))


def measure(
    circuit: CircuitShape,
    task: Task,
    other: Statement,
    key: Key,
    steps: Steps,
    *,
    device: str = "auto",
    threads: int | None = None,
    partitions: int | None = None,
    alone: bool = False,
    trace: Path | None = None,
) -> None:
    """Loads, proves the first ``partitions`` (all), verifies; ``other`` is a statement that the proof is none of."""
    wanted = task.proof.partitions if partitions is None else min(partitions, task.proof.partitions)
    verifier = Verifier(key.verifying, insecure_key=True, threads=thread_count(threads))
    with steps.meter("load"):
        prover = CircuitProver(
            circuit, key.proving, insecure_key=True, threads=threads, device=device
        )
    steps("load")
    with prover:
        if alone:
            parts = [prove_partition(prover, task, other, number, verifier, steps) for number in range(wanted)]  # fmt: skip
        else:
            parts = prove_overlapped(prover, task, other, range(wanted), verifier, steps)
        if trace:
            trace.write_bytes(chrome_trace(prover.timeline.spans()))
        if wanted < task.proof.partitions:
            print(f"proved {wanted} of {task.proof.partitions} partitions", flush=True)
            return
        with steps.meter("verify"):
            data = prover.whole(task, [part.data for part in parts])
            reason = check_proof(verifier, task.statement, data)
        steps("verify")
    if reason:
        raise SystemExit(f"the proof does not verify: {reason}")
    if not check_proof(verifier, other, data):
        raise SystemExit("the proof verifies for another statement, too")


def prove_partition(
    prover: CircuitProver,
    task: Task,
    other: Statement,
    number: int,
    verifier: Verifier,
    steps: Steps,
) -> PartitionProof:
    """One of them, shown and verified."""
    name = f"proof {number}"
    with steps.meter(name):
        part = prover.partition(task, number)
    steps(name)
    show_partition(part, task, other, number, verifier)
    return part


def prove_overlapped(
    prover: CircuitProver,
    task: Task,
    other: Statement,
    numbers: Sequence[int],
    verifier: Verifier,
    steps: Steps,
) -> list[PartitionProof]:
    """All of them, shown and verified when the last one is there."""
    start = perf_counter()
    with steps.meter("proofs"):
        parts = prover.partitions(task, numbers)
    steps("proofs")
    spans = prover.timeline.spans(start)
    ends = [max(span.end for span in part.spans if span.name == "prove") for part in parts]
    for number, part, begin, end in zip(numbers, parts, [start, *ends], ends, strict=False):
        print(f"{f'proof {number}':10} {1e3 * (end - begin):10.1f} ms{busy(spans, begin, end)}")
        show_partition(part, task, other, number, verifier)
    print(f"{'all':10} {1e3 * (ends[-1] - start):10.1f} ms{busy(spans, start, ends[-1])}")
    if further := len(ends) - 1:
        each = 1e3 * (ends[-1] - ends[0]) / further
        print(f"{'further':10} {each:10.1f} ms each{busy(spans, ends[0], ends[-1])}", flush=True)
    return parts


def busy(spans: Sequence[Span], start: float, end: float) -> str:
    """The share of that time in which a compute stream of a device had something to do; nothing without a device."""
    own = [
        span
        for span in spans
        if span.device and "compute" in span.track and not span.name.startswith("wait")
    ]
    worked, last = 0.0, start
    for span in ordered(own):
        worked += max(0.0, min(span.end, end) - max(span.start, last))
        last = max(last, min(span.end, end))
    return f", device busy {worked / (end - start):.1%}" if own else ""


def show_partition(
    part: PartitionProof, task: Task, other: Statement, number: int, verifier: Verifier
) -> None:
    """Where its time and memory went; SystemExit where it does not verify, or for another statement, too."""
    report = part.report
    for what, phases in (
        ("partition", part.milliseconds),
        ("phases", report.milliseconds),
        ("on device", report.device_milliseconds),
    ):
        shown = ", ".join(f"{phase} {ms:.1f}" for phase, ms in phases.items())
        print(f"    {what:10} {shown or '-'} (ms)")
    print(
        f"    {'made by':10} {report.device} ({report.device_title}; {report.reason}), {report.threads} threads, "
        f"lanes {report.lanes}, retries {report.retries}"
    )
    print(
        f"    {'bytes':10} host planned {report.planned_bytes}, peak {report.peak_bytes}; device planned "
        f"{report.device_planned_bytes}, resident {report.device_resident_bytes}",
        flush=True,
    )
    for note in report.transfers:
        print(f"    {'note':10} {note}", flush=True)
    if reason := verifier.check(task.statement.inputs(number), part.proof):
        raise SystemExit(f"partition {number}: the proof does not verify: {reason}")
    if not verifier.check(other.inputs(number), part.proof):
        raise SystemExit(f"partition {number}: the proof verifies for another statement, too")


def main() -> None:
    """Exit status 1 and one line where something is wrong."""
    options = _options()
    try:
        run(options)
    except CuzkError as error:
        raise SystemExit(f"whole_proof: {error}") from None


def run(options: argparse.Namespace) -> None:
    """All steps."""
    threads, steps = thread_count(options.threads), Steps()
    with steps.meter("read"):
        c1 = _c1(options, threads)
    steps("read")
    with steps.meter("check"):
        task = seal_task(c1, threads=threads)
    steps("check")
    parameters = Parameters(c1.proof.kind, c1.proof.shape)
    with steps.meter("circuit"):
        circuit = circuit_of(parameters)
    steps("circuit")
    print(
        f"{circuit.name}: {circuit.constraints} rows, {threads} threads, memory {installed_bytes()}, "
        f"to make a key {setup_bytes(circuit)}, to prove {proving_bytes(circuit)} bytes",
        flush=True,
    )
    if options.grow:
        with steps.meter("grow"):
            grow_memory(max(setup_bytes(circuit), proving_bytes(circuit)) + MARGIN, threads)
        steps("grow")
        print(f"memory {installed_bytes()}", flush=True)
    if options.skip_files:
        key = key_in_memory(circuit, threads, steps)
    else:
        key = key_in_files(circuit, parameters, options.keys, threads, steps)
    assert isinstance(task.statement, SealStatement)
    other = replace(task.statement, seed=bytes(31) + b"\1")
    measure(
        circuit, task, other, key, steps,
        device=options.device, threads=threads, partitions=options.partitions, alone=options.alone,
        trace=options.trace,
    )  # fmt: skip


def _c1(options: argparse.Namespace, threads: int) -> C1:
    if options.sparse:
        return sparse_c1(seal_of(options.sparse), threads=threads)
    return read_c1(options.c1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("c1", nargs="?")
    parser.add_argument("--sparse", metavar="SIZE", help="instead of a C1: 2KiB to 64GiB")
    parser.add_argument("--keys", type=Path)
    parser.add_argument("--skip-files", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--partitions", type=int, help="the first ones only")
    parser.add_argument("--alone", action="store_true", help="no witness beside a proof")
    parser.add_argument("--trace", type=Path, help="write what happened when")
    parser.add_argument("--grow", action="store_true")
    options = parser.parse_args()
    if (options.c1 is None) == (options.sparse is None):
        parser.error("expected a C1 or --sparse")
    if (options.keys is None) != options.skip_files:
        parser.error("expected --keys or --skip-files")
    if options.partitions is not None and options.partitions < 1:
        parser.error("expected at least one partition")
    return options


if __name__ == "__main__":
    main()
