"""What processes, contexts and other programs take: owners of their own, and limits that are true with them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from scripted import World, play
from scripted_catalogue import GIB, Circuit
from scripted_worker import ScriptedWorker

from cuzk.engine.ledger import Ledger, Ledgers
from cuzk.engine.overhead import Overhead
from cuzk.engine.overhead import shared as shares
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.request import Priority
from cuzk.engine.snapshot import Snapshot
from cuzk.engine.worker import Health
from cuzk.errors import CuzkError, OutOfMemory

GPU = {"cuda:0": {"cuda:0": 16}}
OTHERS = "other programs"


def health(**overhead: dict[str, int]) -> Health:
    named = {name.replace("_", ":"): taken for name, taken in overhead.items()}
    return Health(True, 1, 1, "", {"cuda:0": 100}, overhead=named)


def overhead_of(limit: int) -> tuple[Overhead, Ledgers]:
    ledgers = Ledgers([Ledger("host", 50), Ledger("cuda:0", limit)])
    return Overhead(ledgers), ledgers


def test_owners_are_what_a_worker_last_said() -> None:
    overhead, ledgers = overhead_of(100)
    overhead.daemon(8)
    overhead.worker("cuda:0", health(host={"process": 5}, cuda_0={"context": 10, OTHERS: 3}))
    assert ledgers["host"].owners() == {"process of the daemon": 8, "process on cuda:0": 5}
    assert ledgers["cuda:0"].owners() == {"context on cuda:0": 10, "other programs on cuda:0": 3}
    assert overhead.room() == {"host": 37, "cuda:0": 87}
    overhead.worker("cuda:0", health(host={"process": 6}, cuda_0={"context": 11, OTHERS: 0}))
    assert ledgers["host"].owners()["process on cuda:0"] == 5  # as it was first
    assert ledgers["cuda:0"].owners() == {"context on cuda:0": 11}
    overhead.worker("cuda:0", health())  # it died, and comes back
    assert ledgers["cuda:0"].owners() == {"context on cuda:0": 11}
    overhead.worker("cuda:0", health(cuda_0={"context and other programs": 14}))
    assert ledgers["cuda:0"].owners() == {"context and other programs on cuda:0": 14}
    assert overhead.room() == {"host": 37, "cuda:0": 86}


@pytest.mark.parametrize(("others", "counted"), [(30, 0), (40, 0), (55, 15)])
def test_a_limit_below_a_device_leaves_room_to_other_programs(others: int, counted: int) -> None:
    overhead, ledgers = overhead_of(60)
    overhead.worker("cuda:0", health(cuda_0={"context": 10, OTHERS: others}))
    assert ledgers["cuda:0"].owners().get("other programs on cuda:0", 0) == counted
    assert ledgers["cuda:0"].owners()["context on cuda:0"] == 10


def test_more_than_there_is_leaves_no_room() -> None:
    overhead, ledgers = overhead_of(100)
    overhead.worker("cuda:0", health(cuda_0={OTHERS: 130}))
    assert overhead.room()["cuda:0"] == 0
    assert ledgers["cuda:0"].over == 30
    assert overhead.taken("cuda:0") == 130


def sums(snapshot: Snapshot) -> None:
    for memory in snapshot.memories:
        assert memory.reserved == sum(memory.owners.values()), memory
        assert memory.reserved + memory.free == memory.limit, memory
        assert all(nbytes > 0 for nbytes in memory.owners.values()), memory


def shared(worker: ScriptedWorker, others: int, context: int = 1) -> None:
    worker.overhead = {
        "host": {"process": GIB // 8},
        "cuda:0": {"context": context * GIB, OTHERS: others * GIB},
    }


def test_a_key_that_takes_all_of_a_device_proves_beside_others_that_come(tmp_path: Path) -> None:
    """They come after it was loaded with all that there was; then its partitions are given what is left."""

    async def scenario(world: World) -> list[dict[str, int]]:
        seen = []
        for name, others in (("a", 0), ("b", 5), ("c", 14), ("d", 2)):
            shared(world.worker, others)
            await world.engine.submit(world.request(name))
            await asyncio.sleep(14)
            snapshot = world.engine.snapshot()
            sums(snapshot)
            seen.append(snapshot.memories[1].owners)
            await world.proof(name)
        return seen

    sizes = {"cuda:0": 12}
    circuit = Circuit(key=sizes, partition={"cuda:0": 9}, load=1, prove=20)
    seen = play(
        tmp_path, scenario, {"small": circuit}, EnginePolicy(limits={"host": GIB}), GPU,
        prepare=lambda world: shared(world.worker, 0),
    )  # fmt: skip
    part = [
        owners.get(f"job {name} partition 0", 0) for name, owners in zip("abcd", seen, strict=True)
    ]
    assert part == [3 * GIB, 0, 0, GIB]


def test_what_processes_take_is_not_for_keys(tmp_path: Path) -> None:
    async def scenario(world: World) -> str:
        with pytest.raises(OutOfMemory) as refused:
            await world.engine.submit(world.request("a"))
        return str(refused.value)

    circuit = Circuit(key={"host": 4}, partition={"host": 4})
    text = play(
        tmp_path, scenario, {"small": circuit}, EnginePolicy(limits={"host": 8 * GIB + 100}),
        prepare=lambda world: shared(world.worker, 0),
    )  # fmt: skip
    left = 8 * GIB + 100 - GIB // 8
    assert f"of host, the limit is {left} without the {GIB // 8} that processes" in text


@pytest.mark.parametrize("seed", range(4))
def test_the_sums_are_right_at_every_moment_of_a_day(tmp_path: Path, seed: int) -> None:
    """Loads, evictions, deaths, cancels, estimates that are corrected, programs that come and go."""
    drawn = Random(seed)

    async def scenario(world: World) -> int:
        engine, count = world.engine, 0
        for number in range(60):
            chosen = drawn.choice(list(world.catalogue.circuits))
            priority = drawn.choice(list(Priority))
            await engine.submit(world.request(f"j{number}", chosen, priority))
            if number % 7 == 3:
                world.worker.die()
            if number % 5 == 2:
                shared(world.worker, drawn.randrange(8), context=drawn.randrange(1, 3))
            if number % 6 == 1:
                await engine.cancel(f"j{number}")
            try:
                if number % 8 == 5:
                    await engine.evict(chosen)
                elif number % 8 == 7:
                    await engine.preload(chosen)
            except CuzkError:
                pass  # in use, or no room
            for _ in range(drawn.randrange(1, 12)):
                await asyncio.sleep(drawn.random() * 4)
                sums(engine.snapshot())
                count += 1
        for _ in range(2000):
            await asyncio.sleep(20)
            snapshot = engine.snapshot()
            sums(snapshot)
            if not any(job.state not in ("done", "failed", "cancelled") for job in snapshot.jobs):
                break
        await asyncio.sleep(20)
        owners = [owner for m in engine.snapshot().memories for owner in m.owners]
        assert not [owner for owner in owners if owner.startswith("job ")]
        assert {"context on cuda:0", "process on cuda:0", "process of the daemon"} <= {*owners}
        assert not world.worker.wrong
        return count

    circuits = {
        "a": Circuit(
            3, key={"host": 2, "cuda:0": 5}, partition={"host": 1, "cuda:0": 3}, estimate=1
        ),
        "b": Circuit(2, key={"host": 1, "cuda:0": 9}, partition={"cuda:0": 6}, slots=2),
        "c": Circuit(1, key={"host": 3}, partition={"host": 2, "cuda:0": 2}, prove=30),
    }
    policy = EnginePolicy(limits={"host": 9 * GIB}, losses=50)
    count = play(tmp_path, scenario, circuits, policy, GPU, prepare=lambda world: beginning(world))
    assert count > 100


def beginning(world: World) -> None:
    shared(world.worker, 0)
    world.engine._resident = lambda: GIB // 4


def test_owners_in_shares() -> None:
    owners = {"key a on cpu": 1, "key b on cpu": 2, "job a partition 0": 4, "process on cpu": 8}
    assert shares(owners) == {"keys": 3, "jobs": 4, "process on cpu": 8}


def test_locked_pages_are_the_hosts_and_counted_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> tuple[int, int]:
        await world.engine.preload("small")
        [key] = world.engine.snapshot().keys
        return key.bytes, (await world.engine.evict("small"))[1]

    circuit = Circuit(key={"host": 4, "pinned": 3, "cuda:0": 2})
    limits = {"host": 16 * GIB, "pinned": 8 * GIB}
    found = play(tmp_path, scenario, {"small": circuit}, EnginePolicy(limits=limits), GPU)
    assert found == (6 * GIB, 6 * GIB)
