"""The Python client and a service that is slow to take a connection: far away, or on a machine that has much to do."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cuzk.server.client import Client
from cuzk.server.proving_pb2 import GetMetricsResponse
from one_answer import Script, serving

SLOW = 3.0  # seconds; an HTTP/2 connection is one when the service has said its settings


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)  # who reads there hears of it


@contextmanager
def slow(address: str) -> Iterator[str]:
    """Where every connection to ``address`` waits before anything goes through it."""
    host, _, port = address.rpartition(":")
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def connect(near: socket.socket) -> None:
            time.sleep(SLOW)
            with near, socket.create_connection((host, int(port))) as far:
                back = threading.Thread(target=_pump, args=(far, near))
                back.start()
                _pump(near, far)
                back.join()

        def accept() -> None:
            while True:
                try:
                    near, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=connect, args=(near,)))
                threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield "{}:{}".format(*listener.getsockname())
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
        for thread in threads:
            thread.join()


def test_a_service_that_is_slow_to_take_a_connection() -> None:
    """The first call waits for it, and is no error."""
    script = Script()
    script.answers["GetMetrics"] = lambda _request, _context: GetMetricsResponse(
        prometheus_text="up 1"
    )
    with serving(script) as address, slow(address) as there, Client(there, timeout=120) as client:
        assert client.metrics() == "up 1"
