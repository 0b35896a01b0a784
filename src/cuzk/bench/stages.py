"""Where the device's time goes: a machine that puts a pair of marks around everything it is asked to queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from cuzk.backends.cuda.machine import Machine, Memory, Unit
from cuzk.bench.clocks import EventMachine


class TimedMachine(Machine, EventMachine, Protocol):
    """A machine whose stream takes marks."""


class StagedMachine:
    """:class:`Machine` over another one; ``totals`` sums device time by kernel, and by copy and fill.

    A mark costs some microseconds of the stream, so short kernels show a little long: the sum of all stages is
    above the whole that was timed without them.
    """

    def __init__(self, machine: TimedMachine) -> None:
        self._machine = machine
        self.name, self.processors = machine.name, machine.processors
        self.free_bytes, self.finish, self.alloc = (
            machine.free_bytes,
            machine.finish,
            machine.alloc,
        )
        self._marks: list[tuple[str, Any, Any]] = []

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """As the machine's, timed as "upload"."""
        self._timed("upload", lambda: self._machine.upload(memory, array))

    def download(self, memory: Memory, array: NDArray[Any]) -> None:
        """As the machine's, timed as "download": from here on the host waits."""
        self._timed("download", lambda: self._machine.download(memory, array))

    def fill(self, memory: Memory, byte: int) -> None:
        """As the machine's, timed as "fill"."""
        self._timed("fill", lambda: self._machine.fill(memory, byte))

    def launch(
        self,
        unit: Unit,
        kernel: str,
        blocks: int,
        threads: int,
        *args: Memory | int,
        shared: int = 0,
    ) -> None:
        """As the machine's, timed under the kernel's name."""
        self._timed(
            kernel,
            lambda: self._machine.launch(unit, kernel, blocks, threads, *args, shared=shared),
        )

    def totals(self) -> dict[str, tuple[int, float]]:
        """name -> (times queued, milliseconds), longest first, since the last call."""
        self._machine.finish()
        sums: dict[str, tuple[int, float]] = {}
        for name, start, end in self._marks:
            count, spent = sums.get(name, (0, 0.0))
            sums[name] = count + 1, spent + self._machine.milliseconds(start, end)
        self._marks.clear()
        return dict(sorted(sums.items(), key=lambda item: -item[1][1]))

    def _timed(self, name: str, work: Callable[[], None]) -> None:
        start = self._machine.mark()
        work()
        self._marks.append((name, start, self._machine.mark()))
