"""What a person or a script sees: answers on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from cuzk.errors import CuzkError


def say(text: str, *, error: bool = False) -> None:
    """One line; a reader that has gone away is no error, nor is a stream that was never open."""
    stream: IO[str] | None = sys.stderr if error else sys.stdout
    if stream is None:  # closed by the shell: >&-
        return
    try:
        stream.write(text + "\n")
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as refused:
        silence(stream)  # what it still holds would fail again when the interpreter ends
        if not error:
            raise CuzkError(
                f"standard output: cannot be written: {refused.strerror or refused}"
            ) from None


def answer(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """A command's result: one JSON object, or lines for a person."""
    say(json.dumps(value, indent=2) if as_json else "\n".join(lines))


def to_journal() -> bool:
    """Whether standard error is the journal's own stream, as systemd says."""
    said = os.environ.get("JOURNAL_STREAM", "")
    try:
        found = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # closed, or no file
        return False
    return said == f"{found.st_dev}:{found.st_ino}"


def one_line(message: str) -> str:
    """Line breaks and control characters (a file's name may hold them) made visible."""
    line = " ".join(message.split())
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def table(rows: Sequence[Sequence[str]], *, words: bool = False) -> list[str]:
    """Columns aligned, the first to the left and the others to the right, where numbers belong; ``words``: all left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 or words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def size(count: int) -> str:
    """Bytes as a person reads them."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


@contextmanager
def progress(label: str, *, quiet: bool) -> Iterator[Callable[[str, float], None] | None]:
    """A bar on standard error where that is a terminal; else None, and nothing is printed.

    The function takes the name of what is being done and the part done so far, 0 to 1; until its first
    call the bar only shows that something is going on.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # here: half of the start-up time of a command without a bar
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda name, done: bar.update(task, description=name, total=1.0, completed=done)


def silence(stream: IO[str]) -> None:
    """Point a stream that takes no more at nothing, so that the interpreter's last flush is quiet too."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
