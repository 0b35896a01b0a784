"""What a daemon did while it made PoReps, from its own status: the device's time, each partition, memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuzk.bench.idle import computing, uses
from cuzk.bench.intervals import length
from cuzk.timeline import Span

Row = dict[str, Any]


def use(state: Row) -> Row:
    """Between the first partition's start and the last one's end: percent that each track worked, and the device."""
    parts = [part for job in state["jobs"] for part in job["partitions"] if part["ended"]]
    if not parts:
        return {}
    window = min(part["started"] for part in parts), max(part["ended"] for part in parts)
    spans = [
        Span(lane["track"], name, start, end, {"bytes": 0} if name.startswith("copy") else {})
        for lane in state["lanes"]
        for name, start, end, _ in lane["spans"]
    ]
    inside = [span for span in spans if span.end > window[0] and span.start < window[1]]
    seconds = window[1] - window[0]
    found: Row = {each.track: 100 * each.work / seconds for each in uses(inside, window)}
    if any(span.device for span in inside):
        found["the device computes"] = 100 * length(computing(inside, window)) / seconds
    return {"seconds": seconds, "partitions": len(parts), "percent": found, "left_out": state["spans_left_out"]}  # fmt: skip


def show(row: Row) -> list[str]:
    """For people."""
    jobs = {job["id"]: job for job in row["jobs"]}
    lines = [
        f"preload: {row['load_ms'] / 1e3:.1f} s; C1s and key ready after {row['ready_s']:.1f} s"
    ]
    for sector in row["sectors"]:
        job = jobs[sector["job"]]
        lines.append(
            f"{sector['job']}: {sector['answered'] - sector['sent']:.2f} s from Prove to proof, C1 of "
            f"{sector['bytes'] / 2**20:.1f} MiB (made in {sector['made_s']:.1f} s), accepted after "
            f"{job['accepted'] - sector['sent']:.2f} s, first partition after {job['started'] - sector['sent']:.2f} s; "
            f"service: {', '.join(f'{name} {ms:.0f}' for name, ms in job['milliseconds'].items())} ms"
        )
        for part in job["partitions"]:
            phases = {name: ms for name, ms in part["milliseconds"].items() if name != "load"}
            spent = ", ".join(f"{name} {ms:.0f}" for name, ms in phases.items())
            wall = 1e3 * (part["ended"] - part["started"])
            lines.append(
                f"    partition {part['number']} on {part['worker']}: {wall:.0f} ms; {spent}"
            )
    busy = row["use"]
    lines.append(
        f"{busy['partitions']} partitions in {busy['seconds']:.2f} s; of that time worked (%):"
    )
    lines += [f"    {track:24} {percent:5.1f}" for track, percent in busy["percent"].items()]
    if busy["left_out"]:
        lines.append(f"    ({busy['left_out']} spans are not in here: too many)")
    lines.append("memory, GB:")
    for name, (nbytes, owners) in row["ledger"].items():
        lines.append(f"    ledger {name:10} {nbytes / 1e9:7.2f} at most, of {row['limits'][name] / 1e9:.2f}: {_owners(owners)}")  # fmt: skip
    for name, (least, most) in row["driver"].items():
        lines.append(
            f"    driver {name:10} {most / 1e9:7.2f} at most in use, {least / 1e9:.2f} at first"
        )
    for name, nbytes in row["peak"].items():
        lines.append(f"    peak   {name:10} {nbytes / 1e9:7.2f}")
    return lines


def _owners(owners: Mapping[str, int]) -> str:
    return ", ".join(f"{owner} {nbytes / 1e9:.2f}" for owner, nbytes in owners.items())
