"""``cuzk inspect`` and ``cuzk doctor``: what a file holds, what this machine can do."""

from __future__ import annotations

from pathlib import Path

import click

from cuzk.cli.app import cuzk_group, environment
from cuzk.cli.options import FILE, json_option, threads_option
from cuzk.cli.terminal import answer, size, table
from cuzk.doctor import Diagnosis, diagnose
from cuzk.inspect import Inspection, inspect
from cuzk.prover.devices import thread_count


@cuzk_group.command("inspect", short_help="What a file holds, with warnings.")
@click.argument("file", type=FILE)
@click.option("--full", is_flag=True, help="Check every point, constraint and value.")
@threads_option
@json_option
def inspect_command(file: Path, full: bool, threads: int | None, as_json: bool) -> None:
    """What FILE holds: r1cs, wtns, zkey, ptau, params, vk, proof, public signals.

    Told by content. Warnings name what should be known before the file is trusted.
    """
    found = inspect(file, full=full, threads=thread_count(threads))
    answer(found.as_dict(), _inspection_lines(found), as_json=as_json)


def _inspection_lines(found: Inspection) -> list[str]:
    lines = [f"{found.file}: {found.kind}, {size(found.bytes)}, curve {found.curve}"]
    lines += ["  " + line for line in table([[name, str(n)] for name, n in found.counts.items()])]
    lines += [f"  digest of {name}: {digest}" for name, digest in found.digests.items()]
    if found.sections:
        rows = [[part.name, f"{part.bytes} B"] for part in found.sections]
        lines += ["  sections", *("    " + line for line in table(rows))]
    lines += [f"  {step}" for step in found.contributions]
    if found.checked:
        lines.append(f"  checked: {found.checked}")
    return lines + [f"  warning: {warning}" for warning in found.warnings]


@cuzk_group.command("doctor", short_help="This build, this machine, a self-test.")
@json_option
def doctor_command(as_json: bool) -> None:
    """Version, build, CPU path, memory, GPU, and a self-test with known answers."""
    found = diagnose(no_gpu=environment().no_gpu)
    answer(found.as_dict(), _diagnosis_lines(found), as_json=as_json)
    if not found.healthy:
        click.get_current_context().exit(3)


def _diagnosis_lines(found: Diagnosis) -> list[str]:
    lines = [f"{name:<12}{text}" for name, text in found.facts.items()]
    lines += [
        f"{'self-test':<12}{check.name}: {check.fault or 'passed'} ({check.milliseconds:.0f} ms)"
        for check in found.checks
    ]
    return lines
