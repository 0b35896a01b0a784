"""One process of a worker, from its start to its end, as the daemon's event loop sees it.

Calls are numbered and overlap; each gets the answer with its number. The process is started by exec, not by fork
alone (threads and CUDA do not survive one), by the event loop's own thread: the kernel ends the child when the
thread that started it ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from cuzk.engine.channel import Frames, Vitals, answer_of, pack
from cuzk.engine.childlog import ChildLog
from cuzk.engine.failure import Failure
from cuzk.errors import WorkerLost

LOG = logging.getLogger("cuzk.worker")
BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from cuzk.engine.child import main; main(*map(int, sys.argv[2:]))"
)
CLOSE_SECONDS = 2.0
EXIT_SECONDS = 1.0  # from the end of the channel to the end of the process; then it is killed
LOST_SECONDS = 10.0  # after which a process that does not even die of SIGKILL is left alone


class Link(asyncio.Protocol):
    """``on_end(link, text)`` is called once when the process has ended, before any call hears of it."""

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], limit: int, on_end: OnEnd
    ) -> None:
        self.process = process
        self.vitals = Vitals()
        self.end = ""
        """How it ended, as soon as ``ended`` is set."""
        self.ended = asyncio.Event()
        self.active = asyncio.Event()
        """Set by every call: :mod:`heartbeat` looks after those that work."""
        self._name = name
        self._limit = limit
        self._on_end = on_end
        self._frames = Frames(limit)
        self._numbers = count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._transport: asyncio.Transport | None = None
        self._gone = asyncio.Event()
        self._broken = ""
        self._log = ChildLog(name)
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(cls, name: str, limit: int, on_end: OnEnd) -> Link:
        """WorkerLost where the system starts no process."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                link = cls(name, _spawn(theirs.fileno(), limit), limit, on_end)
        except OSError as error:
            ours.close()
            raise WorkerLost(f"worker {name} cannot be started: {error.strerror}") from error
        loop = asyncio.get_running_loop()
        link._watching = loop.create_task(link._watch())
        try:
            await loop.connect_read_pipe(lambda: link._log, link.process.stdout)
            await loop.connect_accepted_socket(lambda: link, ours)
        except BaseException:
            if link._transport is None:
                ours.close()
                link._gone.set()
            link.process.kill()
            await link.ended.wait()
            raise
        return link

    async def call(self, method: str, *arguments: object) -> Any:
        """The answer; a CuzkError as it was raised there, WorkerLost when the process ends, EngineError where the
        arguments cannot be sent. The answer to one that is cancelled is dropped."""
        self.active.set()
        return await self._ask(method, arguments)

    async def beat(self) -> None:
        """Whether its main loop takes a call, and another thread of it answers for the device."""
        await self._ask("beat", ())

    async def _ask(self, method: str, arguments: tuple[object, ...]) -> Any:
        if self._gone.is_set():
            await self.ended.wait()  # the channel ends a moment before the process
            raise WorkerLost(self.end)
        if self._transport is None:
            raise WorkerLost(f"worker {self._name} has not begun")
        number = next(self._numbers)
        self._transport.write(pack(number, (method, arguments), self._limit))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        try:
            return await answer
        finally:
            self._pending.pop(number, None)

    @property
    def working(self) -> bool:
        """Whether a call has no answer yet."""
        return bool(self._pending)

    @property
    def ending(self) -> bool:
        """Whether its channel is closed, and ``ended`` about to be set."""
        return self._gone.is_set()

    def tell(self, method: str, *arguments: object) -> None:
        """A call whose answer is for nobody; nothing where the process has ended."""
        if self._transport is not None and not self._gone.is_set():
            self._transport.write(pack(0, (method, arguments), self._limit))

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Ask it to end; kill it when it has not within ``seconds``."""
        if self._transport is not None and not self._gone.is_set() and seconds > 0:
            self.tell("close")
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.ended.wait()
        if not self.ended.is_set():
            self.process.kill()
            await self.ended.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The channel is there."""
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Answers, in whichever order."""
        try:
            for number, body in self._frames.feed(data):
                value, self.vitals = answer_of(body)
                answer = self._pending.get(number)
                if answer is None or answer.done():
                    continue
                if isinstance(value, Failure):
                    answer.set_exception(value.error())
                else:
                    answer.set_result(value)
        except Exception as error:  # whatever bytes do to pickle: the process is not to be trusted
            reason = " ".join(str(error).split())
            self.give_up(f"killed, its answer cannot be read: {reason}")

    def give_up(self, how: str) -> None:
        """Kill it; ``how`` is what its end says, the first time that this is called."""
        self._broken = self._broken or how
        self.process.kill()
        if self._transport is not None:
            self._transport.abort()  # it may be where not even SIGKILL ends it

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The process has ended, or is about to."""
        self._gone.set()

    async def _watch(self) -> None:
        await self._gone.wait()
        how = self._broken or await self._reap()
        if self._broken:
            await self._reap()
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                await self._log.ended.wait()
        self._log.close()
        words = self._log.last_words()
        self.end = f"worker {self._name} (process {self.process.pid}) died: {how}"
        if words:
            self.end += f"; its last words: {words}"
        try:
            self._on_end(self, self.end)
        finally:
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(WorkerLost(self.end))
            self.ended.set()

    async def _reap(self) -> str:
        """How it ended. The channel's end comes a moment before the process's."""
        waited, pause = 0.0, 0.001
        while (status := self.process.poll()) is None:
            if waited > LOST_SECONDS:
                return "it does not end, not even killed"
            if waited > EXIT_SECONDS:
                self.process.kill()
            await asyncio.sleep(pause)
            waited, pause = waited + pause, min(2 * pause, 0.05)
        if status >= 0:
            return f"exit status {status}"
        try:
            return f"signal {-status} ({signal.Signals(-status).name})"
        except ValueError:
            return f"signal {-status}"


OnEnd = Callable[[Link, str], None]


def _spawn(descriptor: int, limit: int) -> subprocess.Popen[bytes]:
    """Of a session of its own: what a terminal sends to the daemon's (Ctrl-C, hang-up) is not for it."""
    where = [json.dumps(sys.path), str(descriptor), str(os.getpid()), str(limit)]
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN, *where],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(descriptor,),
        start_new_session=True,
    )
