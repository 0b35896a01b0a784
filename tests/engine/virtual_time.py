"""A clock that jumps to whatever happens next, so that hours pass in milliseconds.

The journal is the real one, on the disk; the clock stands still while it writes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from cuzk.engine.catalogue import (
    PartProof,
)
from cuzk.engine.job import Job, Outcome
from cuzk.engine.journal import Journal
from cuzk.errors import CuzkError

T = TypeVar("T")
EPOCH = 1_800_000_000.0


class _Jump(selectors.DefaultSelector):
    """Waits for files and threads, but not for time: that passes at once."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.loop.outside:
            return super().select(5.0 if timeout is None or timeout > 0 else 0)
        events = super().select(0)
        if not events and timeout is None:
            raise RuntimeError("nothing will ever happen any more: everybody waits")
        if not events and timeout is not None and timeout > 0:
            self.loop.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """``outside`` counts what threads do now: time stands still for it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.outside = 0
        selector = _Jump()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        future = super().run_in_executor(executor, func, *args)
        self.outside += 1
        future.add_done_callback(self._inside)
        return future

    def _inside(self, _: object) -> None:
        self.outside -= 1

    async def shutdown_default_executor(self) -> None:
        with self.held():
            await super().shutdown_default_executor()

    @contextmanager
    def held(self) -> Iterator[None]:
        self.outside += 1
        try:
            yield
        finally:
            self.outside -= 1


class StillJournal(Journal):
    """The real journal; the clock stands while it writes. ``full``: its disk takes nothing."""

    full: CuzkError | None = None
    gate: asyncio.Event | None = None
    """What ``accept`` waits for when its job is written."""
    accepted = 0

    async def accept(self, job: Job) -> None:
        self._expect_room()
        await super().accept(job)
        self.accepted += 1
        if self.gate is not None:
            await self.gate.wait()

    async def part(self, job_id: str, number: int, part: PartProof) -> None:
        self._expect_room()
        await super().part(job_id, number, part)

    async def end(
        self,
        job_id: str,
        outcome: Outcome,
        *,
        started: float | None = None,
        ended: float | None = None,
    ) -> None:
        self._expect_room()
        await super().end(job_id, outcome, started=started, ended=ended)

    def _expect_room(self) -> None:
        if self.full is not None:
            raise self.full

    async def _written(self, future: Future[T]) -> T:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):
            return await super()._written(future)
        with loop.held():
            return await super()._written(future)


def now() -> float:
    try:
        return EPOCH + asyncio.get_running_loop().time()
    except RuntimeError:
        return EPOCH
