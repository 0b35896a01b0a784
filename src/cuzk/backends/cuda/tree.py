"""Long bucket lists made short by rounds of batched affine additions, before the slices sum what is left.

A round sums neighbours of equal key in pairs (``tree.cu``), from each key's first entry on: L entries become
ceil(L / 2), at 5 M + 1 S an addition where the slices take 8 M + 2 S. An odd entry, which about half of the keys
have, is copied: predicted 70 ps in G1 of 381 bits, 200 bytes at three quarters of the memory's rate. Measured before, with
pairs at even places of the whole list and a thread a point: a copy a key and round, 115 ps each, two more
of them at last, 5.0 ms of 83.6 at 2^24 (H200, 2026-11-30). The result is again
points and entries, sorted by the same keys and with the same sum for each. How many rounds are made
depends on sizes that the host knows; the rounds themselves take any distribution of keys.

The entries are taken in chunks, so that memory is bounded; the chunks' results follow each other in one
list, where a key that crosses from one to the next has entries of both.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.backends.cuda.digits import Digits
from cuzk.backends.cuda.machine import Machine, Memory, Unit, ceil
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve

THREADS = 128  # tree_threads of tree.hpp
PLAN_THREADS = 256
BLOCK_ENTRIES = 4096  # of a block of the planning kernels: plan_entries of tree.cu
MOST_ENTRIES = 1 << 31  # rows have a sign above bit 30
RECORD = 24  # bytes of a Round: pairs, entries, end


@dataclass(frozen=True)
class Tuning:
    """Where rounds pay."""

    least_pairs: int  # of a round
    chunk: int = 1 << 27  # entries taken at once, even: the ends of rounds lose 1 %
    shortest_chunk: int = 1 << 22
    depth: int = 128  # pairs a thread adds between two inversions, whose tree costs it 6 M
    most_left: float = 1.2  # entries a key below which no round is made
    least_rounds: int = (
        0  # made whatever they save: their result is a list that does not need the points
    )


# By group and words of Fp. A round takes 60 us for its launches, one inversion and its end; a pair of it saves 0.1,
# 0.4, 0.2 ns in G1 of 381 bits, G2 of 381 and 254 bits (predicted from instructions and bytes). In G1 of 254 bits
# it saves nothing: 5.6 G additions/s with rounds, 5.7 without at 2^22, 5.5 and 5.8 at 2^24 (H200, 2026-11-29).
NEVER = 1 << 62
LEAST_PAIRS = {("g1", 6): 1 << 20, ("g1", 4): NEVER, ("g2", 6): 1 << 18, ("g2", 4): 1 << 19}


def tuning_of(curve: Curve, group: str) -> Tuning:
    """What is best on a GPU."""
    return Tuning(LEAST_PAIRS[group, curve.fp_words])


@dataclass(frozen=True)
class Shape:
    """The rounds of up to ``capacity`` entries of up to ``keys`` keys, ``chunk`` of them at a time.

    They leave ``likely`` entries of all chunks if the keys are even.
    """

    capacity: int
    keys: int
    chunk: int
    rounds: int
    likely: int

    @classmethod
    def of(
        cls, plan: WindowPlan, capacity: int, chunk: int, tuning: Tuning, likely: int | None = None
    ) -> Shape:
        """As many rounds as find enough pairs if the entries, ``likely`` of them, lie evenly on the keys.

        Half of the keys have an odd entry that stays, while they have several; all keys keep one. What stays
        is copied: a round at 1.2 a key costs as much in that as its pairs save.
        """
        keys = min(plan.total_buckets, capacity)
        some = max(capacity, 1)
        chunk = 2 * ceil(ceil(some, ceil(some, chunk)), 2)  # even, all of one length
        share, rounds = keys * chunk // some, 0
        entries = chunk if likely is None else likely * chunk // some
        while True:
            left = min(entries, max(share, entries // 2 + share // 4))
            worth = entries >= tuning.most_left * share and entries - left >= tuning.least_pairs
            if rounds >= tuning.least_rounds and not worth:
                break
            entries, rounds = left, rounds + 1
        return cls(capacity, keys, chunk, rounds, min(capacity, entries * some // chunk))

    @property
    def chunks(self) -> int:
        """How many there are."""
        return ceil(self.capacity, self.chunk)

    @property
    def lengths(self) -> list[int]:
        """The most entries of a chunk before each round and after the last."""
        lengths = [self.chunk]
        for _ in range(self.rounds):
            lengths.append(min(lengths[-1], (lengths[-1] + self.keys) // 2))
        return lengths

    @property
    def result(self) -> int:
        """The most entries of all chunks after the last round: L of a key become ceil(L / 2^rounds)."""
        bound = (self.capacity >> self.rounds) + self.keys + self.chunks
        return min(self.capacity, bound)


@dataclass(frozen=True)
class Kernels:
    """The kernels of one curve and group on one machine."""

    machine: Machine
    curve: Curve
    group: str

    @property
    def point_bytes(self) -> int:
        """An affine point's."""
        return 8 * self.curve.point_words(self.group)

    @property
    def resident_blocks(self) -> int:
        """Blocks of tree_add that the machine holds at once (``tree_blocks`` of tree.hpp)."""
        words = self.curve.point_words(self.group) // 2
        per_processor = 6 if words <= 4 else 4 if words <= 6 else 3 if words <= 8 else 2
        return self.machine.processors * per_processor

    def product_bytes(self, depth: int) -> int:
        """Scratch memory of tree_add: a product, and in G2 a norm, for each pair of a thread."""
        planes = 2 if self.group == "g2" else 1
        return self.resident_blocks * THREADS * depth * planes * 8 * self.curve.fp_words

    def bytes(self, shape: Shape, depth: int) -> int:
        """Memory of all rounds and of their result."""
        lists = sum(shape.lengths[1:-1][:2])
        records = 8 + RECORD * shape.chunks * shape.rounds
        scratch = 4 * ceil(shape.chunk, BLOCK_ENTRIES) + 2 * shape.chunk + self.product_bytes(depth)
        return (
            (lists + shape.result) * (self.point_bytes + 4) + 4 * shape.result + records + scratch
        )

    def launch(self, kernel: str, blocks: int, threads: int, *args: Memory | int) -> None:
        """Queue one."""
        unit = Unit("tree.cu", self.curve, self.group)
        self.machine.launch(unit, kernel, blocks, threads, *args)


@dataclass(frozen=True)
class List:
    """Sorted entries: at most ``most`` of those that ``total`` counts, from ``skip`` on.

    Without ``rows`` the points are the entries' own.
    """

    keys: Memory
    points: Memory
    rows: Memory | int
    total: Memory
    skip: int
    most: int


class Rounds:
    """Rounds over lists of up to ``longest`` entries, with the scratch memory that they share."""

    def __init__(self, kernels: Kernels, longest: int, depth: int) -> None:
        alloc = kernels.machine.alloc
        self.kernels = kernels
        self.depth = depth
        self._counts = alloc(4 * ceil(longest, BLOCK_ENTRIES))  # pairs of each block
        self._couples = alloc(4 * (longest // 2))  # the pairs' places
        self._products = alloc(kernels.product_bytes(depth))

    def run(self, given: List, keys: Memory, points: Memory, base: Memory, record: Memory) -> None:
        """One round; the new list begins at entry *``base`` of ``keys`` and ``points``."""
        launch, blocks = self.kernels.launch, ceil(given.most, BLOCK_ENTRIES)
        part = (given.total, given.skip, given.most)
        launch("tree_count", blocks, PLAN_THREADS, given.keys, *part, self._counts)
        launch("tree_scan", 1, PLAN_THREADS, self._counts, *part, base, record)
        launch(
            "tree_place", blocks, PLAN_THREADS,
            given.keys, given.rows, given.points, *part, self._counts, base,
            self._couples, keys, points,
        )  # fmt: skip
        launch(
            "tree_add", min(self.kernels.resident_blocks, ceil(given.most // 2, THREADS)), THREADS,
            given.points, given.rows, self._couples, record, base, points, self._products, self.depth,
        )  # fmt: skip


def shorten(
    machine: Machine,
    curve: Curve,
    group: str,
    points: Memory,
    digits: Digits,
    reserved: int,
    tuning: Tuning | None = None,
    room: Memory | None = None,
) -> tuple[Memory, Digits]:
    """Points and entries with the same sum for every key, in fewer entries where rounds pay.

    With ``room`` the points are written there: no rounds where it is too small for them.

    Of the memory that is free ``reserved`` bytes are left alone, and half of the others; where that is too
    little for a chunk, there are no rounds. What comes back may be what was given; a sum that is infinity
    is an entry too.
    """
    tuning = tuning or tuning_of(curve, group)
    kernels = Kernels(machine, curve, group)
    sizes = digits.plan, digits.capacity
    if not Shape.of(*sizes, tuning.chunk, tuning, digits.likely).rounds:
        return points, digits
    budget = (machine.free_bytes() - reserved) // 2
    shape = choose_shape(kernels, *sizes, budget, tuning, digits.likely)
    if shape is None or (room and room.nbytes < kernels.point_bytes * shape.result):
        return points, digits
    keys = machine.alloc(4 * shape.result)
    sums = room or machine.alloc(kernels.point_bytes * shape.result)
    count = _run_chunks(kernels, shape, tuning.depth, points, digits, keys, sums)
    rows = machine.alloc(4 * shape.result)
    kernels.launch("tree_rows", ceil(shape.result, 2048), 256, count, rows)
    return sums, Digits(digits.plan, keys, rows, count, shape.result, fewer=shape.likely)


def choose_shape(
    kernels: Kernels,
    plan: WindowPlan,
    capacity: int,
    budget: int,
    tuning: Tuning,
    likely: int | None = None,
) -> Shape | None:
    """The longest chunks that ``budget`` allows; None where no round pays or none can be had."""
    chunk = tuning.chunk
    while chunk >= tuning.shortest_chunk:
        shape = Shape.of(plan, capacity, chunk, tuning, likely)
        if not shape.rounds:
            return None
        if kernels.bytes(shape, tuning.depth) <= budget and shape.result < MOST_ENTRIES:
            return shape
        chunk //= 2
    return None


def _run_chunks(
    kernels: Kernels,
    shape: Shape,
    depth: int,
    points: Memory,
    digits: Digits,
    keys: Memory,
    sums: Memory,
) -> Memory:
    """All rounds of all chunks, their results one after the other; where the device counts them."""
    alloc, point_bytes = kernels.machine.alloc, kernels.point_bytes
    rounds = Rounds(kernels, shape.chunk, depth)
    between = [(alloc(4 * n), alloc(point_bytes * n)) for n in shape.lengths[1:-1][:2]]
    records = alloc(8 + RECORD * shape.chunks * shape.rounds)
    kernels.machine.fill(records, 0)
    nothing = end = records.part(0, 8)
    used = 8
    for chunk in range(shape.chunks):
        skip = chunk * shape.chunk
        left = 4 * (shape.capacity - skip)
        mine, names = digits.keys.part(4 * skip, left), digits.rows.part(4 * skip, left)
        given = List(mine, points, names, digits.count, skip, shape.chunk)
        for turn in range(shape.rounds):
            last = turn == shape.rounds - 1
            to_keys, to_points = (keys, sums) if last else between[turn % 2]
            record, used = records.part(used, RECORD), used + RECORD
            rounds.run(given, to_keys, to_points, end if last else nothing, record)
            most = shape.lengths[turn + 1]
            given = List(to_keys, to_points, 0, record.part(8, 8), 0, most)
        end = record.part(16, 8)
    return end
