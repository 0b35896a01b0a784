"""Which keys are where: eviction, preload, turns, memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from scripted import HOST, World, play, raised
from scripted_catalogue import GIB, Circuit
from scripted_worker import expected_proof

from cuzk.engine.catalogue import Needs
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Priority
from cuzk.errors import EngineError, FormatError, NotReady

TWO = {"one": Circuit(key={"host": 10}), "two": Circuit(key={"host": 10})}


def tiers(world: World) -> dict[str, str]:
    return {key.circuit: key.tier for key in world.engine.snapshot().keys}


def test_two_keys_take_turns_in_memory_for_one(tmp_path: Path) -> None:
    """M5: the idle key that was used longest ago goes, one in use never, and loading it again works."""

    async def scenario(world: World) -> None:
        for n in range(6):
            request = world.request(f"r{n}", ("one", "two")[n % 2])
            await world.engine.submit(request)
            assert await world.proof(request.id) == expected_proof(request, 1)
            memory = world.engine.snapshot().memories[0]
            assert memory.limit == memory.reserved + memory.free
            assert memory.reserved <= memory.limit
        loads = [name for _, name in world.worker.words("load")]
        assert loads == ["one", "two", "one", "two", "one", "two"]
        assert [name for _, name in world.worker.words("unload")] == loads[:-1]
        await world.quiet()

    play(tmp_path, scenario, TWO)


def test_the_least_recently_used_goes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for circuit in ("a", "b", "c", "a", "d"):
            request = world.request(f"{circuit}-{world.clock()}", circuit)
            await world.engine.submit(request)
            await world.proof(request.id)
            await asyncio.sleep(100)
        assert tiers(world) == {"a": "hot", "b": "cold", "c": "hot", "d": "hot"}
        await world.quiet()

    play(tmp_path, scenario, {name: Circuit(key={"host": 5}, partition={}) for name in "abcd"})


def test_a_key_in_use_is_not_evicted_for_another(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a", "long"))
        await asyncio.sleep(15)
        await world.engine.submit(world.request("b", "two"))
        await asyncio.sleep(25)
        assert tiers(world) == {"long": "hot", "two": "cold"}
        assert world.job("a").state == "proving"
        await world.proof("b")
        assert world.job("a").state == "done"
        await world.quiet()

    circuits = {"long": Circuit(partitions=5, key={"host": 10}), "two": TWO["two"]}
    play(tmp_path, scenario, circuits)


def test_a_critical_job_gets_the_memory_of_a_lower_one_at_its_next_boundary(tmp_path: Path) -> None:
    """Fault 13: no memory for WinningPoSt while PoReps held all of it. What was prepared is forgotten, not lost."""

    async def scenario(world: World) -> None:
        long = world.request("long", "long", Priority.LOW)
        await world.engine.submit(long)
        await asyncio.sleep(25)
        urgent = world.request("urgent", "two", Priority.CRITICAL)
        await world.engine.submit(urgent)
        assert await world.proof("urgent") == expected_proof(urgent, 1)
        # the rest of a partition, closing, loading, preparing
        assert world.worker.when("prove", "urgent") <= 31.1 + 0.2 + 10 + 1
        assert await world.proof("long") == expected_proof(long, 9)
        assert all(count == 1 for count in world.worker.proofs.values())
        await world.quiet()

    circuits = {"long": Circuit(partitions=9, key={"host": 10}), "two": TWO["two"]}
    play(tmp_path, scenario, circuits)


def test_12_one_key_is_loaded_once_for_all_that_wait_for_it(tmp_path: Path) -> None:
    """Fault 12: two first jobs each reserved the key's bytes, and the second waited for what nobody needed."""

    async def scenario(world: World) -> None:
        requests = [world.request(f"r{n}", "one") for n in range(4)]
        await asyncio.gather(*(world.engine.submit(request) for request in requests))
        await asyncio.sleep(5)
        assert world.engine.snapshot().memories[0].owners == {"key one on cpu": 10 * GIB}
        assert tiers(world)["one"] == "loading"
        for request in requests:
            assert await world.proof(request.id) == expected_proof(request, 1)
        assert world.worker.words("load") == [("load", "one")]
        await world.quiet()

    play(tmp_path, scenario, TWO)


def test_11_memory_that_is_released_wakes_who_waits_for_it(tmp_path: Path) -> None:
    """Fault 11: a wake-up between a failed try and the wait was lost, and a job stood still. Sixty of three circuits
    go through memory for one of them at a time, whatever is cancelled meanwhile."""

    async def scenario(world: World) -> None:
        for n in range(60):
            await world.engine.submit(world.request(f"r{n}", "abc"[n % 3]))
        for n in range(0, 60, 7):
            await asyncio.sleep(13)
            await world.engine.cancel(f"r{n}")
        for n in range(60):
            await world.engine.result(f"r{n}")
        total = (await world.quiet()).totals[0]
        assert total.done + total.cancelled == 60
        assert total.done >= 51

    play(tmp_path, scenario, {name: Circuit(key={"host": 12}) for name in "abc"})


def test_10_what_is_freed_is_what_was_charged(tmp_path: Path) -> None:
    """Fault 10: bytes that were never charged were counted as freed."""

    async def scenario(world: World) -> None:
        await world.engine.preload("one")
        before = world.engine.snapshot().memories[0]
        assert (before.reserved, before.free) == (10 * GIB, 6 * GIB)
        assert await world.engine.evict("one") == (True, 10 * GIB)
        after = world.engine.snapshot().memories[0]
        assert (after.reserved, after.free, after.owners) == (0, 16 * GIB, {})

    play(tmp_path, scenario, TWO)


def test_preload_and_evict_answer_truly(tmp_path: Path) -> None:
    """Fault 16: evict was a stub, preload waited without limit."""

    async def scenario(world: World) -> None:
        engine = world.engine
        assert await engine.preload("one-alias") == (False, 10_000.0)
        assert await engine.preload("one") == (True, 0.0)
        assert await engine.evict("two") == (False, 0)
        known, milliseconds = await engine.preload("two")
        assert (known, round(milliseconds)) == (False, 10_100)  # one was closed for it
        assert tiers(world) == {"one": "cold", "two": "hot"}
        await engine.submit(world.request("a", "two"))
        await asyncio.sleep(5)
        text = await raised(EngineError, engine.preload("one"))
        assert text == (
            f"one: its key needs {10 * GIB} bytes of host, {5 * GIB + 2} more than could be freed by closing keys "
            "that nobody uses: load it later, or evict another one"
        )
        text = await raised(EngineError, engine.evict("two"))
        assert text == "two: not evicted: in use on cpu by 'a'"
        assert "unknown" in await raised(NotReady, engine.preload("three"))
        assert "unknown" in await raised(NotReady, engine.evict("three"))
        await world.proof("a")
        await asyncio.sleep(1)
        assert await engine.evict("two-alias") == (True, 10 * GIB)
        assert tiers(world) == {"one": "cold", "two": "cold"}
        await world.quiet()

    play(tmp_path, scenario, TWO)


def test_preloads_at_once_are_one_load(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        answers = await asyncio.gather(*(world.engine.preload("one") for _ in range(3)))
        assert answers == [(False, 10_000.0)] * 3
        assert world.worker.words("load") == [("load", "one")]
        loading = asyncio.ensure_future(world.engine.preload("two"))
        await asyncio.sleep(3)
        text = await raised(EngineError, world.engine.evict("two"))
        assert text == "two: not evicted: cpu is loading it"
        await loading

    play(tmp_path, scenario, TWO)


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.09, 0.0985, 0.099, 0.0995, 3.0])
@pytest.mark.parametrize("sizes", [(10, 10), (15, 5)], ids=["no room left", "room for two"])
def test_12_a_preload_and_a_first_job_at_once_are_one_load(
    tmp_path: Path, moment: float, sizes: tuple[int, int]
) -> None:
    """Whenever the job comes: while another key is closed for it, at that very moment, while the key is loaded."""

    async def scenario(world: World) -> None:
        await world.engine.preload("one")
        preload = asyncio.ensure_future(world.engine.preload("two"))
        await asyncio.sleep(moment)
        request = world.request("a", "two")
        await world.engine.submit(request)
        known, milliseconds = await preload
        assert not known
        assert 10_000 <= round(milliseconds) <= 10_200
        assert await world.proof("a") == expected_proof(request, 1)
        assert [name for _, name in world.worker.words("load")].count("two") == 1
        await world.quiet()

    circuits = {
        name: Circuit(key={"host": size}) for name, size in zip(("one", "two"), sizes, strict=True)
    }
    play(tmp_path, scenario, circuits)


@pytest.mark.parametrize("wanted", ["job", "preload"])
@pytest.mark.parametrize("limit", [16, 32])
def test_12_a_key_that_is_being_closed_is_loaded_again(
    tmp_path: Path, wanted: str, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await world.engine.preload("one")
        evict = asyncio.ensure_future(world.engine.evict("one"))
        await asyncio.sleep(0.05)
        if wanted == "preload":
            assert not (await world.engine.preload("one"))[0]
        request = world.request("a", "one")
        await world.engine.submit(request)
        assert await evict == (True, 10 * GIB)
        assert await world.proof("a") == expected_proof(request, 1)
        assert [name for _, name in world.worker.words("load")] == ["one", "one"]
        await world.quiet()
        assert "bug" not in caplog.text

    play(tmp_path, scenario, TWO, EnginePolicy(limits={"host": limit * GIB}))


def test_a_preload_that_fails_says_why(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["load", "one"] = [FormatError("one.zkey: too short")]
        assert await raised(FormatError, world.engine.preload("one")) == "one.zkey: too short"
        keys = {key.circuit: key.fault for key in world.engine.snapshot().keys}
        assert keys == {"one": "one.zkey: too short", "two": "", "gone": "no such file"}
        assert (
            await raised(NotReady, world.engine.preload("gone")) == "gone: not ready: no such file"
        )
        assert world.engine.snapshot().memories[0].owners == {}

    play(tmp_path, scenario, {**TWO, "gone": Circuit(fault="no such file")})


def test_keys_of_the_settings_are_loaded_at_the_start(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await asyncio.sleep(0.5)
        assert tiers(world) == {"one": "loading", "two": "cold"}
        await asyncio.sleep(10)
        assert tiers(world) == {"one": "hot", "two": "cold"}

    play(tmp_path, scenario, {"one": Circuit(preload=True), "two": Circuit()})


def test_a_device_of_one_slot_gets_one_partition_at_a_time(tmp_path: Path) -> None:
    """And ``lanes`` of the settings is the most for one of more slots."""

    async def scenario(world: World) -> None:
        request = world.request("a", "wide")
        await world.engine.submit(request)
        assert await world.proof("a") == expected_proof(request, 8)
        await world.quiet()
        assert world.worker.when("finish", "a") == 10.001 + 1 + 8 / 2 * 10

    circuits = {"wide": Circuit(partitions=8, slots=4)}
    play(tmp_path, scenario, circuits, EnginePolicy(lanes=2, limits=HOST))


def test_9_headroom_is_there_when_a_critical_job_comes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for n in range(8):
            await world.engine.submit(world.request(f"r{n}", "one"))
        await asyncio.sleep(15)
        assert world.engine.snapshot().memories[0].free >= 3 * GIB
        urgent = world.request("urgent", "tiny", Priority.CRITICAL)
        await world.engine.submit(urgent)
        await world.proof("urgent")
        assert tiers(world) == {"one": "hot", "tiny": "hot"}
        assert world.worker.words("unload") == []
        await world.quiet()

    circuits = {"one": Circuit(key={"host": 9}), "tiny": Circuit(key={"host": 2})}
    policy = EnginePolicy(limits=HOST, headroom={"host": 3 * GIB})
    play(tmp_path, scenario, circuits, policy)


STREAMED = Circuit(
    key={"host": 4, "cuda:0": 7, "pinned": 3}, partition={"host": 1, "cuda:0": 1, "pinned": 1}
)
"""What a Prover takes of a GPU of 8 GiB, with points that stay in the host's memory; not all of it can be locked."""


@pytest.mark.parametrize("kept", [0, 2])
def test_a_key_that_a_gpu_has_not_room_for_is_streamed_and_not_refused(
    tmp_path: Path, kept: int
) -> None:
    """Estimates of devices where all fits are no reason: the Prover shares the device out. Nor is what it took then,
    though that leaves nothing for others but by eviction, and nothing of what is kept for CRITICAL jobs."""

    def untroubled(circuit: str, device: str) -> Needs:  # noqa: ARG001
        if circuit == "small":
            return Needs({"cuda:0": 2 * GIB}, {"cuda:0": GIB})
        on_gpu = (
            {"host": 4 * GIB, "cuda:0": 20 * GIB},
            {"host": GIB, "cuda:0": 3 * GIB, "pinned": GIB},
        )
        return Needs(*on_gpu)

    def prepare(world: World) -> None:
        world.catalogue.needs = untroubled  # type: ignore[method-assign]

    async def scenario(world: World) -> None:
        for n, circuit in enumerate(("wide", "wide", "small", "wide")):
            request = world.request(f"r{n}", circuit)
            await world.engine.submit(request)
            assert await world.proof(request.id) == expected_proof(
                request, 1 if circuit == "small" else 2
            )
        loads = [name for _, name in world.worker.words("load")]
        assert loads == ["wide", "small", "wide"]
        memories = {m.name: m.reserved for m in (await world.quiet()).memories}
        assert memories["cuda:0"] == 7 * GIB  # the real bytes
        assert memories["host"] == 4 * GIB

    small = Circuit(key={"cuda:0": 2}, partition={"cuda:0": 1})
    wide = replace(STREAMED, partitions=2)
    policy = EnginePolicy(
        limits={"host": 16 * GIB, "pinned": 2 * GIB}, headroom={"cuda:0": kept * GIB}
    )
    play(
        tmp_path, scenario, {"wide": wide, "small": small}, policy=policy,
        workers={"gpu": {"cuda:0": 8}}, prepare=prepare,
    )  # fmt: skip


def test_a_key_is_evicted_as_soon_as_its_job_is_done(tmp_path: Path) -> None:
    """Though the worker takes its time to let go of what it read of the request: the key is closed after that."""

    async def scenario(world: World) -> None:
        forget = world.worker.forget

        async def slow(job: str) -> None:
            await asyncio.sleep(5)
            world.worker.events.append((asyncio.get_running_loop().time(), "forget", job, -1))
            await forget(job)

        world.worker.forget = slow  # type: ignore[method-assign]
        await world.engine.submit(world.request("a"))
        await world.proof("a")
        assert await world.engine.evict("small") == (True, 4 * GIB)
        assert world.worker.words("forget", "unload") == [("forget", "a"), ("unload", "small")]
        await world.quiet()

    play(tmp_path, scenario)
