"""A file of settings into :class:`Settings`; every mistake is one line: file, key, expected, found."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cuzk.config.settings import CircuitSettings, Settings
from cuzk.config.values import FOLDER, shown
from cuzk.errors import FormatError

MOST_BYTES = 1 << 20
PLACE = re.compile(r"(.*) \(at (line \d+, column \d+|end of document)\)", re.DOTALL)
EXPECTED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "string_type": "a text",
    "tuple_type": "an array",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
}


def read_settings(path: Path) -> Settings:
    """FormatError in one line: the first mistake, and how many more there are."""
    name = ascii(str(path))[1:-1]
    try:
        if path.stat().st_size > MOST_BYTES:
            raise FormatError(
                f"{name}: expected a file of settings of at most {MOST_BYTES} bytes, found "
                f"{path.stat().st_size}"
            )
        text = path.read_bytes().decode()
    except OSError as error:
        reason = error.strerror or str(error)
        raise FormatError(f"{name}: expected a file of settings, found {reason.lower()}") from None
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{name}: expected UTF-8, found another byte at offset {error.start}"
        ) from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{name}: {_mistake(str(error), text)}") from None
    except RecursionError:
        raise FormatError(f"{name}: expected TOML, found it nested too deeply") from None
    return settings(tables, path.resolve().parent, name)


def settings(tables: dict[str, Any], folder: Path | None, name: str) -> Settings:
    """Of a document that is read; ``folder`` is what its paths are relative to."""
    try:
        return Settings.model_validate(tables, context={FOLDER: folder})
    except ValidationError as error:
        found = error.errors()
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    raise FormatError(f"{name}: {_line(found[0])}{more}") from None


def _mistake(said: str, text: str) -> str:
    match = PLACE.fullmatch(said)
    what, place = (match[1], match[2]) if match else (said, "")
    if place == "end of document":
        last = text.rpartition("\n")[2]
        place = f"line {text.count(chr(10)) + 1}, column {len(last) + 1}"
    return f"{place + ': ' if place else ''}expected TOML, found a mistake: {ascii(what)[1:-1]}"


def _line(error: ErrorDetails) -> str:
    """pydantic's report in our words."""
    place = _place(error["loc"])
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "value_error":
        text = str(context["error"])
        joined = ": " if text.startswith("expected ") else "."
        return f"{place}{joined}{text}" if place else text
    if kind == "missing":
        return f"{place}: expected a value, found none"
    if kind == "extra_forbidden":
        table, _, key = place.rpartition(".")
        known = ", ".join(_known(error["loc"]))
        return f"{place}: expected one of {known}{' in ' + table if table else ''}, found the unknown key {key}"
    if kind == "literal_error":
        return f"{place}: expected one of {context['expected']}, found {shown(value)}"
    if kind in ("greater_than_equal", "less_than_equal"):
        limit = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return f"{place}: expected {limit}, found {shown(value)}"
    if place == "circuit" and isinstance(value, dict):
        return "circuit: expected [[circuit]] for each circuit, found [circuit]"
    expected = EXPECTED.get(kind, error["msg"])
    return f"{place}: expected {expected}, found {shown(value)}"


def _place(location: tuple[int | str, ...]) -> str:
    """ "memory.host", "circuit[0].key"."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{_quoted(part)}" if text else _quoted(part)
    return text


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]{1,80}", key) else shown(key)


def _known(location: tuple[int | str, ...]) -> list[str]:
    """The keys of the table in which an unknown one is."""
    if location[0] == "circuit" and len(location) > 1:
        return list(CircuitSettings.model_fields)
    if len(location) > 1:
        table = Settings.model_fields[str(location[0])].annotation
        return list(getattr(table, "model_fields", {}))
    return [field.alias or name for name, field in Settings.model_fields.items()]
