"""Carrying out what the scheduler decided, one action at a time, and what follows from each.

An action whose memory is not there yet (a key is still being closed) is dropped: when it is there, it is planned again.
What an action changes is changed before anything is awaited, so that the next plan sees it. ``life`` is the station's when it
was begun: its worker may be lost before the task first runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cuzk.engine.catalogue import PartProof
from cuzk.engine.endings import Endings
from cuzk.engine.job import Outcome
from cuzk.engine.job import State as At
from cuzk.engine.jobs import Live
from cuzk.engine.residency import Residency
from cuzk.engine.snapshot import SpanView
from cuzk.engine.staging import Stagings
from cuzk.engine.state import LOG, State, quoted, reason
from cuzk.engine.stations import Station
from cuzk.engine.view import Action, Evict, Forget, Load, Prepare, Stage, Start, Unstage
from cuzk.errors import CuzkError, OutOfMemory, WorkerLost

T = TypeVar("T")


class Actions:
    """The hands of the engine."""

    def __init__(self, state: State, endings: Endings, residency: Residency) -> None:
        self.state = state
        self.endings = endings
        self.residency = residency
        self.stagings = Stagings(state, endings, self._failed)

    def carry_out(self, action: Action) -> None:
        """Begin it."""
        station = self.state.stations[action.worker]
        if isinstance(action, Evict):
            self.residency.close(station, station.keys[action.circuit])
        elif isinstance(action, Load):
            critical = self.state.jobs.live[action.job].critical
            self.residency.load(station, action.circuit, critical=critical)
        elif isinstance(action, Forget):
            self.endings.forget(self.state.jobs.live[action.job])
        elif isinstance(action, Prepare):
            self._begin_prepare(station, self.state.jobs.live[action.job])
        elif isinstance(action, Stage):
            self.stagings.begin(station, self.state.jobs.live[action.job], action.partition)
        elif isinstance(action, Unstage):
            self.stagings.drop(station, self.state.jobs.live[action.job], action.partition)
        else:
            self._begin_partition(station, self.state.jobs.live[action.job], action)

    def _begin_prepare(self, station: Station, live: Live) -> None:
        job = live.job
        if not self.state.reserve(live.owner, {"host": job.request.nbytes}, critical=live.critical):
            return
        self.state.jobs.begin(live)
        live.preparing = station.name
        station.preparing[job.id] = live
        station.keys[job.circuit].used = self.state.clock()
        job.started = job.started or self.state.clock()
        job.become(At.PREPARING)
        LOG.info("started %s on %s", quoted(job.id), station.name)
        self.state.begin(self._prepare(station, live, station.life))

    async def _prepare(self, station: Station, live: Live, life: int) -> None:
        state, job = self.state, live.job
        began = state.clock()
        try:
            nbytes = await self._tried(
                station, live, lambda: station.worker.prepare(job.circuit, job.request)
            )
        except Exception as error:
            self._prepared(station, live)
            state.release(live.owner)
            self._failed(station, live, life, error)
            return
        self._prepared(station, live)
        if station.life != life:
            state.release(live.owner)
            self._gone(live)
            return
        live.prepare_seconds = state.clock() - began
        job.prepared_on = station.name
        station.prepared[job.id] = live
        state.hold(live.owner, {"host": nbytes})
        state.history.span(SpanView(station.name, "read", job.id, began, state.clock(), job.id))
        self.endings.settle(live)
        state.wake()

    def _prepared(self, station: Station, live: Live) -> None:
        live.preparing = ""
        del station.preparing[live.job.id]

    def _begin_partition(self, station: Station, live: Live, action: Start) -> None:
        job, number = live.job, action.partition
        if job.state is At.PREPARING:
            job.become(At.PROVING)
        if number in live.proved:
            self._begin_finish(station, live)
            return
        if not self.stagings.reserve(station, live, number):
            return
        held = station.keys[job.circuit]
        part, now = job.partitions[number], self.state.clock()
        if not live.first_partition:
            live.first_partition = now
            self.state.history.began(job, now)
        part.worker, part.started, held.used = station.name, now, now
        live.running[number] = station.name
        station.partitions[job.id, number] = live
        self.state.begin(self._prove(station, live, number, station.life))

    async def _prove(self, station: Station, live: Live, number: int, life: int) -> None:
        state, job = self.state, live.job
        try:
            proof = await self._tried(
                station, live, lambda: station.worker.prove(job.circuit, job.id, number)
            )
        except Exception as error:
            self._out_of_work(station, live, number)
            job.partitions[number].started = 0.0
            self._failed(station, live, life, error)
            return
        self._out_of_work(station, live, number)
        self._proved(station, live, number, proof)
        if live.ending is not None:
            self.endings.settle(live)
            return
        if station.life != life:
            live.requeue()  # proved, and the worker died of something else
        last = len(live.proved) == len(job.partitions)
        if last:
            live.finishing = True  # nothing else begins while the journal writes
        try:
            await state.journal.part(job.id, number, proof)
        except Exception as error:  # it is proved again after a restart, at worst
            LOG.error(
                "job %s partition %d is not in the journal: %s", quoted(job.id), number, error
            )
        if last:
            await self._finish(station, live, life)

    def _out_of_work(self, station: Station, live: Live, number: int) -> None:
        """The next partition starts in this round of the event loop."""
        del live.running[number]
        del station.partitions[live.job.id, number]
        if (held := station.keys.get(live.job.circuit)) is not None:
            held.used = self.state.clock()
        self.state.release(live.partition_owner(number))
        self.state.wake()

    def _proved(self, station: Station, live: Live, number: int, proof: PartProof) -> None:
        job, part = live.job, live.job.partitions[number]
        part.ended = self.state.clock()
        part.proof, part.public, part.milliseconds = proof.proof, proof.public, proof.milliseconds
        live.proved[number] = proof
        self.state.history.partition(station.name, job.id, proof)
        LOG.info("proved partition %d of %s on %s in %.3f s: %d of %d", number, quoted(job.id), station.name, part.ended - part.started, len(live.proved), len(job.partitions))  # fmt: skip

    def _begin_finish(self, station: Station, live: Live) -> None:
        live.finishing = True
        self.state.begin(self._finish(station, live, station.life))

    async def _finish(self, station: Station, live: Live, life: int) -> None:
        """All partitions are proved, and ``finishing`` is set."""
        state, job = self.state, live.job
        began = state.clock()
        parts = [live.proved[part.number] for part in job.partitions]
        try:
            if live.ending is None and station.life == life:
                job.become(At.VERIFYING)
                whole = await self._tried(
                    station, live, lambda: station.worker.finish(job.circuit, job.id, parts)
                )
        except Exception as error:
            live.finishing = False
            self._failed(station, live, life, error)
            return
        live.finishing = False
        if live.ending is not None:
            self.endings.settle(live)
            return
        if job.state is not At.VERIFYING:
            self._gone(live)
            return
        live.finish_seconds = state.clock() - began
        state.history.span(SpanView(station.name, "finish", job.id, began, state.clock(), job.id))
        await self.endings.done(live, Outcome(At.DONE, whole.proof, whole.public))

    async def _tried(self, station: Station, live: Live, work: Callable[[], Awaitable[T]]) -> T:
        """Once more, once a job, where memory ran out: with the idle keys of the worker gone."""
        try:
            return await work()
        except OutOfMemory as error:
            if live.memory_tried or live.ending is not None:
                raise
            live.memory_tried = True
            LOG.warning("job %s: %s; once more without idle keys", quoted(live.job.id), reason(error))  # fmt: skip
        closing = self.residency.close_idle(station)
        if closing:
            await asyncio.wait(closing)
        return await work()

    def _gone(self, live: Live) -> None:
        """Its worker died when it had answered: what is prepared is gone, and this job was not to blame."""
        live.requeue()
        self.endings.settle(live)
        self.state.wake()

    def _failed(self, station: Station, live: Live, life: int, error: Exception) -> None:
        """What a job's work failed with: a lost worker requeues it, all else ends it."""
        if isinstance(error, WorkerLost):
            if station.life == life:
                self.residency.lost(station)
            self._lost(live, (station.name, life), error)
        elif live.ending is None:
            self.endings.fail(live, error)
        self.endings.settle(live)
        self.state.wake()

    def _lost(self, live: Live, life: tuple[str, int], error: WorkerLost) -> None:
        if live.ending is not None:
            return
        live.requeue()
        if life in live.losses:
            return  # another of its partitions has told
        live.losses.add(life)
        live.job.losses += 1
        if live.job.losses >= self.state.policy.losses:
            text = (
                f"the worker died {live.job.losses} times while it worked on this request: {error}"
                f"{self.state.suspect(live.job.circuit, error)}"
            )
            self.endings.fail(live, WorkerLost(text))
            return
        LOG.warning("requeued %s: %s", quoted(live.job.id), reason(error))
        self.state.begin(self._mark(live))

    async def _mark(self, live: Live) -> None:
        try:
            await self.state.journal.mark(live.job)
        except CuzkError as error:
            LOG.warning("job %s: its loss is not in the journal: %s", quoted(live.job.id), error)
