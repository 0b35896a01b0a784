"""Proofs on threads beside the caller, who makes the next one's witness meanwhile.

    caller      witness 0 | witness 1   wait for 0 | witness 2   wait for 1 |
    a thread              | proof 0                | copied, its turn: proof 2
    another                           | copied, its turn: proof 1           |

At most BESIDE proofs are in work, so as many witnesses are in memory while another one is not made. Results and errors
come in the order in which the proofs were begun: what is raised is what would be raised one after the other. Leaving
the ``with`` block, by an interrupt too, stops those in work before their next phase and waits for their threads.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")
BESIDE = 2  # proofs: one that the device computes, one that comes next


class Stopped(Exception):
    """Nobody wants this proof any more: a message between threads, nobody's error."""


@dataclass
class Run:
    """One proof on a thread of its own."""

    number: int
    heard: bool = False
    stopped: bool = False


class Phases:
    """What hears the phases of a prover: of proofs on threads of their own the oldest's alone, as told by ``heard``."""

    def __init__(self, on_phase: Callable[[str], None] | None) -> None:
        self._on_phase = on_phase
        self._own = threading.local()

    def __call__(self, name: str) -> None:
        """A phase begins, on the calling thread; Stopped where it shall not."""
        run: Run | None = getattr(self._own, "run", None)
        if run and run.stopped:
            raise Stopped
        if self._on_phase and (run is None or run.heard):
            self._on_phase(name)

    @contextmanager
    def of(self, run: Run) -> Iterator[None]:
        """Inside, the calling thread's phases are that proof's."""
        self._own.run = run
        try:
            yield
        finally:
            self._own.run = None


class Overlap(Generic[T]):
    """``on_partition`` is called, by the caller's thread, as each proof becomes the oldest."""

    def __init__(self, phases: Phases, on_partition: Callable[[int], None] | None) -> None:
        self._phases, self._on_partition = phases, on_partition
        self._pool = ThreadPoolExecutor(BESIDE, thread_name_prefix="proof")
        self._working = deque[tuple[Run, Future[T]]]()

    def __len__(self) -> int:
        """Proofs that were begun and not taken."""
        return len(self._working)

    def begin(self, number: int, prove: Callable[[], T]) -> None:
        """On a thread, in a copy of the caller's context. ``prove``, which holds a witness, is gone when its result is there,
        however long the thread stands still before it ends."""
        run, context, given = Run(number, heard=not self._working), contextvars.copy_context(), [prove]  # fmt: skip
        del prove

        def work() -> T:
            with self._phases.of(run):
                return context.run(given.pop())

        self._working.append((run, self._pool.submit(work)))

    def take(self) -> T:
        """Wait for the oldest one's result; raises its error."""
        found = self._working[0][1].result()
        self._working.popleft()
        if self._working:
            oldest = self._working[0][0]
            if self._on_partition:
                self._on_partition(oldest.number)
            oldest.heard = True
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for run, _ in self._working:
            run.stopped = True
        self._pool.shutdown(cancel_futures=True)
        self._working.clear()
