"""An engine for tests: workers that do what a script says, and a clock that jumps to whatever happens next.

Hours pass in milliseconds. The journal is the real one, on the disk; the clock stands still while it writes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from cuzk.engine.catalogue import (
    CircuitEntry,
    Device,
    Needs,
    OpenCircuit,
    PartProof,
    Route,
    WholeProof,
)
from cuzk.engine.engine import Engine
from cuzk.engine.job import Job, Outcome
from cuzk.engine.journal import Journal
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Payload, Priority, Request
from cuzk.engine.snapshot import JobView, Snapshot
from cuzk.engine.worker import Health, Loaded
from cuzk.errors import CuzkError, FormatError, NotReady, WorkerLost

T = TypeVar("T")
EPOCH = 1_800_000_000.0
GIB = 1 << 30


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


@dataclass
class Circuit:
    """What the script says of a circuit. Times in seconds, sizes in GiB of memory."""

    partitions: int = 1
    load: float = 10.0
    prepare: float = 1.0
    prove: float = 10.0
    finish: float = 1.0
    key: dict[str, int] = field(default_factory=lambda: {"host": 4})
    partition: dict[str, int] = field(default_factory=lambda: {"host": 1})
    estimate: int = 0
    """GiB of host that the key's estimate is above its real size."""
    slots: int = 1
    fault: str = ""
    preload: bool = False


def gib(sizes: dict[str, int]) -> dict[str, int]:
    return {name: size * GIB for name, size in sizes.items()}


class ScriptedCatalogue:
    """Circuits by id; a request names its own by the field circuit_id."""

    def __init__(self, circuits: dict[str, Circuit]) -> None:
        self.circuits = circuits
        self.gone = False

    def entries(self) -> list[CircuitEntry]:
        return [
            CircuitEntry(name, "circuit", f"{name}.zkey", 7, self.fault(name), spec.preload, (f"{name}-alias",))
            for name, spec in self.circuits.items()
        ]  # fmt: skip

    def fault(self, name: str) -> str:
        return f"{name}.zkey: no such file" if self.gone else self.circuits[name].fault

    def named(self, name: str) -> str:
        circuit = name.removesuffix("-alias")
        if circuit not in self.circuits:
            raise NotReady(f"{name}: unknown, known are {', '.join(self.circuits)}")
        return circuit

    def route(self, request: Request) -> Route:
        name = request.fields.get("circuit_id")
        if not isinstance(name, str) or not name:
            raise FormatError("request: circuit_id: expected a circuit's id, found none")
        if (fault := self.fault(self.named(name))) != "":
            raise NotReady(f"{name}: {fault}")
        return Route(name, self.circuits[name].partitions)

    def needs(self, circuit: str, device: str) -> Needs:  # noqa: ARG002
        spec = self.circuits[circuit]
        if (fault := self.fault(circuit)) != "":
            raise NotReady(f"{circuit}: {fault}")
        key = gib(spec.key)
        key["host"] = key.get("host", 0) + spec.estimate * GIB
        return Needs(key, gib(spec.partition))

    def check(self, request: Request) -> None:
        if bytes(request.payload[0].view()).startswith(b"bad"):
            raise FormatError("x.wtns: not a witness file")

    def device(self, device: str) -> Device:
        raise NotImplementedError

    def open(
        self, circuit: str, device: str, threads: int | None, lanes: int | None
    ) -> OpenCircuit:
        raise NotImplementedError


def expected_part(request: Request, number: int) -> bytes:
    """What a worker's partition must be, of this request's own bytes."""
    return sha256(b"".join(bytes(p.view()) for p in request.payload) + bytes([number])).digest()


def expected_proof(request: Request, partitions: int) -> bytes:
    return b"".join(expected_part(request, number) for number in range(partitions))


Fail = Callable[[], Exception | None]


class ScriptedWorker:
    """A worker that sleeps for as long as the script says. ``events`` are (time, word, circuit or job, partition).

    ``wrong`` collects what an engine must never ask for. ``fail[word, name]``: what the next such calls raise, by
    circuit for load, by job for the others; "die" in it kills the worker.
    """

    def __init__(self, name: str, catalogue: ScriptedCatalogue, total: dict[str, int] | None = None) -> None:  # fmt: skip
        self.name = self.device = name
        self.catalogue = catalogue
        self.total = gib(total or {})
        self.on_lost: Callable[[str], None] = print
        self.events: list[tuple[float, str, str, int]] = []
        self.wrong: list[str] = []
        self.fail: dict[tuple[str, str], list[Exception | str]] = {}
        self.loaded: set[str] = set()
        self.requests: dict[str, Request] = {}
        self.proofs: Counter[tuple[str, int]] = Counter()
        self.revival = 1.0
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
            self._alive, 4711, 12, f"scripted {self.name}", self.total, self.total, self._restarts, self._fault
        )  # fmt: skip

    def die(self, reason: str = "killed by signal 7 (SIGBUS)") -> None:
        """As a process does: everything in it is gone, all calls fail, it comes back."""
        self._alive = False
        self._deaths += 1
        self._last_words = self._fault = f"worker {self.name}: {reason}"
        self.loaded.clear()
        self.requests.clear()
        for future in self._in_work:
            if not future.done():
                future.set_exception(WorkerLost(self._fault))
        loop = asyncio.get_running_loop()
        loop.call_later(self.revival, self._revive)
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
        if not truth:
            self.wrong.append(what)

    async def load(self, circuit: str) -> Loaded:
        self._expect(circuit not in self.loaded, f"{circuit} loaded twice")
        spec = self.catalogue.circuits[circuit]
        await self._back()
        await self._work("load", circuit, circuit, spec.load)
        self.loaded.add(circuit)
        return Loaded(
            Needs(gib(spec.key), gib(spec.partition)), "hot", spec.slots, spec.load * 1000
        )

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

    async def check(self, request: Request) -> None:
        await self._back()
        await self._work("check", request.id, "", 0.001)
        self.catalogue.check(request)

    async def prepare(self, circuit: str, request: Request) -> int:
        self._expect(circuit in self.loaded, f"{request.id} prepared without its key")
        self._expect(request.id not in self.requests, f"{request.id} prepared twice")
        await self._work("prepare", request.id, circuit, self.catalogue.circuits[circuit].prepare)
        self.requests[request.id] = request
        return 2 * request.nbytes

    async def prove(self, circuit: str, job: str, partition: int) -> PartProof:
        request = self.requests.get(job)
        self._expect(request is not None, f"{job} proved without being prepared")
        running = sum(word == "prove" for word, _, _ in self._in_work.values())
        spec = self.catalogue.circuits[circuit]
        self._expect(running < spec.slots, f"{running + 1} partitions at a time")
        began = asyncio.get_running_loop().time()
        await self._work("prove", job, circuit, spec.prove, partition)
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


class World:
    """An engine, its workers and its journal."""

    def __init__(
        self, folder: Path, circuits: dict[str, Circuit], policy: EnginePolicy,
        workers: dict[str, dict[str, int]],
    ) -> None:  # fmt: skip
        self.catalogue = ScriptedCatalogue(circuits)
        self.workers = [ScriptedWorker(name, self.catalogue, total) for name, total in workers.items()]  # fmt: skip
        self.worker = self.workers[0]
        self.journal = StillJournal(folder, clock=self.clock)
        self.engine = Engine(self.catalogue, self.workers, self.journal, policy, clock=self.clock)

    def clock(self) -> float:
        return _now()

    def request(
        self, name: str, circuit: str = "small", priority: Priority = Priority.NORMAL, *,
        data: bytes | None = None, deadline: float | None = None, named: bool = True,
    ) -> Request:  # fmt: skip
        return Request(
            id=name,
            kind="circuit",
            priority=priority,
            fields={"circuit_id": circuit},
            payload=(Payload.of(name.encode() if data is None else data),),
            deadline=deadline,
            client="127.0.0.1",
            named=named,
        )

    async def proof(self, name: str) -> bytes:
        """Of a job that is done."""
        view, outcome = await self.engine.result(name)
        assert outcome is not None
        assert view.state == "done", outcome.message
        return outcome.proof

    def job(self, name: str) -> JobView:
        """As the snapshot has it now."""
        return next(view for view in self.engine.snapshot(ended=1000).jobs if view.id == name)

    async def quiet(self) -> Snapshot:
        """When nothing is left that a worker does: what is there then must be nothing but keys."""
        for _ in range(1000):
            await asyncio.sleep(50)
            if not self.engine.snapshot(ended=0).jobs:
                break
        await asyncio.sleep(50)
        snapshot = self.engine.snapshot(ended=1000)
        for worker in self.workers:
            assert worker.wrong == [], worker.wrong
        for memory in snapshot.memories:
            assert all(owner.startswith("key ") for owner in memory.owners), memory
            assert memory.reserved == sum(memory.owners.values())
        assert sum(queue.pending + queue.in_progress for queue in snapshot.queues) == 0
        for total in snapshot.totals:
            assert total.done + total.failed + total.cancelled == total.submitted
        assert all(not worker.partitions and not worker.job for worker in snapshot.workers)
        return snapshot


def _now() -> float:
    try:
        return EPOCH + asyncio.get_running_loop().time()
    except RuntimeError:
        return EPOCH


HOST = {"host": 16 * GIB}


def play(
    folder: Path,
    scenario: Callable[[World], Coroutine[Any, Any, T]],
    circuits: dict[str, Circuit] | None = None,
    policy: EnginePolicy | None = None,
    workers: dict[str, dict[str, int]] | None = None,
    prepare: Callable[[World], None] = lambda _: None,
) -> T:
    """Run a scenario from an engine's start to its stop; the next one of the same folder goes on with its journal."""

    async def whole(state: Path) -> T:
        world = World(
            state,
            circuits or {"small": Circuit()},
            policy or EnginePolicy(limits=HOST),
            workers or {"cpu": {}},
        )
        try:
            prepare(world)
            await world.engine.start()
            return await scenario(world)
        finally:
            await world.engine.stop()
            world.journal.close()

    memory = Path("/dev/shm")  # a disk takes 0.3 s a test to be sure of what it wrote
    with (
        TemporaryDirectory(dir=memory if memory.is_dir() else None) as state,
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
    ):
        kept = folder / "state"
        if kept.exists():
            copytree(kept, state, dirs_exist_ok=True)
        try:
            return runner.run(whole(Path(state)))
        finally:
            copytree(state, kept, dirs_exist_ok=True)


async def raised(error: type[CuzkError], work: Awaitable[object]) -> str:
    """The text of the error that it must raise."""
    try:
        await work
    except error as found:
        return str(found)
    raise AssertionError(f"no {error.__name__}")
