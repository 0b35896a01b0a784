"""As much of the module cuda.bindings.nvml as is asked: which process has what of the stand-in's card."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.driver import FakeDriver


class FakeNvml:
    """``knows`` this process, or not. Another one has what the driver says that others have."""

    class NvmlError(Exception):
        pass

    def __init__(self, driver: FakeDriver, *, knows: bool = True) -> None:
        self.driver, self.knows = driver, knows

    def init_v2(self) -> None:
        pass

    def device_get_handle_by_uuid(self, uuid: str) -> str:
        if not uuid.startswith("GPU-"):
            raise self.NvmlError("Not Found")
        return uuid

    def device_get_compute_running_processes_v3(self, handle: str) -> list[SimpleNamespace]:
        assert handle.startswith("GPU-")
        own = self.driver.reserved + self.driver.context
        rows = [(os.getpid(), own)] if self.knows else []
        return [
            SimpleNamespace(pid=pid, used_gpu_memory=nbytes)
            for pid, nbytes in [(os.getppid(), self.driver.others), *rows]
        ]
