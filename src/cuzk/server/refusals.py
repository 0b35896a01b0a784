"""A service's errors as a client raises them: the class that was raised there, with the same text."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from cuzk.errors import (
    Cancelled,
    CuzkError,
    DeadlineExceeded,
    EngineError,
    FormatError,
    NotReady,
    QueueFull,
    Refused,
    RequestConflict,
    Unavailable,
    UnknownJob,
)
from cuzk.server import CODE_KEY

BY_STATUS: dict[grpc.StatusCode, type[CuzkError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: FormatError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: QueueFull,
    grpc.StatusCode.ALREADY_EXISTS: RequestConflict,
    grpc.StatusCode.NOT_FOUND: UnknownJob,
    grpc.StatusCode.FAILED_PRECONDITION: NotReady,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.UNAUTHENTICATED: Refused,
    grpc.StatusCode.PERMISSION_DENIED: Refused,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.CANCELLED: Cancelled,
}
LOST = "the connection was lost, or the service requires TLS; a job with an id goes on, ask for it again"
REASONS = (  # what gRPC's core says, and what that means to a person; the first that is in its text
    ("onnection refused", "no proving service listens there; start one with `cuzk serve`"),
    ("o such file", "no proving service listens there; start one with `cuzk serve`"),
    ("ermission denied", "no permission to use this socket; it is its service's user's alone"),
    ("errors resolving", "no machine of this name is known"),
    ("lookup failed", "no machine of this name is known"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not the one expected"),
    ("andshake", "expected a service with TLS, found one without"),
    ("HTTP/2", "expected a proving service, found something else"),
    ("Stream removed", LOST),
    ("ocket closed", LOST),
    ("onnection reset", LOST),
    ("roken pipe", LOST),
    ("GOAWAY", LOST),
    ("failed to connect", "cannot be reached"),
    ("eepalive", "does not answer any more"),
)


def failure(code: str, message: str) -> CuzkError:
    """The error of a job that failed; of a word that this version does not know an EngineError."""
    for kind in _tree(CuzkError):
        if kind.code == code:
            return kind(message)
    return EngineError(message)


def _tree(kind: type[CuzkError]) -> Iterator[type[CuzkError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)


def refusal(error: grpc.RpcError, address: str) -> CuzkError:
    """What a call was refused with, or why no service was reached."""
    status, text = error.code(), error.details() or ""
    metadata = {key: value for key, value in error.trailing_metadata() or ()}
    if CODE_KEY in metadata:
        return failure(str(metadata[CODE_KEY]), text)
    if status is grpc.StatusCode.UNAVAILABLE:
        reason = _reason(text)
        return Unavailable(f"{address}: {reason}" if reason else text)
    if status is grpc.StatusCode.UNIMPLEMENTED:
        return EngineError(f"{address}: expected a proving service, found another one: {text}")
    return BY_STATUS.get(status, EngineError)(text or f"{address}: {status.name}")


def _reason(text: str) -> str:
    """What gRPC's core means by a text of its own; "" for a service's."""
    return next((reason for mark, reason in REASONS if mark in text), "")
