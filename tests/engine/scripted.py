"""An engine for tests: scripted workers and circuits, the real journal, and a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from scripted_catalogue import GIB, Circuit, ScriptedCatalogue
from scripted_worker import ScriptedWorker
from virtual_time import StillJournal, VirtualLoop, now

from cuzk.engine.engine import Engine
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Payload, Priority, Request
from cuzk.engine.snapshot import JobView, Snapshot
from cuzk.errors import CuzkError

T = TypeVar("T")


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
        return now()

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
            assert not worker.requests
            assert not worker.staged
        for memory in snapshot.memories:
            assert all(owner.startswith("key ") for owner in memory.owners), memory
            assert memory.reserved == sum(memory.owners.values())
        assert sum(queue.pending + queue.in_progress for queue in snapshot.queues) == 0
        for total in snapshot.totals:
            assert total.done + total.failed + total.cancelled == total.submitted
        assert all(not worker.partitions and not worker.job for worker in snapshot.workers)
        assert not self.engine._state.jobs.leaving
        return snapshot


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
