"""Keys that cannot be loaded, are away, or turn out larger than was said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scripted import HOST, World, play, raised
from scripted_catalogue import GIB, Circuit
from scripted_worker import expected_proof

from cuzk.engine.policy import EnginePolicy
from cuzk.engine.residency import VANISHED
from cuzk.errors import (
    DeviceUnavailable,
    FormatError,
    NotReady,
    OutOfMemory,
    QueueFull,
    WorkerLost,
)
from cuzk.load import open_circuit

BIG = {"big": Circuit(partitions=3)}


def test_a_key_that_cannot_be_loaded_fails_its_jobs_and_no_others(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = [FormatError("big.zkey: section 4: 7 rows, expected 8")]
        bad = [world.request(f"w{n}", "big") for n in range(3)]
        good = world.request("good")
        for request in (*bad, good):
            await world.engine.submit(request)
        for request in bad:
            view, _ = await world.engine.result(request.id)
            assert view.message == "big.zkey: section 4: 7 rows, expected 8"
        key = next(key for key in world.engine.snapshot().keys if key.circuit == "big")
        assert (key.tier, key.worker) == ("not ready", "cpu")
        assert key.fault == "big.zkey: section 4: 7 rows, expected 8"
        assert await world.proof("good") == expected_proof(good, 1)
        await world.engine.submit(bad[0])  # the file was put right
        assert await world.proof("w0") == expected_proof(bad[0], 3)
        key = next(key for key in world.engine.snapshot().keys if key.circuit == "big")
        assert (key.tier, key.fault) == ("hot", "")
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG})


def test_a_key_without_memory_is_tried_once_more_later(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = [OutOfMemory("no 4 GiB")]
        request, other = world.request("a", "big"), world.request("b")
        await world.engine.submit(request)
        await asyncio.sleep(11)
        await world.engine.submit(other)
        assert await world.proof("a") == expected_proof(request, 3)
        loads = [
            time for time, word, name, _ in world.worker.events if (word, name) == ("load", "big")
        ]
        assert loads[1] - loads[0] >= 15.0
        world.worker.fail["load", "big"] = [OutOfMemory("no 4 GiB"), OutOfMemory("not now either")]
        await world.engine.evict("big")
        await world.engine.submit(world.request("c", "big"))
        assert (await world.engine.result("c"))[0].message == "not now either"
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG})


def test_another_worker_takes_what_one_cannot_load(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.workers[0].fail["load", "big"] = [DeviceUnavailable("lost")] * 5
        request = world.request("a", "big")
        await world.engine.submit(request)
        assert await world.proof("a") == expected_proof(request, 3)
        assert world.workers[0].words("load") == [("load", "big")]
        assert world.workers[1].words("load") == [("load", "big")]
        await world.quiet()

    play(tmp_path, scenario, BIG, workers={"cpu": {}, "cuda:0": {"cuda:0": 80}})


def test_real_bytes_beyond_the_estimate_are_charged(tmp_path: Path) -> None:
    """Fault 9 and 10: constants were charged, and too low."""

    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a"))
        await asyncio.sleep(5)
        assert world.engine.snapshot().memories[0].owners == {"key small on cpu": 2 * GIB}
        await world.proof("a")
        memory = world.engine.snapshot().memories[0]
        assert memory.owners["key small on cpu"] == 4 * GIB
        assert memory.limit == memory.reserved + memory.free
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(estimate=-2)}, EnginePolicy(limits=HOST))


def test_a_key_that_turns_out_too_large_fails_its_jobs(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.engine.submit(world.request("a"))
        await world.engine.submit(world.request("b"))
        for name in "ab":
            view, _ = await world.engine.result(name)
            assert view.code == "out-of-memory"
            assert f"{17 * GIB} bytes of host" in view.message
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(key={"host": 16}, estimate=-4)})


def test_jobs_wait_for_a_file_that_is_gone_and_new_ones_are_refused(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        loading = asyncio.ensure_future(world.engine.preload("small"))  # one at a time
        await world.engine.submit(world.request("a"))
        accepted = world.request("b", "big")
        await world.engine.submit(accepted)
        world.engine._state.forget_sizes("big")
        world.catalogue.gone = True
        await loading
        assert await world.proof("a") == expected_proof(world.request("a"), 1)  # its key is loaded
        view, outcome = await world.engine.result("b", 100)
        assert (view.state, view.code, outcome) == ("queued", "", None)
        assert view.message.endswith("NOT READY: big.zkey: no such file")
        text = await raised(NotReady, world.engine.submit(world.request("c", "big")))
        assert text == "big: big.zkey: no such file"
        assert (await world.engine.submit(accepted)).number == 2  # a repeat attaches
        world.catalogue.gone = False
        assert await world.proof("b") == expected_proof(accepted, 3)
        assert world.job("b").message == ""
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG})


def test_a_file_that_is_gone_when_it_is_loaded_and_one_that_is_damaged(tmp_path: Path) -> None:
    """The border: a fault that a look at the file shows is waited for, one that only a load finds is the jobs' end."""

    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = [FormatError("big.zkey: no such file")]
        await world.engine.submit(world.request("a", "big"))
        await world.engine.submit(world.request("b", "big"))
        world.catalogue.circuits["big"].fault = "no such file"  # while it is loaded
        await asyncio.sleep(30)
        for name in ("a", "b"):
            assert (world.job(name).state, world.job(name).place) == ("queued", -1)
            assert world.job(name).message.endswith("NOT READY: no such file")
        assert world.worker.words("load") == [("load", "big")]  # not again and again
        world.catalogue.circuits["big"].fault = ""
        world.worker.fail["load", "big"] = [FormatError("big.zkey: another digest")]
        for name in ("a", "b"):
            view, _ = await world.engine.result(name)
            assert (view.state, view.code) == ("failed", "bad-format")
            assert view.message == "big.zkey: another digest"
        await world.quiet()

    play(tmp_path, scenario, BIG)


def test_a_key_that_another_worker_has_is_not_waited_for(tmp_path: Path) -> None:
    """What is loaded is loaded, whatever became of its file."""

    async def scenario(world: World) -> None:
        await world.engine.preload("big")
        world.catalogue.circuits["big"].fault = "no such file"
        for worker in world.workers:
            worker.fail["load", "big"] = [FormatError("big.zkey: no such file")]
        for name in ("a", "b"):
            world.catalogue.circuits["big"].fault = ""
            await world.engine.submit(world.request(name, "big"))
            world.catalogue.circuits["big"].fault = "no such file"
        for name in ("a", "b"):
            assert await world.proof(name) == expected_proof(world.request(name, "big"), 3)
        assert world.engine._state.jobs.away == {}
        tried = [worker.words("load") for worker in world.workers]
        assert tried == [[("load", "big")]] * 2  # one has it, the other one could not
        await world.quiet()

    play(tmp_path, scenario, BIG, workers={"one": {}, "two": {}})
    assert BIG["big"].fault == ""  # another test's circuits are not changed


def test_jobs_that_wait_for_a_key_take_no_place_from_others(tmp_path: Path) -> None:
    """Their payloads are on the disk, and count."""
    policy = EnginePolicy(limits=HOST, queue_limit=2, queue_bytes=10, critical_places=0)

    async def scenario(world: World) -> None:
        big = [world.request(f"b{n}", "big", data=b"1234") for n in range(2)]
        for request in big:
            await world.engine.submit(request)
        assert "the limit is 2" in await raised(QueueFull, world.engine.submit(world.request("x")))
        world.catalogue.circuits["big"].fault = "big.zkey: no such file"
        world.worker.fail["load", "big"] = [FormatError("big.zkey: no such file")]
        await asyncio.sleep(60)
        assert {world.job(request.id).state for request in big} == {"queued"}
        good = [world.request(f"g{n}", data=bytes([n])) for n in range(2)]
        for request in good:
            await world.engine.submit(request)
        text = await raised(QueueFull, world.engine.submit(world.request("y", data=b"z")))
        assert "the limit is 2" in text
        for request in good:
            assert await world.proof(request.id) == expected_proof(request, 1)
        assert await raised(QueueFull, world.engine.submit(world.request("z", data=b"xyz"))) == (
            "2 requests with 8 bytes are waiting or in work (2 of them for a circuit that is NOT READY); with 3 more the "
            "limit of 10 bytes is exceeded: try again later"
        )
        await raised(NotReady, world.engine.submit(world.request("more", "big")))
        world.catalogue.circuits["big"].fault = ""
        for request in big:
            assert await world.proof(request.id) == expected_proof(request, 3)
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG}, policy)


def test_a_worker_that_dies_of_its_key_names_the_file(tmp_path: Path) -> None:
    """While it loads it, and while a job uses it; another death says nothing of it."""

    async def scenario(world: World) -> None:
        asked = {name: world.request(name, "big") for name in ("load", "prove")}
        world.worker.fail["load", "big"] = ["die"] * 3
        world.worker.fail["prove", "prove"] = ["die"] * 3
        await world.engine.submit(asked["load"])
        view, _ = await world.engine.result("load")
        assert "signal 7 (SIGBUS); SIGBUS says that a file was cut" in view.message
        assert "look at big.zkey, and put keys there whole" in view.message
        await world.engine.submit(asked["prove"])
        view, _ = await world.engine.result("prove")
        assert view.message.startswith("the worker died 3 times while it worked on this request")
        assert "look at big.zkey" in view.message
        killed = WorkerLost("worker cpu: killed by signal 9 (SIGKILL)")
        assert world.engine._state.suspect("big", killed) == ""
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG})


def test_a_key_that_vanishes_during_a_load_and_is_back_at_once_costs_no_job(tmp_path: Path) -> None:
    """One more load a little later; where that fails of it, too, the jobs fail."""
    gone = "big.zkey: expected a .zkey file, found no file of that name"

    async def scenario(world: World) -> None:
        world.worker.fail["load", "big"] = [FormatError(gone)]
        request = world.request("a", "big")
        await world.engine.submit(request)
        assert await world.proof("a") == expected_proof(request, 3)
        await world.engine.evict("big")
        world.worker.fail["load", "big"] = [FormatError(gone)] * 2
        await world.engine.submit(world.request("b", "big"))
        view, _ = await world.engine.result("b")
        assert (view.code, view.message) == ("bad-format", gone)
        await world.quiet()

    play(tmp_path, scenario, {"small": Circuit(), **BIG})


def test_the_text_of_a_file_that_vanished_is_the_readers(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=VANISHED):
        open_circuit(tmp_path / "none")
