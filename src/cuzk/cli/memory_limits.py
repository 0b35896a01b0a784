"""How much memory the service may reserve: what the settings say, or what the machine and its cgroup leave.

host    = limit of machine and cgroup - margin
margin  = a sixteenth of that limit, 512 MiB at least and 16 GiB at most
pinned  = half of host
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cuzk.config import MemorySettings
from cuzk.errors import FormatError

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
LEAST_MARGIN, MOST_MARGIN = 512 << 20, 16 << 30
MARGIN_PART, PINNED_PART = 16, 2


def memory_limits(memory: MemorySettings, devices: list[str], machine: int) -> dict[str, int]:
    """Bytes of "host", "pinned" and, where the settings have a number, each GPU; of others their workers know it.

    ``machine``: bytes that this process can have at all. FormatError where the margin leaves nothing.
    """
    margin = memory.margin
    if margin is None:
        margin = min(max(machine // MARGIN_PART, LEAST_MARGIN), MOST_MARGIN)
    host = machine - margin if memory.host is None else memory.host
    if host <= 0:
        raise FormatError(
            f"memory.margin: expected less than the {machine} bytes that this machine or its cgroup allows, "
            f"found {margin}"
        )
    limits = {
        "host": host,
        "pinned": host // PINNED_PART if memory.pinned is None else memory.pinned,
    }
    if memory.device is not None:
        limits |= {device: memory.device for device in devices if device != "cpu"}
    return limits


def machine_bytes(*, own: Path = OWN, cgroups: Path = CGROUPS) -> int:
    """Memory of this machine, or less where a control group of this process has a limit."""
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([installed, *_limits(own, cgroups)])


def _limits(own: Path, cgroups: Path) -> Iterator[int]:
    """Of every group that this process is in, and those that they are in: version 2, then version 1."""
    try:
        lines = own.read_text().splitlines()
    except OSError:  # another system than Linux
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = root / group.lstrip("/")
        for place in [folder, *folder.parents]:
            if place != root and root not in place.parents:
                break
            yield from _number(place / name)


def _number(path: Path) -> Iterator[int]:
    """Nothing where there is no limit ("max", or no such file)."""
    try:
        text = path.read_text().strip()
    except OSError:
        return
    if text.isdecimal():
        yield int(text)
