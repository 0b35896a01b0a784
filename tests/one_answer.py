"""A gRPC server of the generic kind that answers as it is told: what a client makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from cuzk.server import proving_pb2 as messages

SERVICE = messages.DESCRIPTOR.services_by_name["ProvingEngine"]
Answer = Callable[[Any, grpc.ServicerContext], Any]


@dataclass
class Script(grpc.GenericRpcHandler):  # type: ignore[misc]
    """``answers``: a method's name to what it does; ``seen``: the requests in order, ``metadata`` of the last."""

    answers: dict[str, Answer] = field(default_factory=dict)
    seen: list[Any] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        name = call.method.rpartition("/")[2]
        if call.method != f"/{SERVICE.full_name}/{name}" or name not in self.answers:
            return None
        method = SERVICE.methods_by_name[name]
        self.metadata = dict(call.invocation_metadata)

        def respond(request: Any, context: grpc.ServicerContext) -> Any:
            self.seen.append(request)
            return self.answers[name](request, context)

        return grpc.unary_unary_rpc_method_handler(
            respond,
            getattr(messages, method.input_type.name).FromString,
            getattr(messages, method.output_type.name).SerializeToString,
        )


def refuse(status: grpc.StatusCode, text: str, word: str = "") -> Answer:
    """An answer that is none: a gRPC status, and the error's word beside it."""

    def answer(_request: Any, context: grpc.ServicerContext) -> Any:
        if word:
            context.set_trailing_metadata((("cuzk-error-code", word),))
        context.abort(status, text)

    return answer


@contextmanager
def serving(
    script: Script, address: str = "127.0.0.1:0", credentials: grpc.ServerCredentials | None = None
) -> Iterator[str]:
    """Its address, as long as it serves."""
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers((script,))
    if credentials is None:
        port = server.add_insecure_port(address)
    else:
        port = server.add_secure_port(address, credentials)
    server.start()
    try:
        yield address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"
    finally:
        server.stop(None).wait()
