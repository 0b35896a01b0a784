"""The service ``cuzk.v1.ProvingEngine`` in front of an engine: each method reads, asks, answers.

Errors leave as they are raised and become statuses in :mod:`gatekeeper`; once a job is taken, its end is an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from grpclib.const import Cardinality, Handler
from grpclib.server import Stream

from cuzk.engine.job import Outcome
from cuzk.engine.request import Request
from cuzk.engine.snapshot import JobView, Snapshot
from cuzk.server.messages import outcome_message, status_message
from cuzk.server.proving_pb2 import (
    AwaitProofRequest,
    AwaitProofResponse,
    CancelProofRequest,
    CancelProofResponse,
    EvictSrsRequest,
    EvictSrsResponse,
    GetMetricsRequest,
    GetMetricsResponse,
    GetStatusRequest,
    GetStatusResponse,
    PreloadSrsRequest,
    PreloadSrsResponse,
    ProveRequest,
    ProveResponse,
    SubmitProofRequest,
    SubmitProofResponse,
)
from cuzk.server.receive import Message, Receiver
from cuzk.server.small import read_small
from cuzk.server.streams import client_of
from cuzk.server.submission import read_prove, read_submit

NAME = "cuzk.v1.ProvingEngine"
UINT32 = 2**32 - 1
LONGEST = 365 * 86400.0
"""Seconds: what a client that waits for longer gets."""


class Proving(Protocol):
    """What is asked of the engine."""

    async def submit(self, request: Request) -> JobView:
        """Take a request."""

    async def result(
        self, job_id: str, timeout: float | None = None
    ) -> tuple[JobView, Outcome | None]:
        """Wait for its end."""

    def left(self, job_id: str) -> None:
        """A client that waited for an unnamed job is gone."""

    async def cancel(self, job_id: str) -> bool:
        """Whether work on it had begun and not ended."""

    async def preload(self, circuit: str) -> tuple[bool, float]:
        """Whether it was loaded already; milliseconds."""

    async def evict(self, circuit: str) -> tuple[bool, int]:
        """Whether it was loaded; bytes that are free now."""

    def snapshot(self, *, ended: int = 50, spans_since: float | None = None) -> Snapshot:
        """All of it."""


@dataclass(eq=False)
class Service:
    """The eight methods. ``large`` reads requests with payloads, ``small`` all others."""

    engine: Proving
    large: Receiver
    small: Receiver
    status_json: Callable[[Snapshot], bytes]
    metrics_text: Callable[[Snapshot], str]
    clock: Callable[[], float] = time.time

    def __mapping__(self) -> dict[str, Handler]:
        methods = {
            "SubmitProof": (self.submit_proof, SubmitProofRequest, SubmitProofResponse),
            "AwaitProof": (self.await_proof, AwaitProofRequest, AwaitProofResponse),
            "Prove": (self.prove, ProveRequest, ProveResponse),
            "CancelProof": (self.cancel_proof, CancelProofRequest, CancelProofResponse),
            "GetStatus": (self.get_status, GetStatusRequest, GetStatusResponse),
            "GetMetrics": (self.get_metrics, GetMetricsRequest, GetMetricsResponse),
            "PreloadSRS": (self.preload_srs, PreloadSrsRequest, PreloadSrsResponse),
            "EvictSRS": (self.evict_srs, EvictSrsRequest, EvictSrsResponse),
        }
        return {
            f"/{NAME}/{name}": Handler(method, Cardinality.UNARY_UNARY, asked, answered)
            for name, (method, asked, answered) in methods.items()
        }

    async def submit_proof(self, stream: Stream[Any, Any]) -> None:
        """Take a request; its client comes back for the proof, with the id in the answer."""
        message = await self.large.receive(stream)
        try:
            client = client_of(stream.peer)
            request = read_submit(message, client=client, now=self.clock(), named=True)
        except BaseException:
            message.discard()
            raise
        view = await self._submit(request, message)
        place = min(max(view.place, 0), UINT32)
        await stream.send_message(SubmitProofResponse(job_id=view.id, queue_position=place))

    async def await_proof(self, stream: Stream[Any, Any]) -> None:
        """Wait for a job's end as long as asked for, or as long as the call may take."""
        asked = await read_small(self.small, stream, AwaitProofRequest)
        seconds = min(asked.timeout_ms / 1000, LONGEST) or None
        await stream.send_message(outcome_message(*await self.engine.result(asked.job_id, seconds)))

    async def prove(self, stream: Stream[Any, Any]) -> None:
        """Take a request and wait for its end. A client that goes away leaves a job that has a name to go on."""
        message = await self.large.receive(stream)
        try:
            request = read_prove(message, client=client_of(stream.peer), now=self.clock())
        except BaseException:
            message.discard()
            raise
        view = await self._submit(request, message)
        try:
            ended = await self.engine.result(view.id)
        except asyncio.CancelledError:
            if not request.named:
                self.engine.left(view.id)
            raise
        await stream.send_message(ProveResponse(result=outcome_message(*ended)))

    async def _submit(self, request: Request, message: Message) -> JobView:
        """To its end even where the client goes away meanwhile: what is half accepted would be nobody's."""
        task = asyncio.ensure_future(self.engine.submit(request))
        task.add_done_callback(lambda _: message.discard())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not request.named:
                task.add_done_callback(self._left)
            raise

    def _left(self, task: asyncio.Task[JobView]) -> None:
        if not task.cancelled() and task.exception() is None:
            self.engine.left(task.result().id)

    async def cancel_proof(self, stream: Stream[Any, Any]) -> None:
        """Cancel a job."""
        asked = await read_small(self.small, stream, CancelProofRequest)
        was_running = await self.engine.cancel(asked.job_id)
        await stream.send_message(CancelProofResponse(was_running=was_running))

    async def get_status(self, stream: Stream[Any, Any]) -> None:
        """The whole state."""
        await read_small(self.small, stream, GetStatusRequest)
        state = self.engine.snapshot()
        await stream.send_message(status_message(state, self.status_json(state)))

    async def get_metrics(self, stream: Stream[Any, Any]) -> None:
        """The state as Prometheus text."""
        await read_small(self.small, stream, GetMetricsRequest)
        text = self.metrics_text(self.engine.snapshot(ended=0))
        await stream.send_message(GetMetricsResponse(prometheus_text=text))

    async def preload_srs(self, stream: Stream[Any, Any]) -> None:
        """Load a key now."""
        asked = await read_small(self.small, stream, PreloadSrsRequest)
        already, milliseconds = await self.engine.preload(asked.circuit_id)
        await stream.send_message(
            PreloadSrsResponse(already_loaded=already, load_time_ms=max(0, round(milliseconds)))
        )

    async def evict_srs(self, stream: Stream[Any, Any]) -> None:
        """Close a key that is not in use."""
        asked = await read_small(self.small, stream, EvictSrsRequest)
        was_loaded, freed = await self.engine.evict(asked.circuit_id)
        await stream.send_message(EvictSrsResponse(was_loaded=was_loaded, freed_bytes=freed))
