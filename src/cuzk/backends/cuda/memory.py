"""How the proofs of a device's lanes share out its memory, decided before any work starts.

    once       matrices, maps from wires to rows of queries, tables of transforms, the key's points
    per lane   the witness, slots for streamed points, and the larger of: three vectors over the domain
               (quotient); one and what its longest sum needs, entries and buckets (commit)

Where that is too much, what costs least gives way first:

    1  sums are cut into chunks, not below UNCUT points: 7 % of their time for 2^23 points instead of 2^24
    2  points stay in host memory and are copied in every proof, which takes a third of the time that their sum
       takes beside it: first the last query's, whose copies run while the other sums are computed and whose scalars
       no other sum shares; then those in G2, where a point takes longest for its bytes; then from the end
    3  streamed sums take shorter batches, not below SHORTEST points

There is more than one lane where nothing has to give way for it. Where fewer fit than were asked for, the witness of
one proof more has room likewise: it is copied while the others compute, and computed when one of them is done. Where many proofs are to come, points take what
is left for tables of their multiples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cuzk.backends import Workload
from cuzk.backends.cuda.ntt import Transforms
from cuzk.backends.cuda.sparse import matrix_bytes
from cuzk.backends.cuda.tables import table_bytes
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve
from cuzk.errors import OutOfMemory

UNCUT = 1 << 23  # points; H200, BLS12-381: 5.0 ns a point at 2^24, 5.7 at 2^22, 7.5 at 2^20
SHORTEST = 1 << 20  # points of a batch: 100 MiB of points, and the card is still full
SPARED = 32  # one part in so many of the free memory is left for the driver's own and for rounding
VECTORS = 3  # over the domain, at once: A, B, C
MAP_BYTES = 4  # a scalar, for each query: the row that goes with it

SumBytes = Callable[[str, int, WindowPlan | None], int]
"""Device memory that a sum in a group takes beside its points: f("g1", points, windows or None)."""

StreamedBytes = Callable[[str, int, int], int]
"""The same of a sum over points in host memory: f("g1", points, points of a batch)."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes that may stay taken by points, the longest sum or batch made at once, all bytes at the height.

    With ``windows`` all points get tables for that plan. ``stay`` says which queries are on the device, in the
    workload's order; ``lanes`` is how many proofs at a time all this is for, ``waiting`` how many more of which only the
    witness is there. ``once`` are the bytes that stay
    whatever proofs do, ``lane`` those of a proof without what sums only take where it is free, and with the witness that
    waits.
    """

    points: int
    chunk: int
    total: int
    windows: WindowPlan | None = None
    stay: tuple[bool, ...] = ()
    lanes: int = 1
    once: int = 0
    lane: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class _Needs:
    """Bytes of one workload."""

    curve: Curve
    work: Workload
    sum_bytes: SumBytes
    streamed_bytes: StreamedBytes
    ring_bytes: StreamedBytes

    @property
    def element(self) -> int:
        return 8 * self.curve.fr_words

    @property
    def witness(self) -> int:
        return self.element * self.work.wires

    @property
    def longest(self) -> int:
        return max(self.work.wires, 1 << self.work.log_domain, 1)

    def once(self) -> int:
        work = self.work
        matrices = sum(matrix_bytes(*shape, self.curve.fr_words) for shape in work.matrices)
        maps = MAP_BYTES * self.longest * len(work.queries)
        return matrices + maps + Transforms.table_bytes(self.curve, work.log_domain)

    def points(self, stay: Sequence[bool]) -> int:
        rows = zip(self.work.queries, stay, strict=True)
        return sum(8 * self.curve.point_words(group) * n for (group, n), stays in rows if stays)

    def lane(self, chunk: int, stay: Sequence[bool], windows: WindowPlan | None = None) -> int:
        domain = self.element << self.work.log_domain
        gathered = self.element * chunk if chunk < self.longest else 0
        sums, rings = [0], [0]
        for group, stays in self._kinds(stay):
            if stays:
                sums.append(self.sum_bytes(group, chunk, windows) + gathered)
            else:
                sums.append(self.streamed_bytes(group, self.longest, chunk))
                rings.append(self.ring_bytes(group, self.longest, chunk))
        kept = self.witness + max(rings)
        return kept + max(VECTORS * domain, domain + max(sums))

    def extra(self, of: SumBytes, chunk: int, stay: Sequence[bool], windows: WindowPlan | None = None) -> int:  # fmt: skip
        """What sums take besides where it is free."""
        return max([of(group, chunk, windows) for group, _ in self._kinds(stay)], default=0)

    def _kinds(self, stay: Sequence[bool]) -> set[tuple[str, bool]]:
        rows = zip(self.work.queries, stay, strict=True)
        return {(group, stays) for (group, n), stays in rows if n}

    def choices(self) -> Iterator[tuple[bool, ...]]:
        """Which queries stay: all, then one less each time, down to none."""
        queries = self.work.queries
        last = len(queries) - 1

        def worth(i: int) -> tuple[bool, bool, int]:
            return i == last, queries[i][0] == "g2", i

        stay = [True] * len(queries)
        yield tuple(stay)
        for i in sorted(range(len(queries)), key=worth, reverse=True):
            stay[i] = False
            yield tuple(stay)


def untroubled(curve: Curve, work: Workload, sum_bytes: SumBytes) -> tuple[int, int]:
    """Bytes that stay taken, and those of a proof, where nothing has to give way."""
    needs = _Needs(curve, work, sum_bytes, _copied(curve, sum_bytes), _two_slots(curve))
    every = (True,) * len(work.queries)
    return needs.once() + needs.points(every), needs.lane(needs.longest, every)


def share(
    curve: Curve,
    work: Workload,
    free: int,
    sum_bytes: SumBytes,
    extra_bytes: SumBytes,
    longest: int | None = None,
    table_plans: Sequence[WindowPlan] = (),
    *,
    streamed_bytes: StreamedBytes | None = None,
    ring_bytes: StreamedBytes | None = None,
    streamed: bool = False,
) -> MemoryPlan:
    """The plan for ``free`` bytes; sums longer than ``longest`` are cut in any case.

    ``extra_bytes`` make a sum faster: it takes them, up to half, of what is free when it starts. The first of
    ``table_plans`` whose tables fit is taken. ``streamed``: no points stay on the device. OutOfMemory where
    even the vectors and the shortest batches do not fit.
    """
    usable = free - free // SPARED
    copied, slots = streamed_bytes or _copied(curve, sum_bytes), ring_bytes or _two_slots(curve)
    needs = _Needs(curve, work, sum_bytes, copied, slots)
    stay, chunk = _what_fits(needs, usable, longest, streamed=streamed)
    once, points = needs.once(), needs.points(stay)
    alone = once + points + needs.lane(chunk, stay)

    def total(lanes: int, windows: WindowPlan | None = None) -> int:
        extra = needs.extra(extra_bytes, chunk, stay, windows)
        return once + points + lanes * (needs.lane(chunk, stay, windows) + extra)

    lanes = next((n for n in range(work.lanes, 1, -1) if total(n) <= usable), 1)
    for windows in table_plans if all(stay) and chunk == needs.longest else ():
        tables = sum(table_bytes(curve, group, n, windows) for group, n in work.queries)
        if (height := total(lanes, windows) + tables - points) <= usable:
            lane = needs.lane(chunk, stay, windows)
            return MemoryPlan(tables, chunk, height, windows, stay, lanes, once + tables, lane)
    untouched = all(stay) and chunk == needs.longest
    room = untouched and alone + needs.witness <= usable
    waiting = 1 if lanes == 1 < work.lanes and room else 0
    more = waiting * needs.witness
    height = max(alone + more, min(total(lanes) + more, usable))
    lane = needs.lane(chunk, stay) + more
    return MemoryPlan(points, chunk, height, None, stay, lanes, once + points, lane, waiting)


def _what_fits(
    needs: _Needs, usable: int, longest: int | None, *, streamed: bool
) -> tuple[tuple[bool, ...], int]:
    """Who stays, and the longest sum, for one lane."""
    whole = min(needs.longest, longest or needs.longest)
    none = (False,) * len(needs.work.queries)
    for stay in [none] if streamed else needs.choices():
        for chunk in _halves(whole, SHORTEST if stay == none else UNCUT):
            needed = needs.once() + needs.points(stay) + needs.lane(chunk, stay)
            if needed <= usable:
                return stay, chunk
    work = needs.work
    raise OutOfMemory(
        f"cuda: a proof of 2^{work.log_domain} rows and {work.wires} wires needs {needed} bytes of "
        f"device memory without the key's points, {usable} can be had; take a larger GPU or the CPU"
    )


def _halves(whole: int, least: int) -> Iterator[int]:
    chunk = whole
    yield chunk
    while chunk > least:
        chunk = max(chunk // 2, least)
        yield chunk


def _copied(curve: Curve, sum_bytes: SumBytes) -> StreamedBytes:
    """Of a sum over points in host memory: one batch of scalars, and the sum of a batch."""

    def nbytes(group: str, _n: int, batch: int) -> int:
        return batch * 8 * curve.fr_words + sum_bytes(group, batch, None)

    return nbytes


def _two_slots(curve: Curve) -> StreamedBytes:
    return lambda group, _n, batch: 16 * curve.point_words(group) * batch
