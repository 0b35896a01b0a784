"""The table of docs/kernels.md on one GPU, within a time budget: ``python -m bench.gpu_table --budget 240``.

    MSM G1 of both curves and G2 of BLS12-381, uniformly random scalars      2^16 .. 2^26 (G2: 2^24)
    NTT of BLS12-381's scalars, the cheaper of both orders                   2^20 .. 2^26
    Groth16 on BLS12-381, dense witness, bellman's and a prepared key        2^20 .. 2^26

Cells are medians of device events, warm, inputs resident, each case checked first (:mod:`cuzk.bench`); then the target
and, in brackets, sppark's figure on the same card (H200, 2026-11-29). A proof's cell is the sum of its phases, its wall
time includes copying the witness. A third table has the floors (:mod:`bench.floors`). Small sizes first; a case that would not end within the budget is left out and said so.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench import floors
from bench.timing import sizes
from cuzk.backends import Backend
from cuzk.bench.msm import MsmCase
from cuzk.bench.ntt import NttCase
from cuzk.bench.place import place_of
from cuzk.bench.prove import ProveCase
from cuzk.bench.rows import Case, Row
from cuzk.curves import CURVES
from cuzk.errors import CuzkError
from cuzk.prover.devices import open_device, thread_count

SIZES = (16, 18, 20, 22, 24, 26)
TRANSFORMS = {"bellman": 6, "prepared": 4}
PHASES = ("evaluate", "quotient", "commit", "assemble")
SYNTHETIC = 0  # every proof with a synthetic key, compared with its logarithms


@dataclass(frozen=True)
class Line:
    """A line of the table: milliseconds at SIZES, None where nobody asks for one."""

    name: str
    title: str
    curve: str
    targets: tuple[float | None, ...]
    peer: tuple[float | None, ...] = (None,) * len(SIZES)

    def case(self, log_n: int) -> Case:
        kind, _, detail = self.name.partition(".")
        if kind == "msm":
            return MsmCase(detail, log_n)
        return NttCase(log_n) if kind == "ntt" else ProveCase(detail, log_n, SYNTHETIC)

    def floor(self, log_n: int) -> float:
        kind, _, detail = self.name.partition(".")
        if kind == "msm":
            return floors.msm(CURVES[self.curve], detail, log_n)
        if kind == "ntt":
            return floors.ntt(CURVES[self.curve], log_n)
        return floors.proof(log_n, TRANSFORMS[detail])

    def measure(self, backend: Backend, log_n: int, threads: int) -> list[Row]:
        return self.case(log_n).run(backend, reps(log_n), threads)


def reps(log_n: int) -> int:
    return {16: 15, 18: 15, 20: 15, 22: 9, 24: 5}.get(log_n, 3)


LINES = (
    Line(
        "msm.g1", "MSM G1 BLS12-381", "bls12_381",
        (1.5, 3.5, 9, 28, 90, 320), (7.5, 21.2, 21.6, 53.5, 156, 566),
    ),
    Line(
        "msm.g1", "MSM G1 BN254", "bn254",
        (1, 2, 5, 14.5, 45, 165), (4.6, 12.8, 12.5, 26.9, 79.5, 278),
    ),
    Line(
        "msm.g2", "MSM G2 BLS12-381", "bls12_381",
        (4, 9, 22, 70, 230, None), (12.3, 30.3, 48.9, 138, 447, None),
    ),
    Line(
        "ntt", "NTT BLS12-381 Fr", "bls12_381",
        (None, None, 0.19, 0.78, 3.3, 15), (None, None, 0.26, 1.05, 4.4, 20.9),
    ),
    Line("prove.bellman", "Groth16 BLS12-381, dense", "bls12_381", (None, None, 40, 140, 500, 1900)),
    Line("prove.prepared", "the same, prepared key", "bls12_381", (None, None, 40, 140, 500, 1900)),
)  # fmt: skip


class Cell(NamedTuple):
    device: float
    wall: float


@dataclass
class Table:
    """Cells by (line, log_n), and why others are empty."""

    cells: dict[tuple[Line, int], Cell] = field(default_factory=dict)
    left_out: dict[tuple[Line, int], str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def add(self, line: Line, log_n: int, rows: list[Row]) -> Cell:
        best = min(rows, key=lambda row: row.times.work.median)
        device = best.times.work.median
        if best.parts:
            device = sum(best.parts[name].work.median for name in PHASES)
        self.rows += rows
        self.cells[line, log_n] = cell = Cell(device, best.times.wall.median)
        return cell

    def markdown(self, column: str, logs: list[int]) -> Iterator[str]:
        """One table; ``column`` is "device", "wall" or "floor"."""
        yield f"| {column}, ms | " + " | ".join(f"2^{log_n}" for log_n in logs) + " |"
        yield "|---" * (len(logs) + 1) + "|"
        for line in LINES:
            cells = [self._cell(line, log_n, column) for log_n in logs]
            if any(cells):
                yield f"| {line.title} | " + " | ".join(cells) + " |"

    def _cell(self, line: Line, log_n: int, column: str) -> str:
        found = self.cells.get((line, log_n))
        if found is None:
            return ""
        text = short(line.floor(log_n) if column == "floor" else getattr(found, column))
        if column == "device" and log_n in SIZES:
            place = SIZES.index(log_n)
            target, peer = line.targets[place], line.peer[place]
            text += f" / {short(target)}" if target else ""
            text += f" ({short(peer)})" if peer else ""
        return text


def short(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def wanted(logs: list[int], names: list[str]) -> Iterator[tuple[int, Line]]:
    """By size, small ones first: those with a target, and sizes between them."""
    for log_n in logs:
        for line in LINES:
            asked = log_n not in SIZES or line.targets[SIZES.index(log_n)] is not None
            if asked and any(line.name.startswith(name) for name in names):
                yield log_n, line


def ready(options: argparse.Namespace, threads: int) -> dict[str, str]:
    """Compile or load the kernels, which the first case would else pay for."""
    place: dict[str, str] = {}
    for name in dict.fromkeys(line.curve for line in LINES):
        start = time.monotonic()
        backend, _ = open_device(options.device, CURVES[name], threads)
        place = place or place_of(backend, threads)
        say(f"{backend.name}, {name}: ready in {time.monotonic() - start:.1f} s")
    return place


def fill(table: Table, options: argparse.Namespace, threads: int) -> dict[str, str]:
    """Measure what the budget allows; the place it was measured in."""
    end = time.monotonic() + options.budget
    place = ready(options, threads)
    spent: dict[Line, tuple[int, float]] = {}  # size and seconds of a line's last case
    for log_n, line in wanted(options.log, options.lines.split(",")):
        last, seconds = spent.get(line, (log_n, 0.0))
        expected = seconds * 2.0 ** (log_n - last)
        start = time.monotonic()
        if start + expected > end:
            table.left_out[line, log_n] = (
                f"left out: about {expected:.0f} s, {end - start:.0f} s were left"
            )
            continue
        try:  # a new backend for each: it plans its memory for one kind of work
            backend, _ = open_device(options.device, CURVES[line.curve], threads)
            cell = table.add(line, log_n, line.measure(backend, log_n, threads))
        except CuzkError as error:
            table.left_out[line, log_n] = f"{type(error).__name__}: {error}"
            say(f"{line.title} 2^{log_n}: {error}")
            continue
        spent[line] = log_n, time.monotonic() - start
        say(
            f"{line.title} 2^{log_n}: {cell.device:.3f} ms, wall {cell.wall:.3f} ms, case {spent[line][1]:.1f} s"
        )
    return place


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(table: Table, place: dict[str, str], options: argparse.Namespace) -> dict[str, Any]:
    logs = options.log
    print(", ".join(place.values()) + "\n")
    for column in ("device", "wall", "floor"):
        print("\n".join(table.markdown(column, logs)) + "\n")
    for checked in dict.fromkeys(row.checked for row in table.rows):
        print(f"checked: {checked}")
    left_out = {f"{line.title} 2^{log_n}": why for (line, log_n), why in table.left_out.items()}
    for case, why in left_out.items():
        print(f"{case}: {why}")
    return {"place": place, "rows": [row.as_dict() for row in table.rows], "left_out": left_out}


def main() -> None:
    parser = argparse.ArgumentParser(description="the table of docs/kernels.md, on a GPU")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--budget", type=float, default=240.0, help="seconds")
    parser.add_argument("--log", type=sizes, default=list(SIZES), help="16,18,20 or 16-20")
    parser.add_argument(
        "--lines", default="msm,ntt,prove", help="beginnings of msm.g1, prove.bellman, ..."
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything, as one object")
    options = parser.parse_args()
    table = Table()
    found = report(table, fill(table, options, thread_count(None)), options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if any(not why.startswith("left out") for why in table.left_out.values()):
        sys.exit("some cases failed, see above")


if __name__ == "__main__":
    main()
