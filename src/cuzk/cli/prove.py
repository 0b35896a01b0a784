"""``cuzk prove`` and ``cuzk verify``."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path

import click

import cuzk
from cuzk.cli.app import cuzk_group, environment
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
from cuzk.cli.terminal import answer, one_line, progress, say, size, table
from cuzk.curves import BLS12_381, Curve
from cuzk.errors import CuzkError
from cuzk.formats.bellman import write_proof_bytes
from cuzk.formats.snarkjs_json import proof_json, public_json
from cuzk.formats.source import write_together
from cuzk.groth16 import BELLMAN
from cuzk.prover.report import Report
from cuzk.trace import chrome_trace
from cuzk.verifier import check

# The part of the time that is gone when a phase begins (examples/membership20, 2 cores, 2026-11): the bar.
PHASES = {
    "load": 0.0,
    "check": 0.02,
    "evaluate": 0.04,
    "quotient": 0.05,
    "commit": 0.1,
    "commit.a": 0.1,
    "commit.b_g1": 0.2,
    "commit.b_g2": 0.33,
    "commit.l": 0.73,
    "commit.h": 0.83,
    "assemble": 0.98,
    "verify": 0.99,
}


@cuzk_group.command("prove", short_help="Prove a witness with a key.")
@click.argument("key", type=FILE)
@click.argument("witness", type=FILE)
@click.option(
    "-o", "--output", type=FILE, default="proof.json", show_default=True, help="The proof."
)
@click.option(
    "--public", type=FILE, default="public.json", show_default=True, help="The public signals."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "bin"]),
    help="json: as snarkjs; bin: bellman's 192 bytes (BLS12-381). By -o's ending if not given: .bin or .json.",
)
@click.option(
    "--circuit",
    type=FILE,
    metavar="R1CS",
    help="The circuit: needed with a .params; with a .zkey, names the first constraint that fails.",
)
@click.option(
    "--trace",
    type=FILE,
    help="Also write what happened when, for ui.perfetto.dev or chrome://tracing.",
)
@device_option
@threads_option
@memory_option
@digest_option
@insecure_option
@json_option
def prove_command(
    key: Path,
    witness: Path,
    output: Path,
    public: Path,
    form: str | None,
    circuit: Path | None,
    trace: Path | None,
    device: str,
    threads: int | None,
    memory: int | None,
    key_digest: str | None,
    insecure_key: bool,
    as_json: bool,
) -> None:
    """Prove that WITNESS (.wtns) satisfies the circuit of KEY (.zkey, .params).

    The proof is verified before anything is written; all files appear together or not at all.
    """
    inputs = {"KEY": key, "WITNESS": witness} | ({"--circuit": circuit} if circuit else {})
    outputs = {"-o": output, "--public": public} | ({"--trace": trace} if trace else {})
    check_outputs(outputs, inputs)
    binary = form == "bin" or (form is None and output.suffix == ".bin")
    allowed = environment().device(device)
    with progress("load", quiet=as_json) as bar:
        prover = cuzk.Prover(
            key,
            circuit=circuit,
            device=allowed,
            threads=threads,
            memory=memory,
            key_digest=key_digest,
            insecure_key=insecure_key,
            lanes=1,  # there is one proof
            on_phase=None if bar is None else lambda name: bar(name, PHASES.get(name, 0.0)),
        )
        with prover:
            if binary:
                _expect_bytes_for(prover.key.curve, output)
            result = prover.prove(witness)
    report = result.report
    if environment().no_gpu and device == "auto":
        report = replace(report, reason="CUZK_NO_GPU is set")
    encode = write_proof_bytes if binary else proof_json
    files: dict[str | PathLike[str], list[bytes]]
    files = {output: [encode(result.proof)], public: [public_json(result.public)]}
    written = {"proof": str(output), "public": str(public)}
    if trace:
        files[trace] = [chrome_trace(prover.timeline.spans())]
        written["trace"] = str(trace)
    write_together(files)
    if as_json:
        answer({**written, "report": report.as_dict()}, [], as_json=True)
    else:
        say("\n".join(_report_lines(report)), error=True)


def _expect_bytes_for(curve: Curve, output: Path) -> None:
    """Only one of the curves has proof bytes: said before the work."""
    if curve is not BLS12_381:
        raise CuzkError(
            f"-o {output}: expected a key on BLS12-381 for a proof of 192 bytes, found one on "
            f"{curve.title}; take --format json"
        )


def _report_lines(report: Report) -> list[str]:
    """The table at the end: where the time went, then two lines on what did it.

    A GPU's phases overlap: beside what the host waited there is what each took on the GPU.
    """
    spent, gpu = report.milliseconds, report.device != "cpu"
    rows = [["phase", "ms", "on the GPU" if gpu else ""]]
    for name in PHASES:
        if name in spent and name != "load":
            part = name.partition(".")[2]
            there = report.device_milliseconds.get(name) if gpu else None
            own = "" if there is None else f"{there:.1f}"
            rows.append([f"    {part}" if part else f"  {name}", f"{spent[name]:.1f}", own])
    rows.append(["proof", f"{spent['total']:.1f}", ""])
    rows.append(["key loaded before", f"{spent['load']:.1f}", ""])
    memory = f"peak memory {size(report.peak_bytes)}"
    if gpu:
        memory += f", GPU memory at most {size(report.device_planned_bytes)}"
    unchecked = f"warning: {report.key}: its points rest on its digest, which was not checked: give --key-digest"
    return [
        *table(rows),
        *(f"note: {note}" for note in report.transfers),
        *([unchecked] if report.recipe == BELLMAN and not report.key_checked else []),
        f"device {report.device} ({report.reason}), {report.arithmetic} arithmetic, {report.threads} threads",
        f"{report.constraints} constraints, domain {report.domain}, {report.curve}; {memory}",
    ]


@cuzk_group.command("verify", short_help="Check a proof: exit status 0 or 1.")
@click.argument("key", metavar="VK", type=FILE)
@click.argument("public", type=FILE)
@click.argument("proof", type=FILE)
@insecure_option
@json_option
def verify_command(key: Path, public: Path, proof: Path, insecure_key: bool, as_json: bool) -> None:
    """Check PROOF for the PUBLIC signals: exit status 0 valid, 1 not valid, 2 malformed.

    VK is a verification_key.json, .zkey, .vk or .params; PROOF a JSON file or 192 bytes.
    """
    vk = cuzk.load_verifying_key(key, insecure_key=insecure_key)
    signals = cuzk.load_public(public, vk.curve)
    candidate = cuzk.load_proof(proof, vk.curve)
    reason = check(vk, signals, candidate, insecure_key=insecure_key)
    if not reason:
        answer({"valid": True}, ["valid"], as_json=as_json)
        return
    message = one_line(f"{proof.name}: {reason}")
    say(f"not valid: {message}", error=True)
    if as_json:
        error = {"code": "not-valid", "message": message}
        answer({"valid": False, "error": error}, [], as_json=True)
    click.get_current_context().exit(1)
