"""A worker's process: reads calls of its parent, has a workshop do them, answers each when it is done.

It ends with its parent, whatever it does: the kernel kills it when the thread that started it ends (also in the
middle of native code), and it leaves when the channel is closed. Signals that a terminal or a service manager sends
to all processes of the daemon are not for it: the daemon decides what is finished before it goes.
"""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import pickle
import signal
import socket
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from cuzk.engine.catalogue import Catalogue, Device
from cuzk.engine.channel import Channel, Vitals
from cuzk.engine.failure import Failure
from cuzk.engine.request import Request
from cuzk.engine.workshop import Workshop
from cuzk.errors import CuzkError, EngineError

CALLS = {"load", "unload", "stage", "unstage", "prove", "finish", "forget"}
OOM_SCORE = 300  # of 1000: short of memory, the kernel ends a worker before the daemon
PR_SET_PDEATHSIG = 1
LOG = logging.getLogger("cuzk.child")


def main(descriptor: int, parent: int, limit: int) -> None:
    """Serve the process ``parent`` at the other end of the socket ``descriptor``, in messages of at most ``limit``
    bytes; does not return."""
    _end_with(parent)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.enable()
    os.set_inheritable(descriptor, False)
    _offer_to_the_kernel()
    child = Child(Channel(socket.socket(fileno=descriptor), limit))
    with suppress(EOFError, OSError):
        child.serve()
    os._exit(0)  # without waiting for threads: there is nobody to answer


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the kernel knew
        os._exit(0)


def _offer_to_the_kernel() -> None:
    with suppress(OSError, ValueError):
        score = Path("/proc/self/oom_score_adj")
        score.write_text(str(min(1000, max(OOM_SCORE, int(score.read_text())))))


class Child:
    """One parent's calls."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._workshop: Workshop | None = None
        self._process = psutil.Process()
        self._device = Device("")
        self._started_with = 0
        self._calls: set[int] = set()
        self._report = ThreadPoolExecutor(1, "report")
        self._said = ""
        self._kept: dict[int, Request] = {}
        """By numbers, which the parent gives and keeps books of: what was checked, until it is prepared or dropped."""

    def serve(self) -> None:
        """Until the channel is closed: EOFError, OSError."""
        while True:
            number, body = self._channel.receive()
            try:
                method, arguments = pickle.loads(body)
                if method != "beat":
                    self._calls.add(number)
                future = self._begin(method, arguments)
            except Exception as error:
                self._answer(number, Failure.of(error))
            else:
                future.add_done_callback(partial(self._done, number))
                del future
            del body  # or the last request would be kept until the next comes

    def _begin(self, method: str, arguments: tuple[Any, ...]) -> Future[Any]:
        if method == "open":
            return self._open(*arguments)
        if method == "close":
            self._close()
        if method == "beat" and self._workshop is not None:
            return self._report.submit(self._look, self._workshop)
        if method == "drop":
            return self._drop(*arguments)
        if method == "check" and self._workshop is not None:
            return self._check(self._workshop, *arguments)
        if method == "prepare" and self._workshop is not None:
            return self._prepare(self._workshop, *arguments)
        if method not in CALLS or self._workshop is None:
            raise EngineError(f"a worker has no call {method!r} now")
        return getattr(self._workshop, method)(*arguments)  # type: ignore[no-any-return]

    def _open(
        self,
        device: str,
        catalogue: Catalogue,
        threads: int | None,
        lanes: int | None,
        level: int,
    ) -> Future[Device]:
        _log_to_stderr(level)
        workshop = Workshop(catalogue, device, threads=threads, lanes=lanes)
        opened: Future[Device] = Future()
        opened.set_result(workshop.device())
        self._device = opened.result()
        self._started_with = self._process.memory_info().rss
        self._workshop = workshop
        return opened

    def _check(
        self, workshop: Workshop, request: Request, number: int, circuit: str
    ) -> Future[None]:
        if number:
            self._kept[number] = request
        return workshop.check(request, circuit)

    def _prepare(self, workshop: Workshop, circuit: str, what: Request | int) -> Future[int]:
        request = self._kept.pop(what) if isinstance(what, int) else what
        return workshop.prepare(circuit, request)

    def _drop(self, number: int) -> Future[None]:
        self._kept.pop(number, None)
        dropped: Future[None] = Future()
        dropped.set_result(None)
        return dropped

    def _close(self) -> None:
        """Work that is not done is for nobody: circuits are closed in order only where none is in work."""
        if self._workshop is not None and len(self._calls) == 1:
            self._report.shutdown()
            self._workshop.close()
        sys.stderr.flush()
        os._exit(0)

    def _done(self, number: int, future: Future[Any]) -> None:
        error = future.exception()
        self._answer(number, Failure.of(error) if error else future.result())

    def _answer(self, number: int, value: object) -> None:
        self._calls.discard(number)
        try:
            self._channel.send(number, (value, self._vitals()))
        except EngineError as error:
            self._channel.send(number, (Failure.of(error), self._vitals()))

    def _vitals(self) -> Vitals:
        overhead = {**self._device.overhead, "host": {"process": self._started_with}}
        return Vitals(
            self._process.memory_info().rss,
            self._device.free,
            overhead if self._started_with else {},
        )

    def _look(self, workshop: Workshop) -> None:
        """Ask for the device, whose memory's use then goes with every answer; its fault is logged once."""
        try:
            self._device = workshop.device()
        except CuzkError as error:
            if self._said != str(error):
                self._said = str(error)
                LOG.warning("%s", self._said)


class _Lines(logging.Formatter):
    """Every line with its level, by which the parent logs it again."""

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).splitlines()
        return "\n".join(f"{record.levelname} {line}" for line in lines)


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines())
    logging.basicConfig(level=level, handlers=[handler])
