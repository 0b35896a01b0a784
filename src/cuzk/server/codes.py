"""Errors as gRPC statuses: what a call is refused with before a job is taken.

After that a call is OK and its answer says how the job ended. The error's word goes along in the trailers.
"""

from __future__ import annotations

from grpclib.const import Status

from cuzk import errors

TEXT_LIMIT = 1000
"""Characters: a status is a header, and clients bound those (Go's and Python's 8 KiB, percent-encoded)."""
STATUSES: tuple[tuple[type[errors.CuzkError], Status], ...] = (  # the first that fits
    (errors.UnsatisfiedError, Status.FAILED_PRECONDITION),
    (errors.FormatError, Status.INVALID_ARGUMENT),
    (errors.CircuitError, Status.INVALID_ARGUMENT),
    (errors.QueueFull, Status.RESOURCE_EXHAUSTED),
    (errors.RequestConflict, Status.ALREADY_EXISTS),
    (errors.UnknownJob, Status.NOT_FOUND),
    (errors.NotReady, Status.FAILED_PRECONDITION),
    (errors.Cancelled, Status.CANCELLED),
    (errors.DeadlineExceeded, Status.DEADLINE_EXCEEDED),
    (errors.Unavailable, Status.UNAVAILABLE),
    (errors.WorkerLost, Status.UNAVAILABLE),
    (errors.Refused, Status.PERMISSION_DENIED),
    (errors.EngineError, Status.FAILED_PRECONDITION),
    (errors.OutOfMemory, Status.RESOURCE_EXHAUSTED),
    (errors.BackendError, Status.UNAVAILABLE),
    (errors.CuzkError, Status.INTERNAL),
)


class NoToken(errors.Refused):
    """No token came along."""


class TooMuch(errors.Refused):
    """More at a time than one client, or all of them, may have."""


class Unsupported(errors.Refused):
    """A thing of gRPC's that is not done here."""


OF_CALLS: tuple[tuple[type[errors.CuzkError], Status], ...] = (
    (NoToken, Status.UNAUTHENTICATED),
    (TooMuch, Status.RESOURCE_EXHAUSTED),
    (Unsupported, Status.UNIMPLEMENTED),
)


def status_of(error: errors.CuzkError) -> Status:
    """The status of an error that refuses a call."""
    return next(status for kind, status in OF_CALLS + STATUSES if isinstance(error, kind))


def text_of(error: BaseException) -> str:
    """One line of at most ``TEXT_LIMIT`` characters, without control characters."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(error))
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 3] + "..."
