"""What a table of figures must name: the machine, the device, the build, the date."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from cuzk import _core
from cuzk.backends import Backend

CPUINFO = Path("/proc/cpuinfo")
DRIVER = Path("/sys/module/nvidia/version")


def place_of(backend: Backend, threads: int) -> dict[str, str]:
    """Facts by name, in the order to show them."""
    device = {} if backend.name == "cpu" else {"device": f"{backend.name}, {backend.title}"}
    if device and DRIVER.exists():
        device["driver"] = DRIVER.read_text().strip()
    return {**device, **host(), "threads": f"{threads} of {os.cpu_count()} CPUs"}


def host() -> dict[str, str]:
    """Of the CPU and the build."""
    return {
        "cpu": cpu_name(),
        "arithmetic": _core.path(),
        "compiler": _core.compiler(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def cpu_name() -> str:
    """As the system calls it."""
    if CPUINFO.exists():
        for line in CPUINFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown CPU"
