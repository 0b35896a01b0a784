"""Lines that strangers can cause at will, bounded: a connection that is no gRPC or no HTTP costs its client nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

OF_STRANGERS = ("cuzk.server.connections", "uvicorn.error", "asyncio")
LINES = 20  # of one logger
SECONDS = 60.0


class Sparing(logging.Filter):
    """Lets ``LINES`` pass in each ``SECONDS``; the first of the next says how many were left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since, self._seen = clock(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is written."""
        now = self._clock()
        if now - self._since >= SECONDS:
            left_out = self._seen - LINES
            self._since, self._seen = now, 0
            if left_out > 0:
                record.msg = f"{record.getMessage()} (and {left_out:,} lines left out before)"
                record.args = ()
        self._seen += 1
        return self._seen <= LINES


def spare_the_log() -> None:
    """For good; again: in the place of the earlier ones."""
    for name in OF_STRANGERS:
        logger = logging.getLogger(name)
        for old in [each for each in logger.filters if isinstance(each, Sparing)]:
            logger.removeFilter(old)
        logger.addFilter(Sparing())
