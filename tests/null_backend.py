"""A device whose lanes do what a script says at every verb: how proofs overlap is tested without a GPU or a clock.

Results are the CPU's, so that proofs verify. ``script(event)`` is called as each verb begins, on the calling
thread: it may wait for another event, or raise. What was called is in ``events``, in order.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from cuzk.backends import Backend, Buffer, Workload
from cuzk.backends.cpu import CpuBackend
from cuzk.curves import Curve
from cuzk.prover import placement
from cuzk.r1cs import Matrix
from cuzk.vectors import Points, Scalars
from until import PATIENCE

TIMEOUT = PATIENCE


@dataclass(frozen=True)
class Event:
    """A verb that began, and on whose thread; "collect" waits for a sum."""

    verb: str
    lane: int
    thread: str


class NullDevice:
    """What the lanes of a device share."""

    def __init__(self, room: int = 4) -> None:
        self.room = room  # lanes
        self.waiting = 0  # lanes beside them that have room for a witness
        self.lanes = 0
        self.events: list[Event] = []
        self.staged: list[Scalars] = []
        self.pinned: set[int] = set()  # vectors that were staged and neither settled nor dropped
        self.alive: set[int] = set()  # vectors that were staged and not dropped
        self.script: Callable[[Event], None] = lambda _: None
        self._changed = threading.Condition()

    def say(self, verb: str, lane: int) -> None:
        """A verb begins."""
        event = Event(verb, lane, threading.current_thread().name)
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()
        self.script(event)

    def await_event(self, verb: str, thread: str) -> None:
        """Until that thread has called that verb; TimeoutError where it does not come to it."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._seen(verb, thread), TIMEOUT):
                raise TimeoutError(f"{thread} has not come to {verb}")

    def _seen(self, verb: str, thread: str) -> bool:
        return any((e.verb, e.thread) == (verb, thread) for e in self.events)


class NullBackend(CpuBackend):
    """One lane."""

    name = "cuda:0"
    title = "null"

    def __init__(self, curve: Curve, device: NullDevice) -> None:
        super().__init__(curve, 1)
        self.device = device
        self.lane = device.lanes
        device.lanes += 1

    def plan(self, work: Workload) -> int:
        self.lanes = min(work.lanes, self.device.room)
        self.waiting = self.device.waiting
        return 1000 * self.lanes

    def beside(self) -> NullBackend:
        return NullBackend(self.curve, self.device)

    def stage(self, values: Scalars) -> Buffer:
        self._say("stage")
        self.device.staged.append(values)
        buffer = super().stage(values)
        for known in (self.device.pinned, self.device.alive):
            known.add(id(buffer))
            weakref.finalize(buffer, known.discard, id(buffer))
        return buffer

    def settle(self, buffer: Buffer) -> None:
        self._say("settle")
        self.device.pinned.discard(id(buffer))

    def notes(self) -> list[str]:
        return [f"lane {self.lane}: noted"]

    def put(self, value: Scalars | Points | Matrix) -> Buffer:
        self._say("put")
        return super().put(value)

    def product(self, matrix: Buffer, witness: Buffer, size: int) -> Buffer:
        self._say("product")
        return super().product(matrix, witness, size)

    def padded(self, values: Buffer, size: int) -> Buffer:
        self._say("padded")
        return super().padded(values, size)

    def ntt(self, values: Buffer, root: int, *, inverse: bool = False, shift: int = 1) -> Buffer:
        self._say("ntt")
        return super().ntt(values, root, inverse=inverse, shift=shift)

    def extend(self, values: Sequence[Buffer], root: int, shift: int) -> list[Buffer]:
        self._say("extend")
        return super().extend(values, root, shift)

    def pointwise(
        self,
        a: Buffer,
        b: Buffer | None = None,
        minus: Buffer | None = None,
        scale: int = 1,
        *,
        into: Buffer | None = None,
    ) -> Buffer:
        self._say("pointwise")
        return super().pointwise(a, b, minus, scale, into=into)

    def start_msm(
        self, bases: Buffer, scalars: Buffer, wires: object = None
    ) -> Callable[[], Points]:
        self._say("start_msm")
        wait = super().start_msm(bases, scalars, wires)

        def collect() -> Points:
            self._say("collect")
            return wait()

        return collect

    def first_nonzero(self, values: Buffer) -> int | None:
        self._say("first_nonzero")
        return super().first_nonzero(values)

    def mark(self) -> Any:
        self._say("mark")
        return super().mark()

    def _say(self, verb: str) -> None:
        self.device.say(verb, self.lane)


def install(monkeypatch: pytest.MonkeyPatch) -> NullDevice:
    """The device that "auto" and "cuda" open."""
    shared = NullDevice()

    def open_device(
        device: str, curve: Curve, threads: int, _: object = None
    ) -> tuple[Backend, str]:
        if device == "cpu":
            return CpuBackend(curve, threads), "asked for"
        return NullBackend(curve, shared), "a GPU can be used"

    monkeypatch.setattr(placement, "open_device", open_device)
    return shared
