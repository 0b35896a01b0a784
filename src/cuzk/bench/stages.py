"""Where the device's time goes: a machine that puts a pair of marks around everything it is asked to queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from cuzk.backends import Backend
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.machine import Machine, Memory, Unit
from cuzk.errors import DeviceUnavailable
from cuzk.timeline import Timeline


class TimedMachine:
    """:class:`Machine` over another one; ``totals`` sums device time by kernel, and by copy and fill.

    A mark costs some microseconds of the stream, so short kernels show a little long: the sum of all stages is
    above the whole that was timed without them.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.name, self.title, self.processors = machine.name, machine.title, machine.processors
        self.alloc, self.free_bytes, self.finish = machine.alloc, machine.free_bytes, machine.finish
        self.mark, self.milliseconds = machine.mark, machine.milliseconds
        self.track = machine.track
        self.after, self.pin, self.moment = machine.after, machine.pin, machine.moment
        self.record, self.wait = machine.record, machine.wait
        self._marks: list[tuple[str, Any, Any]] = []

    @property
    def timeline(self) -> Timeline:
        """The machine's."""
        return self._machine.timeline

    @timeline.setter
    def timeline(self, timeline: Timeline) -> None:
        self._machine.timeline = timeline

    def beside(self, role: str) -> TimedMachine:
        """Another stream, timed by itself; its totals are its own."""
        return TimedMachine(self._machine.beside(role))

    def send(self, memory: Memory, array: NDArray[Any]) -> None:
        """As the machine's, timed as "send"."""
        self._timed("send", lambda: self._machine.send(memory, array))

    def upload(self, memory: Memory, array: NDArray[Any]) -> None:
        """As the machine's, timed as "upload"."""
        self._timed("upload", lambda: self._machine.upload(memory, array))

    def upload_plain(self, memory: Memory, array: NDArray[Any]) -> None:
        """As the machine's, timed as "upload"."""
        self._timed("upload", lambda: self._machine.upload_plain(memory, array))

    def download(self, memory: Memory, array: NDArray[Any]) -> None:
        """As the machine's, timed as "download": from here on the host waits."""
        self._timed("download", lambda: self._machine.download(memory, array))

    def fetch(self, memory: Memory, array: NDArray[Any]) -> Callable[[], None]:
        """As the machine's, timed as "fetch"."""
        fetched: list[Callable[[], None]] = []
        self._timed("fetch", lambda: fetched.append(self._machine.fetch(memory, array)))
        return fetched[0]

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

    def begin(self) -> None:
        """Wait for what is queued and count from here."""
        self.finish()
        self._marks.clear()

    def totals(self) -> dict[str, tuple[int, float]]:
        """name -> (times queued, milliseconds), longest first, since ``begin`` or the last call."""
        sums: dict[str, tuple[int, float]] = {}
        for name, start, end in self._marks:
            count, spent = sums.get(name, (0, 0.0))
            sums[name] = count + 1, spent + self.milliseconds(start, end)
        self._marks.clear()
        return dict(sorted(sums.items(), key=lambda item: -item[1][1]))

    def _timed(self, name: str, work: Callable[[], None]) -> None:
        start = self.mark()
        work()
        self._marks.append((name, start, self.mark()))


def stages_of(backend: Backend) -> dict[str, tuple[int, float]]:
    """Totals of a backend on a TimedMachine since its last sample began; nothing on another."""
    machine = getattr(backend, "machine", None)
    return machine.totals() if isinstance(machine, TimedMachine) else {}


def staged(backend: Backend, threads: int) -> Backend:
    """Another backend on the same stream, whose machine times everything by itself."""
    machine = getattr(backend, "machine", None)
    if not isinstance(machine, Machine):
        raise DeviceUnavailable(f"stages: expected a GPU, found {backend.name}: take --device cuda")
    return CudaBackend(backend.curve, TimedMachine(machine), threads=threads)
