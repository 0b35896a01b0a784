"""A daemon as a person starts it: ``cuzk serve`` in a process of its own, its log, its end."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from command import COMMAND, environment
from cuzk.server.client import Client
from until import PATIENCE, until

UNENDED = {"queued", "preparing", "proving", "verifying"}


class Served:
    """``log`` is what it said so far, line by line; ``address`` where it listens."""

    def __init__(
        self,
        *arguments: str | Path,
        variables: dict[str, str] | None = None,
        program: Sequence[str | Path] = COMMAND,
    ) -> None:
        self.log: list[str] = []
        self._more = threading.Condition()
        self._over = False
        self.process = subprocess.Popen(
            [*map(str, program), "serve", *map(str, arguments)],
            env=environment(variables),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._more:
                self.log.append(line.rstrip("\n"))
                self._more.notify_all()
        with self._more:
            self._over = True
            self._more.notify_all()

    def said(self, pattern: str) -> re.Match[str]:
        """Wait for a line of the log."""
        end = time.monotonic() + PATIENCE
        with self._more:
            while True:
                for line in self.log:
                    if match := re.search(pattern, line):
                        return match
                assert not self._over, self.log
                assert self._more.wait(max(0.0, end - time.monotonic())), self.log

    @property
    def address(self) -> str:
        return self.said(r"listens at (\S+)$")[1]

    @property
    def page(self) -> str:
        return self.said(r"status page: (\S+)$")[1]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit status, once its log is read to the end."""
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def processes(self) -> list[psutil.Process]:
        """It and its workers."""
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Its workers stand still: no proof is made and no request is looked at before the end of this."""
        workers = self.processes()[1:]
        assert workers
        try:
            for worker in workers:
                worker.suspend()
            until(lambda: all(w.status() == psutil.STATUS_STOPPED for w in workers))
            yield
        finally:
            for worker in workers:
                with suppress(psutil.NoSuchProcess):
                    worker.resume()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def halted_at_work(
    served: Served,
    client: Client,
    submit: Callable[[str], object],
    name: str = "job",
    count: int = 12,
) -> Iterator[list[str]]:
    """Jobs <name>-0, ...; a third of ``count`` and more of them, the last in this list, are not done and do not go on
    before the end of this. The first of these may be in work.

    On however quick a machine: as many more are asked for, all at once, until the workers, halted, have left so many.
    """
    jobs: list[str] = []
    end = time.monotonic() + PATIENCE
    with ThreadPoolExecutor(count) as threads:
        while True:
            assert time.monotonic() < end, f"all of {len(jobs)} jobs were done"
            more = [f"{name}-{number}" for number in range(len(jobs), len(jobs) + count)]
            list(threads.map(submit, more))
            jobs += more
            with served.halted():
                state = client.status()
                left = [job for job in state["jobs"] if job["state"] in UNENDED]
                assert len(left) == sum(state["states"].values())
                if 3 * len(left) >= count:
                    names = [job["id"] for job in sorted(left, key=lambda job: job["accepted"])]
                    yield [job for job in jobs if job not in names] + names
                    return


@contextmanager
def serve(
    *arguments: str | Path,
    variables: dict[str, str] | None = None,
    program: Sequence[str | Path] = COMMAND,
) -> Iterator[Served]:
    """With its end, whatever happens. It listens where nobody else does, if not told otherwise; ``program`` is
    the command line's."""
    own: list[str | Path] = []
    if "--listen" not in arguments:
        own += ["--listen", "127.0.0.1:0"]
    if "--status" not in arguments:
        own += ["--status", "127.0.0.1:0"]
    daemon = Served(*own, *arguments, variables=variables, program=program)
    try:
        yield daemon
    finally:
        daemon.close()
