"""What a streamed sum keeps from batch to batch: the buckets of the whole sum, on top of which each is added.

The windows are those of the sum as a whole, so that batches make no further additions: a batch's entries are
made few by rounds of affine additions where these pay, and what is left is added to the buckets, 8M + 2S an
entry. Rows, columns and the copy to the host come once, after the last batch.
"""

from __future__ import annotations

from collections.abc import Callable

from cuzk.backends.cuda.digits import Digits
from cuzk.backends.cuda.machine import Memory
from cuzk.backends.cuda.sums import (
    Fold,
    Group,
    collected,
    fill_buckets,
    lines_of_buckets,
    shortened,
)
from cuzk.backends.cuda.tree import Tuning, tuning_of
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.vectors import Words


class Kept:
    """One sum in the making."""

    def __init__(self, sums: Group, plan: WindowPlan, tuning: Tuning | None = None) -> None:
        self._sums = sums
        self._plan = plan
        self._tuning = tuning or tuning_of(sums.curve, sums.name)
        self._buckets: Memory | None = None

    def add(self, points: Memory, digits: Digits) -> None:
        """Queue a batch; nothing reads its points after what is queued by then."""
        short_points, short = shortened(self._sums, points, digits, self._tuning)
        self._buckets = fill_buckets(self._sums, short_points, short, self._buckets)

    def start(self) -> Callable[[], Words]:
        """Queue the rest; the function returned waits for the sum of all batches, one at least."""
        fold = Fold(self._plan)
        if self._buckets is None:
            self._buckets = self._sums.alloc(self._plan.total_buckets)
            self._sums.machine.fill(self._buckets, 0)
        rows, columns = lines_of_buckets(self._sums, self._buckets, fold)
        self._buckets = None
        return collected(self._sums, rows, columns, fold)
