"""A daemon to measure: ``cuzk serve`` in a process of its own on a circuit made here, and what it uses.

FOLDER/cuzk.toml   settings: the circuit "bench", one CPU worker
FOLDER/state       the journal
FOLDER/log         what all daemons of this folder said, one after the other
FOLDER/s           the socket, with ``unix``
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.circuits import SECRETS, dense
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.setup import insecure_setup

START_SECONDS = 150.0  # the first time on a kind of card its kernels are compiled
STOP_SECONDS = 60.0
LOOK = 0.005  # seconds between two looks at the log while it starts
CIRCUIT = "bench"


@dataclass(frozen=True)
class Made:
    """A key, and witnesses of different public outputs."""

    key: Path
    witnesses: tuple[Path, ...]


def make(folder: Path, curve: str, log_n: int, witnesses: int = 1) -> Made:
    """The dense circuit of 2^log_n rows, from as many first values."""
    constraints = (1 << log_n) - 2
    key = folder / f"{curve}-{log_n}.zkey"
    circuit = dense(curve, constraints)
    write_zkey(key, insecure_setup(circuit.matrices(), SECRETS, threads=2))
    paths = []
    for number in range(witnesses):
        path = folder / f"{curve}-{log_n}-{number}.wtns"
        write_wtns(path, dense(curve, constraints, start=7 + number).witness())
        paths.append(path)
    return Made(key, tuple(paths))


def settings(made: Made, options: Mapping[str, Mapping[str, object]]) -> str:
    """The TOML of a daemon that serves it: tables of strings, numbers and truths."""
    tables = {
        "daemon": {"state": "state", "status_listen": "", **options.get("daemon", {})},
        "devices": {"use": ["cpu"], **options.get("devices", {})},
        **{name: table for name, table in options.items() if name not in ("daemon", "devices")},
    }
    lines = []
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    lines += ["[[circuit]]", f'id = "{CIRCUIT}"', 'kind = "circom"', f'key = "{made.key}"']
    return "\n".join([*lines, "insecure_key = true", "preload = true", ""])


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value).lower() if isinstance(value, bool | int | float) else f'"{value}"'


class Daemon:
    """One that runs. ``address`` is known when it ``listens``."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        self._from = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "cuzk", "serve", "--config", str(folder / "cuzk.toml")]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)

    def log(self) -> str:
        """Of this one."""
        with self._log.open("rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    def address(self) -> str:
        """Wait for it; stops the benchmark where it ends instead."""
        return self._last_word(" listens at ")

    def page(self) -> str:
        """The status page, likewise."""
        return self._last_word(" status page: ")

    def _last_word(self, after: str) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            ended = self.process.poll() is not None
            for line in self.log().splitlines():
                if after in line:
                    return line.rpartition(" ")[2]
            if ended:
                break
            time.sleep(LOOK)
        sys.exit(f"cuzk serve did not start:\n{self.log()[-2000:]}")

    def workers(self) -> list[psutil.Process]:
        """Its processes."""
        with suppress(psutil.NoSuchProcess):
            return list(psutil.Process(self.process.pid).children(recursive=True))
        return []

    def usage(self) -> dict[str, Usage]:
        """Of the daemon and of its worker."""
        found = {"daemon": usage(psutil.Process(self.process.pid))}
        workers = self.workers()
        return found | ({"worker": usage(workers[0])} if workers else {})

    def stop(self) -> int:
        """SIGTERM, and its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextmanager
def served(
    folder: Path, made: Made, options: Mapping[str, Mapping[str, object]] | None = None
) -> Iterator[Daemon]:
    """A daemon that listens at a port of its own, if not told otherwise; it is gone in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = dict(options or {})
    tables["daemon"] = {"listen": "127.0.0.1:0", **tables.get("daemon", {})}
    (folder / "cuzk.toml").write_text(settings(made, tables))
    daemon = Daemon(folder)
    try:
        daemon.address()
        yield daemon
    finally:
        if daemon.process.poll() is None:
            daemon.kill()


@dataclass(frozen=True)
class Usage:
    """Of a process: seconds of processors so far, bytes resident, descriptors, threads."""

    cpu: float
    resident: int
    files: int
    threads: int

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def usage(process: psutil.Process) -> Usage:
    """Now."""
    with process.oneshot():
        times = process.cpu_times()
        return Usage(
            times.user + times.system,
            process.memory_info().rss,
            process.num_fds(),
            process.num_threads(),
        )


def machine() -> str:
    """For a table's foot."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{len(os.sched_getaffinity(0))} processors, load {load}, {time.strftime('%Y-%m-%d')}"
