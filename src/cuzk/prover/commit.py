"""Phase 3: the five multi-scalar multiplications, where nearly all of the time goes.

All are started before the first is waited for. A device with a queue of its own works them off in that
order, so that the time waited for each is the time it took; queueing itself counts for the phase only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from cuzk.backends import Backend, Buffer
from cuzk.prover.resident import ResidentKey, ResidentQuery
from cuzk.vectors import Points


@dataclass(frozen=True)
class Sums:
    """Vectors of one point: sum w_i A_i, sum w_i B_i twice, sum w_i L_i (private wires), sum h_i H_i."""

    a: Points
    b_g1: Points
    b_g2: Points
    l: Points  # noqa: E741
    h: Points


@dataclass(frozen=True)
class StartedSums:
    """What waits for each sum, in the order in which they were started."""

    sums: dict[str, Callable[[], Points]]

    def finish(self, phase: Callable[[str], AbstractContextManager[None]]) -> Sums:
        """The sums, each timed as ``commit.<query>``."""

        def finished(name: str) -> Points:
            with phase(f"commit.{name}"):
                return self.sums[name]()

        return Sums(**{name: finished(name) for name in self.sums})


def start_sums(key: ResidentKey, w: Buffer, h: Buffer, backend: Backend) -> StartedSums:
    """All five, queued."""

    def start(query: ResidentQuery, scalars: Buffer) -> Callable[[], Points]:
        return backend.start_msm(query.points, scalars, query.wires)

    return StartedSums(
        {
            "a": start(key.a, w),
            "b_g1": start(key.b_g1, w),
            "b_g2": start(key.b_g2, w),
            "l": start(key.l, w),
            "h": start(key.h, h),
        }
    )
