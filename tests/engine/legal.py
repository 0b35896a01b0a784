"""Whether a plan may be carried out: each action checked against the view and what those before it changed."""

from __future__ import annotations

from collections.abc import Mapping

from cuzk.engine.fit import without
from cuzk.engine.request import Priority
from cuzk.engine.view import (
    Action,
    Evict,
    Forget,
    Load,
    Policy,
    Prepare,
    Stage,
    Start,
    Unstage,
    View,
)


def check_plan(view: View, policy: Policy, actions: list[Action]) -> None:
    """AssertionError with the action that may not be."""
    jobs = {job.id: job for job in view.jobs}
    sites = {site.worker: site for site in view.sites}
    keys = {(site.worker, key.circuit): key for site in view.sites for key in site.keys}
    users = {where: key.users for where, key in keys.items()}
    running = {site.worker: site.running for site in view.sites}
    free = dict(view.free)
    loading = {where[0] for where, key in keys.items() if key.loading and not key.stalled}
    touched: set[tuple[str, str]] = set()
    evicted: set[tuple[str, str]] = set()
    forgotten: set[str] = set()
    prepared: set[str] = set()
    started: set[tuple[str, int]] = set()
    staged = {(job.id, one.number): one for job in view.jobs for one in job.staged if one.ready}
    staging = {(job.id, one.number) for job in view.jobs for one in job.staging}
    dropped: set[tuple[str, int]] = set()
    waiting = dict.fromkeys(sites, 0)
    for name, _ in staging:
        waiting[jobs[name].place] += 1

    def take(need: dict[str, int], *, critical: bool) -> None:
        for name, nbytes in need.items():
            if name in free and nbytes > 0:
                free[name] -= nbytes
                floor = 0 if critical else policy.headroom.get(name, 0)
                assert free[name] >= floor, f"{action}: {name} would have {free[name]} bytes"

    def give(freed: Mapping[str, int]) -> None:
        for name, nbytes in freed.items():
            if name in free:
                free[name] += nbytes

    for action in actions:
        site = sites[action.worker]
        assert site.alive, action
        if isinstance(action, Evict):
            where = (action.worker, action.circuit)
            assert where in keys, action
            assert not keys[where].loading, action
            assert users[where] == 0, action
            assert where not in touched, action
            for name, nbytes in keys[where].bytes.items():
                if name in free:
                    free[name] += nbytes
            del keys[where]
            evicted.add(where)
            continue
        job = jobs[action.job]
        critical = job.priority == Priority.CRITICAL
        where = (action.worker, job.circuit)
        needs = view.needs.get((job.circuit, site.device))
        if isinstance(action, Forget):
            assert job.prepared_on == action.worker, action
            assert not job.running, action
            assert not job.staging, action
            assert job.ready, action
            assert job.id not in forgotten, action
            assert not any(job.id == done for done, _ in started), action
            users[where] -= 1
            if "host" in free:
                free["host"] += job.payload_bytes
            for one in job.staged:
                if staged.pop((job.id, one.number), None):
                    give(one.bytes)
            forgotten.add(job.id)
        elif isinstance(action, Load):
            assert job.circuit == action.circuit, action
            assert where not in keys, action
            assert action.worker not in loading, action
            assert needs is not None, action
            take(dict(needs.key), critical=critical)
            loading.add(action.worker)
        elif isinstance(action, Prepare):
            assert not job.prepared_on, action
            assert not job.preparing_on, action
            assert job.id not in prepared, action
            assert where in keys, action
            assert not keys[where].loading, action
            take({"host": job.payload_bytes}, critical=critical)
            prepared.add(job.id)
            touched.add(where)
        elif isinstance(action, Unstage):
            one = staged.pop((action.job, action.partition))
            assert job.prepared_on == action.worker, action
            assert not any(job.id == name for name, _ in started), action
            dropped.add((job.id, one.number))
            give(one.bytes)
        elif isinstance(action, Stage):
            assert job.prepared_on == action.worker, action
            assert job.stages, action
            assert job.id not in forgotten, action
            assert action.partition in job.ready, action
            assert (job.id, action.partition) not in started | staging | dropped | staged.keys(), (
                action
            )
            assert not keys[where].loading, action
            assert running[action.worker] + waiting[action.worker] >= keys[where].slots, action
            assert needs is not None, action
            assert needs.ahead, action
            take(dict(needs.ahead), critical=critical)
            staging.add((job.id, action.partition))
            touched.add(where)
            there = [
                jobs[name].priority is Priority.CRITICAL
                for name, _ in staging | staged.keys()
                if jobs[name].place == action.worker
            ]
            assert there.count(critical) == 1, f"{action}: beside {there}"
        else:
            assert isinstance(action, Start), action
            assert job.prepared_on == action.worker, action
            assert job.id not in forgotten, action
            assert action.partition in job.ready, action
            assert (job.id, action.partition) not in started | dropped, action
            assert where in keys, action
            assert not keys[where].loading, action
            assert running[action.worker] < keys[where].slots, action
            assert needs is not None, action
            held = staged.pop((job.id, action.partition), None)
            take(
                without(needs.partition, held.bytes if held else {}),
                critical=critical,
            )
            running[action.worker] += 1
            started.add((job.id, action.partition))
            touched.add(where)
    if any(s.running or s.preparing for s in view.sites) or loading:  # else it may be for memory
        for job in view.jobs:
            if job.id in forgotten:
                assert (job.prepared_on, job.circuit) in evicted, f"{job.id}: forgotten for nothing"
