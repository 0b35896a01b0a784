"""Simulated days of mixed load: what a plan after another leads to."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from simulated_day import TICK, Day, Kind, Task

from cuzk.engine.request import Priority
from cuzk.engine.view import Policy

GIB = 1 << 30
POREP = Kind("porep-32GiB", 46 * GIB, 20 * GIB, load=30, prepare=6, prove=5, partitions=10, host_key=4 * GIB, host_part=16 * GIB, payload=GIB // 2)  # fmt: skip
WINDOW = Kind("window-32GiB", 58 * GIB, 22 * GIB, load=35, prepare=3, prove=20, host_key=4 * GIB, host_part=16 * GIB, payload=GIB // 8)  # fmt: skip
WINNING = Kind("winning-32GiB", 2 * GIB, GIB, load=2, prepare=0.2, prove=1, host_key=GIB, host_part=GIB, payload=GIB // 64)  # fmt: skip
SMALL = Kind("age-check", GIB, GIB, load=1, prepare=0.1, prove=0.5, host_part=GIB, payload=GIB // 64)  # fmt: skip
KINDS = [POREP, WINDOW, WINNING, SMALL]
HEADROOM = {"host": 8 * GIB, "cuda:0": 4 * GIB, "cuda:1": 4 * GIB}
LARGE, SCARCE = 140 * GIB, 86 * GIB  # all keys of a day fit on a device, or only one large one
HOUR = 3600.0


def mixed_day(
    workers: list[str], device: int, *, slots: int, hours: float = 3, seed: int = 1, host: int = 96
) -> Day:
    """WinningPoSt every 30 s, WindowPoSt every half hour, PoReps and small circuits at random times, 80 % of capacity."""
    kinds = [replace(POREP, slots=slots), WINDOW, replace(WINNING, slots=slots), SMALL]
    day = Day(workers, device, host * GIB, kinds, Policy(headroom=HEADROOM))
    random, end = Random(seed), hours * HOUR
    for at in range(7, int(end), 30):
        day.arrive(at, kinds[2], Priority.CRITICAL)
    for at in range(600, int(end), 1800):
        for _ in range(3):
            day.arrive(at, WINDOW, Priority.HIGH)
    time = 0.0
    while (time := time + random.expovariate(len(workers) / 100)) < end:
        day.arrive(time, kinds[0], Priority.NORMAL)
    time = 0.0
    while (time := time + random.expovariate(1 / 40)) < end:
        day.arrive(time, SMALL, Priority.LOW)
    return day


CASES = [
    pytest.param(["cuda:0"], LARGE, 1, id="one device, 1 slot"),
    pytest.param(["cuda:0"], LARGE, 2, id="one device, 2 slots"),
    pytest.param(["cuda:0", "cuda:1"], LARGE, 1, id="two devices, 1 slot"),
    pytest.param(["cuda:0"], SCARCE, 1, id="one device, scarce memory"),
    pytest.param(["cuda:0", "cuda:1"], SCARCE, 2, id="two devices, 2 slots, scarce memory"),
]


@pytest.mark.parametrize(("workers", "device", "slots"), CASES)
def test_a_mixed_day_ends_and_keeps_its_promises(
    workers: list[str], device: int, slots: int
) -> None:
    """All plans are legal (checked by the simulation), and nothing that a day promises is broken."""
    day = mixed_day(workers, device, slots=slots)
    day.run()
    assert all(task.ended > 0 for task in day.tasks)
    for task in day.tasks:
        if task.priority == Priority.CRITICAL:
            assert task.first_start - task.accepted <= longest_wait(day, task), task
        elif task.priority == Priority.LOW:
            assert task.ended <= starved_after(day, task), task
    for kind in day.kinds.values():
        same = [task for task in day.tasks if task.kind is kind]
        begun = [task.first_prepared for task in same]
        wait = (
            kind.load if len(workers) > 1 else 0.0
        )  # one waits for a key while the next has a place
        for at, earlier in enumerate(begun):
            assert earlier <= min(begun[at:]) + wait, f"{same[at]}: not in the order of acceptance"
    assert {owner[:4] for owner in day.ledgers.owners()} == {"key "}  # nothing else is left
    assert len(day.loads) <= len(day.kinds) * len(workers) + 3 * HOUR / day.policy.turn


def longest_wait(day: Day, task: Task) -> float:
    """For a CRITICAL job: what runs ends, its key is loaded behind another that is loading, it is prepared."""
    wait = max(kind.prove for kind in day.kinds.values()) + task.kind.prepare + 0.01
    if any(
        task.accepted - task.kind.load <= at <= task.first_start and circuit == task.kind.circuit
        for at, _, circuit in day.loads
    ):
        wait += task.kind.load + max(kind.load for kind in day.kinds.values())
    return wait


def starved_after(day: Day, task: Task) -> float:
    """When a job must have ended: it is HIGH after two ``ageing``, then what was accepted before it and CRITICAL jobs go
    first, one by one, each with its key's load and a turn at worst for every change of circuit."""
    risen = task.accepted + 2 * day.policy.ageing
    earlier = sum(
        other.kind.partitions * other.kind.prove + other.kind.prepare
        for other in day.tasks
        if other.number < task.number and other.ended > risen
    )
    critical = sum(
        2 * other.kind.prove + other.kind.prepare
        for other in day.tasks
        if other.priority == Priority.CRITICAL and risen - 60 < other.accepted < task.ended
    )
    loads = sum(day.kinds[name].load for at, _, name in day.loads if risen - 60 < at < task.ended)
    turns = len(day.kinds) * (day.policy.turn + TICK + day.policy.prepared * 50)
    return risen + earlier + critical + loads + turns


def test_two_circuits_that_fit_only_one_at_a_time_are_loaded_once_a_turn() -> None:
    """Fault of a plain LRU: a load for each job. Jobs that alternate are done in turns."""
    a = Kind("a", 60, 20, load=10, prepare=0.1, prove=3)
    b = replace(a, circuit="b")
    day = Day(["cuda:0"], 100, 1000, [a, b], Policy(turn=60))
    for at in range(0, 900, 2):
        day.arrive(at, a if at % 4 else b, Priority.NORMAL)
    day.run()
    assert 4 < len(day.loads) <= day.now / 60 + 2
    assert day.now < 450 * 3.2 * (1 + 10 / 60) + 60  # the time goes into proofs, not into loads


def test_a_big_job_is_let_through_a_stream_of_small_ones() -> None:
    """Small jobs of the same class, always another ready before one ends, each fitting beside the others."""
    small = Kind("small", 10, 10, load=1, prepare=0, prove=7, slots=6)
    big = Kind("big", 50, 45, load=5, prepare=1, prove=10)
    day = Day(["cuda:0"], 100, 1000, [small, big], Policy(turn=30))
    for at in range(0, 1000, 1):
        day.arrive(at, small, Priority.NORMAL)
    day.arrive(500.5, big, Priority.NORMAL)
    day.run()
    [task] = [task for task in day.tasks if task.kind is big]
    backlog = [one for one in day.tasks if one.number < task.number and one.ended > task.accepted]
    assert task.first_start - task.accepted <= len(backlog) * 7 / 6 + 30 + TICK + 3 * 7 + 5 + 1


def test_low_ends_under_a_day_of_more_high_than_can_be_done() -> None:
    high = Kind("high", 60, 20, load=10, prepare=0.1, prove=11)
    low = Kind("low", 60, 20, load=10, prepare=0.1, prove=5)
    day = Day(["cuda:0"], 100, 1000, [high, low], Policy(ageing=300, turn=60))
    for at in range(0, 3600, 10):
        day.arrive(at, high, Priority.HIGH)
    day.arrive(100, low, Priority.LOW)
    day.run()
    [task] = [task for task in day.tasks if task.kind is low]
    assert task.ended <= starved_after(day, task)
    assert task.ended < max(other.ended for other in day.tasks) / 2


def test_critical_needs_the_memory_of_a_long_job_and_gets_it_after_one_partition() -> None:
    """D2. The long job is forgotten, its key goes; afterwards it goes on with its proved partitions."""
    long = Kind("long", 60, 20, load=10, prepare=3, prove=5, partitions=100)
    winning = Kind("winning", 45, 10, load=2, prepare=0.2, prove=1)
    day = Day(["cuda:0"], 100, 1000, [long, winning], Policy(turn=60))
    day.arrive(0, long, Priority.LOW)
    day.arrive(0.5, long, Priority.LOW)
    for at in range(101, 301, 100):
        day.arrive(at, winning, Priority.CRITICAL)
    day.run()
    for task in day.tasks:
        if task.kind is winning:
            assert task.first_start - task.accepted <= 5 + 2 + 0.2 + 1e-6
    assert day.forgets
    assert all(task.ended > 0 and task.proved == task.kind.partitions for task in day.tasks)


def test_two_jobs_go_to_two_idle_devices() -> None:
    day = Day(["cuda:0", "cuda:1"], LARGE, 200 * GIB, KINDS, Policy())
    day.arrive(0, POREP, Priority.NORMAL)
    day.arrive(1, POREP, Priority.NORMAL)
    day.run()
    assert max(task.ended for task in day.tasks) < 30 + 6 + 10 * 5 + 5
    assert len(day.loads) == 2
