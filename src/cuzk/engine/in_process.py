"""A worker in the threads of this process: to debug, and to measure what a process of its own costs.

It cannot die, so it is never lost, and takes the whole process along when native code crashes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from cuzk.engine.catalogue import Catalogue, Device, PartProof, WholeProof
from cuzk.engine.limits import resident_bytes
from cuzk.engine.request import Request
from cuzk.engine.worker import Health, Loaded
from cuzk.engine.workshop import Workshop
from cuzk.errors import WorkerLost

T = TypeVar("T")


class InProcessWorker:
    """A :class:`cuzk.engine.worker.Worker`. ``threads`` and ``lanes`` are for Catalogue.open."""

    def __init__(
        self,
        name: str,
        device: str,
        catalogue: Catalogue,
        *,
        threads: int | None = None,
        lanes: int | None = None,
    ) -> None:
        self.name = name
        self.device = device
        self.on_lost: Callable[[str], None] = _nobody
        self._shop = Workshop(catalogue, device, threads=threads, lanes=lanes)
        self._facts = Device("")
        self._alive = False

    async def start(self) -> None:
        """DeviceUnavailable where the device cannot be used."""
        self._facts = await asyncio.to_thread(self._shop.device)
        self._alive = True

    async def load(self, circuit: str) -> Loaded:
        """Open a circuit; again: the same answer."""
        return await self._done(lambda: self._shop.load(circuit))

    async def unload(self, circuit: str) -> None:
        """Close it, when its partitions in work have ended."""
        if self._alive:
            await self._done(lambda: self._shop.unload(circuit))

    async def check(self, request: Request, circuit: str = "") -> None:
        """Catalogue.check."""
        await self._done(lambda: self._shop.check(request, circuit))

    async def prepare(self, circuit: str, request: Request) -> int:
        """Read a request; the bytes that this holds until ``forget``."""
        return await self._done(lambda: self._shop.prepare(circuit, request))

    async def stage(self, circuit: str, job: str, partition: int) -> int:
        """A partition's host part; the bytes that this holds. EngineError where the job was not prepared."""
        return await self._done(lambda: self._shop.stage(circuit, job, partition))

    async def unstage(self, job: str, partition: int) -> None:
        """Let go of a staged partition."""
        if self._alive:
            await self._done(lambda: self._shop.unstage(job, partition))

    async def prove(self, circuit: str, job: str, partition: int) -> PartProof:
        """One partition; EngineError where the job was not prepared."""
        return await self._done(lambda: self._shop.prove(circuit, job, partition))

    async def finish(self, circuit: str, job: str, parts: list[PartProof]) -> WholeProof:
        """The whole proof; EngineError where the job was not prepared."""
        return await self._done(lambda: self._shop.finish(circuit, job, parts))

    async def forget(self, job: str) -> None:
        """Let go of what was prepared."""
        if self._alive:
            await self._done(lambda: self._shop.forget(job))

    def health(self) -> Health:
        """Of this process, the device as it was at the start."""
        if not self._alive:
            return Health(False, 0, 0, self._facts.title, dict(self._facts.total), fault="closed")
        resident = resident_bytes()
        return Health(
            True, os.getpid(), resident, self._facts.title,
            dict(self._facts.total), dict(self._facts.free),
            overhead={name: dict(taken) for name, taken in self._facts.overhead.items()},
        )  # fmt: skip

    async def close(self) -> None:
        """Waits for what is in work: threads cannot be ended. What has not begun gets WorkerLost."""
        self._alive = False
        await asyncio.to_thread(self._shop.close)

    async def _done(self, begin: Callable[[], Future[T]]) -> T:
        if not self._alive:
            raise WorkerLost(f"worker {self.name} does not run: it was not started, or closed")
        answer = asyncio.wrap_future(begin())
        try:
            return await asyncio.shield(answer)  # work that is abandoned runs to its end
        except asyncio.CancelledError:
            if answer.cancelled():
                raise WorkerLost(f"worker {self.name} was closed") from None
            raise


def _nobody(name: str) -> None:
    """Nothing is lost here."""
