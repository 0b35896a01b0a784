"""What the daemon's process and its workers, which inherit it, may do: no core dumps, as many files as its connections need.

A core dump holds witnesses. RLIMIT_CORE 0 keeps one from being written, not from being piped to a program that the system
has for it; with 1 Linux does neither (core(5), and fs/coredump.c for the pipe).
"""

from __future__ import annotations

import resource

CORE_BYTES = 1
FILES = 65536


def limit_process() -> None:
    """Of this process, for good; limits that the system has set lower stay."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (_least(CORE_BYTES, most), most))
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files not in (resource.RLIM_INFINITY, most):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, _least(FILES, most)), most))


def _least(wanted: int, most: int) -> int:
    return wanted if most == resource.RLIM_INFINITY else min(wanted, most)
