"""Every error of the engine as a status, a line and a word."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from scripted_engine import Running, channel_to, circuit, prove, refused, running

from cuzk import errors


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("rpc")) as server:
        yield server


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with channel_to(server.target()) as channel:
        yield channel


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.FormatError("f"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.InsecureKeyError("f"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.CircuitError("c"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.QueueFull("q"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.RequestConflict("r"), grpc.StatusCode.ALREADY_EXISTS),
        (errors.UnknownJob("u"), grpc.StatusCode.NOT_FOUND),
        (errors.NotReady("n"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.Unavailable("v"), grpc.StatusCode.UNAVAILABLE),
        (errors.WorkerLost("w"), grpc.StatusCode.UNAVAILABLE),
        (errors.Refused("p"), grpc.StatusCode.PERMISSION_DENIED),
        (errors.EngineError("e"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.Cancelled("x"), grpc.StatusCode.CANCELLED),
        (errors.KernelError("k"), grpc.StatusCode.UNAVAILABLE),
        (errors.OutOfMemory("o"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.ProofError("b"), grpc.StatusCode.INTERNAL),
    ],
)
def test_every_error_has_its_status(
    server: Running, channel: grpc.Channel, error: errors.CuzkError, status: grpc.StatusCode
) -> None:
    name = f"refuse {error.code} {error}"
    server.engine.refusals[name] = error
    assert refused(prove, channel, circuit(name, b"w")) == (status, str(error), error.code)


def test_an_error_text_is_one_line_of_bounded_length(
    server: Running, channel: grpc.Channel
) -> None:
    server.engine.refusals["long"] = errors.FormatError("zeile\n\x00\x1b[31m é 漢" + "x" * 5000)
    _, details, _ = refused(prove, channel, circuit("long", b"w"))
    assert details == r"zeile\n\x00\x1b[31m é 漢" + "x" * (1000 - 26) + "..."
    assert len(details) == 1000


def test_an_error_of_our_own_is_named_and_tells_nothing(
    server: Running, channel: grpc.Channel
) -> None:
    server.engine.refusals["bug"] = ValueError("the witness is 17")  # type: ignore[assignment]
    status, details, _ = refused(prove, channel, circuit("bug", b"w"))
    assert status is grpc.StatusCode.INTERNAL
    assert details == "an error of the service's own, ValueError; its log says more"
