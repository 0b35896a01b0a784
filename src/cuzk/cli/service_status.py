"""``cuzk status``: what a proving service does, as tables for a person."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from cuzk.cli.app import cuzk_group
from cuzk.cli.connection import Service, service_options
from cuzk.cli.options import json_option
from cuzk.cli.terminal import answer, one_line, size, table
from cuzk.cli.waiting import proved
from cuzk.engine.overhead import shared
from cuzk.errors import FormatError
from cuzk.server.client import Client

PERIOD = 1.0  # seconds between two looks with --watch
SHOWN = 15  # jobs of the queue; --json has 200
FAILED = 5
ENDED = ("done", "failed", "cancelled")
State = dict[str, Any]


@cuzk_group.command("status", short_help="Queue, devices, keys, memory; or one job.")
@click.argument("job", required=False)
@click.option("--watch", is_flag=True, help="Look again every second, until Ctrl-C.")
@service_options
@json_option
def status_command(job: str | None, watch: bool, service: Service, as_json: bool) -> None:
    """Show a service's queue, devices, keys and memory, or how far JOB is."""
    if watch and (as_json or not sys.stdout.isatty()):
        raise FormatError("--watch: expected a terminal, found another output; leave it out")
    with service.connect() as client:
        if watch:
            _watch(client, job)
            return
        state = client.status()
        if job is None:
            answer(state, overview(state), as_json=as_json)
        else:
            view = _job(client, state, job)
            answer(view, job_lines(view), as_json=as_json)


def _watch(client: Client, job: str | None) -> None:
    from rich.console import Group  # here: half of the start-up time of a command without it
    from rich.live import Live
    from rich.text import Text

    def shown() -> Group:
        state = client.status()
        lines = overview(state) if job is None else job_lines(_job(client, state, job))
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))

    try:
        with Live(shown(), auto_refresh=False, vertical_overflow="ellipsis") as live:
            while True:
                time.sleep(PERIOD)
                live.update(shown(), refresh=True)
    except KeyboardInterrupt:  # how a watch ends
        return


def _job(client: Client, state: State, job: str) -> State:
    """A job from the list, or one that ended too long ago to be in it."""
    for view in state["jobs"]:
        if view["id"] == job:
            found: State = view
            return found
    client.poll(job, 0.001)  # UnknownJob, or why it failed
    return {"id": job, "state": "done", "partitions": [], "partitions_total": 0}


def overview(state: State) -> list[str]:
    """All of it, in the order in which a person asks: is it up, does it work, what waits, what failed."""
    live = [job for job in state["jobs"] if job["state"] not in ENDED]
    working = sum(state["states"].values()) - state["states"].get("queued", 0)
    lines = [_headline(state), "", "devices", *_indented(_workers(state))]
    lines += ["", "circuits", *_indented(_keys(state))]
    lines += ["", "memory", *_indented(_memories(state))]
    lines += [
        "",
        f"queue: {state['states'].get('queued', 0)} waiting (at most {state['queue_limit']}), {working} in work",
    ]
    lines += _indented(_queue(live))
    if state["failures"]:
        lines += ["", "failed last"]
        failed = state["failures"][:FAILED]
        lines += [
            f"  {_age(state['now'] - job['ended'])} ago {_clean(job['id'])}: {_clean(job['message'])}"
            for job in failed
        ]
    return lines


def job_lines(job: State) -> list[str]:
    """One job: its state, its partitions, its times."""
    lines = [f"{_clean(job['id'])}: {job['state']}"]
    if job.get("place", -1) >= 0:
        lines[0] += f", {job['place']} before it"
    if "circuit" in job:
        ended = job["state"] in ENDED
        age = f"ended {_moment(job['ended'])}" if ended else f"{_age(job['age'])} old"
        lines.append(f"  {_clean(job['circuit'])}, {job['priority']}, {age}")
    if job.get("message"):
        code = f"{job['code']}: " if job.get("code") else ""
        lines.append(f"  {code}{_clean(job['message'])}")
    if job["partitions_total"] > 1:
        lines.append(f"  {proved(job)} of {job['partitions_total']} partitions proved")
    spent = {name: count for name, count in job.get("milliseconds", {}).items() if count >= 0.5}
    if len(job["partitions"]) < 2:
        spent.pop("work", None)  # that of all partitions, added up
    if spent:
        lines.append("  " + ", ".join(f"{name} {count:.0f} ms" for name, count in spent.items()))
    return lines


def _headline(state: State) -> str:
    ended = {name: sum(kind[name] for kind in state["totals"]) for name in ENDED}
    counts = ", ".join(f"{count} {name}" for name, count in ended.items())
    draining = "; draining: takes nothing more" if state["draining"] else ""
    up = _age(state["now"] - state["started"])
    return f"cuzk {state['version']}, process {state['process']}, up {up}: {counts}{draining}"


def _workers(state: State) -> Iterator[list[str]]:
    for worker in state["workers"]:
        doing = f"proves {worker['job']}" if worker["job"] else "idle"
        if worker["fault"] or not worker["alive"]:
            doing = f"NOT READY: {worker['fault'] or 'not there'}"
        yield [worker["name"], worker["title"], f"{size(worker['resident_bytes'])} resident", doing]


def _keys(state: State) -> Iterator[list[str]]:
    for key in state["keys"]:
        where = f"on {key['worker']}" if key["worker"] else ""
        tier = f"NOT READY: {key['fault']}" if key["fault"] else f"{key['tier']} {where}".rstrip()
        yield [key["circuit"], size(key["bytes"]) if key["bytes"] else "", tier]


def _memories(state: State) -> Iterator[list[str]]:
    for memory in state["memories"]:
        shares = sorted(shared(memory.get("owners", {})).items(), key=lambda share: -share[1])
        by = ", ".join(f"{what} {size(nbytes)}" for what, nbytes in shares)
        reserved = f"{size(memory['reserved'])} of {size(memory['limit'])} reserved"
        yield [memory["name"], f"{reserved}: {by}" if by else reserved]


def _queue(live: list[State]) -> Iterator[list[str]]:
    for job in live[:SHOWN]:
        place = f"place {job['place']}" if job["place"] >= 0 else job["state"]
        place = "NOT READY" if job.get("message") else place
        counts = f"{proved(job)}/{job['partitions_total']}"
        yield [job["id"], job["circuit"], job["priority"], place, counts, _age(job["age"])]
    if len(live) > SHOWN:
        yield [f"and {len(live) - SHOWN} more", *[""] * 5]


def _indented(rows: Iterator[list[str]]) -> list[str]:
    found = [[_clean(cell) for cell in row] for row in rows]
    return [f"  {line}" for line in table(found, words=True)] if found else ["  none"]


def _clean(text: str) -> str:
    return one_line(text) or "-"


def _moment(when: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when))


def _age(seconds: float) -> str:
    """As a person says it: "12 s", "3 min", "2 h 5 min", "4 d 1 h"."""
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if minutes < 1:
        return f"{max(0, int(seconds))} s"
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"
