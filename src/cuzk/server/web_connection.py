"""One connection of the HTTP side, bounded in time and number: uvicorn waits for a request as long as its client likes.

A connection has 30 seconds for each request, its answer included. One more than there may be takes the place of the
longest idle one, so that those who open connections and do nothing with them keep neither a person out nor files from gRPC.
"""

from __future__ import annotations

import asyncio
import resource
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 128  # at a time
REQUEST_SECONDS = 30.0


def most_connections() -> int:
    """Of all clients: fewer where the process may open few files, most of which are gRPC's and the journal's."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return CONNECTIONS if files < 0 else min(CONNECTIONS, max(1, files // 8))


class WebConnection(H11Protocol):
    """As uvicorn makes them."""

    _since = 0.0
    _deadline: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether there is no request that is whole and not answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for it, or drop it where all others are busy."""
        super().connection_made(transport)
        self._begin()
        if len(self.connections) > most_connections():
            others = [cast(WebConnection, other) for other in self.connections if other is not self]
            idle = [other for other in others if other.idle]
            dropped = min(idle, key=lambda other: other._since) if idle else self
            self.connections.discard(dropped)
            dropped.transport.abort()

    def on_response_complete(self) -> None:
        """The next request's time begins."""
        self._begin()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """It needs no time any more."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _begin(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._since = self.loop.time()
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
