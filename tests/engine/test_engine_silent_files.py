"""A circuit whose files do not answer: its load stands still and its checks are given up; all else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from scripted import HOST, World, play, raised
from scripted_catalogue import GIB, Circuit
from scripted_worker import expected_proof

from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Request
from cuzk.engine.silence import LOOK
from cuzk.errors import FormatError, NotReady

SILENT = "its files have not answered for 31 s"
WAITS = f"waits for its circuit, which is NOT READY: {SILENT}"
BACK = 5000.0  # seconds: when the mount is there again, and the load goes on
CIRCUITS = {"small": Circuit(), "other": Circuit(), "hangs": Circuit(partitions=2, load=BACK)}


def silent(world: World, *, now: bool) -> None:
    circuit = world.catalogue.circuits["hangs"]
    circuit.fault, circuit.silent = (SILENT, True) if now else ("", False)


def time() -> float:
    return asyncio.get_running_loop().time()


def tier(world: World, circuit: str) -> tuple[str, str]:
    key = next(key for key in world.engine.snapshot().keys if key.circuit == circuit)
    return key.tier, key.fault


def test_other_circuits_go_on_beside_a_load_that_hangs(tmp_path: Path) -> None:
    """On the one worker there is: jobs, preloads, evictions. Its own jobs wait, and go on when it is back."""

    async def scenario(world: World) -> None:
        waiting, other = world.request("a", "hangs"), world.request("b")
        await world.engine.submit(waiting)
        await asyncio.sleep(1)
        await world.engine.submit(other)
        preload = asyncio.ensure_future(world.engine.preload("hangs"))
        await asyncio.sleep(100)
        assert world.worker.words("load") == [("load", "hangs")]  # slow, as far as anybody knows
        silent(world, now=True)
        began = time()
        assert await world.proof("b") == expected_proof(other, 1)
        spec = world.catalogue.circuits["small"]
        assert time() - began <= LOOK + spec.load + spec.prepare + spec.prove + spec.finish + 1
        assert await raised(NotReady, preload) == f"hangs: not ready: {SILENT}"
        assert world.job("a").message == WAITS
        assert (world.job("a").state, world.job("a").place) == ("queued", -1)
        assert tier(world, "hangs") == ("not ready", SILENT)
        assert SILENT in await raised(NotReady, world.engine.preload("hangs"))
        assert SILENT in await raised(NotReady, world.engine.submit(world.request("c", "hangs")))
        assert (await world.engine.preload("other"))[0] is False
        assert await world.engine.evict("other") == (True, 4 * GIB)
        await asyncio.sleep(BACK / 2)
        assert world.job("a").message == WAITS
        silent(world, now=False)
        assert await world.proof("a") == expected_proof(waiting, 2)
        assert tier(world, "hangs") == ("hot", "")
        loads = [("load", name) for name in ("hangs", "small", "other")]
        assert world.worker.words("load") == loads  # none was made again
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


def test_a_load_that_ends_is_enough(tmp_path: Path) -> None:
    """Its jobs go on though looks at the file still hang: the key is there."""

    async def scenario(world: World) -> None:
        waiting = world.request("a", "hangs")
        await world.engine.submit(waiting)
        silent(world, now=True)
        await asyncio.sleep(2 * LOOK)
        assert world.job("a").message == WAITS
        await asyncio.sleep(BACK - 3 * LOOK)
        assert await world.proof("a") == expected_proof(waiting, 2)
        silent(world, now=False)
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


@pytest.mark.parametrize("word", ["die", "error"])
def test_a_load_that_hung_and_failed_is_made_again_when_the_files_answer(
    tmp_path: Path, word: str
) -> None:
    """Not before: it would hang again."""

    async def scenario(world: World) -> None:
        waiting, other = world.request("a", "hangs"), world.request("b")
        await world.engine.submit(waiting)
        silent(world, now=True)
        await asyncio.sleep(2 * LOOK)
        if word == "die":
            world.worker.die()
        else:
            world.worker.fail["load", "hangs"] = [FormatError("hangs.zkey: input/output error")]
            await asyncio.sleep(BACK)
        await world.engine.submit(other)
        assert await world.proof("b") == expected_proof(other, 1)
        await asyncio.sleep(1000)
        assert world.worker.words("load").count(("load", "hangs")) == 1
        assert world.job("a").message == WAITS
        assert [owner for owner in world.engine.snapshot().memories[0].owners if "hangs" in owner] == []  # fmt: skip
        world.catalogue.circuits["hangs"].load = 10.0
        silent(world, now=False)
        assert await world.proof("a") == expected_proof(waiting, 2)
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


def test_a_file_that_is_missing_while_it_is_loaded_stops_no_load(tmp_path: Path) -> None:
    """What is mapped is there: the worker's next load waits for the end of this one, as ever."""

    async def scenario(world: World) -> None:
        waiting, other = world.request("a", "hangs"), world.request("b")
        await world.engine.submit(waiting)
        await world.engine.submit(other)
        world.catalogue.circuits["hangs"].fault = "hangs.zkey: found no file of that name"
        await asyncio.sleep(BACK - 100)
        assert world.worker.words("load") == [("load", "hangs")]
        assert tier(world, "hangs")[0] == "loading"
        assert await world.proof("a") == expected_proof(waiting, 2)
        assert await world.proof("b") == expected_proof(other, 1)
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)


def test_keys_are_loaded_one_after_the_other(tmp_path: Path) -> None:
    """Whoever asks for them: side by side they would take the same memory of a device for theirs."""

    async def scenario(world: World) -> None:
        names = ("small", "other", "third")
        await asyncio.gather(*(world.engine.preload(name) for name in names))
        for before, after in pairwise(names):
            load = world.catalogue.circuits[before].load
            assert world.worker.when("load", after) - world.worker.when("load", before) == load
        await world.quiet()

    play(tmp_path, scenario, {**CIRCUITS, "third": Circuit()}, EnginePolicy(limits=HOST))


def test_a_drain_does_not_wait_for_a_load_that_hangs(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "hangs"))
        silent(world, now=True)
        await asyncio.sleep(2 * LOOK)
        began = time()
        assert await world.engine.drain(1000) is False
        assert time() - began < LOOK

    play(tmp_path, scenario, CIRCUITS)


def hanging_checks(world: World) -> Callable[[], int]:
    """Of the circuit "hangs"; how many of them nobody waits for any more."""
    check, left = world.worker.check, list[str]()

    async def hang(request: Request, circuit: str = "") -> None:
        assert circuit == request.fields["circuit_id"]
        if circuit == "hangs":
            try:
                await asyncio.sleep(BACK)
            except asyncio.CancelledError:
                left.append(request.id)
                raise
        await check(request, circuit)

    world.worker.check = hang  # type: ignore[method-assign]
    return lambda: len(left)


def test_a_check_that_hangs_is_given_up(tmp_path: Path) -> None:
    """Its request is refused as any other of that circuit, and leaves nothing; the same id may be used again."""

    async def scenario(world: World) -> None:
        left = hanging_checks(world)
        request = world.request("a", "hangs")
        entering = [asyncio.ensure_future(world.engine.submit(each)) for each in (request, request, world.request("c", "hangs"))]  # fmt: skip
        await asyncio.sleep(100)
        assert not any(each.done() for each in entering)
        assert await world.engine.submit(world.request("b"))
        silent(world, now=True)
        began = time()
        for each in entering:
            assert await raised(NotReady, each) == f"hangs: not ready: {SILENT}"
        assert time() - began <= LOOK
        assert left() == 2
        silent(world, now=False)
        world.catalogue.circuits["hangs"].load = 10.0
        del world.worker.check
        await world.engine.submit(replace(request))
        assert await world.proof("a") == expected_proof(request, 2)
        await world.quiet()

    play(tmp_path, scenario, CIRCUITS)
