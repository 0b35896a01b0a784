"""Multi-scalar multiplications: from buffers and wires to queued sums.

Where a sum fits whole, the vector's sorted digits are shared by all sums over it, and each query selects
and renumbers the entries of its own rows; infinities have none. Any other sum takes gathered scalars: chunk by
chunk with repeated wires and with more points than the plan lets one sum have, streamed where the points are in
host memory (:mod:`cuzk.backends.cuda.streamed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from cuzk import _core
from cuzk.backends import Buffer
from cuzk.backends.cuda.buffers import (
    Bases,
    WireMap,
    Wires,
    bases_of,
    gathered,
    map_key,
    map_of,
    vector_of,
)
from cuzk.backends.cuda.digits import ROWS, Digits, select, sort_digits
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.backends.cuda.streamed import (
    ENTRY_BYTES,
    SMALL_BYTES,
    SORT_BYTES,
    Streamed,
    Terms,
    ring_bytes,
    streamed_bytes,
)
from cuzk.backends.cuda.sums import start_sum, sum_bytes
from cuzk.backends.cuda.tree import Kernels, choose_shape, tuning_of
from cuzk.backends.cuda.windows import WindowPlan, choose_plan, group_cost
from cuzk.curves import Curve
from cuzk.errors import KernelError, OutOfMemory
from cuzk.vectors import Points, Words

FEWEST = 1 << 8  # points of a chunk below which memory that is not there is not asked for again

UNBOUNDED = 1 << 60
TABLE_SETS = (1, 2, 3, 4, 6)  # sets of buckets that windows share

Collect = Callable[[], Words]


class Sums:
    """The sums of one curve on one machine, none longer than ``longest`` points (None: any)."""

    def __init__(
        self,
        machine: Machine,
        curve: Curve,
        threads: int,
        longest: int | None,
        streamed: Streamed | None = None,
    ) -> None:
        self.machine = machine
        self.curve = curve
        self.threads = threads
        self.longest = longest
        self.streamed = streamed or Streamed(machine, curve)

    def start(self, bases: Buffer, scalars: Buffer, wires: object) -> Collect:
        """Queue a sum; in shorter chunks from now on where the device has less memory than was planned."""
        chosen = self._wires(wires, bases, scalars.length)
        whole = max(bases.length, scalars.length)
        while True:
            try:
                return self._started(bases, scalars, chosen)
            except OutOfMemory:
                chunk = min(self.longest or whole, whole) // 2
                if chunk < FEWEST:
                    raise
                self.longest = chunk
            vector_of(scalars, "msm").digits.clear()
            self.streamed.drop()
            self.machine.finish()  # what the failed try took is free only now

    def bytes_of(self, group: str, n: int, plan: WindowPlan | None = None) -> int:
        """Device memory that the sums of a proof take at their height, beside points and vectors.

        The witness's entries stay while h's are sorted, or beside those selected of them and buckets.
        """
        plan = plan or self.plan(n)
        entries = n * plan.windows
        buckets = sum_bytes(self.machine, self.curve, group, plan, entries)
        sort = SORT_BYTES * entries + 8 * plan.total_buckets
        return ENTRY_BYTES * entries + max(sort, ENTRY_BYTES * entries + buckets) + SMALL_BYTES

    def extra_bytes(self, group: str, n: int, plan: WindowPlan | None = None) -> int:
        """What rounds of affine additions take, where memory is free that nothing else needs."""
        plan, kernels = plan or self.plan(n), Kernels(self.machine, self.curve, group)
        tuning = tuning_of(self.curve, group)
        shape = choose_shape(kernels, plan, n * plan.windows, UNBOUNDED, tuning)
        return kernels.bytes(shape, tuning.depth) if shape else 0

    def ring_bytes(self, group: str, n: int, most: int) -> int:
        """What stays of streamed sums of n points, ``most`` at a time, whatever else is done between them."""
        return ring_bytes(self.curve, group, n, most, self.streamed.how)

    def streamed_bytes(self, group: str, n: int, most: int) -> int:
        """What one of them takes at its height, beside that and vectors."""
        how = self.streamed.how
        return streamed_bytes(self.machine, self.curve, group, n, most, self.plan, how)

    def plan(self, n: int) -> WindowPlan:
        """One for all sums over a vector of n scalars: G2's best width is hardly ever another."""
        return choose_plan(n, self.curve, group_cost(self.curve, "g1"))

    def table_plans(self, n: int) -> list[WindowPlan]:
        """For sums of n points over tables of their multiples, the quickest first, each with less tables."""
        cost = group_cost(self.curve, "g1")
        plans = [choose_plan(n, self.curve, cost, sets=sets) for sets in TABLE_SETS]
        return [plan for plan in plans if 1 < plan.tables <= ROWS // max(n, 1)]

    def combine(self, group: str, points: Words, scalars: Words) -> Words:
        """A handful of points, on the host."""
        out = np.zeros((1, self.curve.point_words(group)), np.uint64)
        _core.msm(self.curve.name, group, points, scalars, None, out, self.threads)
        return out

    def _started(self, bases: Buffer, scalars: Buffer, wires: Wires) -> Collect:
        given, n, group = bases_of(bases), scalars.length, bases.kind
        points = given.points
        if given.ready:
            given.ready.before(self.machine)
        if not len(wires):
            return self._nothing(group)
        if isinstance(points, Points):
            return self.streamed.start(
                self._terms(given, points, scalars, wires), self.longest or len(wires)
            )
        if max(n, len(wires)) <= (self.longest or n):
            found = self._map(bases, points, wires, n)
            if found.distinct and not found.finite:
                return self._nothing(group)
            if found.distinct:
                plan = given.plan or self.plan(n)
                digits = self._digits(scalars, found, plan, bases.length)
                rows = given.tables or points
                wait = start_sum(self.machine, self.curve, group, rows, digits)
                nbytes = 8 * self.curve.point_words(group) * found.finite
                return self.streamed.queued(wait, nbytes)
        step = self.longest or len(wires)
        parts = [
            self._chunk(points, group, scalars, wires[begin : begin + step], begin)
            for begin in range(0, len(wires), step)
        ]
        return lambda: self._added(group, [part() for part in parts])

    def _terms(self, given: Bases, points: Points, scalars: Buffer, wires: Wires) -> Terms:
        """A sum over points in host memory."""
        vector, n = vector_of(scalars, "msm"), scalars.length
        index = given.index_of(self.machine, wires)

        def chosen(machine: Machine, rows: range) -> Memory:
            part = index.part(4 * rows.start, 4 * len(rows)) if index else None
            some = wires[rows.start : rows.stop]
            return gathered(machine, self.curve, vector, n, some, part)

        def added(parts: Sequence[Words]) -> Words:
            return self._added(points.group, parts)

        return Terms(points, given.pages, chosen, scalars.montgomery, self.plan, added)

    def _digits(self, scalars: Buffer, rows: WireMap, plan: WindowPlan, stride: int) -> Digits:
        """The entries of some of ``stride`` rows. A plain vector is a witness, with several sums over it.

        No more entries than the finite points have windows, whatever the lists have room for.
        """
        value, n = vector_of(scalars, "msm"), scalars.length
        shared = not scalars.montgomery

        def sort(row_of: Memory | None, stride: int) -> Digits:
            return sort_digits(
                self.machine, self.curve, value.memory, n, plan,
                montgomery=scalars.montgomery, bit_reversed=value.bit_reversed, row_of=row_of,
                stride=stride,
            )  # fmt: skip

        if not shared:
            found = sort(rows.row_of, stride)
        else:
            if plan not in value.digits:
                value.digits[plan] = sort(None, n)
            found = value.digits[plan]
            if rows.row_of:
                found = select(self.machine, self.curve, found, rows.row_of, n, stride=stride)
        return replace(found, capacity=min(found.capacity, rows.finite * plan.windows))

    def _chunk(
        self, points: Memory, group: str, scalars: Buffer, wires: Wires, begin: int
    ) -> Collect:
        """The sum of the points from ``begin`` on that go with ``wires``."""
        machine, curve, count = self.machine, self.curve, len(wires)
        chosen = gathered(machine, curve, vector_of(scalars, "msm"), scalars.length, wires)
        plan = self.plan(count)
        digits = sort_digits(
            machine, curve, chosen, count, plan, montgomery=scalars.montgomery, bit_reversed=False
        )
        row = 8 * curve.point_words(group)
        part = points.part(row * begin, row * count)
        return start_sum(machine, curve, group, part, digits)

    def _map(self, bases: Buffer, points: Memory, wires: Wires, n: int) -> WireMap:
        """Made once for a query and its wires, whichever lane asks first."""
        given, key = bases_of(bases), map_key(wires, n)
        with given.lock:
            if key not in given.maps:
                with self.machine.timeline.span("map wires", wires=len(wires)):
                    given.maps[key] = map_of(self.machine, self.curve, bases.kind, points, wires, n)
            return given.maps[key]

    def _wires(self, wires: object, bases: Buffer, n: int) -> Wires:
        """Checked, unless a map was made of them: one for each point, all of them among the scalars."""
        chosen = range(n) if wires is None else wires
        if not isinstance(chosen, range) and not (
            isinstance(chosen, np.ndarray) and chosen.dtype == np.uint32
        ):
            raise KernelError("cuda: msm: expected wires as None, a range or a uint32 array")
        if len(chosen) != bases.length:
            raise KernelError(f"cuda: msm: expected {bases.length} wires, found {len(chosen)}")
        if not len(chosen) or map_key(chosen, n) in bases_of(bases).maps:
            return chosen
        some = chosen if isinstance(chosen, np.ndarray) else np.array([chosen[0], chosen[-1]])
        lowest, highest = int(some.min()), int(some.max())
        if not 0 <= lowest <= highest < n:
            raise KernelError(
                f"cuda: msm: expected wires within {n} scalars, found {lowest} to {highest}"
            )
        return chosen

    def _nothing(self, group: str) -> Collect:
        return lambda: np.zeros((1, self.curve.point_words(group)), np.uint64)

    def _added(self, group: str, parts: Sequence[Words]) -> Words:
        if len(parts) == 1:
            return parts[0]
        ones = np.zeros((len(parts), self.curve.fr_words), np.uint64)
        ones[:, 0] = 1
        return self.combine(group, np.concatenate(parts), ones)
