"""Jobs whose circuit is NOT READY: they stay queued, with the reason in the status, until its key is there again.

    a restart, a load that failed, sizes that cannot be said
        --> the circuit's entry has a fault: its jobs wait --> looked at every 2 s --> ready: they go on
        --> it has none: they fail with the reason

The border is what Catalogue.entries says. Its faults are what a look at the file shows: it is missing, may not be read, is
cut or another one. Whoever mounts the disk or copies the file back ends them without asking, so what was accepted waits.
What only a load finds in a file that looks right (damaged points, another digest) no waiting mends: the jobs fail with it.

Those that wait are not in the scheduler's view, hold no memory and have no place; a deadline or a cancel ends them as any
other. Jobs that a worker with the key goes on with do not wait, whatever happens to the file.
"""

from __future__ import annotations

import asyncio

from cuzk.engine.endings import Endings
from cuzk.engine.placement import impossible
from cuzk.engine.state import LOG, State, quoted, reason
from cuzk.errors import CuzkError, OutOfMemory

LOOK = 2.0  # seconds between two looks at the files, while jobs wait for one


class Away:
    """Circuits that jobs wait for; ``Jobs.away`` has them."""

    def __init__(self, state: State, endings: Endings) -> None:
        self.state = state
        self.endings = endings
        self._watch: asyncio.Task[None] | None = None

    def hold(self, circuit: str) -> bool:
        """Whether a circuit is NOT READY and no worker has its key, or is about to: its jobs wait from now on. A load
        that stands still is about nothing."""
        stations = self.state.stations.values()
        if any(
            held is not None and not held.stalled
            for held in (each.keys.get(circuit) for each in stations)
        ):
            return False
        fault = self._faults().get(circuit, "")
        jobs, waiting = self.state.jobs, self.state.jobs.waiting_for(circuit)
        if fault and waiting:
            if circuit not in jobs.away:
                LOG.warning("%s is NOT READY, %d jobs wait for it: %s", quoted(circuit), len(waiting), reason(fault))  # fmt: skip
            jobs.away[circuit] = _message(fault)
            if self._watch is None or self._watch.done():
                self._watch = self.state.begin(self._look_on())
        return bool(fault)

    def impossible(
        self, circuit: str, *, critical: bool, payload_bytes: int = 0
    ) -> CuzkError | None:
        """Why a circuit's jobs are to fail; None where they can be proved, or wait from now on."""
        state = self.state
        error = impossible(state, circuit, critical=critical, payload_bytes=payload_bytes)
        if error is None or isinstance(error, OutOfMemory):
            return error
        if self.hold(circuit):
            return None
        state.forget_sizes(circuit)  # what is known of them may be older than the file
        return impossible(state, circuit, critical=critical, payload_bytes=payload_bytes)

    def expect_provable(self, circuit: str) -> None:
        """Fail those of a circuit's jobs that can never be proved here, each with its own payload."""
        for live in self.state.jobs.waiting_for(circuit):
            nbytes = live.job.request.nbytes
            error = self.impossible(circuit, critical=live.critical, payload_bytes=nbytes)
            if error is not None:
                self.endings.fail(live, error)

    def loaded(self, circuit: str) -> None:
        """Its key is there, whatever its file does: nobody waits for that any more."""
        if self.state.jobs.away.pop(circuit, ""):
            LOG.info("%s is loaded: its jobs go on", quoted(circuit))

    async def _look_on(self) -> None:
        while self.state.jobs.away:
            await asyncio.sleep(LOOK)
            self._look()

    def _look(self) -> None:
        away, faults = self.state.jobs.away, self._faults()
        for circuit in list(away):
            waiting = self.state.jobs.waiting_for(circuit)
            if waiting and (fault := faults.get(circuit)):
                away[circuit] = _message(fault)
                continue
            del away[circuit]
            if waiting:
                LOG.info("%s is ready again: %d jobs go on", quoted(circuit), len(waiting))
            self.state.forget_sizes(circuit)
            self.expect_provable(circuit)
            self.state.wake()

    def _faults(self) -> dict[str, str]:
        return {entry.id: entry.fault for entry in self.state.catalogue.entries()}


def _message(fault: str) -> str:
    return f"waits for its circuit, which is NOT READY: {fault}"
