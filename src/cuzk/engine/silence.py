"""Work of a worker that reads a circuit's files, which may not answer: a disk or a network mount that is away.

    load, check --> in the worker --> its answer
                    looked at every 2 s: is the circuit one whose files are silent?
                        a load stands still: its jobs wait (:mod:`away`), the worker loads other keys beside it
                        a check is given up: its request is refused, NOT READY

Nothing is killed: such work ends by itself when the files answer again. A load that stood still is then a load as any other;
the answer to a check that was given up is for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from cuzk.engine.state import State

T = TypeVar("T")
LOOK = 2.0  # seconds between two looks


async def listening(
    state: State, circuit: str, work: Coroutine[Any, Any, T], heard: Callable[[str], None]
) -> T:
    """What the work gives. ``heard`` is told at every look why the circuit's files are silent, "" where they are not; what it
    raises ends the waiting, and the work's task is cancelled."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=LOOK)
            if not task.done():
                heard(silence(state, circuit))
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, whoever waited


def silence(state: State, circuit: str) -> str:
    """Why a circuit's files cannot be read now; "" where they answer, whatever they are."""
    entries = state.catalogue.entries()
    return next((entry.fault for entry in entries if entry.id == circuit and entry.silent), "")
