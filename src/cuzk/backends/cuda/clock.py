"""A card's clock on the host's: an event whose time on the host's clock is known, and how well.

The event is recorded on a stream with nothing else in it and waited for at once: the card passed it between
the host's two readings around that, so their middle is off by half of what lies between (some 10 us; of a few
tries the closest counts). Times of the card are single-precision milliseconds since that event: after a minute
their steps are 4 us, so it is renewed. A mark belongs to the event that was known when it was made, before it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

from cuzk.backends.cuda.driver import Driver, quietly

NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: no order with the legacy default stream
RENEWED = 60.0  # seconds
TRIES = 3
CLOSE = 50e-6  # seconds between the two readings that need no further try


class Origin:
    """An event, the host's time when it was passed, and by how many seconds that may be wrong."""

    def __init__(self, driver: Driver, enter: Callable[[], None], stream: Any) -> None:
        self._driver, self._enter = driver, enter
        self.event = None
        self.event = driver.make(driver.cuEventDestroy, "cuEventCreate", 0)
        before = perf_counter()
        driver.cuEventRecord(self.event, stream)
        driver.cuEventSynchronize(self.event)
        after = perf_counter()
        self.then, self.error = (before + after) / 2, (after - before) / 2

    def moment(self, event: Any) -> float:
        """The host's time when a later event was passed; it must have been."""
        return self.then + float(self._driver.cuEventElapsedTime(self.event, event)) / 1e3

    def __del__(self) -> None:
        quietly(self._destroy)

    def _destroy(self) -> None:
        if self.event is not None:
            self._enter()
            self._driver.cuEventDestroy(self.event)


class Clock:
    """Of one card; ``enter`` makes its context the calling thread's, as it must be when a time is asked for.

    An origin lives as long as a mark or a machine needs it.
    """

    def __init__(self, driver: Driver, enter: Callable[[], None]) -> None:
        self._driver, self._enter = driver, enter
        self._origin: Callable[[], Origin | None] = lambda: None
        self._lock = threading.Lock()

    def origin(self) -> Origin:
        """One that is at most a minute old."""
        with self._lock:
            origin = self._origin()
            if origin is None or perf_counter() - origin.then > RENEWED:
                origin = self._renewed()
                self._origin = weakref.ref(origin)
            return origin

    def _renewed(self) -> Origin:
        driver = self._driver
        stream = driver.make(driver.cuStreamDestroy, "cuStreamCreate", NON_BLOCKING)
        try:
            best = Origin(self._driver, self._enter, stream)
            for _ in range(TRIES - 1):
                if 2 * best.error > CLOSE:
                    best = min(
                        best,
                        Origin(self._driver, self._enter, stream),
                        key=lambda origin: origin.error,
                    )
            return best
        finally:
            self._driver.cuStreamDestroy(stream)
