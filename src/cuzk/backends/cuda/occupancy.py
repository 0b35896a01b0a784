"""What takes a card's memory: this process's pool, what else this process has there, other programs.

    total = free + pool + own + others

The driver says total and free, the pool its own size; what a process has in all NVML alone knows, and own is what it says
without the pool: context, loaded kernels, the kernels' stacks. Where it does not know this process (a container that
numbers processes otherwise, bindings without it) own cannot be told from others: it is None, and others are both.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

NOT_AVAILABLE = 2**63  # and above: NVML's value for "not known" is all ones


@dataclass(frozen=True)
class Occupancy:
    """Bytes; ``pool`` is what it took from the driver, used or not, ``process`` all of this process if it is known."""

    total: int
    free: int
    pool: int
    process: int | None

    @property
    def own(self) -> int | None:
        """Of this process beside its pool."""
        if self.process is None:
            return None
        return min(max(0, self.process - self.pool), self._beside)

    @property
    def others(self) -> int:
        """Of everybody else: of everything but the pool where ``own`` is None."""
        return self._beside - (self.own or 0)

    @property
    def _beside(self) -> int:
        return max(0, self.total - self.free - self.pool)


class ProcessMemory:
    """What this process has of one card, as NVML says. ``nvml`` is the module cuda.bindings.nvml, None without it."""

    def __init__(self, nvml: Any, uuid: str) -> None:
        self._nvml = nvml
        self._handle: Any = None
        if nvml is None:
            return
        try:
            nvml.init_v2()
            self._handle = nvml.device_get_handle_by_uuid(uuid)
        except (nvml.NvmlError, RuntimeError):  # no library, no such card: a part of one has none
            self._nvml = None

    def nbytes(self) -> int | None:
        """Bytes, the pool's among them; None where they are not known."""
        nvml = self._nvml
        if nvml is None:
            return None
        try:
            rows = nvml.device_get_compute_running_processes_v3(self._handle)
            used = [int(row.used_gpu_memory) for row in rows if int(row.pid) == os.getpid()]
        except (nvml.NvmlError, RuntimeError):
            return None
        known = [nbytes for nbytes in used if 0 <= nbytes < NOT_AVAILABLE]
        return sum(known) if known else None
