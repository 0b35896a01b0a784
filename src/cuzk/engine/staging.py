"""Partitions that are staged: their host part is made while the device works on the one before.

    Stage --> being staged --> staged --> Start: its bytes become those of the partition in work
                  |               |
                  |               +-----> Unstage, forgotten, worker lost: as if it had never been staged
                  +--> no memory: nothing more of its job is staged; another error: the job fails with it, as in its proof

Bytes are reserved before the work and are the partition's that is staged ("job ID partition N ahead") until it starts.
"""

from __future__ import annotations

from collections.abc import Callable

from cuzk.engine.endings import Endings
from cuzk.engine.fit import without
from cuzk.engine.jobs import Live
from cuzk.engine.state import LOG, State, quoted, reason
from cuzk.engine.stations import Station
from cuzk.errors import OutOfMemory, WorkerLost

Failed = Callable[[Station, Live, int, Exception], None]


class Stagings:
    """``failed`` is told of the errors that end or requeue a job."""

    def __init__(self, state: State, endings: Endings, failed: Failed) -> None:
        self.state = state
        self.endings = endings
        self._failed = failed

    def begin(self, station: Station, live: Live, number: int) -> None:
        """Stage a partition; nothing where there is no memory now."""
        needs = self.state.shared_out(station.keys[live.job.circuit].needs).ahead
        if self.state.reserve(live.ahead_owner(number), needs, critical=live.critical):
            live.staging[number] = needs
            self.state.begin(self._stage(station, live, number, station.life))

    async def _stage(self, station: Station, live: Live, number: int, life: int) -> None:
        state, job = self.state, live.job
        try:
            nbytes = await station.worker.stage(job.circuit, job.id, number)
        except Exception as error:
            self._gone(live, number)
            if isinstance(error, OutOfMemory):
                LOG.warning("job %s: partition %d is not staged, nor are further ones: %s", quoted(job.id), number, reason(error))  # fmt: skip
                live.stages = False
                self._settle(live)
            else:
                self._failed(station, live, life, error)
            return
        if station.life == life:
            del live.staging[number]
            live.staged[number] = {"host": nbytes}
            state.hold(live.ahead_owner(number), live.staged[number])
        else:
            self._gone(live, number)
            live.requeue()
        self._settle(live)

    def drop(self, station: Station, live: Live, number: int) -> None:
        """Let go of a staged partition. It is nobody's to start until the worker has."""
        live.staging[number] = live.staged.pop(number)
        self.state.begin(self._drop(station, live, number, station.life))

    async def _drop(self, station: Station, live: Live, number: int, life: int) -> None:
        try:
            await station.worker.unstage(live.job.id, number)
        except WorkerLost:
            pass  # it has
        except Exception as error:
            LOG.error("unstage partition %d of %s", number, quoted(live.job.id), exc_info=error)
        self._gone(live, number)
        if station.life != life:
            live.requeue()
        self._settle(live)

    def reserve(self, station: Station, live: Live, number: int) -> bool:
        """A partition's memory in work, of which it has what is reserved for what is staged of it; whether there was."""
        state, owner = self.state, live.partition_owner(number)
        needs = state.shared_out(station.keys[live.job.circuit].needs).partition
        staged = live.staged.get(number, {})
        if not state.reserve(owner, without(needs, staged), critical=live.critical):
            return False
        if live.staged.pop(number, None) is not None:
            state.release(live.ahead_owner(number))
            state.hold(owner, needs)
        return True

    def _gone(self, live: Live, number: int) -> None:
        del live.staging[number]
        self.state.release(live.ahead_owner(number))

    def _settle(self, live: Live) -> None:
        self.endings.settle(live)
        self.state.wake()
