"""Which device proves, and with how many threads."""

from __future__ import annotations

import os
import re

from cuzk.backends import Backend
from cuzk.backends.cpu import CpuBackend
from cuzk.curves import Curve
from cuzk.errors import DeviceUnavailable, FormatError

NO_GPU = "this build has no GPU backend"


def open_device(device: str, curve: Curve, threads: int) -> tuple[Backend, str]:
    """The backend for "auto", "cpu", "cuda" or "cuda:N", and in words why it was taken."""
    if device in ("auto", "cpu"):
        return CpuBackend(curve, threads), "asked for" if device == "cpu" else NO_GPU
    if re.fullmatch(r"cuda(:[0-9]{1,4})?", device):
        raise DeviceUnavailable(f"device {device}: {NO_GPU}; take auto or cpu")
    raise FormatError(f"device: expected auto, cpu, cuda or cuda:N, found {device!r}")


def thread_count(asked: int | None) -> int:
    """What was asked for, else as many as this process may run on."""
    if asked is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if not isinstance(asked, int) or not 1 <= asked <= 4096:
        raise FormatError(f"threads: expected 1 to 4096, found {asked!r}")
    return asked
