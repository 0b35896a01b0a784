"""The snapshot: what is kept of jobs that wait must never be shown when it is not so any more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scripted import World, play
from scripted_catalogue import Circuit

from cuzk.engine.snapshot import JobView, PartitionView


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
