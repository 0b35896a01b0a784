"""Whether the result files can be written, asked before the work.

The writers let a file appear whole or not at all (:mod:`cuzk.formats.source`).
"""

from __future__ import annotations

import os
from pathlib import Path

from cuzk.errors import FormatError


def check_outputs(outputs: dict[str, Path], inputs: dict[str, Path]) -> None:
    """Refuse, before any work, what could not be written afterwards or would overwrite an input.

    Keys are what messages call the paths: an option or an argument.
    """
    for name, path in outputs.items():
        if path.is_dir():
            raise FormatError(f"{name} {path}: expected a file to write, found a directory")
        folder = path.resolve().parent if path.is_symlink() else path.parent
        if not folder.is_dir():
            raise FormatError(
                f"{name} {path}: the directory {folder} does not exist; make it first"
            )
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise FormatError(f"{name} {path}: no permission to write here")
    names = [*inputs.items(), *outputs.items()]
    for position, (name, path) in enumerate(names):
        for other_name, other in names[:position]:
            if name in outputs and _same_file(path, other):
                raise FormatError(f"{name} {path}: the same file as {other_name}; name another one")


def _same_file(path: Path, other: Path) -> bool:
    if path.exists() and not path.is_file():
        return False  # /dev/null may well be named twice
    return path.resolve() == other.resolve() or (
        path.exists() and other.exists() and path.samefile(other)
    )
