"""Proofs a second of a daemon against those of a Prover in a loop, in turns.

    bare     Prover.prove in one process: a witness's file in, proof.json and public.json out
    prove    the daemon, blocking Prove calls of another process, several at a time
    submit   the daemon, SubmitProof and AwaitProof

Turns (bare, prove, submit, bare, ...) spread what else the machine does over all three; each turn's ratio is to the mean
of the bare loops before and after it. Every proof is verified afterwards.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import psutil

from bench.serve_check import Checked
from bench.serve_daemon import CIRCUIT, Daemon, make, served, usage
from bench.serve_load import Load, load

WAYS = ("prove", "submit")


@dataclass
class Turns:
    """Proofs a second of each turn; processor milliseconds a proof of each process."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    spent: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, name: str, proofs: int, wall: float, spent: dict[str, float]) -> None:
        """One more."""
        self.rates.setdefault(name, []).append(proofs / wall)
        for process, seconds in spent.items():
            costs = self.spent.setdefault(name, {}).setdefault(process, [])
            costs.append(1e3 * seconds / proofs)

    def row(self) -> dict[str, Any]:
        """Medians, ratios of each turn."""
        bare = self.rates["bare"]
        around = [mean(pair) for pair in pairwise(bare)]
        ratios = {
            way: [rate / loop for rate, loop in zip(self.rates[way], around, strict=True)]
            for way in WAYS
        }
        return {
            "proofs_a_second": {name: median(rates) for name, rates in self.rates.items()},
            "rates": self.rates,
            "ratio": {way: median(found) for way, found in ratios.items()},
            "ratios": ratios,
            "cpu_ms_a_proof": {
                name: {process: median(costs) for process, costs in each.items()}
                for name, each in self.spent.items()
            },
        }


def throughput(
    folder: Path,
    *,
    curve: str = "bn254",
    log_n: int = 12,
    seconds: float = 20.0,
    turns: int = 3,
    flight: int = 4,
    threads: int = 2,
    lanes: int | None = None,
    bare_threads: int = 2,
) -> dict[str, Any]:
    """One curve, one setting of the daemon's worker (``threads`` of each of ``lanes`` proofs at a time)."""
    made = make(folder, curve, log_n)
    checked = Checked(made.key, made.witnesses)
    devices = {"threads": threads, **({"lanes": lanes} if lanes else {})}
    done, count = Turns(), 0
    with ExitStack() as open_, served(folder / "served", made, {"devices": devices}) as daemon:
        common = {"witness": str(made.witnesses[0]), "circuit": CIRCUIT, "flight": flight}
        loads = {way: open_.enter_context(load(way, address=daemon.address(), **common)) for way in WAYS}  # fmt: skip
        alone = {"key": str(made.key), "witness": common["witness"], "threads": bare_threads}
        loads["bare"] = open_.enter_context(load("bare", **alone))
        for each in loads.values():  # a small case, and the first proofs' warming up
            count += checked.all(each.work(min(seconds, 1.0))["proofs"])
        for name in ["bare", *(name for _ in range(turns) for name in (*WAYS, "bare"))]:
            count += _turn(done, name, loads[name], daemon, checked, seconds)
    return {
        "curve": curve, "log_n": log_n, "seconds": seconds, "flight": flight,
        "daemon": {"threads": threads, "lanes": lanes or "auto"}, "bare": {"threads": bare_threads},
        "verified": count, **done.row(),
    }  # fmt: skip


def _turn(
    done: Turns, name: str, used: Load, daemon: Daemon, checked: Checked, seconds: float
) -> int:
    client = psutil.Process(used.process.pid)
    before, mine = daemon.usage(), usage(client).cpu
    answer = used.work(seconds)
    after = daemon.usage()
    spent = {} if name == "bare" else {p: after[p].cpu - before[p].cpu for p in after}
    spent["loop" if name == "bare" else "client"] = usage(client).cpu - mine
    done.add(name, len(answer["proofs"]), answer["wall"], spent)
    return checked.all(answer["proofs"])


def show(row: dict[str, Any]) -> list[str]:
    """A line for each of the three."""
    daemon = row["daemon"]
    lines = [
        f"{row['curve']} 2^{row['log_n']}: daemon {daemon['lanes']} x {daemon['threads']} threads,"
        f" bare {row['bare']['threads']} threads, {row['flight']} jobs at a time"
    ]
    for name in ("bare", *WAYS):
        costs = row["cpu_ms_a_proof"][name]
        cells = "  ".join(f"{process} {cost:.1f}" for process, cost in costs.items())
        ratio = ""
        if name in WAYS:
            found = row["ratios"][name]
            ratio = f"{row['ratio'][name]:7.1%} ({min(found):.1%} to {max(found):.1%})"
        lines.append(
            f"    {name:7}{row['proofs_a_second'][name]:7.2f} proofs/s {ratio:26} cpu ms a proof: {cells}"
        )
    return lines
