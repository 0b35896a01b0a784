"""Memory of a daemon while it works: what its ledgers have reserved, what the driver and the kernel say."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.serve_daemon import Daemon
from cuzk.errors import CuzkError
from cuzk.server.client import Client

EVERY = 0.25  # seconds


class Watch:
    """Asks for the status again and again, from a thread of its own, and keeps the most of each memory."""

    def __init__(self, client: Client) -> None:
        self.reserved: dict[str, tuple[int, dict[str, int]]] = {}
        """Bytes of each ledger at their most, and whose they were."""
        self.limits: dict[str, int] = {}
        self.taken: dict[str, tuple[int, int]] = {}
        """Of each GPU the least and the most bytes in use by anybody, as its driver says."""
        self._client, self._over = client, threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._go_on)

    def look(self) -> dict[str, dict[str, int]]:
        """Now: owners of each memory."""
        state = self._client.status()
        with self._lock:
            self._take(state)
        return {memory["name"]: memory["owners"] for memory in state["memories"]}

    def _take(self, state: dict[str, Any]) -> None:
        for memory in state["memories"]:
            name, reserved = memory["name"], memory["reserved"]
            self.limits[name] = memory["limit"]
            if reserved >= self.reserved.get(name, (0, {}))[0]:
                self.reserved[name] = reserved, memory["owners"]
        for worker in state["workers"]:
            if not (total := worker["device_total"]):
                continue
            used = total - worker["device_free"]
            least, most = self.taken.get(worker["device"], (used, used))
            self.taken[worker["device"]] = min(least, used), max(most, used)

    def _go_on(self) -> None:
        while not self._over.wait(EVERY):
            with suppress(CuzkError):  # whoever waits for the proofs says why the daemon is gone
                self.look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()


def peaks(daemon: Daemon) -> dict[str, int]:
    """The most bytes that the daemon and its workers had resident, mapped files among them."""
    found = {"daemon": high_water(daemon.process.pid)}
    for number, worker in enumerate(daemon.workers()):
        found[f"worker {number}"] = high_water(worker.pid)
    return found


def high_water(process: int) -> int:
    """VmHWM."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0
