"""The exception tree.

    CuzkError
    ├── FormatError            a file or a value is malformed (exit status 2)
    │   └── InsecureKeyError   a well-formed key that proves nothing (delta = gamma, no contribution)
    ├── CircuitError           circuit, witness and key do not belong together (exit status 2)
    │   └── UnsatisfiedError   the witness does not satisfy the circuit (exit status 1)
    ├── ProofError             a proof made here failed its own verification (exit status 1)
    ├── BackendError           a device could not do the work (exit status 3)
    │   ├── DeviceUnavailable  the device asked for is not there
    │   ├── OutOfMemory        the memory asked for is not there
    │   ├── PinningRefused     the system does not let pages of the host's memory be locked
    │   └── KernelError        the native code reported a failure
    └── EngineError            the proving service did not take a request, or did not finish it (exit status 3)
        ├── QueueFull          it has as much to do as it may have; later there is room
        ├── RequestConflict    another request has this id (exit status 2)
        ├── UnknownJob         no request has this id, or its result was kept for long enough (exit status 2)
        ├── NotReady           this circuit cannot be proved here now: no key, or it does not fit
        ├── Cancelled          somebody cancelled it
        ├── DeadlineExceeded   it was not done in time
        ├── Unavailable        the service stops, or is not there
        ├── Refused            the caller may not ask for this (exit status 2)
        ├── WorkerLost         the process that works on a device has died
        └── InternalError      a bug: the log says where

A proof that does not verify is a value (``False``), malformed input is an exception.
Every message is one line: file, section or field, expected, found, what to do.
"""


class CuzkError(Exception):
    """Root of the tree; ``code`` is the stable word that ``--json`` prints."""

    code = "error"
    exit_status = 2


class FormatError(CuzkError):
    """A file or value is malformed."""

    code = "bad-format"


class InsecureKeyError(FormatError):
    """A key whose toxic waste is known: anyone can forge its proofs."""

    code = "insecure-key"


class CircuitError(CuzkError):
    """Circuit, witness and key do not belong together."""

    code = "mismatch"


class UnsatisfiedError(CircuitError):
    """The witness does not satisfy the circuit."""

    code = "unsatisfied"
    exit_status = 1


class ProofError(CuzkError):
    """A proof made here failed its own verification and was withheld."""

    code = "invalid-proof"
    exit_status = 1


class BackendError(CuzkError):
    """A device could not do the work."""

    code = "backend"
    exit_status = 3


class DeviceUnavailable(BackendError):
    """The device asked for is not there."""

    code = "no-device"


class OutOfMemory(BackendError):
    """The memory asked for is not there."""

    code = "out-of-memory"


class PinningRefused(BackendError):
    """Pages of the host's memory cannot be locked: whoever asked copies another way."""

    code = "pinning-refused"


class KernelError(BackendError):
    """The native code reported a failure."""

    code = "kernel"


class EngineError(CuzkError):
    """The proving service did not take a request, or did not finish it."""

    code = "service"
    exit_status = 3


class QueueFull(EngineError):
    """As much is waiting as may wait; later there is room."""

    code = "queue-full"


class RequestConflict(EngineError):
    """Another request, with other contents, has this id."""

    code = "conflict"
    exit_status = 2


class UnknownJob(EngineError):
    """No request has this id, or its result was kept for long enough."""

    code = "unknown-job"
    exit_status = 2


class NotReady(EngineError):
    """This circuit cannot be proved here now: its key is missing, or does not fit."""

    code = "not-ready"


class Cancelled(EngineError):
    """Somebody cancelled it."""

    code = "cancelled"


class DeadlineExceeded(EngineError):
    """It was not done in time."""

    code = "deadline"


class Unavailable(EngineError):
    """The service stops, or is not there."""

    code = "unavailable"


class Refused(EngineError):
    """The caller may not ask for this: no token, a wrong one, or too much at a time."""

    code = "refused"
    exit_status = 2


class WorkerLost(EngineError):
    """The process that works on a device has died, and took the work in it along."""

    code = "worker-lost"


class InternalError(EngineError):
    """A bug in the work for a request: the log says where."""

    code = "internal"
