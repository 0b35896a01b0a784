"""Who does the work on one device, behind one small interface: here, in another process, later on another machine.

All calls are asynchronous and may overlap; WorkerLost where the worker died, other CuzkErrors as the work raises them.
A call that is abandoned (its task cancelled) runs to its end there: native code is not interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from cuzk.engine.catalogue import Needs, PartProof, WholeProof
from cuzk.engine.request import Request


@dataclass(frozen=True)
class Loaded:
    """A circuit whose key a worker has now."""

    needs: Needs
    tier: str
    slots: int
    milliseconds: float


@dataclass(frozen=True)
class Health:
    """Of a worker's process and its device, as they are now."""

    alive: bool
    process: int
    resident_bytes: int
    title: str
    """ "AMD EPYC ..., 2 threads" or "NVIDIA H200"."""
    total: dict[str, int] = field(default_factory=dict)
    """Bytes of the memories that only this worker has: {"cuda:0": ...}."""
    free: dict[str, int] = field(default_factory=dict)
    restarts: int = 0
    fault: str = ""
    overhead: dict[str, dict[str, int]] = field(default_factory=dict)
    """Bytes of each memory, the host's too, that are taken whatever is proved, by what; none where nothing is known."""


class Worker(Protocol):
    """One device. ``name`` and ``device`` are the same for the first worker of a device: "cpu", "cuda:0"."""

    name: str
    device: str
    on_lost: Callable[[str], None]
    """Called with the worker's name when it died; what was loaded and prepared there is gone. It starts again by itself."""

    async def start(self) -> None:
        """DeviceUnavailable where the device cannot be used."""

    async def load(self, circuit: str) -> Loaded:
        """Open a circuit; again: the same answer."""

    async def unload(self, circuit: str) -> None:
        """Close it. The caller sees to it that nothing there uses it."""

    async def check(self, request: Request, circuit: str = "") -> None:
        """Catalogue.check, quickly, whatever else runs, and whatever hangs that is for another ``circuit``."""

    async def prepare(self, circuit: str, request: Request) -> int:
        """Read a request for its partitions; the bytes that this holds until ``forget``."""

    async def stage(self, circuit: str, job: str, partition: int) -> int:
        """Make a partition's host part ahead, of a prepared job; the host's bytes that this holds until ``prove`` has used
        it, ``unstage`` or ``forget``."""

    async def unstage(self, job: str, partition: int) -> None:
        """Let go of a staged partition; unknown ones are no error."""

    async def prove(self, circuit: str, job: str, partition: int) -> PartProof:
        """One partition of a prepared job, with what was staged of it."""

    async def finish(self, circuit: str, job: str, parts: list[PartProof]) -> WholeProof:
        """The whole proof of a prepared job."""

    async def forget(self, job: str) -> None:
        """Let go of what was prepared; unknown jobs are no error."""

    def health(self) -> Health:
        """What is known without asking."""

    async def close(self) -> None:
        """End it, whatever it does."""
