"""Waiting for what nobody announces."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

PATIENCE = 120.0  # seconds: no bound on speed, an end for a test that would hang


def until(ready: Callable[[], object], patience: float = PATIENCE) -> None:
    """Returns when it is; TimeoutError where that does not come."""
    end = monotonic() + patience
    while not ready():
        if monotonic() > end:
            raise TimeoutError("it did not happen")
        sleep(0.001)
