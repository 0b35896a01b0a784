"""Workers in tests: started, ended, waited for."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from toy_catalogue import ToyCatalogue

from cuzk.engine.process import ProcessWorker

SOON = 60.0  # seconds: no bound on speed, an end for a test that would hang


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(2 * SOON):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


@asynccontextmanager
async def running(
    kind: Callable[..., Any] = ProcessWorker, catalogue: ToyCatalogue | None = None, **options: Any
) -> AsyncIterator[Any]:
    worker = kind("cpu", "cpu", catalogue or ToyCatalogue(), **options)
    try:
        await worker.start()
        yield worker
    finally:
        await worker.close()


async def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.002)


def begun(path: Path) -> Callable[[], bool]:
    return Path(f"{path}.begun").exists


def fds() -> int:
    return psutil.Process().num_fds()


def kill(worker: ProcessWorker, times: Path, count: int) -> None:
    """``times`` is for the lives to come: the one that ends, which may be asked for its device just now, sees nothing."""
    process = psutil.Process(worker.health().process)
    process.suspend()
    end = time.monotonic() + SOON
    while process.status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < end, "it goes on"
        time.sleep(0.001)
    times.write_text(str(count))
    process.kill()
