"""Whether a worker's process, which may hang and yet live, still answers: asked every second of its work, else now and then.

    beat --> the child's main loop --> a thread that asks for the device --> its answer

One beat that comes back shows both. Where none does within the worker's patience, the process is killed and counts as lost:
stopped, in a driver that does not return, in a deadlock of native code. Only time in which the daemon itself ran counts:
after a SIGSTOP of both, a suspended machine or a virtual one that was moved nobody is guilty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from cuzk.errors import CuzkError, WorkerLost

T = TypeVar("T")
BEAT_SECONDS = 1.0  # between two beats while there is work
IDLE_SECONDS = 30.0  # while there is none
STEPS = 10  # pieces of a patience: a longer silence of the daemon itself counts as two of them
LONGEST_STEP = 1.0


class Beating(Protocol):
    """A process, as far as this goes."""

    ended: asyncio.Event
    active: asyncio.Event
    """Set by every call, by nothing that is done here."""

    @property
    def working(self) -> bool:
        """Whether a call has no answer yet."""

    async def beat(self) -> None:
        """One way there and back. WorkerLost; other CuzkErrors are answers."""

    def give_up(self, how: str) -> None:
        """Kill it; ``how`` is what its end says."""


async def watch(process: Beating, patience: float) -> None:
    """Until the process has ended; ``patience`` in seconds."""
    while not process.ended.is_set():
        process.active.clear()
        try:
            await within(patience, process.beat())
        except TimeoutError:
            process.give_up(f"killed, nothing was heard of it for {patience:g} s")
            return
        except WorkerLost:
            return
        except CuzkError:
            pass  # it is not well, and says so
        if process.working:
            process.active.set()
        await _event(process.ended, BEAT_SECONDS)
        await _event(process.active, IDLE_SECONDS)


async def _event(event: asyncio.Event, seconds: float) -> None:
    """Until it is set, or so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; it is cancelled, with a TimeoutError, when this process has run for so long meanwhile."""
    loop = asyncio.get_running_loop()
    step = min(LONGEST_STEP, seconds / STEPS)
    task, passed = loop.create_task(work), 0.0
    try:
        while passed < seconds:
            before = loop.time()
            await asyncio.wait([task], timeout=step)
            if task.done():
                return task.result()
            passed += min(loop.time() - before, 2 * step)
        raise TimeoutError
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
