"""A worker in a process of its own: a crash of native code costs what was in work there, and nothing else.

    ProcessWorker --pickles over a socketpair--> child.py: Workshop --> Catalogue, OpenCircuit

A process that died is started again after 0.1 s, then 0.2 s and so on to 30 s; one that lived for a minute counts as
well. What it had loaded and prepared is gone: until it is back, calls that need no such thing (check, load) wait for
it a while, those that do fail at once.

A call takes 0.13 ms there and back, with a request of 131 KB or a proof of 10 KB 0.2 ms; a thousand at once, 131 KB
each, 0.36 s; a start 75 ms and what the device needs (2 cores, idle, medians).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from cuzk.engine.catalogue import Catalogue, Device, PartProof, WholeProof
from cuzk.engine.channel import MESSAGE_LIMIT
from cuzk.engine.heartbeat import watch, within
from cuzk.engine.kept import Kept
from cuzk.engine.link import Link
from cuzk.engine.request import Request
from cuzk.engine.worker import Health, Loaded
from cuzk.errors import CuzkError, EngineError, WorkerLost

LOG = logging.getLogger("cuzk.worker")
START_SECONDS = 120.0  # a driver with eight devices takes ten
SILENCE_SECONDS = 300.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
WELL_SECONDS = 60.0


class ProcessWorker:
    """A :class:`cuzk.engine.worker.Worker`. ``threads`` and ``lanes`` are for Catalogue.open.

    ``patience``: seconds that check and load wait for a process that is started again. ``silence``: seconds after which
    one that does not answer a heartbeat is killed. ``message_limit``: bytes of one message, either way.
    """

    def __init__(
        self,
        name: str,
        device: str,
        catalogue: Catalogue,
        *,
        threads: int | None = None,
        lanes: int | None = None,
        patience: float = 10.0,
        silence: float = SILENCE_SECONDS,
        message_limit: int = MESSAGE_LIMIT,
    ) -> None:
        self.name = name
        self.device = device
        self.on_lost: Callable[[str], None] = _nobody
        self._catalogue = catalogue
        self._threads = threads
        self._lanes = lanes
        self._patience = patience
        self._silence = silence
        self._limit = message_limit
        self._link: Link | None = None
        self._kept: Kept | None = None
        self._born = 0.0
        self._changed = asyncio.Event()
        self._revival: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._pause = FIRST_PAUSE
        self._restarts = 0
        self._fault = "not started"
        self._facts = Device("")
        self._closed = False

    async def start(self) -> None:
        """DeviceUnavailable where the device cannot be used, WorkerLost where the process dies of trying: it is not
        tried again then, except by another start."""
        if self._link is not None or self._revival is not None or self._closed:
            raise EngineError(f"worker {self.name} was started before, or closed")
        try:
            self._began(await self._open())
        except CuzkError as error:
            self._fault = str(error)
            raise

    async def load(self, circuit: str) -> Loaded:
        """Open a circuit; again: the same answer."""
        loaded: Loaded = await (await self._back()).call("load", circuit)
        return loaded

    async def unload(self, circuit: str) -> None:
        """Close it, when its partitions in work have ended."""
        with suppress(WorkerLost):  # what is lost is closed
            await self._alive().call("unload", circuit)

    async def check(self, request: Request, circuit: str = "") -> None:
        """Catalogue.check, there."""
        link = await self._back()
        kept = self._kept
        number = kept.add(request) if kept else 0
        try:
            await link.call("check", request, number, circuit)
        except BaseException:
            if kept and number:
                kept.remove(request.id, number)
            raise

    async def prepare(self, circuit: str, request: Request) -> int:
        """Read a request; the bytes that this holds there until ``forget``."""
        link = self._alive()
        number = self._kept.take(request) if self._kept else 0
        nbytes: int = await link.call("prepare", circuit, number or request)
        return nbytes

    async def stage(self, circuit: str, job: str, partition: int) -> int:
        """A partition's host part; the bytes that this holds there. EngineError where the job was not prepared."""
        nbytes: int = await self._alive().call("stage", circuit, job, partition)
        return nbytes

    async def unstage(self, job: str, partition: int) -> None:
        """Let go of a staged partition."""
        with suppress(WorkerLost):  # what is lost is let go of
            await self._alive().call("unstage", job, partition)

    async def prove(self, circuit: str, job: str, partition: int) -> PartProof:
        """One partition; EngineError where the job was not prepared."""
        proof: PartProof = await self._alive().call("prove", circuit, job, partition)
        return proof

    async def finish(self, circuit: str, job: str, parts: list[PartProof]) -> WholeProof:
        """The whole proof; EngineError where the job was not prepared."""
        proof: WholeProof = await self._alive().call("finish", circuit, job, parts)
        return proof

    async def forget(self, job: str) -> None:
        """Let go of what was prepared."""
        with suppress(WorkerLost):  # what is lost is forgotten
            link = self._alive()
            if self._kept:
                self._kept.remove(job)
            await link.call("forget", job)

    def health(self) -> Health:
        """As of the last answer, or the last second of work. ``fault`` says why it is not alive."""
        link = self._link
        if link is None:
            return Health(
                False, 0, 0, self._facts.title, dict(self._facts.total), {}, self._restarts, self._fault
            )  # fmt: skip
        return Health(
            True, link.process.pid, link.vitals.resident, self._facts.title,
            dict(self._facts.total), dict(link.vitals.free), self._restarts,
            overhead={name: dict(taken) for name, taken in link.vitals.overhead.items()},
        )  # fmt: skip

    async def close(self) -> None:
        """Ask the process to end, kill it after two seconds; calls in work get WorkerLost."""
        self._closed = True
        self._fault = "closed"
        self._changed.set()
        if self._revival is not None:
            self._revival.cancel()
            with suppress(asyncio.CancelledError):
                await self._revival
        if self._link is not None:
            await self._link.close()

    async def _open(self) -> Link:
        link = await Link.spawn(self.name, self._limit, self._died)
        level = LOG.getEffectiveLevel()
        try:
            opening = link.call(
                "open", self.device, self._catalogue, self._threads, self._lanes, level
            )
            self._facts = await within(START_SECONDS, opening)
        except BaseException as error:
            await link.close(0)
            if isinstance(error, TimeoutError):
                text = f"worker {self.name} did not start within {START_SECONDS:.0f} s"
                raise WorkerLost(text) from None
            raise
        if link.ended.is_set():
            raise WorkerLost(link.end)
        return link

    def _began(self, link: Link) -> None:
        self._link = link
        self._kept = Kept(partial(link.tell, "drop"))
        self._born = time.monotonic()
        self._fault = ""
        self._changed.set()
        self._watch = asyncio.get_running_loop().create_task(watch(link, self._silence))
        LOG.info("%s: process %d works on %s", self.name, link.process.pid, self._facts.title)

    def _died(self, link: Link, text: str) -> None:
        if link is not self._link:
            return  # it was about to start: who started it hears
        self._link = self._kept = None
        if self._watch is not None:
            self._watch.cancel()
        if self._closed:
            return
        LOG.error("%s", text)
        self._fault = text
        self._changed.clear()
        if time.monotonic() - self._born >= WELL_SECONDS:
            self._pause = FIRST_PAUSE
        self._revival = asyncio.get_running_loop().create_task(self._revive())
        try:
            self.on_lost(self.name)
        except Exception:
            LOG.exception("%s: nobody could be told that it died", self.name)

    async def _revive(self) -> None:
        link: Link | None = None
        while link is None:
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            try:
                link = await self._open()
            except (CuzkError, OSError) as error:
                self._fault = str(error)
                LOG.error("%s: not started again: %s", self.name, error)
        self._restarts += 1
        self._revival = None
        self._began(link)

    def _alive(self) -> Link:
        if self._link is None:
            raise WorkerLost(f"worker {self.name} does not run: {self._fault}")
        return self._link

    async def _back(self) -> Link:
        if self._link is not None and self._link.ending:
            await self._link.ended.wait()
        if self._link is None and self._revival is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience):
                    await self._changed.wait()
        return self._alive()


def _nobody(name: str) -> None:
    """Until the engine says who is to be told."""
