"""What the scheduler sees, in few words: jobs, keys and workers of a moment."""

from __future__ import annotations

from cuzk.engine.request import Priority
from cuzk.engine.view import Key, Site, Staged, Waiting

LOW, NORMAL, HIGH, CRITICAL = Priority
NOW = 1000.0
AHEAD = 9
"""Bytes of the host that a staged partition has."""


def job(
    name: str, circuit: str, priority: Priority = NORMAL, *, parts: int = 1, ready: tuple[int, ...] | None = None,
    running: int = 0, on: str = "", coming: str = "", age: float = 1.0, proved: int = 0,
    staged: int | None = None, staging: int | None = None, stages: bool = True,
) -> Waiting:  # fmt: skip
    """Named by a letter and its number. ``on`` is where it is prepared, ``coming`` where it is being so; ``ready`` are its
    partitions that can start, by default the ``parts`` that come after those that are proved or run."""
    begun = proved + running
    made: tuple[Staged, ...] = () if staged is None else (Staged(staged, {"host": AHEAD}),)
    made += () if staging is None else (Staged(staging, {"host": AHEAD}, ready=False),)
    return Waiting(
        name, int(name[1:]), priority, NOW - age, circuit, tuple(range(begun, begun + parts)) if ready is None else ready,
        running, proved, on, coming, staged=made, stages=stages,
    )  # fmt: skip


def key(
    circuit: str, nbytes: int = 50, *, users: int = 0, loading: bool = False, slots: int = 1, used: float = 1.0,
    loaded: float = 0.0,
) -> Key:  # fmt: skip
    """``nbytes`` of the device "gpu"."""
    return Key(circuit, used, users, loading, slots, loaded, {"gpu": nbytes})


def site(*keys: Key, worker: str = "w", running: int = 0, alive: bool = True) -> Site:
    """A worker of the device "gpu"."""
    return Site(worker, "gpu", alive, keys, running)
