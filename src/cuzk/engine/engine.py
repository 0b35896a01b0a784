"""The proving service's state machine: every event leads to one planning step, on one event loop, without locks.

    event (submission, end of an action, cancel, deadline, worker lost)
        --> wake --> step: view --> plan --> actions, each a task --> their ends are events

The parts, in the order in which a job meets them: :mod:`admission` (is it one, is there room), :mod:`placement` (can it
be proved here; the view), :mod:`actions` (prepare, prove, finish), :mod:`residency` (keys), :mod:`away` (its key is not
there), :mod:`endings` (done, failed, cancelled; once, and in the journal first), :mod:`views` (what others see).

Threads: the journal's, and the loop's own for the digest of large requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from cuzk.engine.actions import Actions
from cuzk.engine.admission import STOPS, Admission, cancelled
from cuzk.engine.away import Away
from cuzk.engine.catalogue import Catalogue
from cuzk.engine.endings import Endings
from cuzk.engine.job import Outcome
from cuzk.engine.jobs import Live
from cuzk.engine.journal import Journal
from cuzk.engine.placement import view
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.recovery import recover
from cuzk.engine.request import Priority, Request
from cuzk.engine.residency import Residency
from cuzk.engine.scheduler import plan
from cuzk.engine.snapshot import JobView, Snapshot
from cuzk.engine.state import LOG, State, quoted, reason
from cuzk.engine.stations import Station
from cuzk.engine.views import job_view, snapshot
from cuzk.engine.worker import Worker
from cuzk.errors import CuzkError, DeadlineExceeded, NotReady, Unavailable, UnknownJob

LOOK_AGAIN = 0.2  # seconds: is a worker that died back?
AFTER_A_BUG = 5.0  # seconds until a planning step that failed is made again
DRAINED = 1.0  # seconds between two looks at what a drain waits for: a job of it may come to wait for its key
EXPIRY = 60.0  # seconds between two looks for results that are too old


class Engine:
    """All methods on one event loop. The journal is its caller's to close, after ``stop``."""

    def __init__(
        self,
        catalogue: Catalogue,
        workers: Sequence[Worker],
        journal: Journal,
        policy: EnginePolicy,
        *,
        clock: Callable[[], float] = time.time,
        resident: Callable[[], int] | None = None,
    ) -> None:
        """``resident`` says how many bytes of the host's memory this process takes without jobs; None: it is not counted."""
        self._state = State(catalogue, workers, journal, policy, clock, self._wake)
        self._endings = Endings(self._state)
        self._away = Away(self._state, self._endings)
        self._residency = Residency(self._state, self._endings, self._away)
        self._actions = Actions(self._state, self._endings, self._residency)
        self._admission = Admission(self._state, self._endings, self._arrive)
        self._started = clock()
        self._resident = resident
        self._awake = False
        self._running = False
        self._look: asyncio.TimerHandle | None = None

    # ---- start and end

    async def start(self) -> None:
        """Start the workers (one that cannot has its fault in the snapshot), go on with what the journal has, begin to
        preload. Errors of the journal are raised."""
        state = self._state
        await asyncio.gather(*(self._start(station) for station in state.stations.values()))
        state.know_devices()
        if self._resident is not None:
            state.overhead.daemon(self._resident())
        self._admission.next_number = recover(state, self._admission, self._endings, self._away)
        self._running = True
        for entry in state.catalogue.entries():
            if entry.preload and not entry.fault:
                state.begin(self._preload(entry.id))
        state.begin(self._expire())
        self._wake()

    async def _start(self, station: Station) -> None:
        station.worker.on_lost = self._lost
        try:
            await station.worker.start()
        except CuzkError as error:
            station.fault = str(error)
            LOG.error("worker %s did not start: %s", station.name, reason(error))

    async def _preload(self, circuit: str) -> None:
        try:
            await self._residency.preload(circuit)
        except CuzkError as error:
            LOG.warning("preload of %s: %s", quoted(circuit), reason(error))

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRY)
            await self._endings.expire()

    async def drain(self, seconds: float) -> bool:
        """Take nothing new (Unavailable; a known id still attaches) and finish what is there; whether that was all
        done ``seconds`` later. Jobs whose circuit is away are not waited for: they stay in the journal."""
        state = self._state
        state.draining = True
        until = asyncio.get_running_loop().time() + seconds
        while True:
            waits: list[asyncio.Future[Any]] = [live.done for live in state.jobs.unfinished()]
            waits += [entering.done for entering in self._admission.entering.values()]
            left = until - asyncio.get_running_loop().time()
            if not waits or left <= 0:
                return not waits and not state.jobs.live
            await asyncio.wait(waits, timeout=min(left, DRAINED))

    async def stop(self) -> None:
        """End the workers, whatever they do. What is unfinished stays in the journal; who waits for it gets
        Unavailable."""
        state = self._state
        state.draining = True
        ending = [live.done for live in state.jobs.live.values() if live.ending is not None]
        if ending:
            await asyncio.wait(ending, timeout=5)
        await asyncio.sleep(0)  # what was begun just now reaches the journal
        self._running = False
        if self._look is not None:
            self._look.cancel()
        await state.abandon()
        for live in state.jobs.live.values():
            if live.deadline is not None:
                live.deadline.cancel()
            if not live.done.done():
                live.done.set_result(None)
        stations = state.stations.values()
        await asyncio.gather(*(station.worker.close() for station in stations))

    # ---- jobs

    async def submit(self, request: Request) -> JobView:
        """Accept a request, or attach to the job that it is a repeat of; ``place`` is its rank in the queue.

        FormatError, CircuitError, NotReady, OutOfMemory, QueueFull, RequestConflict, Unavailable: refused, and nothing
        of it is left here. Its payload is the caller's until this returns, and its job's if a job was accepted with it;
        so a spool is discarded by the caller in any case, which leaves what a job has.
        """
        return await self._admission.submit(request)

    async def result(
        self, job_id: str, timeout: float | None = None
    ) -> tuple[JobView, Outcome | None]:
        """Wait for a job's end for ``timeout`` seconds at most: None for its outcome then. UnknownJob."""
        entering = self._admission.entering.get(job_id)
        if entering is not None:
            await asyncio.wait([entering.done], timeout=timeout)
        live = self._state.jobs.live.get(job_id)
        if live is None:
            return self._stored(job_id)
        live.waiters += 1
        try:
            await asyncio.wait([live.done], timeout=timeout)
        finally:
            live.waiters -= 1
        outcome = live.job.outcome
        if outcome is None and live.done.done():
            raise Unavailable(f"{quoted(job_id)}: the service stops; ask again when it is back")
        place = self._state.jobs.place(live, self._state.policy.scheduler, self._state.clock())
        return job_view(live, self._state, place), outcome

    def _stored(self, job_id: str) -> tuple[JobView, Outcome]:
        stored = self._endings.stored(job_id)
        if stored is None:
            hours = self._state.policy.keep / 3600
            raise UnknownJob(
                f"{quoted(job_id)}: no request has this id, or it ended more than {hours:g} h ago: submit it again"
            )
        return stored[1], stored[2]

    def left(self, job_id: str) -> None:
        """A client that waited went away: a job without an id of its own ends with the last of them."""
        live = self._state.jobs.live.get(job_id)
        if live is not None and not live.job.request.named and not live.waiters:
            self._cancel(live)

    async def cancel(self, job_id: str) -> bool:
        """End a job, for everybody at once; whether work on it had begun. False for one that has ended, UnknownJob."""
        live = self._state.jobs.live.get(job_id)
        if live is None:
            self._stored(job_id)
            return False
        begun = bool(live.job.started) and live.ending is None
        self._cancel(live)
        await asyncio.wait([live.done])
        return begun

    def _cancel(self, live: Live) -> None:
        self._endings.give_up(live, cancelled())

    def _arrive(self, live: Live) -> None:
        deadline = live.job.request.deadline
        if deadline is not None:
            left = max(0.0, deadline - self._state.clock())
            loop = asyncio.get_running_loop()
            live.deadline = loop.call_later(left, self._overdue, live)

    def _overdue(self, live: Live) -> None:
        stage = live.job.state.value
        away = self._state.jobs.away.get(live.job.circuit)
        was = f"it was {stage}" + (f": {away}" if away else "")
        self._endings.fail(live, DeadlineExceeded(f"not done by its deadline; {was}"))

    # ---- keys

    async def preload(self, circuit_or_alias: str) -> tuple[bool, float]:
        """Load a key: (whether it was there already, milliseconds). Room is made by closing keys that nobody uses;
        EngineError where that is not enough, NotReady for a circuit that is unknown or has a fault."""
        circuit = self._state.catalogue.named(circuit_or_alias)
        for entry in self._state.catalogue.entries():
            if entry.id == circuit and entry.fault:
                raise NotReady(f"{circuit}: not ready: {entry.fault}")
        if self._state.draining:
            raise Unavailable(STOPS)
        return await self._residency.preload(circuit)

    async def evict(self, circuit_or_alias: str) -> tuple[bool, int]:
        """Close a key: (whether it was loaded, bytes that are free now). EngineError, by whom, where it is in use."""
        return await self._residency.evict(self._state.catalogue.named(circuit_or_alias))

    # ---- what others see

    def snapshot(self, *, ended: int = 50, spans_since: float | None = None) -> Snapshot:
        """This moment, with the last ``ended`` jobs and the spans that ended since then."""
        endings = self._endings
        self._state.take_stock()
        last = list(endings.ended)[-ended:] if ended > 0 else []
        return snapshot(
            self._state, reversed(last), reversed(endings.failed),
            started=self._started, spans_since=spans_since,
        )  # fmt: skip

    # ---- events

    def _wake(self) -> None:
        if self._running and not self._awake:
            self._awake = True
            asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        """Plan, and begin what is planned. What fails here is a bug: logged, tried again later, and the engine goes on."""
        self._awake = False
        if not self._running:
            return
        state = self._state
        try:
            now = state.clock()
            state.take_stock()
            seen = view(state, now)
            self._refuse(
                sorted({(job.circuit, job.priority is Priority.CRITICAL) for job in seen.jobs})
            )
            for action in plan(seen, state.policy.scheduler, now):
                self._actions.carry_out(action)
        except Exception:
            LOG.exception("a planning step failed: this is a bug")
            self._look_again(AFTER_A_BUG)
            return
        if state.jobs.live and not all(station.alive for station in state.stations.values()):
            self._look_again(LOOK_AGAIN)

    def _refuse(self, circuits: list[tuple[str, bool]]) -> None:
        """Jobs that no worker can prove any more: a key's real size is known."""
        for circuit, critical in circuits:
            error = self._away.impossible(circuit, critical=critical)
            if error is not None:
                for live in self._state.jobs.waiting_for(circuit):
                    if live.critical == critical:
                        self._endings.fail(live, error)

    def _look_again(self, seconds: float) -> None:
        if self._look is not None:
            self._look.cancel()
        self._look = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _lost(self, name: str) -> None:
        if self._running:
            self._residency.lost(self._state.stations[name])
