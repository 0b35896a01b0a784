"""kill -9 of the daemon, or of its worker, at random moments, while a client submits jobs and waits for their proofs.

    client   submits job after job under ids of its own, again where the connection breaks, until each is accepted;
             threads wait for their proofs, again where the connection breaks
    killer   starts the daemon, waits 0 to ``most`` seconds (of every fourth not until it listens), kills, starts again at
             once; every fourth time it is the worker that is killed

In the end every accepted job has one proof: it is valid, states what its own witness does, and is the same bytes whenever
it is asked for (a proof is randomised: one that was made again would differ). No log says that a job was started
after one said that it was done. No worker outlives its daemon; the last stop leaves no process and no socket.
"""

from __future__ import annotations

import random
import re
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from bench.serve_check import Checked
from bench.serve_daemon import CIRCUIT, Daemon, Made, make, settings
from cuzk.errors import Unavailable
from cuzk.server.client import Client, ProofResult

T = TypeVar("T")
WITNESSES = 16
AHEAD = 12  # jobs that are submitted and not done
WORKER, EARLY = 3, 1  # of every four kills
PAUSE = 0.02  # seconds between two tries to reach a daemon that is away
GONE_SECONDS = 5.0  # in which a worker whose daemon was killed ends
PATIENCE = 120.0


@dataclass
class Seen:
    """By the client: ids and proofs in the order in which they were had."""

    accepted: dict[str, int] = field(default_factory=dict)
    """The witness of each."""
    proofs: dict[str, ProofResult] = field(default_factory=dict)
    broken: int = 0
    """Calls that the daemon's death ended."""


class Traffic:
    """The client: one thread submits, several wait."""

    def __init__(self, address: str, made: Made) -> None:
        self.seen = Seen()
        self._client = Client(address)
        self._made = made
        self._stop = threading.Event()
        self._room = threading.Semaphore(AHEAD)
        self._pool = ThreadPoolExecutor(AHEAD + 1)
        self._waiting = [self._pool.submit(self._submit)]

    def finish(self) -> Seen:
        """Submit nothing more, wait for all; what failed in a thread is raised."""
        self._stop.set()
        for future in self._waiting:  # the first one adds to them
            future.result()
        self._pool.shutdown()
        return self.seen

    def again(self) -> None:
        """Every proof once more: the same bytes, or the benchmark stops."""
        for job, proof in self.seen.proofs.items():
            if self._client.wait(job) != proof:
                sys.exit(f"{job}: another proof than before, or other times")

    def close(self) -> None:
        """The connection."""
        self._stop.set()
        self._client.close()

    def _submit(self) -> None:
        number = 0
        while not self._stop.is_set():
            if not self._room.acquire(timeout=0.1):
                continue
            job, witness = f"kill-{number}", number % len(self._made.witnesses)
            path = self._made.witnesses[witness]
            self._tried(lambda j=job, p=path: self._client.submit_circuit(CIRCUIT, p, id=j))  # type: ignore[misc]
            self.seen.accepted[job] = witness
            self._waiting.append(self._pool.submit(self._wait, job))
            number += 1

    def _wait(self, job: str) -> None:
        self.seen.proofs[job] = self._tried(lambda: self._client.wait(job))
        self._room.release()

    def _tried(self, call: Callable[[], T]) -> T:
        """As Curio does: where the service is away, again."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return call()
            except Unavailable:
                self.seen.broken += 1
                if time.monotonic() > end:
                    raise
            time.sleep(PAUSE)


def kills(
    folder: Path, *, kills: int = 100, most: float = 2.0, log_n: int = 9, seed: int = 1
) -> dict[str, Any]:
    """What the client saw. Stops where one of the statements above does not hold."""
    rng = random.Random(seed)
    made = make(folder, "bn254", log_n, WITNESSES)
    (folder / "cuzk.toml").write_text(
        settings(made, {"daemon": {"listen": f"unix://{folder}/s"}, "queue": {"losses": 10}})
    )
    daemon, traffic = Daemon(folder), Traffic(f"unix://{folder}/s", made)
    counts = {"daemon": 0, "worker": 0}
    began = time.monotonic()
    try:
        for number in range(kills):
            if number % 4 != EARLY:
                daemon.address()
            time.sleep(rng.uniform(0, most))
            if number % 4 == WORKER:
                _kill_worker(daemon)
                counts["worker"] += 1
                continue
            daemon = _killed(daemon, folder)
            counts["daemon"] += 1
        daemon.address()
        seen = traffic.finish()
        traffic.again()
        daemon = _killed(daemon, folder)
        daemon.address()
        traffic.again()
        workers = daemon.workers()
        if status := daemon.stop():
            sys.exit(f"the last daemon ended with status {status}:\n{daemon.log()[-2000:]}")
        _expect_gone(workers)
    finally:
        traffic.close()
        if daemon.process.poll() is None:
            daemon.kill()
    if (folder / "s").exists():
        sys.exit("the last daemon left its socket")
    verified = judge(seen, Checked(made.key, made.witnesses), (folder / "log").read_text())
    return {
        "kills": counts, "seconds": time.monotonic() - began, "accepted": len(seen.accepted),
        "verified": verified, "broken_calls": seen.broken,
    }  # fmt: skip


def _kill_worker(daemon: Daemon) -> None:
    """When it has one."""
    end = time.monotonic() + PATIENCE
    while not (workers := daemon.workers()):
        if time.monotonic() > end:
            sys.exit(f"the daemon had no worker for {PATIENCE:.0f} s:\n{daemon.log()[-2000:]}")
        time.sleep(PAUSE)
    with suppress(psutil.NoSuchProcess):
        workers[0].kill()


def _killed(daemon: Daemon, folder: Path) -> Daemon:
    """Another one, at once."""
    workers = daemon.workers()
    daemon.kill()
    after = Daemon(folder)
    _expect_gone(workers)
    return after


def _expect_gone(workers: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(workers, timeout=GONE_SECONDS)
    if alive:
        sys.exit(f"worker {alive[0].pid} outlived its daemon by {GONE_SECONDS:.0f} s")


def judge(seen: Seen, checked: Checked, log: str) -> int:
    """How many proofs are valid: all of them; none was begun again after it was done."""
    if seen.accepted.keys() != seen.proofs.keys() or not seen.accepted:
        sys.exit(f"accepted {len(seen.accepted)} jobs, proofs of {len(seen.proofs)}")
    for job, witness in seen.accepted.items():
        checked.expect(seen.proofs[job].proof, seen.proofs[job].public, witness)
    done = set[str]()
    for word, job in re.findall(r"\b(started|done) '(kill-\d+)'", log):
        if job in done:
            sys.exit(f"{job}: {word} after it was done")
        if word == "done":
            done.add(job)
    # one whose end reached the journal's file when its daemon was killed has no such line
    if not done or not done <= seen.accepted.keys():
        sys.exit(f"{len(done)} jobs are done by the log, {len(seen.accepted)} were accepted")
    if len({proof.proof for proof in seen.proofs.values()}) != len(seen.proofs):
        sys.exit("two jobs have the same proof")
    return len(seen.proofs)


def show(row: dict[str, Any]) -> list[str]:
    """One line."""
    counts = row["kills"]
    return [
        f"{counts['daemon']} kills of the daemon and {counts['worker']} of its worker in {row['seconds']:.0f} s:"
        f" {row['accepted']} jobs accepted, {row['verified']} proofs, each valid and made once;"
        f" {row['broken_calls']} calls had to be made again"
    ]
