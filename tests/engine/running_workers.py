"""Workers in tests: started, ended, waited for."""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
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
    """A process that is started again is waited for as long as that takes, where a test does not say otherwise."""
    if kind is ProcessWorker:
        options.setdefault("patience", SOON)
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


@contextmanager
def pipe(path: Path) -> Iterator[Callable[[], None]]:
    """For the scripts "pipe FILE" and "held FILE": each call lets one of them go on."""
    os.mkfifo(path)
    file = os.open(path, os.O_RDWR)

    def let_one_go_on() -> None:
        os.write(file, b".")

    try:
        yield let_one_go_on
    finally:
        os.close(file)


def descriptors() -> set[tuple[str, str]]:
    """Of this process: what is open, under which number. Others may close what is theirs at any time."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        try:
            found.add((path.name, str(path.readlink())))
        except FileNotFoundError:  # that of the folder itself
            continue
    return found


def stop(number: int) -> psutil.Process:
    """A process that does nothing any more, and is there."""
    process = psutil.Process(number)
    process.suspend()
    end = time.monotonic() + SOON
    while process.status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < end, "it goes on"
        time.sleep(0.001)
    return process


def kill(worker: ProcessWorker, times: Path, count: int) -> None:
    """``times`` is for the lives to come: the one that ends, which may be asked for its device just now, sees nothing."""
    process = stop(worker.health().process)
    times.write_text(str(count))
    process.kill()
