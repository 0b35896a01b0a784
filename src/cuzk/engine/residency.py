"""Which keys are on which worker: loading and closing them, and what follows when a load fails.

A key's memory is reserved before its load begins, by estimate, and is its real bytes from then on; it is free when the
worker has closed it. A worker's loads go one after the other, but for those that wait for files which do not answer
(:mod:`silence`). One that finds no memory gets a second try a little later, with the worker's idle keys gone; any
other failure is the circuit's fault there: its jobs go to another worker, wait where the circuit is NOT READY
(:mod:`away`), or fail with the reason.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from itertools import takewhile

from cuzk.engine.away import Away
from cuzk.engine.catalogue import Needs
from cuzk.engine.endings import Endings
from cuzk.engine.silence import listening
from cuzk.engine.snapshot import SpanView
from cuzk.engine.state import LOG, State, quoted, reason
from cuzk.engine.stations import Fault, Held, Phase, Station
from cuzk.errors import CuzkError, EngineError, NotReady, OutOfMemory, WorkerLost

VANISHED = "found no file of that name"  # as cuzk.formats.source says of a file that is not there
ELSEWHERE = 60.0  # seconds for which a circuit with a fault on one worker is tried on others only


class Residency:
    """Keys. What is here is begun by the scheduler's actions and by preload and evict."""

    def __init__(self, state: State, endings: Endings, away: Away) -> None:
        self.state = state
        self.endings = endings
        self.away = away

    def load(
        self, station: Station, circuit: str, *, critical: bool = False
    ) -> asyncio.Task[Exception | None] | None:
        """Begin it; its task's result is the error that it failed with. None where there is no memory now."""
        needs = self.state.need(circuit, station.worker.device)
        if isinstance(needs, CuzkError):
            self._failed(station, circuit, needs)
            return None
        held = Held(circuit, f"key {circuit} on {station.name}", needs, self.state.clock())
        if not self.state.reserve(held.owner, needs.key, critical=critical):
            return None
        station.keys[circuit] = held
        held.task = self.state.begin(self._load(station, held, station.life))
        return held.task

    async def _load(self, station: Station, held: Held, life: int) -> Exception | None:
        state, circuit = self.state, held.circuit
        began = state.clock()
        try:
            await self._turn(station, held, life)
            loading = station.worker.load(circuit)
            loaded = await listening(state, circuit, loading, partial(self._heard, station, held))
        except Exception as error:
            if station.life == life and station.keys.get(circuit) is held:
                del station.keys[circuit]
                state.release(held.owner)
            self._failed(station, circuit, error)
            return error
        finally:
            held.aside.set()
        if station.life != life:
            await self._unknown(station, circuit)
            return WorkerLost(f"{station.name} died while it loaded {circuit}")
        now = state.clock()
        held.ready(loaded, now)
        state.learn(circuit, station.worker.device, loaded.needs)
        state.hold(held.owner, loaded.needs.key)
        station.faults.pop(circuit, None)
        self.away.loaded(circuit)
        state.history.span(SpanView(station.name, "keys", f"load {circuit}", began, now))
        for live in state.jobs.waiting_for(circuit):
            live.load_milliseconds += max(0.0, now - max(began, live.job.accepted)) * 1000
        LOG.info("loaded %s on %s in %.3f s: %s", quoted(circuit), station.name, now - began, loaded.tier)  # fmt: skip
        state.wake()
        return None

    async def _turn(self, station: Station, held: Held, life: int) -> None:
        """A worker's loads go one after the other, and past those that stand still."""
        before = list(takewhile(lambda each: each is not held, station.keys.values()))
        for each in before:
            if each.phase is Phase.LOADING and station.life == life:
                await each.aside.wait()
        if station.life != life:
            raise WorkerLost(f"{station.name} died before it loaded {held.circuit}")

    def _heard(self, station: Station, held: Held, silence: str) -> None:
        """Its load stands still, or goes on."""
        if bool(silence) == bool(held.stalled):
            return
        held.stalled = silence
        if silence:
            LOG.warning("load of %s on %s stands still, other keys are loaded beside it: %s", quoted(held.circuit), station.name, reason(silence))  # fmt: skip
            held.aside.set()
            self.away.hold(held.circuit)
        else:
            LOG.info("load of %s on %s goes on", quoted(held.circuit), station.name)
        self.state.wake()

    async def _unknown(self, station: Station, circuit: str) -> None:
        """A load that was meant for an earlier life of the worker: nobody knows of the key, unless it is wanted again."""
        if circuit not in station.keys:
            with suppress(CuzkError):
                await station.worker.unload(circuit)

    def _failed(self, station: Station, circuit: str, error: Exception) -> None:
        state = self.state
        if not isinstance(error, CuzkError):
            LOG.error("load of %s: this is a bug", quoted(circuit), exc_info=error)
            error = EngineError(f"{circuit}: a bug in the loading of its key: the log says where")
        LOG.warning("load of %s on %s failed: %s", quoted(circuit), station.name, reason(error))  # fmt: skip
        now = state.clock()
        fault = station.faults.setdefault(circuit, Fault(""))
        fault.message = str(error)
        if isinstance(error, WorkerLost):
            fault.deaths += 1
            if fault.deaths < state.policy.losses:
                state.wake()
                return
            error = WorkerLost(f"{error}{state.suspect(circuit, error)}")
            fault.message = str(error)
        elif isinstance(error, OutOfMemory) and not fault.again:
            fault.again = True
            self._pause(fault, now + state.policy.again)
            self.close_idle(station)
            return
        elif VANISHED in str(error) and not fault.again and not self.away.hold(circuit):
            fault.again = True  # and back at once: the next load finds it
            self._pause(fault, now + state.policy.again)
            return
        fault.again, fault.deaths = False, 0
        self._give_up(station, circuit, fault, error)

    def _give_up(self, station: Station, circuit: str, fault: Fault, error: CuzkError) -> None:
        """Another worker may do it; where none can, the circuit's jobs fail, and later ones try again. All wait where its
        file is what is wrong, whoever tries."""
        state, now = self.state, self.state.clock()
        if self.away.hold(circuit):
            for each in state.stations.values():
                each.faults.pop(circuit, None)
            state.wake()
            return
        others = [
            other
            for other in state.stations.values()
            if other is not station and other.alive and not other.blocked(circuit, now)
            and isinstance(state.need(circuit, other.worker.device), Needs)
        ]  # fmt: skip
        if others:
            self._pause(fault, now + ELSEWHERE)
        else:
            for each in state.stations.values():
                if circuit in each.faults:
                    each.faults[circuit].until = 0.0
            for live in state.jobs.waiting_for(circuit):
                self.endings.fail(live, error)
        state.wake()

    def _pause(self, fault: Fault, until: float) -> None:
        fault.until = until
        delay = until - self.state.clock()
        asyncio.get_running_loop().call_later(delay, self.state.wake)
        self.state.wake()

    def close(self, station: Station, held: Held) -> asyncio.Task[None] | None:
        """Begin to close a key, behind the jobs that are being forgotten there; None where somebody else uses it."""
        going = station.forgetting(held.circuit)
        if held.phase is not Phase.LOADED or station.users(held.circuit) > len(going):
            return None
        held.phase = Phase.CLOSING
        held.closing = self.state.begin(self._close(station, held, going, station.life))
        return held.closing

    async def _close(
        self, station: Station, held: Held, going: list[asyncio.Task[None]], life: int
    ) -> None:
        state = self.state
        try:
            if going:
                await asyncio.wait(going)
            await station.worker.unload(held.circuit)
        except WorkerLost:
            pass  # it is closed
        except Exception as error:
            LOG.error("evict %s from %s", quoted(held.circuit), station.name, exc_info=error)
        if station.life == life:
            del station.keys[held.circuit]
            state.release(held.owner)
            LOG.info("evicted %s from %s", quoted(held.circuit), station.name)
        state.wake()

    def close_idle(self, station: Station) -> list[asyncio.Task[None]]:
        """Begin to close all keys that nobody uses there."""
        return [task for held in station.idle() if (task := self.close(station, held)) is not None]

    def lost(self, station: Station) -> None:
        """The worker died: its keys and what it read of requests are gone with it. Its work fails by itself."""
        state = self.state
        station.life += 1
        for held in station.keys.values():
            state.release(held.owner)
        station.keys.clear()
        for live in station.prepared.values():
            state.release(live.owner, *live.unstaged())
            live.job.prepared_on = ""
            if not live.busy:
                live.requeue()
                self.endings.settle(live)
        station.prepared.clear()
        LOG.error("worker %s lost: %s", station.name, reason(station.worker.health().fault))
        state.wake()

    async def preload(self, circuit: str) -> tuple[bool, float]:
        """Load a circuit's key for nobody yet: (whether it was there, milliseconds that it took). Whoever else begins to
        load it meanwhile loads it for this, too."""
        state, began = self.state, self.state.clock()
        held = self._held(circuit)
        if held is not None and held.phase is Phase.LOADED:
            return True, 0.0
        reason = ""
        for station in state.stations.values():
            if self._held(circuit) is None and station.alive:
                reason = await self._make_room(station, circuit)
                if not reason and self._held(circuit) is None:
                    self.load(station, circuit)
            held = self._held(circuit)
            if held is not None and held.task is not None:
                await self._loaded(held, held.task)
                return False, (state.clock() - began) * 1000
        raise EngineError(
            reason or f"{circuit}: no worker is there to load it, or its room was taken"
        )

    def _held(self, circuit: str) -> Held | None:
        """A circuit's key, where it is or will be."""
        for station in self.state.stations.values():
            held = station.keys.get(circuit)
            if held is not None and held.phase is not Phase.CLOSING:
                return held
        return None

    async def _loaded(self, held: Held, task: asyncio.Task[Exception | None]) -> None:
        """Wait for its load; NotReady where that stands still, and goes on for whoever asks later."""
        standing = asyncio.get_running_loop().create_task(held.aside.wait())
        try:
            await asyncio.wait([task, standing], return_when=asyncio.FIRST_COMPLETED)
            if held.stalled:
                raise NotReady(f"{held.circuit}: not ready: {held.stalled}")
        finally:
            standing.cancel()
        if (error := await asyncio.shield(task)) is not None:
            raise error

    async def _make_room(self, station: Station, circuit: str) -> str:
        """Close idle keys, the least recently used first, until one fits; why it does not, where all are not enough."""
        state = self.state
        closing = [held.closing for held in station.keys.values() if held.closing is not None]
        if closing:
            await asyncio.wait(closing)
        needs = state.need(circuit, station.worker.device)
        if isinstance(needs, CuzkError):
            return str(needs)
        lacking = state.lacking(needs.key)
        chosen: list[Held] = []
        for held in station.idle():
            if any(held.needs.key.get(name) for name, nbytes in lacking.items() if nbytes > 0):
                chosen.append(held)
                lacking = {
                    name: nbytes - held.needs.key.get(name, 0) for name, nbytes in lacking.items()
                }
        for name, nbytes in lacking.items():
            if nbytes > 0:
                return (
                    f"{circuit}: its key needs {needs.key[name]} bytes of {name}, {nbytes} more than could be freed by "
                    f"closing keys that nobody uses: load it later, or evict another one"
                )
        closing = [task for held in chosen if (task := self.close(station, held)) is not None]
        if closing:
            await asyncio.wait(closing)
        return ""

    async def evict(self, circuit: str) -> tuple[bool, int]:
        """Close a circuit's key wherever it is: (whether it was anywhere, bytes that are free now)."""
        found = [
            (station, station.keys[circuit])
            for station in self.state.stations.values()
            if circuit in station.keys
        ]
        for station, held in found:
            self._expect_idle(station, held)
        tasks = [task for station, held in found if (task := self.close(station, held)) is not None]
        if tasks:
            await asyncio.wait(tasks)
        return bool(tasks), sum(held.key_bytes for _, held in found) if tasks else 0

    def _expect_idle(self, station: Station, held: Held) -> None:
        """A job that is being forgotten there uses it no more: its end was told, or is about to be."""
        circuit = held.circuit
        if held.phase is Phase.LOADING:
            raise EngineError(f"{circuit}: not evicted: {station.name} is loading it")
        works = [
            *station.prepared.values(),
            *station.preparing.values(),
            *station.partitions.values(),
        ]
        using = [live for live in works if live.job.circuit == circuit and live.forgetting is None]
        jobs = sorted({quoted(live.job.id) for live in using})
        if jobs:
            more = f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""
            raise EngineError(
                f"{circuit}: not evicted: in use on {station.name} by {', '.join(jobs[:3])}{more}"
            )
