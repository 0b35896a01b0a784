"""The daemon, ``cuzk serve``, under load: a process of its own, clients in others. docs/serving.md has figures.

    python -m bench.serve throughput       proofs a second against a Prover in a loop, in turns
    python -m bench.serve status-latency   GetStatus while 8 clients push 255 MiB messages
    python -m bench.serve flat             10,000 small jobs: is anything larger after them?
    python -m bench.serve kills            100 kill -9 at random moments: is every proof there, once?
    python -m bench.serve critical         how long a CRITICAL job waits behind a queue of 100

All proofs that are counted are verified. Prints a table, and with --json an object for each row.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import serve_critical, serve_flat, serve_kills, serve_status, serve_throughput
from bench.serve_daemon import machine

Shown = Iterator[tuple[dict[str, Any], list[str]]]
WORKERS = {"one": (2, 1), "auto": (2, None), "two": (1, 2)}
"""Threads of a proof, proofs at a time."""


def throughput(folder: Path, options: argparse.Namespace) -> Shown:
    """Of both curves, and of the ways to share two processors."""
    for curve in options.curve.split(","):
        for name in options.workers.split(","):
            threads, lanes = WORKERS[name]
            place = folder / f"{curve}-{name}"
            place.mkdir()
            row = serve_throughput.throughput(
                place, curve=curve, log_n=options.log, seconds=options.seconds, turns=options.turns,
                flight=options.flight, threads=threads, lanes=lanes,
            )  # fmt: skip
            yield row, serve_throughput.show(row)


def status_latency(folder: Path, options: argparse.Namespace) -> Shown:
    """Case after case."""
    for name in options.cases.split(","):
        place = folder / name
        place.mkdir()
        rows = serve_status.status_latency(
            place, seconds=options.seconds, clients=options.clients, nbytes=options.mib << 20,
            log_n=options.log, cases=[name],
        )  # fmt: skip
        yield rows[0], serve_status.show(rows)


def flat(folder: Path, options: argparse.Namespace) -> Shown:
    """One run."""
    row = serve_flat.flat(folder, jobs=options.jobs)
    yield row, serve_flat.show(row)


def kills(folder: Path, options: argparse.Namespace) -> Shown:
    """One run."""
    row = serve_kills.kills(folder, kills=options.kills, most=options.most, seed=options.seed)
    yield row, serve_kills.show(row)


def critical(folder: Path, options: argparse.Namespace) -> Shown:
    """One run."""
    row = serve_critical.critical(
        folder, queue=options.queue, times=options.times, log_n=options.log, seed=options.seed
    )
    yield row, serve_critical.show(row)


def arguments() -> argparse.ArgumentParser:
    """A parser with a command for each."""
    parser = argparse.ArgumentParser(description="the daemon under load")
    commands = parser.add_subparsers(required=True)

    def command(name: str, work: Any, **numbers: float) -> argparse.ArgumentParser:
        made = commands.add_parser(name)
        made.set_defaults(work=work)
        made.add_argument("--json", action="store_true", help="one object a row")
        for option, value in numbers.items():
            made.add_argument(f"--{option}", type=type(value), default=value)
        return made

    made = command("throughput", throughput, log=12, seconds=20.0, turns=3, flight=4)
    made.add_argument("--curve", default="bn254,bls12_381")
    made.add_argument(
        "--workers",
        default="one,auto,two",
        help="proofs at a time: one, as the daemon chooses, or two of one thread each",
    )
    made = command("status-latency", status_latency, log=12, seconds=20.0, clients=8, mib=255)
    made.add_argument("--cases", default=",".join(serve_status.WHILE))
    command("flat", flat, jobs=10_000)
    command("kills", kills, kills=100, most=2.0, seed=1)
    command("critical", critical, log=12, queue=100, times=20, seed=1)
    return parser


def main() -> None:
    options = arguments().parse_args()
    with tempfile.TemporaryDirectory(prefix="cuzk-bench-") as folder:
        for row, lines in options.work(Path(folder), options):
            print(json.dumps(row) if options.json else "\n".join(lines), flush=True)
    if not options.json:
        print(machine())


if __name__ == "__main__":
    main()
