"""In which order jobs are worked on.

    class = priority + floor(seconds waited / ageing), at most HIGH;   HIGH and CRITICAL stay what they are

A higher class goes first; within a class jobs that have begun, the oldest first, so that few are in the middle at a
time; then the order of acceptance. Nothing LOW waits for more than two ``ageing`` behind jobs that came after it, and no
age makes anything CRITICAL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from cuzk.engine.request import Priority
from cuzk.engine.view import Policy, Waiting

HIGH = int(Priority.HIGH)
CRITICAL = int(Priority.CRITICAL)


class Aged(Protocol):
    """What has a class: a job, or what the scheduler sees of one."""

    @property
    def priority(self) -> Priority:
        """As it came."""

    @property
    def accepted(self) -> float:
        """When."""


def effective(job: Aged, policy: Policy, now: float) -> int:
    """A job's class at ``now``; without ageing where ``policy.ageing`` is 0."""
    priority = int(job.priority)
    if priority >= HIGH or policy.ageing <= 0:
        return priority
    return min(HIGH, priority + max(0, int((now - job.accepted) / policy.ageing)))


def ranked(jobs: Iterable[Waiting], policy: Policy, now: float) -> list[tuple[int, Waiting]]:
    """(class, job), the first to be worked on first."""
    rows = [(-effective(job, policy, now), not job.begun, job.number, job) for job in jobs]
    rows.sort(key=lambda row: row[:3])
    return [(-row[0], row[3]) for row in rows]
