"""The scheduler's rules, one a row: what is there, and what is to be done."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from legal import check_plan
from scheduler_views import CRITICAL, HIGH, LOW, NORMAL, NOW, job, key, site

from cuzk.engine.catalogue import Needs
from cuzk.engine.fit import never_fits
from cuzk.engine.order import effective, ranked
from cuzk.engine.request import Priority
from cuzk.engine.scheduler import plan
from cuzk.engine.view import (
    Action,
    Evict,
    Forget,
    Key,
    Load,
    Policy,
    Prepare,
    Site,
    Start,
    View,
    Waiting,
)

POLICY = Policy(ageing=600, turn=60, headroom={"gpu": 10})


NEEDS = {
    (name, "gpu"): Needs({"gpu": nbytes}, {"gpu": 10})
    for name, nbytes in {"a": 50, "b": 50, "c": 20, "d": 20}.items()
}
FREE = {"gpu": 1000}


@dataclass(frozen=True)
class Row:
    """``free`` bytes of the device; what ``jobs`` and ``sites`` lead to."""

    rule: str
    jobs: list[Waiting]
    sites: list[Site]
    actions: list[Action]
    free: int = 1000


ROWS = [
    Row("nothing to do", [], [site(key("a"))], []),
    Row("no worker is alive", [job("j1", "a")], [site(key("a"), alive=False)], []),
    Row("a circuit that no worker can do", [job("j1", "unknown")], [site()], []),
    Row("a key that nobody has is loaded", [job("j1", "a")], [site()], [Load("w", "a", "j1")]),
    Row("fault 12: two first jobs of a circuit, one load",
        [job("j1", "a"), job("j2", "a")], [site()], [Load("w", "a", "j1")]),
    Row("fault 12: a key that is being loaded is not loaded again",
        [job("j1", "a")], [site(key("a", loading=True))], []),
    Row("one load at a time on a worker", [job("j1", "a"), job("j2", "b")], [site()], [Load("w", "a", "j1")]),
    Row("but for a load that waits for files which do not answer",
        [job("j1", "b")], [site(replace(key("a", loading=True), stalled=True))], [Load("w", "b", "j1")]),
    Row("whose own circuit is loaded nowhere else",
        [job("j1", "a")], [site(replace(key("a", loading=True), stalled=True)), site(worker="v")], []),
    Row("a key is loaded beside work", [job("j1", "a", on="w", running=1, parts=0), job("j2", "b")],
        [site(key("a", users=2), running=1)], [Load("w", "b", "j2")]),
    Row("a job is prepared where its key is", [job("j1", "a")], [site(worker="v"), site(key("a"))], [Prepare("w", "j1")]),
    Row("the first prepared job starts", [job("j1", "a", on="w"), job("j2", "a", on="w")], [site(key("a", users=2))],
        [Start("w", "j1", 0)]),
    Row("as many partitions as there are slots", [job("j1", "a", on="w", parts=3)], [site(key("a", users=1, slots=2))],
        [Start("w", "j1", 0), Start("w", "j1", 1)]),
    Row("no slot is free", [job("j1", "a", on="w", parts=3, running=1)], [site(key("a", users=2), running=1)], []),
    Row("the rest of the slots goes to the next job",
        [job("j1", "a", on="w"), job("j2", "a", on="w")], [site(key("a", users=2, slots=2))],
        [Start("w", "j1", 0), Start("w", "j2", 0)]),
    Row("a key with more slots does not keep the slot from one with fewer",
        [job("j1", "a", on="w"), job("j2", "b", on="w", parts=5)],
        [site(key("a", users=1), key("b", users=2, slots=2), running=1)], []),
    Row("higher class first", [job("j1", "a", on="w"), job("j2", "a", HIGH, on="w")], [site(key("a", users=2))],
        [Start("w", "j2", 0)]),
    Row("begun before accepted, within a class", [job("j1", "a"), job("j2", "a", on="w", proved=1)],
        [site(key("a", users=1))], [Start("w", "j2", 1), Prepare("w", "j1")]),
    Row("fault 13: what was prepared for others does not keep CRITICAL from being prepared",
        [job("j1", "a", on="w", running=1), job("j2", "a", on="w"), job("j3", "a", CRITICAL)],
        [site(key("a", users=3), running=1)], [Prepare("w", "j3")]),
    Row("fault 13: a slot that is free while CRITICAL is prepared is kept for it",
        [job("j1", "a", on="w"), job("j2", "a", CRITICAL, coming="w")], [site(key("a", users=2))], []),
    Row("a slot that is free while another is prepared is used",
        [job("j1", "a", on="w"), job("j2", "a", HIGH, coming="w")], [site(key("a", users=2))], [Start("w", "j1", 0)]),
    Row("a slot that is free while CRITICAL's key is loaded is used",
        [job("j1", "a", on="w"), job("j2", "b", CRITICAL)], [site(key("a", users=1), key("b", loading=True))],
        [Start("w", "j1", 0)]),
    Row("no more prepared ahead than the policy says",
        [job("j1", "a", on="w", running=1), job("j2", "a"), job("j3", "a")],
        [site(key("a", users=2), running=1)], [Prepare("w", "j2")]),
    Row("a second device loads a circuit of which there is enough",
        [job("j1", "a", on="w", running=1, parts=9), job("j2", "a")],
        [site(key("a", users=2), running=1), site(worker="v")], [Load("v", "a", "j2")]),
    Row("and is waited for by one job, the next is prepared ahead",
        [job("j1", "a", on="w", running=1, parts=9), job("j2", "a"), job("j3", "a")],
        [site(key("a", users=2), running=1), site(key("a", loading=True), worker="v")], [Prepare("w", "j3")]),
    Row("a second device is not loaded for what the first will do next",
        [job("j1", "a", on="w", running=1, parts=0), job("j2", "a")],
        [site(key("a", users=2), running=1), site(worker="v")], [Prepare("w", "j2")]),
    Row("CRITICAL does not wait for a load where its key is elsewhere",
        [job("j1", "a", CRITICAL, on="w", running=1, parts=9), job("j2", "a", CRITICAL)],
        [site(key("a", users=2), running=1), site(worker="v")], [Prepare("w", "j2")]),
    Row("the least recently used key goes, and no more than that",
        [job("j1", "a")], [site(key("b", used=3), key("c", used=2), key("d", used=1))],
        [Evict("w", "d"), Load("w", "a", "j1")], free=50),
    Row("no key goes that is not needed for it: the larger alone is enough",
        [job("j1", "a")], [site(key("b", used=3), key("c", 20, used=2))],
        [Evict("w", "b"), Load("w", "a", "j1")], free=20),
    Row("none goes where all are not enough", [job("j1", "a")], [site(key("b", users=1), key("c", 20))], [], free=0),
    Row("M5: a key in use stays", [job("j1", "a")], [site(key("b", users=1, used=1), key("c", used=2))],
        [Evict("w", "c"), Load("w", "a", "j1")], free=50),
    Row("a key that is being loaded stays", [job("j1", "a")], [site(worker="v"), site(key("c", loading=True))], [], free=0),
    Row("a key that a job before needs stays",
        [job("j1", "b"), job("j2", "a")], [site(key("b"))], [Prepare("w", "j1")], free=20),
    Row("a key that a lower job needs goes",
        [job("j1", "b", LOW), job("j2", "a")], [site(key("b", loaded=NOW))], [Evict("w", "b"), Load("w", "a", "j2")], free=20),
    Row("a key that one of its class needs has its turn",
        [job("j2", "b"), job("j1", "a")], [site(key("b", loaded=NOW - 59))], [Prepare("w", "j2")], free=20),
    Row("and then goes",
        [job("j2", "b"), job("j1", "a")], [site(key("b", loaded=NOW - 60))], [Evict("w", "b"), Load("w", "a", "j1")], free=20),
    Row("nor does a clock that was set back an hour make its turn an hour longer",
        [job("j2", "b"), job("j1", "a")], [site(key("b", loaded=NOW + 3600))], [Evict("w", "b"), Load("w", "a", "j1")], free=20),
    Row("CRITICAL waits for nobody's turn", [job("j2", "b", CRITICAL), job("j1", "a", CRITICAL)],
        [site(key("b", loaded=NOW))], [Evict("w", "b"), Load("w", "a", "j1")], free=20),
    Row("after its turn a key is not kept by what is prepared ahead",
        [job("j2", "b", on="w", running=1), job("j1", "a"), job("j3", "b")], [site(key("b", users=2), running=1)], [], free=20),
    Row("during its turn more is prepared",
        [job("j2", "b", on="w", running=1), job("j1", "a"), job("j3", "b")],
        [site(key("b", users=2, loaded=NOW), running=1)], [Prepare("w", "j3")], free=20),
    Row("D2: a long job that CRITICAL's key needs the memory of starts no more",
        [job("j1", "b", on="w", running=1, parts=9), job("j2", "a", CRITICAL)], [site(key("b", users=2, slots=2), running=1)],
        [], free=20),
    Row("D2: and is forgotten when its partition has ended",
        [job("j1", "b", on="w", proved=1, parts=9), job("j2", "a", CRITICAL)], [site(key("b", users=1))],
        [Forget("w", "j1"), Evict("w", "b"), Load("w", "a", "j2")], free=20),
    Row("a job of the same class is not forgotten for another",
        [job("j1", "b", on="w", proved=1), job("j2", "a")], [site(key("b", users=1))], [Start("w", "j1", 1)], free=20),
    Row("fault 10: what waits for memory sets it aside: the next would fit, and the first never after it",
        [job("j1", "a"), job("j2", "c", LOW)], [site(key("b", users=9), running=1)], [], free=45),
    Row("what a job that has its turn leaves is not filled with more keys",
        [job("j2", "b", on="w", running=1), job("j1", "a"), job("j3", "c")],
        [site(key("b", users=2, loaded=NOW), running=1)], [], free=45),
    Row("while one has its turn, what is prepared with it starts in the memory that another waits for",
        [job("j1", "a"), job("j2", "b"), job("j3", "b", LOW, on="w")], [site(key("b", users=1, loaded=NOW))],
        [Prepare("w", "j2"), Start("w", "j3", 0)], free=30),
    Row("no key is loaded into the memory that what is being prepared will need",
        [job("j1", "a", coming="w"), job("j2", "c")], [site(key("a", users=1))], [], free=45),
    Row("nor into that for which a key is being loaded",
        [job("j1", "a"), job("j2", "c")], [site(key("a", loading=True)), site(worker="v")], [], free=45),
    Row("nor into that of the partition for which another is loaded now",
        [job("j1", "a"), job("j2", "c")], [site(), site(worker="v")], [Load("w", "a", "j1")], free=99),
    Row("a key is loaded where that leaves the memory for both",
        [job("j1", "a"), job("j2", "c")], [site(), site(worker="v")], [Load("w", "a", "j1"), Load("v", "c", "j2")], free=100),
    Row("what is next gets the memory of what runs, none is kept for it twice",
        [job("j1", "a", on="w", running=1), job("j2", "c")], [site(key("a", users=2), running=1)], [Load("w", "c", "j2")], free=40),
    Row("memory that what is being prepared will need is used until then",
        [job("j1", "a", coming="w"), job("j2", "b", on="v")], [site(key("a", users=1)), site(key("b", users=1), worker="v")],
        [Start("v", "j2", 0)], free=20),
    Row("of CRITICAL jobs one more is prepared, and no two",
        [job(f"j{n}", "a", CRITICAL, on="w" if n < 3 else "", running=int(n == 1)) for n in (1, 2, 3, 4)],
        [site(key("a", users=3), running=1)], [Prepare("w", "j3")]),
    Row("a second device is not loaded in the place of a key that somebody wants",
        [job("j1", "a", on="w", running=1, parts=9), job("j2", "a"), job("j3", "c")],
        [site(key("a", users=2), running=1), site(key("c"), worker="v")], [Prepare("w", "j2"), Prepare("v", "j3")], free=50),
    Row("a key is loaded where nothing waits",
        [job("j1", "b", coming="w"), job("j2", "a"), job("j3", "c", on="v", running=1, parts=0)],
        [site(key("b", users=1)), site(key("c", users=2), worker="v", running=1)], [Load("v", "a", "j2")]),
    Row("a key is loaded where nothing runs",
        [job("j1", "b", on="w", running=1, parts=0), job("j2", "a")],
        [site(key("b", users=2), running=1), site(worker="v")], [Load("v", "a", "j2")]),
    Row("a job is prepared where nothing runs",
        [job("j1", "a", on="w", running=1, parts=0), job("j2", "a")],
        [site(key("a", users=2), running=1), site(key("a"), worker="v")], [Prepare("v", "j2")]),
    Row("while one has its turn, what is prepared with a third goes on",
        [job("j1", "a"), job("j2", "b"), job("j3", "c", LOW, on="w")], [site(key("b", loaded=NOW), key("c", 20, users=1))],
        [Prepare("w", "j2"), Start("w", "j3", 0)], free=30),
    Row("what is prepared of lower classes keeps no higher one from being prepared",
        [job("j1", "a", on="w", running=1, parts=9), job("j2", "a", on="w"), job("j3", "a", HIGH)],
        [site(key("a", users=3), running=1)], [Prepare("w", "j3")]),
    Row("headroom is for CRITICAL", [job("j1", "a", on="w")], [site(key("a", users=1), key("b", users=9))], [], free=19),
    Row("and CRITICAL takes it", [job("j1", "a", CRITICAL, on="w")], [site(key("a", users=1))], [Start("w", "j1", 0)], free=10),
    Row("an idle key goes for a partition too",
        [job("j1", "a", on="w")], [site(key("a", users=1), key("b"))], [Evict("w", "b"), Start("w", "j1", 0)], free=19),
    Row("memory over its limit", [job("j1", "a")], [site(key("b"))], [], free=-1000),
    Row("a prepared job whose worker is dead waits", [job("j1", "a", on="v")], [site(), site(worker="v", alive=False)], []),
    Row("a job of which all is in work", [job("j1", "a", on="w", running=2, parts=0)], [site(key("a", users=3), running=2)], []),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_rule(row: Row) -> None:
    view = View(tuple(row.jobs), tuple(row.sites), {"gpu": row.free}, NEEDS)
    actions = plan(view, POLICY, NOW)
    check_plan(view, POLICY, actions)
    assert actions == row.actions


@pytest.mark.parametrize(
    ("priority", "age", "class_"),
    [
        (LOW, 0, LOW), (LOW, 599, LOW), (LOW, 600, NORMAL), (LOW, 1200, HIGH), (LOW, 1e9, HIGH), (NORMAL, 600, HIGH),
        (HIGH, 1e9, HIGH), (CRITICAL, 0, CRITICAL), (LOW, -1e9, LOW),
    ],
)  # fmt: skip
def test_age_raises_a_class_and_nothing_to_critical(
    priority: Priority, age: float, class_: Priority
) -> None:
    assert effective(job("j1", "a", priority, age=age), POLICY, NOW) == class_
    assert effective(job("j1", "a", priority, age=age), Policy(ageing=0), NOW) == priority


def test_order() -> None:
    jobs = [
        job("j1", "a", LOW, age=1300), job("j2", "a", HIGH), job("j3", "a", CRITICAL), job("j4", "a", HIGH, proved=1),
        job("j5", "a", LOW), job("j6", "a", NORMAL, on="w"), job("j7", "a", NORMAL),
    ]  # fmt: skip
    order = [one.id for _, one in ranked(reversed(jobs), POLICY, NOW)]
    assert order == ["j3", "j4", "j1", "j2", "j6", "j7", "j5"]


def test_a_lower_job_uses_what_the_one_that_waits_does_not_need() -> None:
    """It waits for its device's memory; of the host's it needs 10 bytes, the others may have the rest and no more."""
    needs = {("a", "gpu"): Needs({"gpu": 50}, {"gpu": 10, "host": 10}), ("b", "gpu2"): Needs({}, {"host": 15})}  # fmt: skip
    sites = (Site("w", "gpu", True), Site("v", "gpu2", True, (Key("b", 0, users=1),)))
    view = View((job("j1", "a", HIGH), job("j2", "b", on="v")), sites, {"gpu": 5, "host": 25}, needs)  # fmt: skip
    assert plan(view, POLICY, NOW) == [Start("v", "j2", 0)]
    busy = replace(sites[0], running=1)
    view = replace(view, free={"gpu": 5, "host": 24}, sites=(busy, sites[1]))
    assert plan(view, POLICY, NOW) == []


def test_a_key_is_not_taken_from_a_job_before_that_waits_for_other_memory() -> None:
    jobs = (replace(job("j1", "b", HIGH), payload_bytes=50), job("j2", "a"))
    view = View(jobs, (site(key("b")),), {"gpu": 20, "host": 0}, NEEDS)
    assert plan(view, POLICY, NOW) == []
    assert len(plan(replace(view, jobs=jobs[1:]), POLICY, NOW)) == 2


def test_all_stand_still_with_memory_of_each_other_and_one_goes_on() -> None:
    """Deadlock: two prepared jobs whose keys leave room for neither's partition (real bytes were more than estimated)."""
    jobs = (job("j1", "a", on="w"), job("j2", "b", on="w"))
    view = View(jobs, (site(key("a", users=1), key("b", users=1)),), {"gpu": 5}, NEEDS)
    actions = plan(view, POLICY, NOW)
    assert actions == [Forget("w", "j2"), Evict("w", "b"), Start("w", "j1", 0)]
    finishing = replace(view, sites=(site(key("a", users=1), key("b", users=2)),))
    assert plan(finishing, POLICY, NOW) == []  # a third one is being finished: it ends by itself


def test_prepared_jobs_that_leave_no_memory_for_a_partition_are_forgotten_but_one() -> None:
    """Deadlock: the host's memory is full of what was prepared, of one circuit, on two devices."""
    needs = {("a", device): Needs({"host": 60}, {"host": 60}) for device in ("gpu", "gpu2")}
    jobs = [replace(job(f"j{n}", "a", on="v" if n > 2 else "w"), payload_bytes=20) for n in (1, 2, 3)]  # fmt: skip
    keys = [Key("a", 1, users, bytes={"host": 60}) for users in (2, 1)]
    sites = (Site("w", "gpu", True, (keys[0],)), Site("v", "gpu2", True, (keys[1],)))
    view = View(tuple(jobs), sites, {"host": 0}, needs)
    actions = plan(view, POLICY, NOW)
    check_plan(view, POLICY, actions)
    assert actions == [Forget("v", "j3"), Evict("v", "a"), Start("w", "j1", 0)]
    one = View(tuple(jobs[:2]), sites[:1], {"host": 45}, needs)
    assert plan(one, POLICY, NOW) == [Forget("w", "j2"), Start("w", "j1", 0)]


def test_keys_of_the_same_class_stay_where_a_lower_one_is_enough() -> None:
    """Both are in use and either would do: the first job waits for what runs of the lowest, and the second goes on."""
    jobs = (job("j1", "a", proved=1), job("j2", "b", on="w"), job("j3", "c", LOW, on="w", running=1))  # fmt: skip
    keys = (key("b", used=1, users=1, slots=3), key("c", 50, used=2, users=2, slots=3))
    needs = {**NEEDS, ("b", "gpu"): Needs({"gpu": 50}), ("c", "gpu"): Needs({"gpu": 50})}
    view = View(jobs, (site(*keys, running=1),), {"gpu": 20}, needs)
    assert plan(view, POLICY, NOW) == [Start("w", "j2", 0)]


def test_a_key_is_loaded_where_none_has_to_go() -> None:
    needs = {("a", "gpu"): Needs({"gpu": 50}), ("a", "gpu2"): Needs({"gpu2": 50})}
    sites = (site(key("b", 100)), Site("v", "gpu2", True))
    view = View((job("j1", "a"),), sites, {"gpu": 0, "gpu2": 50}, needs)
    assert plan(view, POLICY, NOW) == [Load("v", "a", "j1")]


def test_what_a_forgotten_job_held_is_there_for_the_next() -> None:
    """Of the host's memory there is none but the 20 bytes of the job that goes for a CRITICAL one."""
    long, urgent, third = job("j1", "b", on="w", proved=1), job("j2", "a", CRITICAL), job("j3", "c")
    jobs = (replace(long, payload_bytes=20), urgent, replace(third, payload_bytes=20))
    sites = (site(key("b", users=1)), Site("v", "gpu2", True, (Key("c", 0),)))
    needs = {("a", "gpu"): NEEDS["a", "gpu"], ("b", "gpu"): NEEDS["b", "gpu"], ("c", "gpu2"): Needs()}  # fmt: skip
    view = View(jobs, sites, {"gpu": 10, "host": 0}, needs)
    first = [Forget("w", "j1"), Evict("w", "b"), Load("w", "a", "j2")]
    assert plan(view, POLICY, NOW) == [*first, Prepare("v", "j3")]
    large = replace(view, jobs=(*jobs[:2], replace(third, payload_bytes=21)))
    assert plan(large, POLICY, NOW) == first


def test_what_can_never_fit_is_said_and_does_not_stop_the_rest() -> None:
    huge = Needs({"gpu": 95}, {"gpu": 10})
    assert never_fits(huge, {"gpu": 100}, {}) == "gpu"
    assert never_fits(huge, {"gpu": 105}, {"gpu": 1}) == "gpu"
    assert never_fits(huge, {"gpu": 106}, {"gpu": 1}) == ""
    assert never_fits(huge, {"host": 0}, {}) == ""
    view = View(
        (job("j1", "huge"), job("j2", "c")), (site(),), {"gpu": 100}, {**NEEDS, ("huge", "gpu"): huge}
    )  # fmt: skip
    assert plan(view, POLICY, NOW) == [Load("w", "c", "j2")]
