"""Sums whose points are in host memory: copied batch by batch on a stream of their own while others are computed.

    copy stream      copy 0 | copy 1 |       copy 2 (behind compute 0) |
    compute stream   digits | compute 0    | compute 1        | compute 2 | rows, columns, copy back

Each batch is computed behind the event that follows its copy, and its slot is filled again behind the event
that follows its last reader (:mod:`cuzk.backends.cuda.ring`). Three forms:

- *kept*: what buckets hold is kept across batches (:mod:`cuzk.backends.cuda.kept`); nothing waits on the host.
- *deferred*: each batch is a sum of its own with its own windows and buckets, on stream i & 1; the host takes
  batch i - 1 when batch i is queued, and the last one from its own stream.
- *each*: the same on one stream, taken at once. Both are there to be measured against.

A sum that is started before the last one was asked for is copied while that one is computed: it goes in
batches as long as memory allows, as a rule in one, and costs what a resident one does.

The digits of two further batches are sorted before a batch is computed: they need no points, so that the
first copies are not waited for.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from cuzk.backends.cuda.arrivals import Feeder
from cuzk.backends.cuda.batches import BUCKETS, PINNED, STAGED, Sizes, batches
from cuzk.backends.cuda.digits import Digits, sort_digits
from cuzk.backends.cuda.kept import LEFT, Kept
from cuzk.backends.cuda.machine import Machine, Memory, Pin
from cuzk.backends.cuda.ring import SLOTS, Landing, Ring
from cuzk.backends.cuda.sums import Group, start_sum, sum_bytes
from cuzk.backends.cuda.tree import NEVER, Tuning, tuning_of
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve
from cuzk.vectors import Points, Words

SPREAD = 16  # batches whose points share windows at most: where batches are short, so is memory for buckets

LONG = Sizes(first=1.0)
ENTRY_BYTES = 8  # key and row
SORT_BYTES = 14  # while entries are sorted
SMALL_BYTES = 1 << 20  # histograms of tiles, counts, rounding

Collect = Callable[[], Words]
Plan = Callable[[int], WindowPlan]


@dataclass(frozen=True)
class Terms:
    """Points in host memory, one or more, and what they are multiplied by.

    ``scalars`` gives those of a range of points, in their order, on the machine that it is called with;
    ``plan`` the windows for so many points. ``added`` sums up the points that batches gave, on the host.
    """

    points: Points
    pin: Pin | None
    scalars: Callable[[Machine, range], Memory]
    montgomery: bool
    plan: Plan
    added: Callable[[Sequence[Words]], Words]

    @property
    def row_bytes(self) -> int:
        """A point's."""
        return 8 * self.points.curve.point_words(self.points.group)


@dataclass(frozen=True)
class Streaming:
    """How sums are streamed; the defaults are what is best, the others what that is measured against.

    Without ``sizes`` they are those for where the points are, in locked pages or not.
    ``ahead`` is how many further batches' digits are sorted before a batch is computed, ``left`` and ``tuning``
    are :class:`~cuzk.backends.cuda.kept.Kept`'s.
    """

    form: str = "kept"  # "kept", "deferred", "each"
    sizes: Sizes | None = None
    follow: bool = True  # sums behind another one in longer batches
    slots: int = SLOTS
    ahead: int = 2
    left: float | None = LEFT
    tuning: Tuning | None = None

    @property
    def follows(self) -> bool:
        """The other forms have waited for the sum before."""
        return self.follow and self.form == "kept"

    def sizes_of(self, *, pinned: bool, lists: bool = True) -> Sizes:
        """Of the batches of a sum that no other one precedes; ``lists``: rounds of affine additions pay for it."""
        return self.sizes or (STAGED if not pinned else PINNED if lists else BUCKETS)

    @property
    def all_sizes(self) -> list[Sizes]:
        """Whatever may come: memory is planned before it is known."""
        long = [LONG] if self.follows else []
        short = [
            self.sizes_of(pinned=p, lists=q)
            for p, q in ((True, True), (True, False), (False, True))
        ]
        return [*short, *long]


def ring_bytes(curve: Curve, group: str, n: int, most: int, how: Streaming) -> int:
    """Device memory that stays from sum to sum: slots for the longest batches of n points, ``most`` at a time."""
    cuts = [batches(n, most, sizes) for sizes in how.all_sizes]
    longest = max((len(rows) for cut in cuts for rows in cut), default=0)
    return how.slots * longest * 8 * curve.point_words(group)


def streamed_bytes(
    machine: Machine, curve: Curve, group: str, n: int, most: int, plan: Plan, how: Streaming
) -> int:
    """What a sum of n points needs at its height beside :func:`ring_bytes`: digits of the batches that are sorted
    ahead, scalars and the sort of one, buckets. Lists instead of buckets take more where it is free.
    """
    kept = how.form == "kept"

    def nbytes(sizes: Sizes) -> int:
        lengths = [len(rows) for rows in batches(n, most, sizes)]
        longest, at_once = max(lengths, default=0), 1 + how.ahead if kept else 1
        windows = plan(min(n, SPREAD * most) if kept else longest)
        ahead = max([sum(lengths[i : i + at_once]) for i in range(len(lengths))], default=0)
        element, entries = 8 * curve.fr_words, longest * windows.windows
        sort = longest * element + SORT_BYTES * entries + 8 * windows.total_buckets
        buckets = sum_bytes(machine, curve, group, windows, entries)
        lanes = 2 if how.form == "deferred" else 1
        return ENTRY_BYTES * windows.windows * ahead + lanes * (sort + buckets) + SMALL_BYTES

    return max(map(nbytes, how.all_sizes))


@dataclass(eq=False)
class Pending:
    """A sum over ``nbytes`` of points that was queued, until somebody asked for its result."""

    nbytes: int
    taken: bool = False


class Streamed:
    """The streamed sums of one machine; they follow one another through the same slots."""

    def __init__(self, machine: Machine, curve: Curve, how: Streaming | None = None) -> None:
        self.how = how or Streaming()
        self._machine = machine
        self._curve = curve
        self._ring: Ring | None = None
        self._beside: Machine | None = None
        self._last: Callable[[], Pending | None] = lambda: None

    def start(self, terms: Terms, most: int) -> Collect:
        """Queue a sum, ``most`` points at a time; the function returned waits for it.

        The points stay what they are until it was called. With points that are not pinned the host stages all
        batches but the last before this returns; *deferred* and *each* wait for all sums but the last and all.
        """
        nbytes = terms.points.words.nbytes
        lists = tuning_of(self._curve, terms.points.group).least_pairs < NEVER
        sizes = self.how.sizes_of(pinned=terms.pin is not None, lists=lists)
        if self._follows(nbytes):
            sizes = LONG
        cut = batches(len(terms.points), most, sizes)
        with self._landings(terms, cut) as landings:
            if self.how.form == "kept":
                wait = self._kept(
                    terms, cut, landings, terms.plan(min(cut[-1].stop, SPREAD * most))
                )
            elif self.how.form == "deferred":
                wait = self._deferred(terms, cut, landings)
            else:
                wait = self._each(terms, cut, landings)
        return self.queued(wait, nbytes)

    def queued(self, wait: Collect, nbytes: int) -> Collect:
        """A sum over so many bytes of points that this machine was given: what follows is copied while it is computed."""
        pending = Pending(nbytes)
        self._last = weakref.ref(pending)

        def collect() -> Words:
            pending.taken = True
            return wait()

        return collect

    def _follows(self, nbytes: int) -> bool:
        """Whether so much is copied while the sum before is computed, which takes 2 to 3 times as long as its own."""
        last = self._last()
        return (
            self.how.follows and last is not None and not last.taken and 2 * last.nbytes >= nbytes
        )

    def drop(self) -> None:
        """Give back the memory that stays between sums."""
        if self._ring:
            self._ring.drop()

    def _kept(
        self, terms: Terms, cut: list[range], landings: Iterator[Landing], plan: WindowPlan
    ) -> Collect:
        if len(cut) == 1:
            wait = self._whole(self._machine, terms, cut[0], next(landings), 0)
            return lambda: terms.added([wait()])
        machine = self._machine
        group, counts = Group(machine, self._curve, terms.points.group), [len(rows) for rows in cut]
        kept = Kept(group, plan, counts, self.how.tuning, self.how.left)
        sorted_ones, waiting = deque[Digits](), deque(cut)
        for i, (rows, landing) in enumerate(zip(cut, landings, strict=True)):
            start = machine.mark()
            while waiting and len(sorted_ones) <= self.how.ahead:
                sorted_ones.append(self._digits(machine, terms, waiting.popleft(), plan))
            machine.record("digits", start, machine.mark(), batch=i)
            landing.before(machine)
            start = machine.mark()
            kept.add(landing.points, sorted_ones.popleft())
            landing.leave(machine)
            machine.record("batch", start, machine.mark(), batch=i, points=len(rows))
        start = machine.mark()
        wait = kept.start()
        machine.record("lines", start, machine.mark(), batch=len(cut))
        return lambda: terms.added([wait()])

    def _deferred(self, terms: Terms, cut: list[range], landings: Iterator[Landing]) -> Collect:
        lanes = self._lanes()
        found: list[Words] = []
        running: Collect | None = None
        for i, (rows, landing) in enumerate(zip(cut, landings, strict=True)):
            started = self._whole(lanes[i & 1], terms, rows, landing, i)
            if running:
                found.append(running())
            running = started
        self._machine.after(lanes[1].mark())
        last = running
        return lambda: terms.added([*found, last()] if last else found)

    def _each(self, terms: Terms, cut: list[range], landings: Iterator[Landing]) -> Collect:
        found = [
            self._whole(self._machine, terms, rows, landing, i)()
            for i, (rows, landing) in enumerate(zip(cut, landings, strict=True))
        ]
        return lambda: terms.added(found)

    def _whole(
        self, lane: Machine, terms: Terms, rows: range, landing: Landing, batch: int
    ) -> Collect:
        """A batch as a sum of its own, on one of the streams."""
        start = lane.mark()
        digits = self._digits(lane, terms, rows, terms.plan(len(rows)))
        lane.record("digits", start, lane.mark(), batch=batch)
        landing.before(lane)
        start = lane.mark()
        collect = start_sum(lane, self._curve, terms.points.group, landing.points, digits)
        landing.leave(lane)
        lane.record("batch", start, lane.mark(), batch=batch, points=len(rows))
        return collect

    def _digits(self, lane: Machine, terms: Terms, rows: range, plan: WindowPlan) -> Digits:
        return sort_digits(
            lane, self._curve, terms.scalars(lane, rows), len(rows), plan,
            montgomery=terms.montgomery, bit_reversed=False,
        )  # fmt: skip

    def _lanes(self) -> tuple[Machine, Machine]:
        """Two streams, what is queued on this one before the second goes on."""
        if self._beside is None:
            self._beside = self._machine.beside("compute 1")
        self._beside.after(self._machine.mark())
        return self._machine, self._beside

    @contextmanager
    def _landings(self, terms: Terms, cut: list[range]) -> Iterator[Iterator[Landing]]:
        """Batches on their way, as many ahead as there are slots; whatever happens, no slot stays half used."""
        if self._ring is None:
            self._ring = Ring(Feeder(self._machine), self.how.slots)
        ring, room = self._ring, terms.row_bytes * max(map(len, cut), default=0)

        def sent() -> Iterator[Landing]:
            under_way = deque[Landing]()
            for rows in cut:
                if len(under_way) == len(ring):
                    yield under_way.popleft()
                words = np.ascontiguousarray(terms.points.words[rows.start : rows.stop])
                under_way.append(ring.send(words, terms.pin, room))
            yield from under_way

        try:
            yield sent()
        except BaseException:
            ring.drop()
            raise
