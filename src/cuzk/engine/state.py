"""All that the engine knows at one moment, and the two things that everything in it does: wake it, begin a task."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from cuzk.engine.catalogue import Catalogue, Needs
from cuzk.engine.fit import shared_out
from cuzk.engine.history import History
from cuzk.engine.jobs import Jobs
from cuzk.engine.journal import Journal
from cuzk.engine.ledger import Ledger, Ledgers
from cuzk.engine.overhead import Overhead
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.stations import Station
from cuzk.engine.worker import Worker
from cuzk.errors import CuzkError, WorkerLost

T = TypeVar("T")
LOG = logging.getLogger("cuzk.engine")
BUS_ERROR = "(SIGBUS)"  # as cuzk.engine.link says of a process how it ended
LOOK_AGAIN = 5.0  # seconds until files that could not be read are looked at again
SHOWN = 80  # characters of what users sent, in a log line
REASON = 1000  # characters of why something failed


def quoted(text: str, most: int = SHOWN) -> str:
    """For a log line: one line without control characters, whatever was sent."""
    return repr(text if len(text) <= most else text[: most - 1] + "…")


def reason(error: Exception | str) -> str:
    """For a log line: why something failed, which names files and numbers at its end, too."""
    return quoted(str(error), REASON)


class State:
    """``wake`` leads to one planning step, however often it is called before that."""

    def __init__(
        self,
        catalogue: Catalogue,
        workers: Sequence[Worker],
        journal: Journal,
        policy: EnginePolicy,
        clock: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self.catalogue = catalogue
        self.journal = journal
        self.policy = policy
        self.clock = clock
        self.wake = wake
        self.stations = {worker.name: Station(worker) for worker in workers}
        self.jobs = Jobs()
        self.ledgers = self._ledgers(policy.limits)
        self.overhead = Overhead(self.ledgers)
        self.history = History()
        self._needs: dict[tuple[str, str], tuple[Needs | CuzkError, float]] = {}
        """(circuit, device): estimates, and real bytes of what was loaded once; errors, until when."""
        self.draining = False
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def limits(self) -> Mapping[str, int]:
        """Bytes of each memory that has a limit."""
        return {ledger.name: ledger.limit for ledger in self.ledgers.all()}

    def know_devices(self) -> None:
        """Before anything is reserved: take up the memories of the workers' devices that the settings are silent on."""
        limits = dict(self.policy.limits)
        for station in self.stations.values():
            for memory, nbytes in station.worker.health().total.items():
                limits.setdefault(memory, nbytes)
        self.ledgers = self._ledgers(limits)
        self.overhead = Overhead(self.ledgers)
        self.take_stock()

    def take_stock(self) -> None:
        """What workers say is taken of the memories whatever is proved."""
        for station in self.stations.values():
            self.overhead.worker(station.name, station.worker.health())

    def _ledgers(self, limits: Mapping[str, int]) -> Ledgers:
        headroom = self.policy.headroom
        return Ledgers(
            Ledger(name, limit, headroom=headroom.get(name, 0)) for name, limit in limits.items()
        )

    def reserve(self, owner: str, needs: Mapping[str, int], *, critical: bool) -> bool:
        """Bytes of the memories that have limits, all or none."""
        limits = self.limits
        known = {name: nbytes for name, nbytes in needs.items() if name in limits}
        return self.ledgers.reserve(owner, known, critical=critical)

    def hold(self, owner: str, needs: Mapping[str, int]) -> None:
        """Real bytes instead of what was reserved, whatever the limits: they are in use."""
        for ledger in self.ledgers.all():
            ledger.hold(owner, needs.get(ledger.name, 0))

    def lacking(self, needs: Mapping[str, int]) -> dict[str, int]:
        """Bytes that are missing of each memory, for all but CRITICAL jobs; below 0 where some are left over."""
        return {
            ledger.name: needs[ledger.name] + ledger.headroom - ledger.free
            for ledger in self.ledgers.all()
            if needs.get(ledger.name)
        }

    def release(self, *owners: str) -> None:
        """All that each has, if anything."""
        for owner in owners:
            self.ledgers.release(owner)

    def need(self, circuit: str, device: str) -> Needs | CuzkError:
        """What a circuit takes on a device, or why that cannot be said now: its files are gone."""
        known = self._sizes(circuit, device)
        return known if isinstance(known, CuzkError) else self.shared_out(known)

    def shared_out(self, needs: Needs) -> Needs:
        """As the workers' devices share themselves out, whose memories are known by now."""
        return shared_out(needs, self.overhead.room(), self.policy.headroom)

    def _sizes(self, circuit: str, device: str) -> Needs | CuzkError:
        known = self._needs.get((circuit, device))
        if known is None or (isinstance(known[0], CuzkError) and self.clock() >= known[1]):
            needs: Needs | CuzkError
            try:
                needs = self.catalogue.needs(circuit, device)
            except CuzkError as error:
                LOG.warning("sizes of %s on %s: %s", quoted(circuit), device, reason(error))
                needs = error
            known = self._needs[circuit, device] = (needs, self.clock() + LOOK_AGAIN)
        return known[0]

    def learn(self, circuit: str, device: str, needs: Needs) -> None:
        """Real bytes, of a key that was loaded."""
        self._needs[circuit, device] = (needs, 0.0)

    def forget_sizes(self, circuit: str) -> None:
        """Its files may be others by now: they are looked at again, but where its key is loaded."""
        for station in self.stations.values():
            if circuit not in station.keys:
                self._needs.pop((circuit, station.worker.device), None)

    def suspect(self, circuit: str, error: WorkerLost) -> str:
        """What a worker's death of a file that was cut under it says of the circuit's key; of other deaths nothing."""
        if BUS_ERROR not in str(error):
            return ""
        keys = [entry.key for entry in self.catalogue.entries() if entry.id == circuit]
        return (
            f"; SIGBUS says that a file was cut or its disk failed while it was read: look at {', '.join(keys)}, and put keys "
            "there whole (copy beside, then mv)"
        )

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run it beside everything else. It handles its own errors: one that comes out of it is a bug, and logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("a task of the engine failed: this is a bug", exc_info=error)

    async def abandon(self) -> None:
        """Cancel all tasks and wait until they are gone."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
