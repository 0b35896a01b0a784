"""An exception on its way between processes: the name of its class in :mod:`cuzk.errors`, and one line of text."""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass

import cuzk.errors
from cuzk.errors import CuzkError, EngineError, InternalError, OutOfMemory

LOG = logging.getLogger("cuzk.failure")
LONGEST = 4000  # characters of a message; one that quotes its input is cut


@dataclass(frozen=True)
class Failure:
    """Why work was not done. ``name`` is that of a class of :mod:`cuzk.errors`."""

    name: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """OSErrors are EngineErrors, MemoryErrors OutOfMemory; anything else that is no CuzkError is a bug, and its
        traceback goes to the log (which shows lines of code, and no values)."""
        text = _line(error)
        if isinstance(error, CuzkError):
            return cls(next(c.__name__ for c in type(error).__mro__ if _known(c.__name__)), text)
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else ""
            return cls(EngineError.__name__, legible(f"{where}{error.strerror or text}"))
        if isinstance(error, MemoryError):
            reason = f": {text}" if text else ""
            return cls(OutOfMemory.__name__, f"not enough memory on this machine{reason}")
        LOG.error("%s", "".join(traceback.format_exception(error)).rstrip())
        return cls(InternalError.__name__, f"internal error: {type(error).__name__}: {text}")

    def error(self) -> CuzkError:
        """The same exception again, without a trace of where it was raised."""
        return (_known(self.name) or InternalError)(self.text)


def legible(text: str) -> str:
    """In one line, as a text that every encoding has: control characters and bytes of a path that are no text, escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _line(error: BaseException) -> str:
    text = legible(" ".join(str(error).split()))
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def _known(name: str) -> type[CuzkError] | None:
    found = getattr(cuzk.errors, name, None)
    return found if isinstance(found, type) and issubclass(found, CuzkError) else None
