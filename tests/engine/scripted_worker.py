"""A worker that does what a script says, takes as long, and fails when told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from hashlib import sha256

from scripted_catalogue import GIB, ScriptedCatalogue, gib
from virtual_time import EPOCH

from cuzk.engine.catalogue import (
    PartProof,
    WholeProof,
)
from cuzk.engine.request import Request
from cuzk.engine.worker import Health, Loaded
from cuzk.errors import CuzkError, WorkerLost


def expected_part(request: Request, number: int) -> bytes:
    """What a worker's partition must be, of this request's own bytes."""
    return sha256(b"".join(bytes(p.view()) for p in request.payload) + bytes([number])).digest()


def expected_proof(request: Request, partitions: int) -> bytes:
    return b"".join(expected_part(request, number) for number in range(partitions))


class ScriptedWorker:
    """A worker that sleeps for as long as the script says. ``events`` are (time, word, circuit or job, partition).

    ``wrong`` collects what an engine must never ask for. ``fail[word, name]``: what the next such calls raise, by
    circuit for load, by job for the others; "die" in it kills the worker.
    """

    def __init__(self, name: str, catalogue: ScriptedCatalogue, total: dict[str, int] | None = None) -> None:  # fmt: skip
        self.name = self.device = name
        self.catalogue = catalogue
        self.total = gib(total or {})
        self.overhead: dict[str, dict[str, int]] = {}
        self.on_lost: Callable[[str], None] = print
        self.events: list[tuple[float, str, str, int]] = []
        self.wrong: list[str] = []
        self.fail: dict[tuple[str, str], list[Exception | str]] = {}
        self.loaded: set[str] = set()
        self.requests: dict[str, Request] = {}
        self.staged: set[tuple[str, int]] = set()
        self.proofs: Counter[tuple[str, int]] = Counter()
        self.revival = 1.0
        self.told_first = False
        """Of a death the engine hears before the calls do, as with a process."""
        self.start_error: CuzkError | None = None
        self._alive = False
        self._restarts = self._deaths = 0
        self._last_words = ""
        self._fault = ""
        self._in_work: dict[asyncio.Future[None], tuple[str, str, str]] = {}

    async def start(self) -> None:
        if self.start_error:
            raise self.start_error
        self._alive = True

    def health(self) -> Health:
        return Health(
            self._alive, 4711, 12, f"scripted {self.name}", self.total, self.total, self._restarts, self._fault,
            self.overhead if self._alive else {},
        )  # fmt: skip

    def die(self, reason: str = "killed by signal 7 (SIGBUS)") -> None:
        """As a process does: everything in it is gone, all calls fail, it comes back."""
        self._alive = False
        self._deaths += 1
        self._last_words = self._fault = f"worker {self.name}: {reason}"
        self.loaded.clear()
        self.requests.clear()
        self.staged.clear()
        loop = asyncio.get_running_loop()
        loop.call_later(self.revival, self._revive)
        if self.told_first:
            self.on_lost(self.name)
        for future in self._in_work:
            if not future.done():
                future.set_exception(WorkerLost(self._fault))
        if not self.told_first:
            self.on_lost(self.name)

    def _revive(self) -> None:
        self._alive = True
        self._restarts += 1
        self._fault = ""

    async def _work(
        self, word: str, name: str, circuit: str, seconds: float, number: int = -1
    ) -> None:
        self.events.append((asyncio.get_running_loop().time(), word, name, number))
        if not self._alive:
            raise WorkerLost(f"worker {self.name} does not run: {self._fault}")
        life = self._deaths
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_work[future] = (word, name, circuit)
        timer = asyncio.get_running_loop().call_later(seconds, _done, future)
        try:
            await future
        finally:
            timer.cancel()
            del self._in_work[future]
        if life != self._deaths:  # at this very moment
            raise WorkerLost(self._last_words)
        script = self.fail.get((word, name), [])
        if script:
            error = script.pop(0)
            if isinstance(error, Exception):
                raise error
            if error == "die":
                self.die()
                raise WorkerLost(self._fault)

    async def _back(self) -> None:
        """As a process that is started again: what needs nothing there waits for it a while."""
        for _ in range(100):
            if not self._alive:
                await asyncio.sleep(0.1)

    def _expect(self, truth: bool, what: str) -> None:
        if not truth and self._alive:  # what it never hears is nothing wrong
            self.wrong.append(what)

    async def load(self, circuit: str) -> Loaded:
        self._expect(circuit not in self.loaded, f"{circuit} loaded twice")
        spec = self.catalogue.circuits[circuit]
        await self._back()
        await self._work("load", circuit, circuit, spec.load)
        self.loaded.add(circuit)
        return Loaded(spec.needs(), "hot", spec.slots, spec.load * 1000)

    async def unload(self, circuit: str) -> None:
        self._expect(not any(about == circuit for _, _, about in self._in_work.values()), f"{circuit} closed in use")  # fmt: skip
        held = [
            name
            for name, request in self.requests.items()
            if request.fields["circuit_id"] == circuit
        ]
        self._expect(not held, f"{circuit} closed with {held} prepared")
        self.loaded.discard(circuit)
        await self._work("unload", circuit, circuit, 0.1)

    async def check(self, request: Request, circuit: str = "") -> None:  # noqa: ARG002
        await self._back()
        await self._work("check", request.id, "", 0.001)
        self.catalogue.check(request)

    async def prepare(self, circuit: str, request: Request) -> int:
        self._expect(circuit in self.loaded, f"{request.id} prepared without its key")
        self._expect(request.id not in self.requests, f"{request.id} prepared twice")
        await self._work("prepare", request.id, circuit, self.catalogue.circuits[circuit].prepare)
        self.requests[request.id] = request
        return 2 * request.nbytes

    async def stage(self, circuit: str, job: str, partition: int) -> int:
        spec = self.catalogue.circuits[circuit]
        self._expect(spec.ahead > 0, f"{job} staged, and its circuit stages nothing")
        self._expect(job in self.requests, f"{job} staged without being prepared")
        self._expect((job, partition) not in self.staged, f"{job} {partition} staged twice")
        await self._work("stage", job, circuit, spec.stage, partition)
        self.staged.add((job, partition))
        return spec.ahead * GIB

    async def unstage(self, job: str, partition: int) -> None:
        self._expect((job, partition) in self.staged, f"{job} {partition} let go of, not staged")
        self.events.append((asyncio.get_running_loop().time(), "unstage", job, partition))
        self.staged.discard((job, partition))

    async def prove(self, circuit: str, job: str, partition: int) -> PartProof:
        request = self.requests.get(job)
        self._expect(request is not None, f"{job} proved without being prepared")
        running = sum(word == "prove" for word, _, _ in self._in_work.values())
        spec = self.catalogue.circuits[circuit]
        self._expect(running < spec.slots, f"{running + 1} partitions at a time")
        began = asyncio.get_running_loop().time()
        saved = spec.stage if (job, partition) in self.staged else 0.0
        self.staged.discard((job, partition))
        await self._work("prove", job, circuit, spec.prove - saved, partition)
        assert request is not None
        self.proofs[job, partition] += 1
        span = ("device", "msm", EPOCH + began, EPOCH + began + spec.prove)
        return PartProof(
            expected_part(request, partition), {"msm": spec.prove * 1000}, self.name, (span,)
        )

    async def finish(self, circuit: str, job: str, parts: list[PartProof]) -> WholeProof:
        self._expect(job in self.requests, f"{job} finished without being prepared")
        await self._work("finish", job, circuit, self.catalogue.circuits[circuit].finish)
        return WholeProof(b"".join(part.proof for part in parts), b"[]")

    async def forget(self, job: str) -> None:
        self._expect(
            not any(about == job for _, about, _ in self._in_work.values()),
            f"{job} forgotten in use",
        )
        self.requests.pop(job, None)
        self.staged = {one for one in self.staged if one[0] != job}

    async def close(self) -> None:
        for future in self._in_work:
            if not future.done():
                future.set_exception(WorkerLost(f"worker {self.name} was closed"))

    def words(self, *words: str) -> list[tuple[str, str]]:
        """(word, name) of what was asked for, in order."""
        return [(word, name) for _, word, name, _ in self.events if word in words]

    def when(self, word: str, name: str) -> float:
        """The first time that it was asked for."""
        return next(time for time, kind, about, _ in self.events if (kind, about) == (word, name))


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
