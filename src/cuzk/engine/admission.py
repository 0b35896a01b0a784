"""From a request to an accepted job, or to the job that it is a repeat of.

    known id: attach, or its stored result, or RequestConflict
    new id:   route -> room -> does it fit -> checked by a worker -> journal -> queued

Of requests that are being checked there is at most one of an id: a repeat waits for the first one's answer, and takes
its place where the first one's client went away. A request that is refused leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cuzk.engine.catalogue import PartProof, Route
from cuzk.engine.endings import Endings
from cuzk.engine.job import Job, Outcome, Partition
from cuzk.engine.job import State as Stage
from cuzk.engine.jobs import Live
from cuzk.engine.placement import impossible
from cuzk.engine.request import Priority, Request
from cuzk.engine.silence import listening
from cuzk.engine.snapshot import JobView
from cuzk.engine.state import LOG, State, quoted
from cuzk.engine.stations import Station
from cuzk.engine.views import job_view
from cuzk.errors import (
    CuzkError,
    InternalError,
    NotReady,
    QueueFull,
    RequestConflict,
    Unavailable,
    WorkerLost,
)

STOPS = "the service stops: submit it again when it is back"
HASHED_HERE = 256 << 10  # bytes: 0.25 ms of the event loop; more is for a thread


@dataclass(eq=False)
class Entering:
    """A request that is being checked. ``done`` has the error that it was refused with, or None."""

    request: Request
    digest: bytes
    done: asyncio.Future[CuzkError | None]
    payload_bytes: int
    abandoned: bool = False
    """Its client went away when it was about to be accepted."""


class Admission:
    """The door. ``arrive`` begins what a new job needs: its deadline's timer."""

    def __init__(self, state: State, endings: Endings, arrive: Callable[[Live], None]) -> None:
        self.state = state
        self.endings = endings
        self.entering: dict[str, Entering] = {}
        self.next_number = 1
        self._arrive = arrive

    async def submit(self, request: Request) -> JobView:
        """See the engine's."""
        large = request.nbytes > HASHED_HERE
        route = self._route(request) if large and not self._known(request.id) else None
        digest = await _digest(request)
        while True:
            view = await self._repeat(request, digest)
            if view is not None:
                return view
            other = self.entering.get(request.id)
            if other is None:
                break
            if other.digest != digest:
                raise conflict(request.id)
            await asyncio.wait([other.done])
            if not other.done.cancelled() and (error := other.done.result()) is not None:
                raise type(error)(*error.args)
        return await self._enter(request, digest, route or self._route(request))

    def _known(self, job_id: str) -> bool:
        return (
            job_id in self.entering
            or job_id in self.state.jobs.live
            or self.endings.stored(job_id) is not None
        )

    def _route(self, request: Request) -> Route:
        if self.state.draining:
            raise Unavailable(STOPS)
        route = self.state.catalogue.route(request)
        self._room(request)
        return route

    async def _repeat(self, request: Request, digest: bytes) -> JobView | None:
        """The job that this is a repeat of; None for a new one, or a new try of one that failed or was cancelled."""
        state = self.state
        while (live := state.jobs.live.get(request.id)) is not None:
            if live.ending is None or live.ending.state is Stage.DONE:
                if live.job.digest != digest:
                    raise conflict(request.id)
                LOG.info("attached to %s", quoted(request.id))
                place = state.jobs.place(live, state.policy.scheduler, state.clock())
                return job_view(live, state, place)
            await asyncio.wait([live.done])
            if live.job.outcome is None:
                raise Unavailable(STOPS)
        stored = self.endings.stored(request.id)
        if stored is None or stored[2].state is not Stage.DONE:
            return None
        if stored[0] != digest:
            raise conflict(request.id)
        LOG.info("repeated %s: its proof was stored", quoted(request.id))
        return stored[1]

    def _room(self, request: Request) -> None:
        """Jobs whose circuit is away take no place from others: it takes no new ones, so there are never more of them than
        were accepted before. Their payloads count: they lie on the disk."""
        critical = request.priority is Priority.CRITICAL
        places, room = self.state.policy.room(critical=critical)
        jobs = self.state.jobs
        waiting = len(jobs.unfinished()) + len(self.entering)
        if waiting >= places:
            raise QueueFull(
                f"{waiting} requests are waiting or in work, the limit is {places}: try again later"
            )
        held = jobs.payload_bytes + sum(each.payload_bytes for each in self.entering.values())
        if held + request.nbytes > room:
            away = len(jobs.live) + len(self.entering) - waiting
            more = f" ({away} of them for a circuit that is NOT READY)" if away else ""
            raise QueueFull(
                f"{waiting + away} requests with {held} bytes are waiting or in work{more}; with {request.nbytes} more "
                f"the limit of {room} bytes is exceeded: try again later"
            )

    async def _enter(self, request: Request, digest: bytes, route: Route) -> JobView:
        self._room(request)
        if self.state.draining:
            raise Unavailable(STOPS)
        entering = Entering(
            request, digest, asyncio.get_running_loop().create_future(), request.nbytes
        )
        self.entering[request.id] = entering
        try:
            self._expect_fitting(request, route.circuit)
            await self._check(request, route.circuit)
            if self.state.draining:
                raise Unavailable(STOPS)
        except BaseException as error:
            self._leave(entering, error)
            raise
        accepting = self.state.begin(self._accept(entering, route))
        try:
            answer = await asyncio.shield(accepting)
        except asyncio.CancelledError:
            if accepting.cancelled():
                raise Unavailable(STOPS) from None
            entering.abandoned = True
            raise
        if isinstance(answer, CuzkError):
            raise answer
        return answer

    def _expect_fitting(self, request: Request, circuit: str) -> None:
        critical, nbytes = request.priority is Priority.CRITICAL, request.nbytes
        error = impossible(self.state, circuit, critical=critical, payload_bytes=nbytes)
        if error is not None:
            self.state.forget_sizes(circuit)
            error = impossible(self.state, circuit, critical=critical, payload_bytes=nbytes)
        if error is not None:
            raise error

    def _leave(self, entering: Entering, error: BaseException | None) -> None:
        """Let those that wait for the same id go on: with the same answer, or, cancelled, with their own try."""
        del self.entering[entering.request.id]
        if error is None or isinstance(error, CuzkError):
            entering.done.set_result(error)
        else:
            entering.done.cancel()

    async def _check(self, request: Request, circuit: str) -> None:
        """By a worker: rather one that knows the circuit; again where it died meanwhile, perhaps of something else."""
        stations = [station for station in self.state.stations.values() if not station.fault]
        stations.sort(key=lambda s: (not s.alive, circuit not in s.keys, len(s.partitions)))
        lost: CuzkError = Unavailable(f"no device works: {self._faults()}")
        away: set[str] = set()
        for station in stations * self.state.policy.losses:
            if station.name in away:
                continue
            before = station.worker.health()
            try:
                checking = station.worker.check(request, circuit)
                await listening(self.state, circuit, checking, partial(_expect_heard, circuit))
            except WorkerLost as error:
                lost = error
                if not before.alive and station.worker.health().restarts == before.restarts:
                    lost = Unavailable(f"no device works: {error}")
                    away.add(station.name)
            except CuzkError:
                raise
            except Exception as error:
                LOG.error("check of %s: this is a bug", quoted(request.id), exc_info=error)
                raise InternalError("a bug in the proving service: its log says where") from None
            else:
                return
        raise lost

    def _faults(self) -> str:
        stations: list[Station] = list(self.state.stations.values())
        return "; ".join(f"{station.name}: {station.fault}" for station in stations) or "none is configured"  # fmt: skip

    async def _accept(self, entering: Entering, route: Route) -> JobView | CuzkError:
        """Not interrupted: what the journal has is a job."""
        state, request = self.state, entering.request
        job = Job(
            request=request,
            number=self.next_number,
            digest=entering.digest,
            circuit=route.circuit,
            partitions=[Partition(number) for number in range(route.partitions)],
            accepted=state.clock(),
        )
        self.next_number += 1
        try:
            await state.journal.accept(job)
        except CuzkError as error:
            self._leave(entering, error)
            return error
        except BaseException as error:
            self._leave(entering, error)
            raise
        live = self.take_up(job)
        LOG.info("accepted %s from %s: %s, %s, %d %s, %d bytes", quoted(job.id), quoted(request.client), quoted(job.circuit), job.priority.name.lower(), route.partitions, "partition" if route.partitions == 1 else "partitions", request.nbytes)  # fmt: skip
        self._leave(entering, None)
        if entering.abandoned and not request.named:
            self.endings.give_up(live, cancelled())
        place = state.jobs.place(live, state.policy.scheduler, job.accepted)
        return job_view(live, state, place)

    def take_up(self, job: Job, proved: dict[int, PartProof] | None = None) -> Live:
        """A job that the journal has is one of the engine's from here on, with what is proved of it."""
        live = Live(
            job, asyncio.get_running_loop().create_future(), proved or {}, job.request.nbytes
        )
        self.state.jobs.add(live)
        self.state.history.submitted(job)
        self._arrive(live)
        self.state.wake()
        return live


def _expect_heard(circuit: str, silence: str) -> None:
    if silence:
        raise NotReady(f"{circuit}: not ready: {silence}")


def conflict(job_id: str) -> RequestConflict:
    """Of an id that another request has."""
    return RequestConflict(
        f"{quoted(job_id)}: another request has this id, with other contents: use a new id for each"
    )


def cancelled(message: str = "cancelled by a client") -> Outcome:
    """Of a job that somebody cancelled."""
    return Outcome(Stage.CANCELLED, code="cancelled", message=message)


async def _digest(request: Request) -> bytes:
    if request.nbytes <= HASHED_HERE:
        return request.digest()
    return await asyncio.to_thread(request.digest)
