"""What every call passes, health and reflection included: the token, its client's limits, errors as statuses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from grpclib.const import Status
from grpclib.events import RecvRequest
from grpclib.exceptions import GRPCError
from grpclib.server import Stream
from h2.exceptions import StreamClosedError

from cuzk.errors import CuzkError
from cuzk.server import CODE_KEY
from cuzk.server.codes import status_of, text_of
from cuzk.server.security import Calls, check_token
from cuzk.server.streams import answer_in_time, client_of

Call = Callable[[Any], Awaitable[None]]
STOPPED = "the service stops; a job whose request has an id goes on when it starts again: ask again with the same id"
log = logging.getLogger(__name__)


class Gatekeeper:
    """Listens to grpclib's RecvRequest. ``tasks`` are the calls in progress."""

    def __init__(self, token: str | None, calls: Calls) -> None:
        self.token = token
        self.calls = calls
        self.tasks: set[asyncio.Task[Any]] = set()
        self.stopping = False

    async def __call__(self, event: RecvRequest) -> None:
        """Put ourselves in front of what answers."""
        event.method_func = partial(self._answer, event.method_func)

    async def _answer(self, call: Call, stream: Stream[Any, Any]) -> None:
        task = asyncio.current_task()
        if task is not None:
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        try:
            given = (stream.metadata or {}).items()
            check_token(self.token, [str(v) for k, v in given if k == "authorization"])
            answer_in_time(stream)
            with self.calls.one(client_of(stream.peer)):
                await call(stream)
        except CuzkError as error:
            await _refuse(stream, status_of(error), text_of(error), error.code)
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            await _refuse(stream, Status.UNAVAILABLE, STOPPED, "unavailable")
        except GRPCError:
            raise
        except Exception as error:
            log.exception("a call ended with an error of ours")
            text = f"an error of the service's own, {type(error).__name__}; its log says more"
            await _refuse(stream, Status.INTERNAL, text, CuzkError.code)

    async def stop(self, seconds: float) -> None:
        """Let calls end for so long; then UNAVAILABLE for those that are left."""
        others = self.tasks - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=seconds)
        self.stopping = True
        left = [task for task in self.tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=5)


async def _refuse(stream: Stream[Any, Any], status: Status, text: str, code: str) -> None:
    try:
        await stream.send_trailing_metadata(
            status=status, status_message=text, metadata={CODE_KEY: code}
        )
    except StreamClosedError:  # the client is gone
        raise GRPCError(status, text) from None
