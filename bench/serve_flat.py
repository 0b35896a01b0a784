"""Many small jobs through one daemon: memory, descriptors, threads and the journal are as large after them as before.

The circuit has 2^3 rows, so that what a job leaves would show beside what a proof takes. Results are kept for a few
seconds only, or the journal would grow by all of them, as it should.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression
from typing import Any

from bench.serve_check import Checked
from bench.serve_daemon import CIRCUIT, Daemon, Usage, make, served
from bench.serve_load import load

WARM = 0.3  # of the jobs: what comes first fills pools, caches, the list of jobs and that of spans
SAMPLES = 40


@dataclass(frozen=True)
class Sample:
    """After so many jobs."""

    jobs: int
    usage: dict[str, Usage]
    journal: int

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "jobs": self.jobs,
            **{name: used.row() for name, used in self.usage.items()},
            "journal": self.journal,
        }


def flat(
    folder: Path, *, jobs: int = 10_000, keep: float = 5.0, log_n: int = 3, flight: int = 8
) -> dict[str, Any]:
    """What is used after every fortieth of the jobs, and its growth a job after the first three tenths of them."""
    made = make(folder, "bn254", log_n)
    checked = Checked(made.key, made.witnesses)
    samples: list[Sample] = []
    wall, done, verified = 0.0, 0, 0
    with ExitStack() as open_, served(folder / "served", made, {"queue": {"keep": keep}}) as daemon:
        given = {"address": daemon.address(), "circuit": CIRCUIT, "flight": flight}
        client = open_.enter_context(
            load("submit", **given, witness=str(made.witnesses[0]), jobs=True)
        )
        while done < jobs:
            answer = client.work(min(-(-jobs // SAMPLES), jobs - done))
            done += len(answer["proofs"])
            wall += answer["wall"]
            verified += checked.all(answer["proofs"][:: max(1, jobs // 1000)])
            samples.append(_sample(daemon, folder / "served", done))
        status = daemon.stop()
    if status or "Traceback" in daemon.log():
        raise SystemExit(f"cuzk serve ended with status {status}:\n{daemon.log()[-2000:]}")
    settled = [sample for sample in samples if sample.jobs >= WARM * jobs]
    return {
        "jobs": done, "verified": verified, "jobs_a_second": done / wall,
        "growth": growth(settled),
        "first": settled[0].row(), "last": settled[-1].row(),
        "samples": [sample.row() for sample in samples],
    }  # fmt: skip


def growth(samples: list[Sample]) -> dict[str, float]:
    """Of the best line through them: bytes, descriptors, threads for each job."""
    if len(samples) < 2:
        return {}
    jobs = [sample.jobs for sample in samples]
    of = {"journal": [sample.journal for sample in samples]}
    for name in samples[0].usage:
        of[f"{name} bytes"] = [sample.usage[name].resident for sample in samples]
        of[f"{name} files"] = [sample.usage[name].files for sample in samples]
        of[f"{name} threads"] = [sample.usage[name].threads for sample in samples]
    return {name: linear_regression(jobs, values).slope for name, values in of.items()}


def _sample(daemon: Daemon, folder: Path, done: int) -> Sample:
    files = (folder / "state").rglob("*")
    return Sample(done, daemon.usage(), sum(file.stat().st_size for file in files))


def show(row: dict[str, Any]) -> list[str]:
    """What was used when it was warm, and in the end."""
    lines = [
        f"{row['jobs']} jobs, {row['jobs_a_second']:.0f} a second, {row['verified']} proofs verified"
    ]
    first, last = row["first"], row["last"]
    for name in ("daemon", "worker"):
        a, b = first[name], last[name]
        lines.append(
            f"    {name}: {a['resident'] / 1e6:.1f} MB after {first['jobs']} jobs, {b['resident'] / 1e6:.1f} MB"
            f" after {last['jobs']}; {a['files']} and {b['files']} descriptors, {a['threads']} and {b['threads']} threads"
        )
    lines.append(f"    journal: {first['journal'] / 1e6:.1f} and {last['journal'] / 1e6:.1f} MB")
    slopes = ", ".join(f"{name} {slope:+.4g}" for name, slope in row["growth"].items())
    lines.append(f"    growth a job: {slopes}")
    return lines
