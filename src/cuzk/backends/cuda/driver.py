"""The CUDA driver with every status checked.

    driver = Driver(bindings, "cuda:0")
    stream = driver.cuStreamCreate(1)      # the value, not (status, value)

A status other than success becomes an exception: OutOfMemory (the device stays usable), DeviceUnavailable
(it cannot be used here) or KernelError. After some errors the driver refuses everything in this process's
context for good ("sticky"): ``lost`` then says what happened.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cuzk.errors import BackendError, DeviceUnavailable, KernelError, OutOfMemory

# Names of CUresult, without CUDA_ERROR_.
NO_MEMORY = {"OUT_OF_MEMORY"}
UNAVAILABLE = {
    "NOT_INITIALIZED", "NO_DEVICE", "INVALID_DEVICE", "DEVICE_UNAVAILABLE", "DEVICE_NOT_LICENSED",
    "NO_BINARY_FOR_GPU", "UNSUPPORTED_PTX_VERSION", "SYSTEM_DRIVER_MISMATCH", "SYSTEM_NOT_READY",
    "COMPAT_NOT_SUPPORTED_ON_DEVICE", "STUB_LIBRARY", "OPERATING_SYSTEM", "MPS_CONNECTION_FAILED",
    "MPS_SERVER_NOT_READY", "MPS_MAX_CLIENTS_REACHED", "MPS_MAX_CONNECTIONS_REACHED",
}  # fmt: skip
STICKY = {
    "ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "LAUNCH_FAILED", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS",
    "INVALID_ADDRESS_SPACE", "INVALID_PC", "HARDWARE_STACK_ERROR", "ASSERT", "ECC_UNCORRECTABLE",
    "NVLINK_UNCORRECTABLE", "CONTEXT_IS_DESTROYED", "CONTAINED", "EXTERNAL_DEVICE", "MPS_CLIENT_TERMINATED",
    "TENSOR_MEMORY_LEAK", "UNKNOWN",
}  # fmt: skip

NOT_READY = "CUDA_ERROR_NOT_READY"


class Driver:
    """``bindings`` is the module cuda.bindings.driver; ``name`` begins every message."""

    def __init__(self, bindings: Any, name: str) -> None:
        self.bindings = bindings
        self.name = name
        self.lost = ""  # the sticky error that ended the context

    def __getattr__(self, function: str) -> Callable[..., Any]:
        if not function.startswith("cu"):
            raise AttributeError(function)
        target = getattr(self.bindings, function)

        def call(*args: Any) -> Any:
            try:
                answer = target(*args)
            except RuntimeError as error:
                raise self._not_there(function, error) from error
            return self._value(function, answer)

        setattr(self, function, call)
        return call

    def make(self, undo: Callable[[Any], object], function: str, *args: Any) -> Any:
        """Call a function that makes something; an interrupt that comes meanwhile undoes it.

        A signal that arrives during a call (an allocation may take milliseconds) is raised behind it, before
        what the call gave has a name. A list has it at once: between the two there is only C.
        """
        target, answers = getattr(self.bindings, function), list[Any]()
        try:
            answers.extend(map(target, *([arg] for arg in args)))
            return self._value(function, answers[0])
        except RuntimeError as error:
            raise self._not_there(function, error) from error
        except BaseException:
            for status, *values in answers:
                if not int(status):
                    undo(*values)
            raise

    def _value(self, function: str, answer: tuple[Any, ...]) -> Any:
        status, *values = answer
        if int(status):
            raise self._error(function, status)
        return values[0] if len(values) == 1 else tuple(values)

    def _not_there(self, function: str, error: RuntimeError) -> DeviceUnavailable:
        """The library, or this function of it."""
        return DeviceUnavailable(f"{self.name}: {function}: {error}; update the NVIDIA driver")

    def passed(self, event: Any) -> bool:
        """cuEventQuery: whether all work before an event is done."""
        (status,) = self.bindings.cuEventQuery(event)
        if int(status) and str(status.name) != NOT_READY:
            raise self._error("cuEventQuery", status)
        return not int(status)

    def _error(self, function: str, status: Any) -> BackendError:
        code = str(status.name).removeprefix("CUDA_ERROR_")
        text = f"{self.name}: {function}: {code}{self._meaning(status)}"
        if code in NO_MEMORY:
            return OutOfMemory(text)
        if code in UNAVAILABLE:
            return DeviceUnavailable(text)
        if code in STICKY:
            self.lost = self.lost or text
            return KernelError(f"{text}; the device is lost to this process: start a new one")
        return KernelError(text)

    def _meaning(self, status: Any) -> str:
        _, meaning = self.bindings.cuGetErrorString(status)
        return f" ({meaning.decode()})" if meaning else ""


def quietly(release: Callable[[], None]) -> None:
    """Give something back; a context that is lost has nothing to give back, and says so at the next call."""
    with suppress(BackendError):
        release()
