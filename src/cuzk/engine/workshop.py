"""Circuits that are open on one device, and the threads that work on them: what a worker does, wherever it runs.

Methods are called from one thread and return at once, with a future; work runs in threads by its kind, so that a
check never waits behind a load or a proof, and the last step of a job not behind partitions of others.

    load, unload   of each circuit 1 thread, in order
    check          of each circuit 2 threads; and 1 each for jobs of HIGH and of CRITICAL priority, which wait for no lower ones
    prepare        2 threads for all circuits; and 1 each likewise
    finish         likewise
    stage          likewise, beside the partitions in work
    prove          of each circuit as many as it has slots

Loads and checks read a circuit's files, which may be on a mount that does not answer: what hangs there is no other
circuit's matter. That keys are loaded one after the other is for the engine to see to.

What was read of a request is held from ``prepare`` to ``forget``, under the job's id, and by nothing else; what was staged
of its partitions with it, each until it is proved.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from cuzk.engine.catalogue import Catalogue, Device, OpenCircuit, PartProof, Staging, WholeProof
from cuzk.engine.failure import Failure
from cuzk.engine.request import Priority, Request
from cuzk.engine.worker import Loaded
from cuzk.errors import Cancelled, EngineError

KINDS = ("prepare", "stage", "finish")
THREADS = 2
APART = (Priority.HIGH, Priority.CRITICAL)

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """An open circuit with its threads."""

    circuit: OpenCircuit
    pool: ThreadPoolExecutor


@dataclass
class Held:
    """What was read of a request, as soon as ``ready``."""

    place: Place
    priority: Priority
    value: Any = None
    ready: bool = False
    staged: dict[int, Any] = field(default_factory=dict)
    """By partition."""


class Workshop:
    """All futures fail with CuzkErrors only, as :mod:`cuzk.engine.failure` has them, which keep no frame alive."""

    def __init__(
        self, catalogue: Catalogue, device: str, *, threads: int | None, lanes: int | None
    ) -> None:
        self._catalogue = catalogue
        self._device = device
        self._threads = threads
        self._lanes = lanes
        self._loading: dict[str, ThreadPoolExecutor] = {}
        self._checking: dict[tuple[str, Priority], ThreadPoolExecutor] = {}
        self._pools = {kind: ThreadPoolExecutor(THREADS, kind) for kind in KINDS}
        self._apart = {
            (kind, priority): ThreadPoolExecutor(1, f"{kind}-{priority.name}")
            for kind in KINDS
            for priority in APART
        }
        self._loads: dict[str, Future[Loaded]] = {}
        self._places: dict[str, Place] = {}
        self._held: dict[str, Held] = {}
        self._lock = Lock()  # of _held and what is in it

    def device(self) -> Device:
        """The device as it is now; waits for it. DeviceUnavailable where it cannot be used."""
        return self._catalogue.device(self._device)

    def load(self, circuit: str) -> Future[Loaded]:
        """Open a circuit, or the answer of when it was opened."""
        known = self._loads.get(circuit)
        if known is None or (known.done() and known.exception()):
            known = self._loads[circuit] = self._loader(circuit).submit(_work, self._load, circuit)
        return known

    def unload(self, circuit: str) -> Future[None]:
        """Close it when its partitions in work have ended; one that is not open is no error."""
        self._loads.pop(circuit, None)
        return self._loader(circuit).submit(_work, self._unload, circuit)

    def check(self, request: Request, circuit: str = "") -> Future[None]:
        """Catalogue.check, for ``circuit``."""
        own = request.priority if request.priority in APART else Priority.NORMAL
        pool = self._checking.get((circuit, own))
        if pool is None:
            threads = THREADS if own is Priority.NORMAL else 1
            pool = self._checking[circuit, own] = ThreadPoolExecutor(threads, f"check-{circuit}")
        return pool.submit(_work, self._catalogue.check, request)

    def prepare(self, circuit: str, request: Request) -> Future[int]:
        """Read a request, in place of what was read under its id before; the bytes that this holds."""
        held = Held(self._place(circuit), request.priority)
        with self._lock:
            self._held[request.id] = held
        return self._pool("prepare", request.priority).submit(_work, self._prepare, held, request)

    def stage(self, circuit: str, job: str, partition: int) -> Future[int]:
        """The host part of a partition of a prepared job, kept for its proof; the bytes that this holds."""
        place = self._place(circuit)
        return self._pool("stage", self._priority(job)).submit(_work, self._stage, place, job, partition)  # fmt: skip

    def unstage(self, job: str, partition: int) -> Future[None]:
        """Let go of what was staged of a partition."""
        with self._lock:
            held = self._held.get(job)
            if held is not None:
                held.staged.pop(partition, None)
        return _nothing()

    def prove(self, circuit: str, job: str, partition: int) -> Future[PartProof]:
        """A partition of a prepared job; what was staged of it is its own from now on."""
        place = self._place(circuit)
        return place.pool.submit(_work, self._prove, place, job, partition)

    def finish(self, circuit: str, job: str, parts: list[PartProof]) -> Future[WholeProof]:
        """The whole proof of a prepared job."""
        place = self._place(circuit)
        pool = self._pool("finish", self._priority(job))
        return pool.submit(_work, self._finish, place, job, parts)

    def forget(self, job: str) -> Future[None]:
        """Let go of what was read, also while it is read; a partition in work keeps it to its end."""
        with self._lock:
            self._held.pop(job, None)
        return _nothing()

    def close(self) -> None:
        """Wait for work that has begun, drop the rest, close all circuits."""
        pools = [*self._loading.values(), *self._checking.values()]
        pools += [*self._pools.values(), *self._apart.values()]
        pools += [place.pool for place in self._places.values()]
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in pools:
            pool.shutdown()
        with self._lock:
            self._held.clear()
        for circuit in list(self._places):
            self._unload(circuit)

    def _loader(self, circuit: str) -> ThreadPoolExecutor:
        pool = self._loading.get(circuit)
        if pool is None:
            pool = self._loading[circuit] = ThreadPoolExecutor(1, f"load-{circuit}")
        return pool

    def _pool(self, kind: str, priority: Priority) -> ThreadPoolExecutor:
        return self._apart.get((kind, priority)) or self._pools[kind]

    def _priority(self, job: str) -> Priority:
        with self._lock:
            held = self._held.get(job)
        return held.priority if held else Priority.NORMAL

    def _place(self, circuit: str) -> Place:
        place = self._places.get(circuit)
        if place is None:
            raise EngineError(f"circuit {circuit} is not loaded on {self._device}")
        return place

    def _load(self, circuit: str) -> Loaded:
        began = time.perf_counter()
        opened = self._catalogue.open(circuit, self._device, self._threads, self._lanes)
        try:
            slots, needs, tier = opened.slots(), opened.needs(), opened.tier()
        except BaseException:
            opened.close()
            raise
        self._places[circuit] = Place(opened, ThreadPoolExecutor(max(1, slots), f"prove-{circuit}"))
        return Loaded(needs, tier, slots, (time.perf_counter() - began) * 1e3)

    def _unload(self, circuit: str) -> None:
        place = self._places.pop(circuit, None)
        if place is None:
            return
        place.pool.shutdown()
        with self._lock:
            for held in self._held.values():
                if held.place is place:
                    held.staged.clear()
        place.circuit.close()
        del place
        gc.collect()  # a key is gigabytes: not to lie about in a cycle until a collection comes by

    def _prepare(self, held: Held, request: Request) -> int:
        try:
            value = held.place.circuit.prepare(request)
            with self._lock:
                if self._held.get(request.id) is not held:
                    raise Cancelled(f"{request.id}: let go of while its request was read")
                held.value, held.ready = value, True
        except BaseException:
            with self._lock:
                if self._held.get(request.id) is held:
                    del self._held[request.id]
            raise
        return int(getattr(value, "nbytes", request.nbytes))

    def _read(self, place: Place, job: str) -> Held:
        with self._lock:
            held = self._held.get(job)
        if held is None or not held.ready or held.place is not place:
            raise EngineError(f"{job}: its request was not read on {self._device}")
        return held

    def _stage(self, place: Place, job: str, partition: int) -> int:
        held = self._read(place, job)
        staged = self._staging(place).stage(held.value, partition)
        with self._lock:
            if self._held.get(job) is not held:
                raise Cancelled(f"{job}: let go of while partition {partition} was staged")
            held.staged[partition] = staged
        return int(staged.nbytes)

    def _staging(self, place: Place) -> Staging:
        if not isinstance(place.circuit, Staging):
            raise EngineError(f"a circuit on {self._device} was to stage a partition, and stages none")  # fmt: skip
        return place.circuit

    def _prove(self, place: Place, job: str, partition: int) -> PartProof:
        held = self._read(place, job)
        with self._lock:
            staged = held.staged.pop(partition, None)
        if staged is None:
            return place.circuit.prove(held.value, partition)
        return self._staging(place).prove_staged(held.value, partition, staged)

    def _finish(self, place: Place, job: str, parts: list[PartProof]) -> WholeProof:
        return place.circuit.finish(self._read(place, job).value, parts)


def _nothing() -> Future[None]:
    """A future that is done."""
    done: Future[None] = Future()
    done.set_result(None)
    return done


def _work(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """An exception's frames hold what was worked on for as long as somebody holds it: another one is raised."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:
        failure = Failure.of(error)
    del function, args, kwargs
    raise failure.error()
