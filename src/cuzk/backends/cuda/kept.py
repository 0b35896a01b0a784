"""What a streamed sum keeps from batch to batch, so that rows, columns and the copy to the host come only once.

The windows are those of the sum as a whole: batches make no further additions. A batch's entries are made few
by rounds of affine additions (``tree.py``) where these pay, and what is left of them is kept as one of

- *entries*: a sorted list in affine form. The lists are merged at the end (``merge.cu``, 16 bytes an entry) and go
  through further rounds, as if nothing had been cut. All additions are affine, 5M + 1S; a round more is 60 us
  and a copy of up to half a point a bucket.
- *buckets* in extended form, which each batch is added to at 8M + 2S an entry: where no rounds pay, as in G1 of
  BN254, that is what the resident sum does, too, and nothing is lost; where memory has no room for lists, all that can be done.

Measured at 2^24 in G1 of BLS12-381, 32 entries a bucket (H200, 2026-11-30), with rounds that copied a whole point a
bucket: 92.1 ms, resident 83.6. The additions took the same, 70.7 and 71.6; `tree_place` 11.3 and 5.0, for 95 and
41 M copied points, merging 1.05. Counted over Poisson's bucket lengths, rounds from each key's first entry copy 34
and 20 M at 60 % of the time each; 81.9 and 79.9 ms were predicted, 85.0 and 80.6 measured (2026-11-30): merging takes
1.7 ms, not 0.4. A batch that leaves more has less to do while the next one is copied: 90.2 ms where it leaves up to
3.0 entries a bucket, 4.3 of them waiting; 84.6 to 85.0 at 1.2, 1.5 and 2.0; at 2^22 26.6, 26.8 and 26.1. Buckets
instead of lists would take a mixed addition, 8M + 2S, for each of 220 M entries, and two full ones a bucket for their
lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cuzk.backends.cuda.digits import Digits, empty
from cuzk.backends.cuda.machine import Machine, Memory, Unit, ceil
from cuzk.backends.cuda.sums import (
    Fold,
    Group,
    collected,
    fill_buckets,
    lines_of_all,
    lines_of_buckets,
    shortened,
)
from cuzk.backends.cuda.tree import (
    MOST_ENTRIES,
    Kernels,
    Shape,
    Tuning,
    choose_shape,
    tuning_of,
)
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.vectors import Words

THREADS = 256
TILE = 2048  # merge_tile of merge.cu
LEFT = 2.0  # a list's entries a bucket above which a batch has a round more
WORTH = 4  # pairs of a batch's last round over those of a whole sum's: 100 us against what merging them takes
PART = 4  # lists take one part in so many of the memory that is free at the most
UNBOUNDED = 1 << 60


@dataclass(frozen=True)
class KeptList:
    """Entries of a batch, their points from row ``first`` of the room for all."""

    digits: Digits
    first: int


class Kept:
    """One sum in the making; ``counts`` are the points of its batches.

    Rounds of a batch go on down to ``left`` entries a bucket; without it buckets are kept in any case.
    """

    def __init__(
        self,
        sums: Group,
        plan: WindowPlan,
        counts: Sequence[int],
        tuning: Tuning | None = None,
        left: float | None = LEFT,
    ) -> None:
        self._sums = sums
        self._plan = plan
        self._whole = tuning or tuning_of(sums.curve, sums.name)
        self._batch = batch_tuning(self._whole, left) if left else None
        self._lists: list[KeptList] = []
        self._buckets: Memory | None = None
        self._used = 0  # rows of the room
        self._room = self._roomed([count * plan.windows for count in counts])

    def add(self, points: Memory, digits: Digits) -> None:
        """Queue a batch; nothing reads its points after what is queued by then."""
        sums = self._sums
        if self._room and self._batch:
            used = self._row_bytes * self._used
            left = self._room.part(used, self._room.nbytes - used)
            _, short = shortened(sums, points, digits, self._batch, left)
            if short is not digits:
                self._lists.append(KeptList(short, self._used))
                self._used += short.capacity
                return
        short_points, short = shortened(sums, points, digits, self._whole)
        self._buckets = fill_buckets(sums, short_points, short, self._buckets)

    def start(self) -> Callable[[], Words]:
        """Queue the rest; the function returned waits for the sum of all batches, of which there was one at least."""
        sums, fold, room = self._sums, Fold(self._plan), self._room
        merged = merged_lists(sums.machine, sums.curve, self._lists) if self._lists else None
        buckets, self._lists, self._room, self._buckets = self._buckets, [], None, None
        if room and merged and not buckets:
            rows, columns = lines_of_all(sums, room, merged, fold, self._whole)
            return collected(sums, rows, columns, fold)
        if room and merged:
            buckets = fill_buckets(sums, *shortened(sums, room, merged, self._whole), buckets)
        if not buckets:
            raise KernelError("cuda: kept: expected a batch or more, found none")
        return collected(sums, *lines_of_buckets(sums, buckets, fold), fold)

    @property
    def _row_bytes(self) -> int:
        return 8 * self._sums.curve.point_words(self._sums.name)

    def _roomed(self, capacities: Sequence[int]) -> Memory | None:
        """For the lists of several batches; None where rounds pay for none of them or memory has none."""
        sums = self._sums
        if not self._batch or len(capacities) < 2:
            return None
        if not shape_of(sums, self._plan, max(capacities), self._whole):
            return None
        rows = list_rows(sums, self._plan, capacities, self._batch)
        if rows >= MOST_ENTRIES or rows * self._row_bytes * PART > sums.machine.free_bytes():
            return None
        return sums.machine.alloc(rows * self._row_bytes)


def batch_tuning(whole: Tuning, left: float) -> Tuning:
    """A batch's: what it leaves is added later, so that a round must save its time in merging and memory alone."""
    least_pairs = WORTH * whole.least_pairs
    return replace(whole, least_pairs=least_pairs, most_left=left, least_rounds=1)


def shape_of(sums: Group, plan: WindowPlan, capacity: int, tuning: Tuning) -> Shape | None:
    """The rounds of so many entries where memory is no matter; None where none pays."""
    kernels = Kernels(sums.machine, sums.curve, sums.name)
    return choose_shape(kernels, plan, capacity, UNBOUNDED, tuning)


def list_rows(sums: Group, plan: WindowPlan, capacities: Sequence[int], tuning: Tuning) -> int:
    """Rows that the lists of batches of so many entries have room for."""
    shapes = [shape_of(sums, plan, capacity, tuning) for capacity in capacities]
    return sum(shape.result for shape in shapes if shape)


def merged_lists(machine: Machine, curve: Curve, lists: Sequence[KeptList]) -> Digits:
    """One list of all entries, sorted, their rows those of the room; the shortest are merged first."""
    waiting = sorted(lists, key=lambda each: each.digits.capacity)
    while len(waiting) > 1:
        pair, waiting = waiting[:2], waiting[2:]
        waiting.append(KeptList(merged(machine, curve, *pair), 0))
        waiting.sort(key=lambda each: each.digits.capacity)
    return waiting[0].digits


def merged(machine: Machine, curve: Curve, one: KeptList, other: KeptList) -> Digits:
    """The entries of both, sorted by key."""
    capacity = one.digits.capacity + other.digits.capacity
    likely = one.digits.likely + other.digits.likely
    out = empty(machine, one.digits.plan, capacity, 0)
    for last, (mine, theirs) in enumerate(((one, other), (other, one))):
        blocks = min(ceil(mine.digits.capacity, TILE), 8 * machine.processors)
        machine.launch(
            Unit("merge.cu", curve), "merge_entries", blocks, THREADS,
            mine.digits.keys, mine.digits.rows, mine.digits.count, mine.first,
            theirs.digits.keys, theirs.digits.count, last, out.keys, out.rows, out.count,
        )  # fmt: skip
    return replace(out, fewer=likely)
