"""The kinds of values that settings have, from what TOML has: sizes, durations, paths, "auto"."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo

from cuzk.config.addresses import FORMS, address
from cuzk.errors import FormatError

FOLDER = "folder"
"""In the context of a validation: what relative paths are relative to."""
AUTO = "auto"
SIZE_UNITS = {"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
DURATION_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
MOST_BYTES = 1 << 60
MOST_SECONDS = 10 * 365 * 86400
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([A-Za-z]*)")


def size(value: Any) -> int:
    """Bytes."""
    expected = 'a size like "512MiB" or "12GiB", or bytes'
    found = _quantity(value, {name: 1 << log for name, log in SIZE_UNITS.items()}, expected)
    if found > MOST_BYTES:
        raise ValueError(f"expected at most {MOST_BYTES} bytes, found {shown(value)}")
    return int(found)


def duration(value: Any) -> float:
    """Seconds."""
    expected = 'a duration like "90s", "5m", "24h" or "7d", or seconds'
    found = _quantity(value, DURATION_UNITS, expected)
    if found > MOST_SECONDS:
        raise ValueError(f"expected at most {MOST_SECONDS} seconds, found {shown(value)}")
    return float(found)


def automatic_size(value: Any) -> int | None:
    """None for "auto"."""
    if value is None or value == AUTO:
        return None
    try:
        return size(value)
    except ValueError as error:
        raise ValueError(f'{error}; or "auto"') from None


def automatic_count(value: Any) -> int | None:
    """None for "auto"; limits are the field's."""
    if value is None or value == AUTO:
        return None
    if type(value) is not int:
        raise ValueError(f'expected a whole number or "auto", found {shown(value)}')
    return value


def path(value: Any, info: ValidationInfo) -> Path:
    """Absolute, where the settings have a folder, which no link leads to; nothing is looked at."""
    if not isinstance(value, str | Path):
        raise ValueError(f"expected a path, found {shown(value)}")
    text = os.fspath(value)
    if not text or "\0" in text:
        raise ValueError(f"expected a path, found {shown(value)}")
    try:
        found = Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"expected a path, found {text!r}, whose home is not known") from None
    folder = (info.context or {}).get(FOLDER)
    return found if folder is None else _from(folder, found)


def _from(folder: Path, path: Path) -> Path:
    """As the system goes: each ".." at the beginning is a folder up. One behind a name stays: that may be a link's."""
    if path.is_absolute():
        return path
    parts = list(path.parts)
    while parts and parts[0] == os.pardir:
        folder, parts = folder.parent, parts[1:]
    return folder.joinpath(*parts)


def optional_path(value: Any, info: ValidationInfo) -> Path | None:
    """None where there is none."""
    return None if value is None else path(value, info)


def listen(value: Any) -> str:
    """A text that :func:`cuzk.config.address` takes, or "": nothing listens."""
    if not isinstance(value, str):
        raise ValueError(f"expected {FORMS}, found {shown(value)}")
    if value:
        try:
            address(value)
        except FormatError as error:
            raise ValueError(str(error)) from None
    return value


def row(value: Any) -> Any:
    """TOML's arrays as tuples."""
    return tuple(value) if isinstance(value, list) else value


def shown(value: Any) -> str:
    """A value in a message: short, in one line."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}"
    if isinstance(value, bool):
        return str(value).lower()
    text = ascii(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}.. ({len(text)} characters)"


def _quantity(value: Any, units: dict[str, int], expected: str) -> float:
    if type(value) is int or (type(value) is float and value == value):
        if value < 0:
            raise ValueError(f"expected {expected}, found {shown(value)}")
        return value
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in units:
        raise ValueError(f"expected {expected}, found {shown(value)}")
    number = float(match[1]) if "." in match[1] else int(match[1])
    return number * units[match[2]]


Size = Annotated[int, BeforeValidator(size)]
AutomaticSize = Annotated[int | None, BeforeValidator(automatic_size)]
Duration = Annotated[float, BeforeValidator(duration)]
FilePath = Annotated[Path, BeforeValidator(path)]
OptionalPath = Annotated[Path | None, BeforeValidator(optional_path)]
Listen = Annotated[str, BeforeValidator(listen)]
