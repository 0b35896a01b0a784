"""What the scheduler stages ahead and when that gives way: rules one a row, days, and the order of a CRITICAL job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest
from legal import check_plan
from scheduler_views import AHEAD, CRITICAL, HIGH, LOW, NOW, job, key, site
from simulated_day import Day, Kind

from cuzk.engine.catalogue import Needs
from cuzk.engine.request import Priority
from cuzk.engine.scheduler import plan
from cuzk.engine.view import (
    Action,
    Evict,
    Forget,
    Load,
    Policy,
    Prepare,
    Site,
    Stage,
    Start,
    Unstage,
    View,
    Waiting,
)

POLICY = Policy(ageing=600, turn=60, headroom={"host": 10})
NEEDS = {
    ("p", "gpu"): Needs({"gpu": 50}, {"gpu": 10, "host": 12}, {"host": AHEAD}),  # stages
    ("q", "gpu"): Needs({"gpu": 50}, {"gpu": 10, "host": 12}),  # does not
}


@dataclass(frozen=True)
class Row:
    """``host``: free bytes of the host, of which 10 are for CRITICAL jobs."""

    rule: str
    jobs: list[Waiting]
    site: Site
    actions: list[Action]
    host: int = 1000
    gpu: int = 1000


BUSY = site(key("p", users=2), running=1)
ROWS = [
    Row("the partition that starts next is staged while another runs",
        [job("j1", "p", ready=(1, 2), running=1, on="w")], BUSY, [Stage("w", "j1", 1)]),
    Row("none is staged while a slot is free", [job("j1", "p", ready=(0, 1), on="w")], site(key("p", users=1)),
        [Start("w", "j1", 0), Stage("w", "j1", 1)]),
    Row("a circuit that stages nothing", [job("j1", "q", ready=(1,), running=1, on="w")], site(key("q", users=2), running=1), []),
    Row("a job whose staging found no memory stages nothing more", [job("j1", "p", ready=(1,), running=1, stages=False, on="w")], BUSY, []),
    Row("one at a time: it is being staged", [job("j1", "p", ready=(2,), running=1, staging=1, on="w")], BUSY, []),
    Row("one at a time: it is staged", [job("j1", "p", ready=(1, 2), running=1, staged=1, on="w")], BUSY, []),
    Row("the next job's first, when this one has none left",
        [job("j1", "p", ready=(), running=1, on="w"), job("j2", "p", ready=(0, 1), on="w")], site(key("p", users=3), running=1), [Stage("w", "j2", 0)]),
    Row("what is staged starts, and the next is staged", [job("j1", "p", ready=(1, 2), staged=1, on="w")], site(key("p", users=1)),
        [Start("w", "j1", 1), Stage("w", "j1", 2)]),
    Row("a slot that is free is kept for the partition that is being staged",
        [job("j1", "p", ready=(2,), staging=1, on="w"), job("j2", "p", on="w")], site(key("p", users=2)), []),
    Row("also where nothing else of its job is left", [job("j1", "p", ready=(), staging=1, on="w"), job("j2", "p", on="w")], site(key("p", users=2)), []),
    Row("with two slots the other one is used", [job("j1", "p", ready=(2,), staging=1, on="w"), job("j2", "p", on="w")], site(key("p", users=2, slots=2)),
        [Start("w", "j1", 2)]),
    Row("a job that comes before takes the slot from one that is being staged",
        [job("j1", "p", ready=(2,), staging=1, on="w"), job("j2", "p", HIGH, on="w")], site(key("p", users=2)), [Start("w", "j2", 0)]),
    Row("a CRITICAL job starts at the end of the partition, whatever is staged or being staged",
        [job("j1", "p", ready=(2,), staging=1, on="w"), job("j2", "p", CRITICAL, on="w")], site(key("p", users=2)), [Start("w", "j2", 0)]),
    Row("and is not kept waiting by what is staged of others", [job("j1", "p", ready=(1,), staged=1, on="w"), job("j2", "q", CRITICAL, on="w")],
        site(key("p", users=1), key("q", users=1)), [Start("w", "j2", 0)]),
    Row("nothing is staged for a slot that is kept for a CRITICAL job",
        [job("j1", "p", ready=(1,), running=1, on="w"), job("j2", "p", CRITICAL, coming="w")], site(key("p", users=3), running=1), []),
    Row("a CRITICAL job is staged beside a lower one's",
        [job("j1", "p", ready=(1,), running=1, staged=1, on="w"), job("j2", "p", CRITICAL, on="w")], site(key("p", users=3), running=1), [Stage("w", "j2", 0)]),
    Row("also while that is being staged",
        [job("j1", "p", ready=(), running=1, staging=1, on="w"), job("j2", "p", CRITICAL, on="w")], site(key("p", users=3), running=1), [Stage("w", "j2", 0)]),
    Row("in its place where memory has room for one",
        [job("j1", "p", ready=(1,), running=1, staged=1, on="w"), job("j2", "p", CRITICAL, on="w")], site(key("p", users=3), running=1),
        [Unstage("w", "j1", 1), Stage("w", "j2", 0)], host=8),
    Row("not a second one of CRITICAL jobs: the first in order has the place",
        [job("j1", "p", CRITICAL, ready=(0, 1), on="w"), job("j2", "p", CRITICAL, ready=(0,), staged=0, on="w")], site(key("p", users=3), running=1),
        [Unstage("w", "j2", 0), Stage("w", "j1", 0)]),
    Row("any other job that comes before takes the place",
        [job("j1", "p", ready=(1,), running=1, staged=1, on="w"), job("j2", "p", HIGH, on="w")], site(key("p", users=3), running=1),
        [Unstage("w", "j1", 1), Stage("w", "j2", 0)]),
    Row("when it is staged", [job("j1", "p", ready=(), running=1, staging=1, on="w"), job("j2", "p", HIGH, on="w")], site(key("p", users=3), running=1), []),
    Row("memory for CRITICAL jobs is not staged into", [job("j1", "p", ready=(1,), running=1, on="w")], BUSY, [], host=18),
    Row("but up to it", [job("j1", "p", ready=(1,), running=1, on="w")], BUSY, [Stage("w", "j1", 1)], host=19),
    Row("a partition that is staged needs what it has not yet", [job("j1", "p", ready=(1,), staged=1, on="w")], site(key("p", users=1)),
        [Start("w", "j1", 1)], host=13),
    Row("and that it does need", [job("j1", "p", ready=(1,), staged=1, on="w"), job("j9", "q", running=1, ready=(), on="v")], site(key("p", users=1)), [], host=12),
    Row("what is staged gives way to the start of a job before it",
        [job("j1", "p", ready=(1,), staged=1, on="w"), job("j2", "q", HIGH, on="w")], site(key("p", users=1), key("q", users=1)),
        [Unstage("w", "j1", 1), Start("w", "j2", 0)], host=14),
    Row("to what it reads", [job("j1", "p", ready=(1,), running=1, staged=1, on="w"), replace(job("j2", "q", HIGH), payload_bytes=6)],
        site(key("p", users=2), key("q", users=2), running=1), [Unstage("w", "j1", 1), Prepare("w", "j2")], host=15),
    Row("not to that of a job behind it", [job("j1", "p", HIGH, ready=(1,), running=1, staged=1, on="w"), replace(job("j2", "q"), payload_bytes=6)],
        site(key("p", users=2), key("q", users=2), running=1), [], host=15),
    Row("a prepared job whose key goes is forgotten with what is staged of it",
        [job("j1", "p", LOW, ready=(1,), staged=1, on="w"), job("j2", "q", HIGH)], site(key("p", users=1)),
        [Forget("w", "j1"), Evict("w", "p"), Load("w", "q", "j2")], gpu=10),
    Row("not while it is being staged",
        [job("j1", "p", LOW, ready=(2,), staging=1, on="w"), job("j2", "q", HIGH)], site(key("p", users=1)), [], gpu=10),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_rule_of_staging(row: Row) -> None:
    view = View(tuple(row.jobs), (row.site,), {"gpu": row.gpu, "host": row.host}, NEEDS)
    actions = plan(view, POLICY, NOW)
    check_plan(view, POLICY, actions)
    assert actions == row.actions


LONG = Kind(
    "long", 60, 20, load=10, prepare=3, prove=9, partitions=10, host_part=4, ahead=3, stage=4
)


def long_day(kind: Kind, *, host: int = 1000, jobs: int = 5) -> Day:
    day = Day(["cuda:0"], 100, host, [kind], Policy())
    for number in range(jobs):
        day.arrive(number, kind, Priority.NORMAL)
    day.run()
    return day


def test_a_day_takes_what_the_device_works_and_one_host_part() -> None:
    """Of 9 seconds 4 are the host's: 50 partitions take 450 seconds one after the other, else 4 + 50 x 5."""
    begun = 10 + 3
    plain = long_day(replace(LONG, ahead=0))
    assert max(task.ended for task in plain.tasks) == pytest.approx(begun + 50 * 9 + LONG.finish)
    assert plain.overlapped == 0
    day = long_day(LONG)
    assert max(task.ended for task in day.tasks) == pytest.approx(begun + 9 + 49 * 5 + LONG.finish)
    assert (day.overlapped, day.unstaged) == (49, 0)


def test_a_day_without_memory_for_more_than_one_partition_goes_on_unstaged() -> None:
    day = long_day(LONG, host=6, jobs=2)
    assert day.overlapped == 0
    assert all(task.proved == 10 for task in day.tasks)


@pytest.mark.parametrize("host", [12, 20, 40, 1000])
@pytest.mark.parametrize("devices", [1, 2])
def test_a_mixed_day_with_staging_ends_in_whatever_memory(host: int, devices: int) -> None:
    """Every plan of it is legal, nobody starves, and no CRITICAL job waits for more than one partition."""
    workers = [f"cuda:{number}" for number in range(devices)]
    winning = Kind("winning", 5, 5, load=1, prepare=0.2, prove=1, ahead=1, stage=0.5, host_part=2)
    other = Kind("other", 60, 20, load=10, prepare=1, prove=6, partitions=3, host_part=5, ahead=5, stage=2)  # fmt: skip
    day = Day(workers, 100, host, [LONG, winning, other], Policy(headroom={"host": 4}))
    random, time = Random(host + devices), 0.0
    while (time := time + random.expovariate(devices / 60)) < 2000:
        kind = random.choice([LONG, LONG, other])
        day.arrive(time, kind, random.choice([Priority.LOW, Priority.NORMAL, Priority.HIGH]))
    for at in range(100, 2000, 50):
        day.arrive(at, winning, Priority.CRITICAL)
    day.run()
    assert all(task.ended > 0 and task.proved == task.kind.partitions for task in day.tasks)
    loads = [at for at, _, circuit in day.loads if circuit == "winning"]
    for task in day.tasks:
        if task.kind is winning:
            near = any(task.accepted - 1 <= at <= task.first_start for at in loads)
            assert task.first_start - task.accepted <= 9 + 0.2 + (11 if near else 0) + 1e-6, task
    assert day.overlapped > 0
    assert {owner[:4] for owner in day.ledgers.owners()} == {"key "}
