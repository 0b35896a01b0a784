"""The door: what is looked at again before a refusal, who checks, and two requests that come under one id."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scripted import HOST, World, play, raised
from scripted_catalogue import Circuit
from scripted_worker import expected_proof

from cuzk.engine.admission import HASHED_HERE
from cuzk.engine.policy import EnginePolicy
from cuzk.errors import (
    FormatError,
    KernelError,
    OutOfMemory,
    QueueFull,
    RequestConflict,
    Unavailable,
)

LARGE = HASHED_HERE + 1
STOPS = "the service stops: submit it again when it is back"


def test_a_key_that_was_too_large_is_looked_at_again_before_a_refusal(tmp_path: Path) -> None:
    """Another one may lie there since: what was known of its size is no reason any more."""

    async def scenario(world: World) -> None:
        await raised(OutOfMemory, world.engine.submit(world.request("a", "huge")))
        world.catalogue.circuits["huge"].key = {"host": 4}
        request = world.request("b", "huge")
        await world.engine.submit(request)
        assert await world.proof("b") == expected_proof(request, 1)

    play(tmp_path, scenario, {"huge": Circuit(key={"host": 16})})


def test_a_worker_that_has_the_key_checks(tmp_path: Path) -> None:
    """Another would read its beginning first. Both are idle: nothing else speaks for one of them."""

    async def scenario(world: World) -> None:
        other, holder = world.workers
        other.die()
        await world.engine.preload("small")
        assert (other.loaded, holder.loaded) == (set(), {"small"})
        await asyncio.sleep(10)
        assert other.health().alive
        for n in range(3):
            await world.engine.submit(world.request(f"r{n}"))
            await world.proof(f"r{n}")
        assert (other.words("check"), len(holder.words("check"))) == ([], 3)

    play(tmp_path, scenario, workers={"one": {}, "two": {}})


def test_a_repeat_that_waits_for_an_end_is_told_when_the_service_stops_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure that it would be a new try of is not in the journal yet, and never will be."""

    async def scenario(world: World) -> None:
        world.worker.fail["prove", "a"] = [KernelError("status 700")]
        ending = asyncio.Event()

        async def never(*_: Any, **__: Any) -> None:
            ending.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(world.journal, "end", never)
        await world.engine.submit(world.request("a"))
        await ending.wait()
        repeat = asyncio.ensure_future(world.engine.submit(world.request("a")))
        await asyncio.sleep(1)
        assert not repeat.done()
        await world.engine.stop()
        assert await raised(Unavailable, repeat) == STOPS

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "policy",
    [
        EnginePolicy(limits=HOST, queue_limit=1),
        EnginePolicy(limits=HOST, queue_bytes=LARGE + 1),
    ],
    ids=["places", "bytes"],
)
def test_room_is_looked_at_again_when_a_large_request_has_been_hashed(
    tmp_path: Path, policy: EnginePolicy
) -> None:
    """In a thread, meanwhile others came."""

    async def scenario(world: World) -> None:
        requests = [world.request(f"r{n}", data=bytes(LARGE)) for n in range(3)]
        answers = await asyncio.gather(
            *(world.engine.submit(each) for each in requests), return_exceptions=True
        )
        assert [type(answer) for answer in answers if isinstance(answer, Exception)] == [
            QueueFull
        ] * 2
        await world.quiet()
        await world.engine.submit(world.request("later", data=bytes(LARGE)))

    play(tmp_path, scenario, policy=policy)


def test_a_large_request_that_is_hashed_when_a_drain_begins_is_not_taken(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        large = asyncio.ensure_future(world.engine.submit(world.request("a", data=bytes(LARGE))))
        await asyncio.sleep(0)  # it has its route, and its digest is being made
        draining = asyncio.ensure_future(world.engine.drain(1000))
        assert await raised(Unavailable, large) == STOPS
        assert await draining
        assert world.worker.words("check") == []

    play(tmp_path, scenario)


def test_another_request_under_an_id_that_is_being_checked_is_a_conflict(tmp_path: Path) -> None:
    """Though the first one is refused: its own client hears why, and the id is free then."""

    async def scenario(world: World) -> None:
        bad, good = world.request("a", data=b"bad"), world.request("a", data=b"good")
        answers = await asyncio.gather(
            world.engine.submit(bad), world.engine.submit(good), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [FormatError, RequestConflict]
        await world.engine.submit(good)
        assert await world.proof("a") == expected_proof(good, 1)

    play(tmp_path, scenario)
