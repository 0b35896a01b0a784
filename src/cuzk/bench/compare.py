"""How a key and vectors in host memory get to a GPU, and what each step of it gains: one proof, eight ways.

The first is what a prover on supraseal's kernels did before it staged vectors ahead: pageable copies of a, b, c in their
turn, the key's points in batches from pinned memory, each batch waited for. The others change one thing at a time and
are each compared with the way that they change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.backends import Backend
from cuzk.backends.cuda.machine import Machine
from cuzk.backends.cuda.transfers import Transfers
from cuzk.bench.phases import Way
from cuzk.bench.turns import SUMS, Series
from cuzk.errors import DeviceUnavailable

PUBLISHED = (
    "Published for supraseal's prover, from way 1 to way 4, one partition of a Filecoin proof (domain 2^27) on an RTX 5070 "
    "Ti, to compare shapes, not numbers: H phase 2430 -> 690 ms, tail sums 125 -> 83 ms, the whole 3746 -> 1824 ms."
)


@dataclass(frozen=True)
class Step:
    """A way of the comparison and the number of the one that it changes."""

    way: Way
    against: int | None


def _step(
    name: str, against: int | None, vectors: str, batches: str, points: str = "host", lanes: int = 1
) -> Step:
    transfers = Transfers(vectors=vectors, batches=batches, points=points)
    return Step(Way(name, transfers, lanes, evaluations=True), against)


STEPS = (
    _step("vectors in turn, each batch waited for", None, "inside", "each"),
    _step("vectors ahead", 0, "ahead", "each"),
    _step("batches waited for one late", 0, "inside", "deferred"),
    _step("both", 0, "ahead", "deferred"),
    _step("both, buckets kept across batches", 3, "ahead", "kept"),
    _step("the key on the device", 4, "ahead", "kept", "auto"),
    _step("the key on the device, two lanes", 5, "ahead", "kept", "auto", 2),
    _step("buckets kept, two lanes", 4, "ahead", "kept", "host", 2),
)


def expect_gpu(backend: Backend) -> None:
    """DeviceUnavailable for a CPU."""
    if not isinstance(getattr(backend, "machine", None), Machine):
        raise DeviceUnavailable(
            f"--compare: expected a GPU, found {backend.name}: it compares ways to copy to one"
        )


HEADING = (
    "",
    "H phase",
    *(f"sum {name}" for name in SUMS),
    "device",
    "wall",
    "idle %",
    "a minute",
    "gain",
)


def compared(series: Sequence[Series]) -> list[dict[str, Any]]:
    """A row for each of STEPS: milliseconds, the device's but for "wall_ms"."""
    rows: list[dict[str, Any]] = []
    for one, step in zip(series, STEPS, strict=True):
        device = one.phases(device=True)
        against = None if step.against is None else series[step.against]
        idle = one.device_idle
        rows.append(
            {
                "name": one.name,
                "h_phase_ms": round(device["evaluate"] + device["quotient"], 4),
                "sums_ms": one.sums(),
                "device_ms": round(sum(device.values()), 4),
                "wall_ms": one.wall.median,
                "device_idle_percent": None if idle is None else round(100 * idle, 3),
                "proofs_per_minute": round(one.per_minute, 2),
                "against": None if against is None else against.name,
                "gain": None if against is None else round(one.per_minute / against.per_minute, 4),
            }
        )
    return rows


def cells(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """For a person, under HEADING; ways by number."""
    numbers = {row["name"]: number for number, row in enumerate(rows, 1)}
    found = [list(HEADING)]
    for number, row in enumerate(rows, 1):
        sums = row["sums_ms"] or dict.fromkeys(SUMS)
        times = [row["h_phase_ms"], *sums.values(), row["device_ms"], row["wall_ms"]]
        idle = row["device_idle_percent"]
        gain = f"{row['gain']:.2f}x of {numbers[row['against']]}" if row["gain"] else ""
        found.append(
            [
                f"{number} {row['name']}",
                *("?" if ms is None else f"{ms:.2f}" for ms in times),
                "" if idle is None else f"{idle:.1f}",
                f"{row['proofs_per_minute']:.1f}",
                gain,
            ]
        )
    return found
