"""What a worker's process writes to its stdout and stderr, line by line into the daemon's log."""

from __future__ import annotations

import asyncio
import logging
import time

LOG = logging.getLogger("cuzk.worker")
LONGEST = 4096  # bytes of a line
RECENT = 5.0  # seconds: last words of a process that dies
FATAL = "Fatal Python error"  # a dump of stacks follows, which says less than what was before it


class ChildLog(asyncio.Protocol):
    """Lines that begin with a level's name are logged at it, others (of native code) as warnings."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept = b""
        self._last = ""
        self._when = -RECENT
        self._fatal = False
        self._transport: asyncio.BaseTransport | None = None
        self.ended = asyncio.Event()

    def close(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()

    def last_words(self) -> str:
        """The last line, if it was written just now."""
        return self._last if time.monotonic() - self._when < RECENT else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The pipe is read now."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Logs complete lines."""
        *lines, self._kept = (self._kept + data).split(b"\n")
        if len(self._kept) > LONGEST:
            lines.append(self._kept)
            self._kept = b""
        for line in lines:
            self._log(line)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The process is gone, or has closed both."""
        self._log(self._kept)
        self.ended.set()

    def _log(self, line: bytes) -> None:
        text = line[:LONGEST].decode("utf-8", "replace").rstrip()
        if not text:
            return
        if not text.isprintable():
            text = text.encode("unicode_escape").decode("ascii")
        first, _, rest = text.partition(" ")
        level = logging.getLevelNamesMapping().get(first)
        if level is not None:
            text = rest
        LOG.log(level or logging.WARNING, "%s: %s", self._name, text)
        self._remember(text)

    def _remember(self, text: str) -> None:
        if self._fatal:
            return
        if text.startswith(FATAL):
            self._fatal = True
            if self.last_words():
                return
        self._last, self._when = text, time.monotonic()
