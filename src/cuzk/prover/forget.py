"""What leaves the prover as an error takes nothing along: no device memory, no pinned pages, no secrets.

A traceback keeps the variables of every call that it went through, as long as somebody keeps the error: a
Future, a log, a debugger. A CuzkError's message says what matters; of any other error the lines go on as a note.
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from cuzk.errors import CuzkError


class Forgetting:
    """Around all of a call of the prover: its errors, and those that they came from, let go of its calls."""

    def __enter__(self) -> None:
        self._before = sys.exception()  # the caller's, who handles one

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        waiting, known = [error], {id(self._before)}
        while waiting:
            each = waiting.pop()
            if each is None or id(each) in known:
                continue
            known.add(id(each))
            waiting += [each.__cause__, each.__context__]
            if isinstance(each, Exception) and not isinstance(each, CuzkError):
                lines = "".join(traceback.format_tb(each.__traceback__))
                each.add_note(f"raised at\n{lines.rstrip()}")
            each.__traceback__ = None
