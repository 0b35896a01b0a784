"""How long a CRITICAL job waits behind a queue of NORMAL ones: at most for the partition that is in work.

The queue is kept at ``queue`` jobs; CRITICAL ones come at random moments. ``wait`` is from the call that submits one to
the start of its partition, ``partition`` how long those of the NORMAL jobs took: both as the daemon's status has them,
the call by the clock of this machine.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean
from typing import Any

from bench.serve_check import Checked
from bench.serve_daemon import CIRCUIT, Made, make, served
from cuzk.errors import CuzkError, QueueFull
from cuzk.server.client import Client

FILLING = 60.0  # seconds

Times = dict[str, tuple[str, float, float]]
"""Of a job that is done: priority, start and end of its partition."""


def critical(
    folder: Path, *, queue: int = 100, times: int = 20, log_n: int = 12, seed: int = 1
) -> dict[str, Any]:
    """Milliseconds."""
    rng, made = random.Random(seed), make(folder, "bn254", log_n)
    checked, known, came = Checked(made.key, made.witnesses), Times(), dict[str, float]()
    options = {"queue": {"limit": queue}}
    with (
        served(folder / "served", made, options) as daemon,
        Client(daemon.address()) as client,
        kept_full(daemon.address(), made),
    ):
        end = time.monotonic() + FILLING
        while sum(client.status()["states"].values()) < queue:
            if time.monotonic() > end:
                raise SystemExit(
                    f"the queue never had {queue} jobs in {FILLING:.0f} s: the proofs are quicker than their requests, "
                    f"take more than 2^{log_n} rows"
                )
            time.sleep(0.02)
        for number in range(times):
            time.sleep(rng.uniform(0, 0.3))
            job = f"critical-{number}"
            came[job] = time.time()
            result = client.prove_circuit(CIRCUIT, made.witnesses[0], id=job, priority="critical")
            checked.expect(result.proof, result.public)
            known |= ended(client.status())
        depth = sum(client.status()["states"].values())
    waits = [1e3 * (known[job][1] - at) for job, at in came.items()]
    parts = [1e3 * (end - start) for kind, start, end in known.values() if kind == "normal"]
    return {
        "queue": depth, "critical": len(waits), "normal": len(parts),
        "wait_ms": {"mean": mean(waits), "max": max(waits)},
        "partition_ms": {"mean": mean(parts), "max": max(parts)},
        "waits_ms": waits,
    }  # fmt: skip


def ended(state: dict[str, Any]) -> Times:
    """Of the status' last jobs, those that are done."""
    return {
        job["id"]: (job["priority"], job["partitions"][0]["started"], job["partitions"][0]["ended"])
        for job in state["jobs"]
        if job["state"] == "done"
    }


@contextmanager
def kept_full(address: str, made: Made) -> Iterator[None]:
    """Submit NORMAL jobs whenever there is room."""
    stop = threading.Event()

    def submit() -> None:
        with Client(address) as client, suppress(CuzkError):  # the daemon's end
            while not stop.is_set():
                try:
                    client.submit_circuit(CIRCUIT, made.witnesses[0])
                except QueueFull:
                    stop.wait(0.02)

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def show(row: dict[str, Any]) -> list[str]:
    """One line."""
    wait, part = row["wait_ms"], row["partition_ms"]
    return [
        f"{row['critical']} CRITICAL jobs behind {row['queue']}: waited {wait['mean']:.0f} ms on average, {wait['max']:.0f}"
        f" at most; a partition of the {row['normal']} NORMAL ones took {part['mean']:.0f} on average, {part['max']:.0f} at most"
    ]
