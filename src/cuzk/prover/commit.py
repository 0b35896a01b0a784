"""Phase 3: the five multi-scalar multiplications, where nearly all of the time goes."""

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


def commit(
    key: ResidentKey,
    w: Buffer,
    h: Buffer,
    backend: Backend,
    phase: Callable[[str], AbstractContextManager[None]],
) -> Sums:
    """The sums, each timed as ``commit.<query>``."""

    def msm(name: str, query: ResidentQuery, scalars: Buffer) -> Points:
        with phase(f"commit.{name}"):
            return backend.msm(query.points, scalars, query.wires)

    return Sums(
        a=msm("a", key.a, w),
        b_g1=msm("b_g1", key.b_g1, w),
        b_g2=msm("b_g2", key.b_g2, w),
        l=msm("l", key.l, w),
        h=msm("h", key.h, h),
    )
