"""The gRPC server as the daemon starts and ends it: service, health, reflection, socket, TLS, limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grpclib.config import Configuration
from grpclib.encoding.proto import ProtoCodec
from grpclib.events import RecvRequest, listen
from grpclib.health.check import ServiceStatus
from grpclib.health.service import OVERALL, Health
from grpclib.reflection.service import ServerReflection

from cuzk.config import Settings, address
from cuzk.engine.snapshot import Snapshot
from cuzk.server.connections import Connections
from cuzk.server.gatekeeper import Gatekeeper
from cuzk.server.listen import Listening, bind
from cuzk.server.receive import Arrivals, Receiver, Spool
from cuzk.server.rpc import Proving, Service
from cuzk.server.security import Calls, read_token, tls_context
from cuzk.server.small import SMALL, Bounded

CONNECTION_WINDOW = 8 << 20  # bytes that a client may send before we have read them
STREAM_WINDOW = 4 << 20
FLUSH_SECONDS = 2.0
ARRIVING = 4 << 30  # bytes of messages at a time, of all clients
REST = 1 << 20  # bytes of a message beside what ``message_limit`` is meant for: ids, commitments


@dataclass
class RpcServer:
    """A server that listens. ``address`` is what clients call, with the port that it has."""

    address: str
    listening: Listening
    server: Connections
    gatekeeper: Gatekeeper
    serving: ServiceStatus

    def drain(self) -> None:
        """Health says NOT_SERVING from now on; calls are answered as before."""
        self.serving.set(False)

    async def close(self, grace: float) -> None:
        """No more connections and no more calls: those in progress have ``grace`` seconds, then UNAVAILABLE."""
        self.drain()
        self.server.stop_accepting()
        self.listening.close()
        await self.gatekeeper.stop(grace)
        self.server.close()
        await self.server.close_connections(FLUSH_SECONDS)


async def serve_rpc(
    engine: Proving,
    settings: Settings,
    *,
    spool: Callable[[int], Spool],
    status_json: Callable[[Snapshot], bytes],
    metrics_text: Callable[[Snapshot], str],
    listening: Listening | None = None,
) -> RpcServer:
    """Listen at ``daemon.listen``, or at what is bound already. ``spool``: the journal's, given a message's size.
    FormatError, Unavailable.
    """
    security = settings.security
    token = read_token(security.token_file) if security.token_file else None
    tls = None
    if security.tls_certificate and security.tls_key:
        tls = tls_context(security.tls_certificate, security.tls_key)
    arrivals = Arrivals(ARRIVING)
    small = Receiver(SMALL, arrivals)
    large = Receiver(security.message_limit + REST, arrivals, spool)
    service = Service(engine, large, small, status_json, metrics_text)
    serving = ServiceStatus()
    serving.set(True)
    health = Health({service: [serving], OVERALL: [serving]})
    ours, *others = ServerReflection.extend([service, health])
    services = [ours, *(Bounded(other, small) for other in others)]
    config = Configuration(
        http2_connection_window_size=CONNECTION_WINDOW, http2_stream_window_size=STREAM_WINDOW
    )
    server = Connections(
        services, codec=ProtoCodec(), config=config, of_client=security.client_requests
    )
    gatekeeper = Gatekeeper(token, Calls(security.client_requests))
    listen(server, RecvRequest, gatekeeper)
    if listening is None:
        listening = bind(address(settings.daemon.listen), wide=security.allow_remote)
    try:
        await server.listen(listening.socket, tls)
    except BaseException:
        listening.close()
        raise
    return RpcServer(listening.address, listening, server, gatekeeper, serving)
