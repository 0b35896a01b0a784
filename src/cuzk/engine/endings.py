"""How jobs end: decided once, in the journal before anybody is told, and everything that they held let go."""

from __future__ import annotations

import asyncio
from collections import deque

from cuzk.engine.job import Job, Outcome
from cuzk.engine.job import State as Stage
from cuzk.engine.jobs import Live
from cuzk.engine.snapshot import JobView
from cuzk.engine.state import LOG, State, quoted, reason
from cuzk.engine.stations import Station
from cuzk.engine.views import job_view
from cuzk.errors import CuzkError, InternalError, WorkerLost

FAILURES = 20  # kept for the list of failures, whatever ended since
Stored = tuple[bytes, JobView, Outcome]


class Endings:
    """Ended jobs, the last ``shown`` of them, are kept here without their proofs: those are the journal's."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.ended: deque[JobView] = deque(maxlen=state.policy.shown)
        self.failed: deque[JobView] = deque(maxlen=FAILURES)
        self.unwritten: dict[str, Stored] = {}
        """Those that the journal could not write: tried again every minute."""
        self._times: deque[float] = deque(maxlen=state.policy.keep_count + 1)

    def fail(self, live: Live, error: Exception) -> None:
        """Of a CuzkError its code and text; anything else is a bug: logged, and its text kept out of the answer."""
        if not isinstance(error, CuzkError):
            LOG.error("job %s: this is a bug", quoted(live.job.id), exc_info=error)
            error = InternalError("a bug in the proving service: its log says where")
        self.give_up(live, Outcome(Stage.FAILED, code=error.code, message=str(error)))

    def give_up(self, live: Live, outcome: Outcome) -> None:
        """End a job without a proof; nothing where its end is decided."""
        if live.ending is None:
            self._decide(live, outcome)
            self.state.begin(self._end(live))

    async def done(self, live: Live, outcome: Outcome) -> None:
        """End a job with its proof; nothing where it was given up meanwhile."""
        if live.ending is None:
            self._decide(live, outcome)
            await self._end(live)

    def _decide(self, live: Live, outcome: Outcome) -> None:
        now = self.state.clock()
        live.ending = Outcome(
            outcome.state, outcome.proof, outcome.public, outcome.code, outcome.message,
            milliseconds=times(live, now),
        )  # fmt: skip
        live.job.ended = now
        if live.deadline is not None:
            live.deadline.cancel()
        self.settle(live)
        self.state.wake()

    async def _end(self, live: Live) -> None:
        """The journal first. Where it cannot write, the outcome is told all the same, and written later: a proof that was
        made is worth more than the promise that it is not made again after the next start."""
        job, outcome = live.job, live.ending
        if outcome is None:
            return
        written = await self._write(job.id, outcome, job.started, job.ended)
        job.become(outcome.state)
        job.outcome = outcome
        self.state.jobs.remove(live)
        self.state.history.ended(job, outcome, job.ended)
        view = job_view(live, self.state)
        self.show(view)
        if not written:
            self.unwritten[job.id] = (job.digest, view, outcome)
        self._times.append(job.ended)
        self._log(job, outcome)
        if not live.done.done():
            live.done.set_result(None)
        self.state.wake()

    def show(self, view: JobView) -> None:
        """In the lists of ended and failed jobs, the last one for now."""
        self.ended.append(view)
        if view.state == Stage.FAILED.value:
            self.failed.append(view)

    async def _write(self, job_id: str, outcome: Outcome, started: float, ended: float) -> bool:
        try:
            await self.state.journal.end(job_id, outcome, started=started, ended=ended)
        except Exception as error:
            LOG.error("job %s ended, but not in the journal: %s", quoted(job_id), error)
            return False
        return True

    def stored(self, job_id: str) -> Stored | None:
        """A job that has ended: its request's digest, how it went, how it ended."""
        return self.unwritten.get(job_id) or self.state.journal.outcome(job_id)

    def _log(self, job: Job, outcome: Outcome) -> None:
        seconds = job.ended - job.accepted
        if outcome.state is Stage.DONE:
            LOG.info("done %s in %.3f s", quoted(job.id), seconds)
        elif outcome.state is Stage.FAILED:
            LOG.warning("failed %s after %.3f s: %s: %s", quoted(job.id), seconds, outcome.code, reason(outcome.message))  # fmt: skip
        else:
            LOG.info("cancelled %s after %.3f s", quoted(job.id), seconds)

    def settle(self, live: Live) -> None:
        """Let go of what was read of a job that has ended, as soon as no worker is busy with it."""
        leaving = self.state.jobs.leaving
        if live.ending is None:
            return
        if live.busy or live.forgetting:
            leaving[live.job.id] = live
        elif live.job.prepared_on:
            self.forget(live)
        elif leaving.get(live.job.id) is live:
            del leaving[live.job.id]
            self.state.wake()

    def forget(self, live: Live) -> None:
        """Have the worker let go of what it read of a job; until it has, nothing is begun of that id."""
        station = self.state.stations[live.job.prepared_on]
        live.job.prepared_on = ""
        live.requeue()
        self.state.jobs.leaving[live.job.id] = live
        live.forgetting = self.state.begin(self._forget(live, station, station.life))

    async def _forget(self, live: Live, station: Station, life: int) -> None:
        try:
            await station.worker.forget(live.job.id)
        except WorkerLost:
            pass  # it has
        except Exception as error:
            LOG.error("forget %s", quoted(live.job.id), exc_info=error)
        if station.life == life:
            station.prepared.pop(live.job.id, None)
            self.state.release(live.owner, *live.unstaged())
        live.forgetting = None
        if self.state.jobs.leaving.get(live.job.id) is live:
            del self.state.jobs.leaving[live.job.id]
        self.state.wake()

    async def expire(self) -> None:
        """Write what could not be written, forget results that were kept for long enough, or that are too many."""
        for job_id, (_, view, outcome) in list(self.unwritten.items()):
            if not await self._write(job_id, outcome, view.started, view.ended):
                return
            del self.unwritten[job_id]
        before = self.state.clock() - self.state.policy.keep
        if len(self._times) > self.state.policy.keep_count:
            before = max(before, self._times[0])
        try:
            count = await asyncio.to_thread(self.state.journal.expire, before)
        except Exception as error:  # the next time
            LOG.error("results cannot be forgotten: %s", error)
            return
        if count:
            LOG.info("results of %d jobs expired", count)
        for shown in (self.ended, self.failed):
            while shown and shown[0].ended < before:
                shown.popleft()


def times(live: Live, now: float) -> dict[str, float]:
    """Milliseconds of a job's stages; those it did not reach are 0."""
    job = live.job
    first = min((part.started for part in job.partitions if part.started), default=0.0)
    last = max((part.ended for part in job.partitions), default=0.0)
    every = len(live.proved) == len(job.partitions)
    began = job.started or now
    load = live.load_milliseconds / 1000
    seconds = {
        "queue": began - job.accepted - load,
        "load": load,
        "prepare": live.prepare_seconds,
        "prove": last - first if every else 0.0,
        "verify": live.finish_seconds,
        "total": now - job.accepted,
        "work": sum(part.ended - part.started for part in job.partitions if part.ended),
    }
    return {name: max(0.0, value) * 1000 for name, value in seconds.items()}
