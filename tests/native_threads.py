"""The threads of this process as the kernel knows them."""

from __future__ import annotations

from pathlib import Path

TASKS = Path("/proc/self/task")
EXITING = 0x4  # PF_EXITING


def native_threads() -> set[int]:
    """Their numbers; without /proc, none.

    One that was joined may be listed for a moment: it has said that it ends before whoever joins it hears of it.
    """
    found = set[int]()
    for task in TASKS.iterdir() if TASKS.is_dir() else ():
        try:
            stat = (task / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if not int(stat.rpartition(")")[2].split()[6]) & EXITING:
            found.add(int(task.name))
    return found
