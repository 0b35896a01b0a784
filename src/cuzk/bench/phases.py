"""Proofs by a :class:`cuzk.Prover`, as a caller makes them, in one or several ways, measured side by side.

Every way proves the same witness with the same key, from as many threads as it has lanes. Each proof is checked by its
Prover before it counts, as a Prover checks its own (:mod:`cuzk.bench.subject`); one of every lane before anything is
timed. Then the ways take turns (1 2 3 1 2 3 ...), so that what changes with time changes for all of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Event
from time import perf_counter

from cuzk.backends import Backend
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.machine import Machine
from cuzk.backends.cuda.transfers import CHOICES, Transfers
from cuzk.bench.callers import Callers
from cuzk.bench.prove import R, S
from cuzk.bench.subject import Judge, Subject
from cuzk.bench.turns import Series, Turn
from cuzk.errors import DeviceUnavailable, KernelError
from cuzk.prover.session import Prover, Result

POINTS = CHOICES["points"]
BEST = Transfers()


def transfers_of(points: str) -> Transfers:
    """What is best, but for where the key's points are."""
    return Transfers(points=points)


@dataclass(frozen=True)
class Way:
    """One way of proving."""

    name: str
    transfers: Transfers = BEST
    lanes: int = 1
    evaluations: bool = False  # A w, B w, C w are the caller's
    witness: str = "scalars"  # in memory, or a .wtns "file" that is read for every proof
    repeated: bool = False  # tables of the key's points

    def backend(self, opened: Backend, threads: int) -> Backend:
        """On a compute stream, and so with a timeline, of its own; DeviceUnavailable where there is nothing to copy to."""
        machine = getattr(opened, "machine", None)
        if isinstance(machine, Machine):
            own = machine.beside("compute")
            return CudaBackend(opened.curve, own, threads=threads, transfers=self.transfers)
        if self.transfers != BEST:
            raise DeviceUnavailable(
                f"{self.name}: expected a GPU, found {opened.name}: nothing is copied to it"
            )
        return CpuBackend(opened.curve, threads) if opened.name == "cpu" else opened


class JudgedProver(Prover):
    """A Prover whose proofs the subject's :class:`Judge` checks."""

    def __init__(self, subject: Subject, way: Way, backend: Backend, threads: int) -> None:
        super().__init__(
            subject.key,
            device=backend,
            threads=threads,
            insecure_key=True,
            repeated=way.repeated,
            lanes=way.lanes,
        )
        self._verifier = Judge(subject.key.vk, subject.expected, threads)


class Runner:
    """One way, its key on the device."""

    def __init__(
        self, subject: Subject, way: Way, backend: Backend, threads: int, callers: Callers
    ) -> None:
        self.way, self._backend = way, backend
        self._given = [
            (
                callers.witness(lane, way.witness),
                callers.evaluations(lane) if way.evaluations else None,
            )
            for lane in range(way.lanes)
        ]
        self.prover = JudgedProver(subject, way, backend, threads)

    def turn(self, proofs: int) -> Turn:
        """So many proofs, each by the lane that is free first."""
        numbers, lanes, stopped = count(), self.way.lanes, Event()

        def work(lane: int) -> list[Result]:
            found: list[Result] = []
            with _setting(stopped):
                while not stopped.is_set() and next(numbers) < proofs:
                    found.append(self._prove(lane))
            return found

        with ThreadPoolExecutor(lanes, thread_name_prefix="lane") as pool, _setting(stopped):
            start = perf_counter()
            results = [result for found in pool.map(work, range(lanes)) for result in found]
            end = perf_counter()
        spans = [
            s for s in self._backend.timeline.spans(start) if start <= s.start and s.end <= end
        ]
        return Turn(start, end, results, spans)

    def _prove(self, lane: int) -> Result:
        witness, evaluations = self._given[lane]
        result = self.prover.prove_insecure(witness, R, S, evaluations)
        report = result.report
        if report.retries or report.device != self._backend.name:
            raise KernelError(
                f"{self._backend.name}: {self.way.name}: expected the first proof to be right, found it made by "
                f"{report.device} after {report.retries} that were not"
            )
        return result


@contextmanager
def _setting(stopped: Event) -> Iterator[None]:
    """Whatever ends what is inside before its time, interrupts too, ends the other lanes after their proof."""
    try:
        yield
    except BaseException:
        stopped.set()
        raise


def measure(
    subject: Subject,
    ways: Sequence[Way],
    opened: Backend,
    *,
    proofs: int,
    turns: int,
    threads: int,
) -> list[Series]:
    """``turns`` of ``proofs`` proofs of each way; KernelError or ProofError where one is not the right one."""
    with _runners(subject, ways, opened, threads) as runners:
        for runner in runners:
            runner.turn(runner.way.lanes)  # sizes, buffers, caches; and they are right
        series = [Series(way.name, _fields(subject, way)) for way in ways]
        for _ in range(turns):
            for runner, one in zip(runners, series, strict=True):
                one.turns.append(runner.turn(proofs))
        return series


@contextmanager
def _runners(
    subject: Subject, ways: Sequence[Way], opened: Backend, threads: int
) -> Iterator[list[Runner]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cuzk-bench-")))
        callers, runners = Callers(subject, folder, threads), []
        for way in ways:
            runner = Runner(subject, way, way.backend(opened, threads), threads, callers)
            stack.enter_context(runner.prover)
            runners.append(runner)
        yield runners


def _fields(subject: Subject, way: Way) -> dict[str, object]:
    key, transfers = subject.key, way.transfers
    return {
        "curve": key.curve.name,
        "recipe": key.recipe,
        "log_n": subject.log_n,
        "lanes": way.lanes,
        "evaluations": way.evaluations,
        "witness": way.witness,
        "repeated": way.repeated,
        "transfers": {name: getattr(transfers, name) for name in vars(transfers)},
        "checked": subject.check,
    }
