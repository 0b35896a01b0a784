"""The scheduler's rules hold in any view: plans are legal, no slot is left, and a plan takes little."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from legal import check_plan
from processor_time import plain_python, seconds
from scheduler_views import CRITICAL, NORMAL, NOW

from cuzk.engine.catalogue import Needs
from cuzk.engine.request import Priority
from cuzk.engine.scheduler import plan
from cuzk.engine.view import Key, Policy, Prepare, Site, Staged, Start, Unstage, View, Waiting

POLICY = Policy(ageing=600, turn=60, headroom={"gpu": 10})


@st.composite
def views(draw: st.DrawFn) -> View:
    """Views that an engine could show: users are those who are there, and memory is free or not."""
    circuits = ["a", "b", "c", "d"]
    numbers = st.integers(0, 60)
    workers = draw(st.integers(1, 3))
    needs = {
        (circuit, f"gpu{w}"): Needs(
            {f"gpu{w}": draw(numbers), "host": draw(numbers)}, {f"gpu{w}": draw(numbers), "host": draw(numbers)},
            {"host": draw(numbers)} if draw(st.booleans()) else {},
        )
        for circuit in circuits for w in range(workers) if draw(st.integers(0, 9))
    }  # fmt: skip
    keys: dict[tuple[int, str], Key] = {}
    for w in range(workers):
        for circuit in draw(st.sets(st.sampled_from(circuits))):
            if (circuit, f"gpu{w}") in needs:
                keys[w, circuit] = Key(
                    circuit, draw(numbers), 0, draw(st.integers(0, 4)) == 0, draw(st.integers(1, 3)),
                    NOW - draw(st.integers(0, 120)), needs[circuit, f"gpu{w}"].key,
                )  # fmt: skip
    jobs, running = [], [0] * workers
    staged: set[tuple[int, bool]] = set()
    for number in range(draw(st.integers(0, 12))):
        circuit = draw(st.sampled_from(circuits))
        one = Waiting(
            f"j{number}", number, draw(st.sampled_from(Priority)), NOW - draw(st.integers(0, 1500)), circuit,
            tuple(range(draw(st.integers(0, 3)))), proved=draw(st.integers(0, 1)), payload_bytes=draw(numbers),
        )  # fmt: skip
        hot = [w for w in range(workers) if (w, circuit) in keys and not keys[w, circuit].loading]
        if draw(st.booleans()) and hot:
            w = draw(st.sampled_from(hot))
            if draw(st.booleans()):
                count = draw(st.integers(0, 2))
                one = replace(
                    one, prepared_on=f"w{w}", running=count, stages=draw(st.integers(0, 4)) > 0
                )
                running[w] += count
                class_ = w, one.priority is CRITICAL
                if (
                    one.ready
                    and needs[circuit, f"gpu{w}"].ahead
                    and class_ not in staged
                    and draw(st.booleans())
                ):
                    staged.add(class_)
                    made = Staged(one.ready[0], {"host": draw(numbers)}, ready=draw(st.booleans()))
                    one = replace(one, staged=(made,), ready=one.ready[not made.ready :])
            else:
                one = replace(one, preparing_on=f"w{w}")
            users = 1 + one.running + (draw(st.integers(0, 5)) == 0)
            keys[w, circuit] = replace(keys[w, circuit], users=keys[w, circuit].users + users)
        jobs.append(one)
    sites = tuple(
        Site(
            f"w{w}", f"gpu{w}", draw(st.integers(0, 9)) > 0, tuple(k for (v, _), k in keys.items() if v == w), running[w],
            sum(one.preparing_on == f"w{w}" for one in jobs),
        )
        for w in range(workers)
    )  # fmt: skip
    names = ["host", *(f"gpu{w}" for w in range(workers))]
    free = {name: draw(st.integers(-20, 150)) for name in names if draw(st.integers(0, 9))}
    return View(tuple(jobs), sites, free, needs)


@settings(max_examples=150, deadline=None)
@given(views(), st.integers(0, 20), st.integers(1, 3))
@example(View((), (), {}, {}), 0, 1)
def test_any_plan_is_legal_and_the_same_again(view: View, headroom: int, prepared: int) -> None:
    policy = Policy(headroom={"host": headroom, "gpu0": headroom}, prepared=prepared)
    actions = plan(view, policy, NOW)
    check_plan(view, policy, actions)
    assert actions == plan(view, policy, NOW)
    shuffled = replace(view, jobs=tuple(reversed(view.jobs)))
    assert actions == plan(shuffled, policy, NOW)  # the order of the view's jobs says nothing


@settings(max_examples=100, deadline=None)
@given(views())
def test_a_free_slot_is_not_left_where_a_job_could_use_it(view: View) -> None:
    """Work conserving: with memory for everything a prepared job is left waiting only where all slots are taken, or for a
    CRITICAL job, or by a job that comes first and waits for a slot."""
    rich = replace(view, free={})
    actions = plan(rich, POLICY, NOW)
    for one in rich.sites:
        running = one.running + sum(
            isinstance(a, Start) and a.worker == one.worker for a in actions
        )
        pinned = [j for j in rich.jobs if one.worker == j.place and one.alive and j.ready]
        critical = any(j.priority == CRITICAL for j in pinned) or any(
            isinstance(a, Prepare) and a.worker == one.worker for a in actions
        )
        if pinned and not critical and any(j.prepared_on for j in pinned):
            slots = {k.circuit: k.slots for k in one.keys}
            least = min(slots[j.circuit] for j in pinned if j.prepared_on)
            starts = {(a.job, a.partition) for a in actions if isinstance(a, Start)}
            left = [
                j for j in pinned if j.prepared_on if any((j.id, p) not in starts for p in j.ready)
            ]
            kept = sum(len(j.staging) for j in rich.jobs if j.place == one.worker)
            kept += sum(isinstance(a, Unstage) and a.worker == one.worker for a in actions)
            assert not left or running + kept >= least


def test_a_plan_of_a_thousand_jobs_takes_little_of_the_event_loop() -> None:
    """It is made on it: 1.9 ms of a processor (EPYC, 1,000 jobs, 8 workers, 2026-11-30), as 28,000 steps of a loop."""
    view = thousand()
    assert len(plan(view, POLICY, NOW)) > 8
    took = min(seconds(lambda: plan(view, POLICY, NOW)) for _ in range(15))
    assert took < 12 * min(seconds(plain_python) for _ in range(15))


def thousand() -> View:
    circuits = [f"c{number}" for number in range(12)]
    sites = tuple(
        Site(f"w{n}", f"gpu{n}", True, tuple(
            Key(circuits[(n + k) % 12], used=k, users=0 if k else 2, bytes={f"gpu{n}": 30}) for k in range(2)
        ), running=1)
        for n in range(8)
    )  # fmt: skip
    jobs = [
        Waiting(f"j{n}", n, list(Priority)[n * 7 % 4], NOW - n * 37 % 3000, circuits[n * 5 % 12], tuple(range(10)))
        for n in range(8, 1000)
    ] + [
        Waiting(f"j{n}", n, NORMAL, NOW, circuits[n], tuple(range(1, 10)), 1, 0, f"w{n}") for n in range(8)
    ]  # fmt: skip
    needs = {
        (c, s.device): Needs({s.device: 30, "host": 1}, {s.device: 5, "host": 1}) for c in circuits for s in sites
    }  # fmt: skip
    return View(tuple(jobs), sites, {"host": 1000, **{s.device: 10 for s in sites}}, needs)
