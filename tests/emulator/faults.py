"""Calls of the stand-in for the driver that fail, and where an interrupt may come."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

HERE = str(Path(__file__).parent)
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


def interrupt_caller() -> None:
    """KeyboardInterrupt at the next line of whoever called the driver: a signal that came during the call."""
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back

    def raises(*_: object) -> None:
        assert frame
        frame.f_trace = None
        sys.settrace(None)
        raise KeyboardInterrupt

    if frame:
        frame.f_trace = raises
        sys.settrace(lambda *_: None)
