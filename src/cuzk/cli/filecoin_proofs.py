"""``cuzk filecoin prove`` and ``cuzk filecoin verify``."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

import cuzk
from cuzk.cli.app import environment
from cuzk.cli.filecoin_files import KeyFile, circuit, locate_key, trust_key
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
from cuzk.cli.terminal import answer, one_line, progress, say, size, table
from cuzk.errors import DeviceUnavailable, FormatError
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.derive import prover_id
from cuzk.filecoin.key_sizes import expect_proving
from cuzk.filecoin.prove import CircuitProver, WholeProof
from cuzk.filecoin.registered import Challenges
from cuzk.filecoin.statement import PostStatement, SealStatement, Statement, derived
from cuzk.filecoin.statement_json import read_statement, statement_json
from cuzk.filecoin.task import Task, post_task, seal_task, update_task
from cuzk.filecoin.vanilla import read_post, read_update
from cuzk.filecoin.verify import check_proof
from cuzk.formats.source import Chunk, Source, write_together
from cuzk.prover.devices import thread_count
from cuzk.prover.report import Report
from cuzk.verifier import Verifier

MOST_PROOF_BYTES = 1 << 17  # of 126 partitions: 24 KB
params_option = click.option(
    "--params",
    type=FILE,
    metavar="DIR",
    help="Where the parameter files are; FIL_PROOFS_PARAMETER_CACHE, or Filecoin's own place, if not given.",
)


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
    """
    outputs = {"-o": output} | ({"--write-statement": write_statement} if write_statement else {})
    given = {"--statement": statement, "--key": key} | {f"INPUT {path}": path for path in inputs}
    check_outputs(outputs, {name: path for name, path in given.items() if path is not None})
    if environment().no_gpu and device.startswith("cuda"):
        raise DeviceUnavailable(
            f"--device: CUZK_NO_GPU forbids {device}; unset it or use --device cpu"
        )
    with progress("check", quiet=as_json) as bar:
        task = _task(inputs, statement, miner, sector, thread_count(threads))
        path = locate_key(task.proof, "params", params, key)
        shape = circuit(task.proof)
        expect_proving(shape, memory)
        named = key is not None
        file = trust_key(
            task.proof, path, "params", named=named, digest=key_digest, insecure=insecure_key
        )
        steps = _Steps(bar, task.proof.partitions)
        with CircuitProver(
            shape,
            path,
            device="cpu" if environment().no_gpu else device,
            threads=threads,
            memory=memory,
            insecure_key=insecure_key,
            on_phase=steps.phase,
            on_partition=steps.partition,
        ) as prover:
            whole = prover.prove(task)
    files: dict[str | os.PathLike[str], list[Chunk]] = {output: [whole.data]}
    if write_statement:
        files[write_statement] = [statement_json(task.statement)]
    write_together(files)
    _report(whole, task, output, file, as_json)


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


def _report(whole: WholeProof, task: Task, output: Path, file: KeyFile, as_json: bool) -> None:
    reports = tuple(replace(report, key_checked=file.checked) for report in whole.reports)
    if environment().no_gpu:
        reports = tuple(replace(report, reason="CUZK_NO_GPU is set") for report in reports)
    if as_json:
        facts = {
            "proof": str(output),
            "type": task.proof.name,
            "bytes": len(whole.data),
            "published_key": file.published,
            "milliseconds": whole.milliseconds,
            "partitions": [report.as_dict() for report in reports],
        }
        answer(facts, [], as_json=True)
        return
    say("\n".join(_report_lines(whole, reports, task, file)), error=True)


def _report_lines(
    whole: WholeProof, reports: tuple[Report, ...], task: Task, file: KeyFile
) -> list[str]:
    """A table of where the time went, over all partitions, then what did it."""
    first, spent = reports[0], whole.milliseconds
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
    bare = (
        "note: bare proofs of partitions: the chain takes their aggregate, which is not made here"
    )
    return [
        *table(rows),
        *([] if file.published else [unpublished]),
        *([bare] if task.proof.challenges is Challenges.NON_INTERACTIVE else []),
        f"{task.proof.name}: {len(reports)} partitions, {len(whole.data)} bytes; peak memory "
        f"{size(max(report.peak_bytes for report in reports))}",
        f"device {first.device} ({first.reason}), {first.arithmetic} arithmetic, {first.threads} threads",
    ]


@click.command("verify", short_help="Check a proof: exit status 0 or 1.")
@click.argument("statement", type=FILE)
@click.argument("proof", type=FILE, required=False)
@params_option
@click.option("--key", type=FILE, help="The .vk or .params file, whatever its name.")
@digest_option
@insecure_option
@threads_option
@json_option
def verify_command(
    statement: Path,
    proof: Path | None,
    params: Path | None,
    key: Path | None,
    key_digest: str | None,
    insecure_key: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Check PROOF (192 bytes a partition) for the public data in STATEMENT: exit status 0 valid, 1 not valid, 2 malformed.

    STATEMENT is JSON: a registered proof type and public data (docs/formats.md), or a record of rust-fil-proofs'
    regression files, which holds the proof as well.
    """
    stated, recorded = read_statement(statement)
    if (proof is None) == (recorded is None):
        found = "none" if proof is None else "one in STATEMENT, too"
        raise FormatError(f"PROOF: expected one proof, found {found}")
    name, data = statement.name, recorded or b""
    if proof is not None:
        name, data = proof.name, _proof_bytes(proof)
    path = locate_key(stated.proof, "vk", params, key)
    named = key is not None
    file = trust_key(
        stated.proof, path, "vk", named=named, digest=key_digest, insecure=insecure_key
    )
    count = thread_count(threads)
    vk = cuzk.load_verifying_key(path, insecure_key=insecure_key, threads=count)
    verifier = Verifier(vk, insecure_key=insecure_key, threads=count)
    _conclude(check_proof(verifier, stated, data, name), name, stated, file, as_json)


def _proof_bytes(path: Path) -> bytes:
    source = Source.open(path, "a proof")
    if source.size > MOST_PROOF_BYTES:
        raise FormatError(
            f"{source.name}: expected a proof of at most {MOST_PROOF_BYTES} bytes, found {source.size}"
        )
    return source.data.tobytes()


def _conclude(reason: str, name: str, stated: Statement, file: KeyFile, as_json: bool) -> None:
    facts = {
        "valid": not reason,
        "type": stated.proof.name,
        "challenges": "derived" if derived(stated) else "given",
        "published_key": file.published,
    }
    if not reason:
        answer(facts, ["valid"], as_json=as_json)
        if not derived(stated):
            say("note: the challenges were given, not derived: valid for these alone", error=True)
        return
    message = one_line(f"{name}: {reason}")
    say(f"not valid: {message}", error=True)
    if as_json:
        answer(facts | {"error": {"code": "not-valid", "message": message}}, [], as_json=True)
    click.get_current_context().exit(1)
