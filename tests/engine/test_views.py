"""The snapshot: what is kept of jobs that wait must never be shown when it is not so any more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from scripted import World, play
from scripted_catalogue import Circuit

from cuzk.engine.failure import Failure
from cuzk.engine.snapshot import JobView, PartitionView
from cuzk.errors import FormatError


def of(world: World, name: str) -> JobView:
    (view,) = [view for view in world.engine.snapshot().jobs if view.id == name]
    return view


def test_a_job_that_waits_is_shown_as_it_is_now(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for name in "abcd":
            await world.engine.submit(world.request(name))
        await asyncio.sleep(1)  # two are prepared, the others wait
        assert [view.state for view in world.engine.snapshot().jobs][2:] == ["queued"] * 2
        first = of(world, "d")
        assert (first.state, first.place) == ("queued", 1)
        assert first.partitions == (PartitionView(0, "pending"), PartitionView(1, "pending"))
        await asyncio.sleep(1)
        assert of(world, "d").age == pytest.approx(first.age + 1)
        assert first.age == pytest.approx(1)  # a view is of its moment
        await world.engine.cancel("c")
        assert of(world, "d").place == 0
        seen = {of(world, "d").state}
        while (view := of(world, "d")).state != "done":
            seen.add(view.state)
            if view.state == "proving":
                assert view.place == -1
                assert any(part.state == "proving" for part in view.partitions)
            await asyncio.sleep(0.2)
        assert {"queued", "preparing", "proving"} <= seen
        assert [part.state for part in view.partitions] == ["done", "done"]

    circuit = Circuit(partitions=2, load=0.1, prove=5, prepare=0.5, finish=0.5)
    play(tmp_path, scenario, {"small": circuit})


NO_TEXT = "/keys/\udcff\x1b[2J.zkey"
"""As Python has the path b"/keys/\\xff..."."""
AS_TEXT = "/keys/\\udcff\\x1b[2J.zkey"


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts(part)


def test_texts_from_outside_are_legible(tmp_path: Path) -> None:
    """A path may have bytes that are no text, and a device's driver anything: JSON and protobuf take no such thing."""

    async def scenario(world: World) -> None:
        world.worker.fail["prove", "a"] = [FormatError(f"{NO_TEXT}: cut")]
        await world.engine.submit(world.request("a"))
        _, outcome = await world.engine.result("a")
        assert outcome is not None
        world.catalogue.circuits["away"].fault = f"{NO_TEXT}: no such file"
        world.worker.die(f"killed while it read {NO_TEXT}")
        snapshot = world.engine.snapshot()
        assert {key.circuit: key.fault for key in snapshot.keys}[
            "away"
        ] == f"{AS_TEXT}: no such file"
        assert snapshot.workers[0].fault == f"worker cpu: killed while it read {AS_TEXT}"
        assert snapshot.failures[0].message == f"{AS_TEXT}: cut"
        assert [text for text in texts(asdict(snapshot)) if not text.isprintable()] == []

    play(tmp_path, scenario, {"small": Circuit(), "away": Circuit()})


def test_an_error_of_a_worker_is_legible() -> None:
    assert Failure.of(FormatError(f"{NO_TEXT}: cut\n short")).text == f"{AS_TEXT}: cut short"
    missing = FileNotFoundError(2, "No such file", NO_TEXT)
    assert Failure.of(missing).text == f"{AS_TEXT}: No such file"
