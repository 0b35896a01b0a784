"""Runs ``cuzk`` as a person's shell does: another process, its exit status, its two streams."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cuzk import _core

PACKAGE = Path(_core.__file__).parents[1]
COMMAND = [sys.executable, "-m", "cuzk"]
VARIABLES = ("CUZK_DEBUG", "CUZK_CPU_PATH", "CUZK_NO_GPU", "FIL_PROOFS_PARAMETER_CACHE")


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


def environment(variables: dict[str, str] | None = None) -> dict[str, str]:
    """This process' environment without cuzk's own variables, the same package first; then ``variables``."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, "PYTHONPATH": str(PACKAGE), **(variables or {})}


def cuzk(
    *arguments: str | Path,
    cwd: Path | None = None,
    variables: dict[str, str] | None = None,
) -> Outcome:
    done = subprocess.run(
        [*COMMAND, *(str(argument) for argument in arguments)],
        cwd=cwd,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def error_line(outcome: Outcome, status: int = 2) -> str:
    """The one line that an error is; nothing on standard output, no traceback."""
    assert outcome.status == status, outcome
    assert outcome.out == "", outcome
    assert outcome.err.startswith("cuzk: "), outcome
    assert outcome.err.endswith("\n"), outcome
    assert outcome.err.count("\n") == 1, outcome
    return outcome.err[len("cuzk: ") : -1]
