"""The text of a JSON file that Python's parser may be given: so long, in UTF-8, not nested deep."""

from __future__ import annotations

import re

import numpy as np

from cuzk.errors import FormatError
from cuzk.formats.source import Source

MAX_DEPTH = 32  # snarkjs' vk_alphabeta_12 lies at 4, challenges of a statement's sectors too

# Possessive, and content with a string without an end: linear in the text whatever it is.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


def json_text(source: Source, limit: int) -> str:
    """The text, of at most ``limit`` bytes; FormatError where it is none that should be parsed."""
    name, data = source.name, source.data
    if len(data) > limit:
        raise FormatError(f"{name}: expected at most {limit} bytes of JSON, found {len(data)}")
    try:
        text = data.tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{name}: expected JSON in UTF-8, found the byte 0x{data[error.start]:02x} at offset {error.start}"
        ) from None
    brackets = text.count("[") + text.count("{")
    if brackets > MAX_DEPTH and (depth := _depth(text)) > MAX_DEPTH:
        raise FormatError(f"{name}: expected JSON of at most {MAX_DEPTH} levels, found {depth}")
    return text


def _depth(text: str) -> int:
    """Levels of nesting. The parser recurses, and another package may have lifted Python's limit (py_ecc does)."""
    steps = _STEPS[np.frombuffer(_STRING.sub("", text).encode(), dtype=np.uint8)]
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))
