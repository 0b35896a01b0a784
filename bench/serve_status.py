"""How long GetStatus takes while others push large messages, and while the daemon proves.

    idle      nothing else
    proving   a client that keeps the worker busy
    queue     with a thousand jobs in the queue
    pushing   8 clients that push 255 MiB each, over and over: half as witnesses, half as C1s, all garbage
    both      pushing and proving

The status client is a process of its own with one connection, a call every 10 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from bench.serve_check import Checked
from bench.serve_daemon import CIRCUIT, Made, make, served
from bench.serve_load import Load, load
from cuzk.server.client import Client

WHILE = ("idle", "proving", "queue", "pushing", "both")
QUEUED = 1000
OPTIONS = {"queue": {"limit": 2 * QUEUED}}


def status_latency(
    folder: Path,
    *,
    seconds: float = 20.0,
    clients: int = 8,
    nbytes: int = 255 << 20,
    log_n: int = 12,
    cases: Sequence[str] = WHILE,
) -> list[dict[str, Any]]:
    """A row for each case."""
    made = make(folder, "bn254", log_n)
    return [_case(folder / name, name, made, seconds, clients, nbytes) for name in cases]


def _case(
    folder: Path, name: str, made: Made, seconds: float, clients: int, nbytes: int
) -> dict[str, Any]:
    with ExitStack() as open_, served(folder, made, OPTIONS) as daemon:
        address = daemon.address()
        common = {"address": address, "circuit": CIRCUIT}
        others = [
            open_.enter_context(load("push", **common, field=field, bytes=nbytes))
            for field in (["witness", "vanilla_proof"] * clients)[: clients if name in ("pushing", "both") else 0]
        ]  # fmt: skip
        provers = []
        if name in ("proving", "both"):
            mine = {"witness": str(made.witnesses[0]), "flight": 2}
            provers = [open_.enter_context(load("prove", **common, **mine))]
        if name == "queue":
            fill(address, made, QUEUED)
        watcher = open_.enter_context(load("status", address=address))
        before = daemon.usage()["daemon"].cpu
        answer, pushed, proved = _measured(watcher, others, provers, seconds)
        spent = daemon.usage()["daemon"].cpu - before
        _expect_refused(pushed)
        count = Checked(made.key, made.witnesses).all(proved)
    found = sorted(answer["milliseconds"])
    return {
        "case": name, "calls": len(found), "messages": len(pushed), "verified": count,
        "mib_a_second": len(pushed) * nbytes / answer["wall"] / 2**20,
        "p50_ms": median(found), "p99_ms": found[int(0.99 * len(found))], "max_ms": found[-1],
        "daemon_busy": spent / answer["wall"],
    }  # fmt: skip


def _measured(
    watcher: Load, pushers: list[Load], provers: list[Load], seconds: float
) -> tuple[dict[str, Any], list[str], list[tuple[str, str]]]:
    for each in (*pushers, *provers):
        each.ask(seconds + 1)  # to the end of the measurement
    answer = watcher.work(seconds)
    pushed = [text for each in pushers for text in each.answer()["refused"]]
    return answer, pushed, [proof for each in provers for proof in each.answer()["proofs"]]


def _expect_refused(said: list[str]) -> None:
    """Garbage is told so, and not that there was no room for it."""
    for text in said:
        if not text.startswith(("FormatError: witness", "FormatError: vanilla_proof", "NotReady: porep")):  # fmt: skip
            raise SystemExit(f"a large message of garbage was answered: {text}")


def fill(address: str, made: Made, count: int) -> None:
    """Put so many jobs into the queue; they end with the daemon."""
    with Client(address) as client:
        for _ in range(count):
            client.submit_circuit(CIRCUIT, made.witnesses[0])


def show(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each."""
    return [
        f"{row['case']:9}{row['calls']:6} calls  p50 {row['p50_ms']:6.1f}  p99 {row['p99_ms']:7.1f}"
        f"  max {row['max_ms']:7.1f} ms   {row['messages']:4} messages, {row['mib_a_second']:5.0f} MiB/s,"
        f" {row['verified']} proofs, event loop's process {row['daemon_busy']:.0%} busy"
        for row in rows
    ]
