"""Calls of the stand-in for the driver that fail, and where an interrupt may come."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

What = str | type[BaseException] | Callable[[], None]


@dataclass(eq=False)
class Fault:
    function: str
    left: int
    what: What
    after: bool

    @property
    def anywhere(self) -> bool:
        return self.what is not KeyboardInterrupt


def uninterrupted() -> bool:
    """Another thread than the main one, which is interrupted, or a finaliser, which loses what it raises."""
    frame = sys._getframe()
    names = []
    while frame.f_back:
        frame = frame.f_back
        names.append(frame.f_code.co_name)
    return "__del__" in names or threading.current_thread() is not threading.main_thread()
