"""``cuzk filecoin prove``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from cuzk.cli.app import environment
from cuzk.cli.filecoin_files import circuit, locate_key, params_option, trust_key
from cuzk.cli.options import (
    FILE,
    device_option,
    digest_option,
    insecure_option,
    json_option,
    memory_option,
    threads_option,
)
from cuzk.cli.outputs import check_outputs
from cuzk.cli.prove import PHASES
from cuzk.cli.terminal import answer, progress, say, size, table
from cuzk.errors import FormatError
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.derive import prover_id
from cuzk.filecoin.key_sizes import expect_points, expect_proving
from cuzk.filecoin.prove import CircuitProver, WholeProof
from cuzk.filecoin.registered import Challenges
from cuzk.filecoin.statement import PostStatement, SealStatement
from cuzk.filecoin.statement_json import read_statement, statement_json
from cuzk.filecoin.task import Task, post_task, seal_task, update_task
from cuzk.filecoin.trust import KeyFile
from cuzk.filecoin.vanilla import read_post, read_update
from cuzk.formats.source import Chunk, write_together
from cuzk.prover.devices import thread_count
from cuzk.trace import chrome_trace

OUTPUTS = {
    "-o": "proof",
    "--write-statement": "statement",
    "--trace": "trace",
}  # and what JSON calls them


@click.command("prove", short_help="Prove a C1, a PoSt, an update.")
@click.argument("inputs", metavar="INPUT...", type=FILE, nargs=-1, required=True)
@click.option(
    "-o", "--output", type=FILE, default="proof.bin", show_default=True, help="The proof."
)
@click.option(
    "--statement",
    type=FILE,
    help="Public data in JSON (docs/formats.md). A PoSt or an update needs it; a C1 must agree with it.",
)
@click.option(
    "--write-statement", type=FILE, help="Write the statement, for `cuzk filecoin verify`."
)
@click.option(
    "--miner", type=int, metavar="ID", help="With a C1: the actor id that its replica id is of."
)
@click.option("--sector", type=int, metavar="N", help="With a C1: the sector number likewise.")
@params_option
@click.option("--key", type=FILE, help="The .params file, whatever its name.")
@click.option(
    "--trace",
    type=FILE,
    help="Also write what happened when, for ui.perfetto.dev or chrome://tracing.",
)
@digest_option
@insecure_option
@device_option
@threads_option
@memory_option
@json_option
def prove_command(
    inputs: tuple[Path, ...],
    output: Path,
    statement: Path | None,
    write_statement: Path | None,
    miner: int | None,
    sector: int | None,
    params: Path | None,
    key: Path | None,
    trace: Path | None,
    key_digest: str | None,
    insecure_key: bool,
    device: str,
    threads: int | None,
    memory: int | None,
    as_json: bool,
) -> None:
    """Prove INPUT: a C1 (JSON, bincode or Curio's wrapper); or vanilla proofs in bincode, one file for each sector
    of a PoSt or for each partition of an update, in the statement's order.

    Vanilla proofs are checked before anything is proved, and the proof before it is written: 192 bytes for each
    partition. A key is trusted by Filecoin's published digest, one of your own with --insecure-key.

    \b
    Example:
      cuzk filecoin prove 9.vproof 10.vproof --statement statement.json
    """
    asked = {"-o": output, "--write-statement": write_statement, "--trace": trace}
    outputs = {name: path for name, path in asked.items() if path is not None}
    given = {"--statement": statement, "--key": key} | {f"INPUT {path}": path for path in inputs}
    check_outputs(outputs, {name: path for name, path in given.items() if path is not None})
    allowed = environment().device(device)
    with progress("check", quiet=as_json) as bar:
        task = _task(inputs, statement, miner, sector, thread_count(threads))
        path = locate_key(task.proof, "params", params, key)
        shape = circuit(task.proof)
        expect_proving(shape, memory, device=allowed)
        expect_points(shape, path)  # before its digest, which takes a minute for the largest
        trust = {"named": key is not None, "insecure": insecure_key}
        file = trust_key(task.proof, path, "params", digest=key_digest, **trust)
        steps = _Steps(bar, task.proof.partitions)
        with CircuitProver(
            shape,
            path,
            device=allowed,
            threads=threads,
            memory=memory,
            insecure_key=insecure_key,
            on_phase=steps.phase,
            on_partition=steps.partition,
        ) as prover:
            whole = _annotated(prover.prove(task), file, device)
    contents: dict[str, list[Chunk]] = {
        "-o": [whole.data],
        "--write-statement": [statement_json(task.statement)],
        "--trace": [chrome_trace(prover.timeline.spans())],
    }
    write_together({path: contents[name] for name, path in outputs.items()})
    written = {OUTPUTS[name]: str(path) for name, path in outputs.items()}
    _report(whole, task, written, file, as_json)


def _task(
    inputs: tuple[Path, ...],
    statement: Path | None,
    miner: int | None,
    sector: int | None,
    threads: int,
) -> Task:
    stated = read_statement(statement)[0] if statement else None
    if stated is None or isinstance(stated, SealStatement):
        if len(inputs) != 1:
            raise FormatError(
                f"INPUT: expected one C1, found {len(inputs)} files: a PoSt or an update needs --statement"
            )
        prover = None if miner is None else prover_id(miner)
        return seal_task(
            read_c1(inputs[0]), stated, prover_id=prover, sector=sector, threads=threads
        )
    if miner is not None or sector is not None:
        raise FormatError("--miner, --sector: expected a C1 with them, found another statement")
    if isinstance(stated, PostStatement):
        return post_task(read_post(inputs, stated.proof), stated, threads=threads)
    return update_task(read_update(inputs, stated.proof), stated, threads=threads)


class _Steps:
    """The bar over all partitions."""

    def __init__(self, bar: Callable[[str, float], None] | None, partitions: int) -> None:
        self._bar, self._partitions, self._current = bar, partitions, 0

    def partition(self, number: int) -> None:
        self._current = number

    def phase(self, name: str) -> None:
        if self._bar is not None and (name in PHASES or name == "witness"):
            done = (self._current + PHASES.get(name, 0.0)) / self._partitions
            where = f" {self._current + 1}/{self._partitions}" if self._partitions > 1 else ""
            self._bar(name + where, done)


def _annotated(whole: WholeProof, file: KeyFile, device: str) -> WholeProof:
    """With what only a command knows of the key and the device."""
    reports = [replace(report, key_checked=file.checked) for report in whole.reports]
    if environment().no_gpu and device == "auto":
        reports = [replace(report, reason="CUZK_NO_GPU is set") for report in reports]
    return replace(whole, reports=tuple(reports))


def _report(
    whole: WholeProof, task: Task, written: dict[str, str], file: KeyFile, as_json: bool
) -> None:
    if as_json:
        facts = {
            **written,
            "type": task.proof.name,
            "bytes": len(whole.data),
            "published_key": file.published,
            "milliseconds": whole.milliseconds,
            "partitions": [report.as_dict() for report in whole.reports],
        }
        answer(facts, [], as_json=True)
        return
    say("\n".join(_report_lines(whole, task, file)), error=True)


def _report_lines(whole: WholeProof, task: Task, file: KeyFile) -> list[str]:
    """A table of where the time went, over all partitions, then what did it."""
    reports, spent = whole.reports, whole.milliseconds
    first = reports[0]
    rows = [["phase", "ms"], ["  witness", f"{spent['witness']:.1f}"]]
    for name in PHASES:
        if name != "load" and name in first.milliseconds:
            total = sum(report.milliseconds[name] for report in reports)
            part = name.partition(".")[2]
            rows.append([f"    {part}" if part else f"  {name}", f"{total:.1f}"])
    rows.append(["  verify all", f"{spent['verify']:.1f}"])
    rows.append(["proof", f"{spent['total']:.1f}"])
    rows.append(["key loaded before", f"{first.milliseconds['load']:.1f}"])
    unpublished = f"warning: {file.path.name}: not the published key of {task.proof.circuit}: no chain takes its proofs"
    counted = "1 partition" if len(reports) == 1 else f"{len(reports)} partitions"
    bare = (
        "note: bare proofs of partitions: the chain takes their aggregate, which is not made here"
    )
    return [
        *table(rows),
        *dict.fromkeys(f"note: {note}" for report in reports for note in report.transfers),
        *([] if file.published else [unpublished]),
        *([bare] if task.proof.challenges is Challenges.NON_INTERACTIVE else []),
        f"{task.proof.name}: {counted}, {len(whole.data)} bytes; peak memory "
        f"{size(max(report.peak_bytes for report in reports))}",
        f"device {first.device} ({first.reason}), {first.arithmetic} arithmetic, {first.threads} threads",
    ]
