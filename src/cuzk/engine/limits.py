"""What "auto" means for memory: what the machine has and its cgroups allow, less a margin.

    host   = min(the machine's memory, every limit on the way from the process' cgroup to the root) - margin
    margin = max(1/16 of that, 512 MiB)
    pinned = min(RLIMIT_MEMLOCK, host / 2)

A container's or a systemd unit's limit is far below the machine's memory, and a limit of a parent holds for its children,
though their own files say "max". Both hierarchies are read, v1 and v2, as cgroups(7) describes: ``/proc/self/cgroup``
names the process' groups, ``/proc/self/mountinfo`` where each hierarchy is mounted and which part of it that is.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

from cuzk.errors import EngineError

MARGIN_FRACTION = 16
MARGIN_LEAST = 512 << 20
LIMITS = {"cgroup": ("memory.limit_in_bytes",), "cgroup2": ("memory.max", "memory.high")}
"""Files of a group, of each type of mount. memory.high throttles rather than kills, to a standstill."""
USAGE = {"cgroup": "memory.usage_in_bytes", "cgroup2": "memory.current"}
INACTIVE = {"cgroup": "total_inactive_file", "cgroup2": "inactive_file"}
"""A row of memory.stat: pages of files that the system takes back before it refuses any, such as a key's read once."""


@dataclass(frozen=True)
class Group:
    """One cgroup with a limit: bytes it may use and uses, pages that can be taken back not counted."""

    path: Path
    limit: int
    used: int


@dataclass(frozen=True)
class HostMemory:
    """Bytes. ``limit``: what this process may ever use, ``available``: what it could get now; ``group`` is the cgroup that
    sets the limit, "" where the machine does."""

    machine: int
    limit: int
    available: int
    group: str = ""


def host_memory(
    root: Path = Path("/"), *, machine: int | None = None, available: int | None = None
) -> HostMemory:
    """Of the process that calls; ``root`` holds proc and the mounts, ``machine`` and ``available`` are asked of the system
    where they are None."""
    system = psutil.virtual_memory()
    machine = system.total if machine is None else machine
    left = system.available if available is None else available
    limit, group = machine, ""
    for found in memory_groups(root):
        left = min(left, max(0, found.limit - found.used))
        if found.limit < limit:
            limit, group = found.limit, str(found.path)
    return HostMemory(machine, limit, min(left, limit), group)


def host_limit(memory: HostMemory, margin: int | None = None) -> int:
    """Bytes to share out; ``margin`` stays free for everything else, None for the automatic one. EngineError where the
    margin leaves nothing."""
    kept = max(memory.limit // MARGIN_FRACTION, MARGIN_LEAST) if margin is None else margin
    if kept < 0 or kept >= memory.limit:
        where = memory.group or "the machine"
        raise EngineError(
            f"memory: a margin of {kept} bytes leaves nothing of the {memory.limit} that {where} has; "
            "set memory.margin lower, or memory.host"
        )
    return memory.limit - kept


def pinned_limit(host: int, memlock: int | None = None) -> int:
    """Bytes that may be locked for a device, of ``host`` to share out; ``memlock`` is RLIMIT_MEMLOCK, asked where None."""
    if memlock is None:
        memlock = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    unlimited = memlock == resource.RLIM_INFINITY or memlock < 0
    return host // 2 if unlimited else min(memlock, host // 2)


def resident_bytes() -> int:
    """Of the host's memory, what this process has now."""
    return int(psutil.Process().memory_info().rss)


def memory_groups(root: Path = Path("/")) -> list[Group]:
    """The cgroups with a memory limit that this process is in, the innermost first."""
    found = []
    for kind, mount, top, group in _hierarchies(root):
        for folder in _upwards(mount, top, group):
            limits = [_number(folder / name) for name in LIMITS[kind]]
            known = [nbytes for nbytes in limits if nbytes is not None]
            if known:
                found.append(Group(folder, min(known), _used(folder, kind)))
    return found


def _hierarchies(root: Path) -> Iterator[tuple[str, Path, PurePosixPath, PurePosixPath]]:
    """(type, where mounted, which group is mounted there, the process' group) of those that may limit memory."""
    groups = {}
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            groups["cgroup2"] = PurePosixPath(path)
        elif "memory" in controllers.split(","):
            groups["cgroup"] = PurePosixPath(path)
    for line in _lines(root / "proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        fields, rest = left.split(), right.split()
        if len(fields) < 5 or len(rest) < 3 or rest[0] not in groups:
            continue
        if rest[0] == "cgroup" and "memory" not in rest[2].split(","):
            continue
        mount = root / _unescaped(fields[4]).lstrip("/")
        yield rest[0], mount, PurePosixPath(_unescaped(fields[3])), groups[rest[0]]


def _upwards(mount: Path, top: PurePosixPath, group: PurePosixPath) -> Iterator[Path]:
    """Folders from the process' group to the mounted one. In a container only that one may be visible: then it is that."""
    inside = group.relative_to(top) if group.is_relative_to(top) else PurePosixPath()
    if ".." in inside.parts:  # a group outside of the process' namespace: only its top is seen
        inside = PurePosixPath()
    yield mount / inside
    for parent in inside.parents:
        yield mount / parent


def _used(folder: Path, kind: str) -> int:
    used = _number(folder / USAGE[kind]) or 0
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name == INACTIVE[kind] and value.isdigit():
            return max(0, used - int(value))
    return used


def _number(path: Path) -> int | None:
    """A file's number; None where there is none: no such file, not readable, "max"."""
    for line in _lines(path):
        return int(line) if line.isdigit() else None
    return None


def _lines(path: Path) -> list[str]:
    """None of a file that cannot be read: a system without that hierarchy, or a sandbox that hides it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _unescaped(text: str) -> str:
    """mountinfo writes space, tab, newline and backslash as three octal digits."""
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text
