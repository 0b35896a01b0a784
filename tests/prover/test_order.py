"""Places and turns, by threads that are stopped and let go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from time import sleep

import pytest

from cuzk.prover import order
from cuzk.prover.order import Order, Retired
from null_backend import TIMEOUT
from until import until


def start(work: Callable[[], None], name: str = "") -> threading.Thread:
    thread = threading.Thread(target=work, name=name or None, daemon=True)
    thread.start()
    return thread


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive(), f"{thread.name} hangs"


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_places_and_turns(lanes: int) -> None:
    """Never more in work than there are places, one turn at a time, turns in the order of places."""
    rule = Order([f"lane {i}" for i in range(lanes)])
    all_taken = threading.Barrier(lanes)
    lock, placed, turns = threading.Lock(), list[str](), list[str]()
    inside: set[str] = set()
    queueing: set[str] = set()
    most = [0, 0]

    def work() -> None:
        name, rng = threading.current_thread().name, Random(threading.current_thread().name)
        with rule.ticket() as ticket:
            place = rule.enter(ticket)
            with lock:
                assert place not in inside
                inside.add(place)
                placed.append(name)
                most[0] = max(most[0], len(inside))
                first = len(placed) <= lanes
            if first:
                all_taken.wait(TIMEOUT)
            sleep(rng.random() / 1000)
            rule.await_turn(ticket)
            with lock:
                turns.append(name)
                queueing.add(name)
                most[1] = max(most[1], len(queueing))
            sleep(rng.random() / 1000)
            with lock:
                queueing.remove(name)
            rule.end_turn(ticket)
            sleep(rng.random() / 1000)
            with lock:
                inside.remove(place)

    join([start(work, f"t{i}") for i in range(60)])
    assert len(turns) == 60
    assert most == [lanes, 1]
    if lanes == 1:
        assert turns == placed


def test_turns_follow_places() -> None:
    """The second is ready first, and waits."""
    rule = Order([0, 1])
    first = rule.ticket()
    rule.enter(first)
    turns: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with rule.ticket() as ticket:
            rule.enter(ticket)
            entered.set()
            rule.await_turn(ticket)
            turns.append("second")

    thread = start(second)
    assert entered.wait(TIMEOUT)
    thread.join(0.05)
    assert turns == []
    rule.await_turn(first)
    turns.append("first")
    thread.join(0.05)
    assert turns == ["first"]
    rule.end_turn(first)  # it stays in its place
    join([thread])
    assert turns == ["first", "second"]


def test_first_come_first_served() -> None:
    rule = Order([0])
    holder = rule.ticket()
    rule.enter(holder)
    served: list[int] = []

    def work(i: int) -> None:
        with rule.ticket() as ticket:
            rule.enter(ticket)
            served.append(i)

    threads = []
    for i in range(10):
        threads.append(start(lambda i=i: work(i)))  # type: ignore[misc]
        until(lambda i=i: len(rule._waiting) > i)  # type: ignore[misc]
    with holder:
        pass
    join(threads)
    assert served == list(range(10))


@pytest.mark.parametrize("at", ["waiting", "placed", "turn", "queued"])
def test_who_leaves_is_not_waited_for(at: str) -> None:
    rule = Order([0, 1] if at != "waiting" else [0])
    go, there = threading.Event(), threading.Event()

    def leaver() -> None:
        with rule.ticket() as ticket:
            rule.enter(ticket)
            if at in ("turn", "queued"):
                rule.await_turn(ticket)
            if at == "queued":
                rule.end_turn(ticket)
            there.set()
            go.wait(TIMEOUT)

    done = threading.Event()

    def follower() -> None:
        with rule.ticket() as ticket:
            rule.enter(ticket)
            rule.await_turn(ticket)
            rule.end_turn(ticket)
            done.set()

    threads = [start(leaver)]
    assert there.wait(TIMEOUT)
    threads.append(start(follower))
    if at == "queued":
        assert done.wait(TIMEOUT)
    else:
        until(lambda: rule._waiting or len(rule._working) == 2)
        assert not done.wait(0.05)
    go.set()
    join(threads)
    assert done.is_set()
    assert rule._waiting == rule._working == []


def test_a_dead_thread_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "PATIENCE", 0.01)
    rule = Order([0])
    kept = []

    def work() -> None:
        kept.append(rule.ticket())
        rule.enter(kept[0])

    join([start(work)])
    assert rule._working == kept
    with rule.ticket() as ticket:
        assert rule.enter(ticket) == 0


def test_retired() -> None:
    """Who waits is told, who has a place keeps it."""
    rule = Order([0])
    holder = rule.ticket()
    rule.enter(holder)
    told = threading.Event()

    def work() -> None:
        with rule.ticket() as ticket, pytest.raises(Retired):
            rule.enter(ticket)
        told.set()

    thread = start(work)
    until(lambda: rule._waiting)
    assert not told.wait(0.02)
    rule.retire()
    join([thread])
    assert told.is_set()
    rule.await_turn(holder)
    rule.await_others()  # its own place is none of another's
    with pytest.raises(Retired), rule.ticket() as late:
        rule.enter(late)


def test_alone() -> None:
    """With all places, when nobody else has one; who came later waits."""
    rule = Order([0, 1, 2])
    first = rule.ticket()
    rule.enter(first)
    served: list[str] = []
    go = threading.Event()

    def work(name: str, alone: bool) -> None:
        with rule.ticket(alone=alone) as ticket:
            rule.enter(ticket)
            served.append(name)
            assert go.wait(TIMEOUT)

    threads = []
    for i, (name, alone) in enumerate([("alone", True), ("later", False), ("last", False)]):
        threads.append(start(lambda n=name, a=alone: work(n, a)))  # type: ignore[misc]
        until(lambda i=i: len(rule._waiting) > i)  # type: ignore[misc]
    threads[0].join(0.03)
    assert served == []
    with first:
        pass
    until(lambda: served)
    threads[1].join(0.03)
    assert served == ["alone"]
    go.set()
    join(threads)
    assert sorted(served) == ["alone", "last", "later"]


def test_a_thread_shares_its_place() -> None:
    """Within its own turn and after it."""
    rule = Order(["only"])
    with rule.ticket() as outer:
        rule.enter(outer)
        rule.await_turn(outer)
        for _ in range(2):
            with rule.ticket() as inner:
                assert rule.enter(inner) == "only"
                rule.await_turn(inner)
                rule.end_turn(inner)
            rule.end_turn(outer)
    assert rule._working == []
