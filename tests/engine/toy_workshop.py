"""A workshop of toy circuits in tests: jobs in it, its errors, what has begun there."""

from __future__ import annotations

import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from running_workers import SOON
from toy_catalogue import request_of

from cuzk.engine.workshop import Workshop
from cuzk.errors import CuzkError


def prepared(shop: Workshop, name: str, **fields: Any) -> None:
    """A job, with its key."""
    shop.load("toy").result(SOON)
    shop.prepare("toy", request_of(name, **fields)).result(SOON)


def error_of(future: Future[Any]) -> CuzkError:
    error = future.exception(SOON)
    assert isinstance(error, CuzkError)
    return error


def begun(path: Path) -> None:
    """Waits until a script has come to this file."""
    until = time.monotonic() + SOON
    while not Path(f"{path}.begun").exists():
        assert time.monotonic() < until, f"{path.name} did not begin"
        time.sleep(0.002)
