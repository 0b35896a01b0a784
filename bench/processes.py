"""Commands timed as whole processes, pinned to some processors, in turns.

Turns (A B C A B C ...) spread what other programs do to the machine over all commands alike. Peak memory
is what the system says of the process and its threads; Linux counts from the size that the parent had
when it started the command, so figures below this program's own size (some 40 MB) would not show.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO

MOST_SECONDS = 300.0
STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Run:
    """One process: seconds of wall clock and of processors, bytes, and its standard output.

    ``others``: how many processors the rest of the machine kept busy meanwhile, on average.
    """

    wall: float
    cpu: float
    peak_bytes: int
    output: str
    others: float


@dataclass(frozen=True)
class Summary:
    """Medians of several runs; the largest peak; the last output."""

    wall: float
    cpu: float
    peak_bytes: int
    output: str
    others: float
    runs: int


def busy() -> float:
    """Seconds of processors used by everything on the machine so far."""
    if not STAT.exists():
        return 0.0
    fields = [int(value) for value in STAT.read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def processors(count: int) -> set[int]:
    """The first ``count`` that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    if not 1 <= count <= len(allowed):
        sys.exit(f"expected 1 to {len(allowed)} threads on this machine, found {count}")
    return set(allowed[:count])


def run(command: Sequence[str], on: set[int], log: IO[bytes]) -> Run:
    """Stops the benchmark where the command fails."""
    threads = str(len(on))
    environment = os.environ | {"OMP_NUM_THREADS": threads, "RAYON_NUM_THREADS": threads}
    log.seek(0)
    log.truncate()
    busy_before, start = busy(), time.perf_counter()
    child = subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, on),
    )
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    log.seek(0)
    output = log.read().decode(errors="replace")
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}\n{output[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    others = max(0.0, busy() - busy_before - cpu) / wall
    return Run(wall, cpu, usage.ru_maxrss << 10, output, others)


def alternate(
    commands: Mapping[str, Sequence[str]], on: set[int], runs: int, log: IO[bytes]
) -> dict[str, Summary]:
    """One uncounted run of each, then ``runs`` turns."""
    found: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            done = run(command, on, log)
            if turn or not runs:
                found[name].append(done)
    return {name: summary(runs_of) for name, runs_of in found.items()}


def summary(runs: Sequence[Run]) -> Summary:
    return Summary(
        wall=median(r.wall for r in runs),
        cpu=median(r.cpu for r in runs),
        peak_bytes=max(r.peak_bytes for r in runs),
        output=runs[-1].output,
        others=median(r.others for r in runs),
        runs=len(runs),
    )


def own_peak_bytes() -> int:
    """Below this the peaks of children cannot be told."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
