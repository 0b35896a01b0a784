"""Rounds of batched affine additions: every key keeps its sum, by chord and tangent on Python's integers."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.bucket_sums import inputs, measure
from cuzk import _core
from cuzk.backends.cuda.digits import Digits
from cuzk.backends.cuda.machine import Memory
from cuzk.backends.cuda.tree import Kernels, Shape, Tuning, choose_shape, shorten
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import CURVES, Curve
from cuzk.errors import KernelError
from cuzk.vectors import Affine, Points, Scalars
from emulator import EmulatedMachine
from reference import Group, Point, affine_points

SMALL = Tuning(1, chunk=1 << 13, shortest_chunk=64, depth=3)
Entry = tuple[int, int]  # key, row with its sign in bit 31
MINUS = 1 << 31


@pytest.fixture(params=["g1", "g2"])
def group(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@cache
def pool(curve_name: str, group: str) -> Points:
    """Forty points; 0 is infinity, 1 and 2 are equal, 3 is the opposite of 4."""
    curve, rng = CURVES[curve_name], random.Random(curve_name + group)
    logs = [rng.randrange(1, curve.r) for _ in range(40)]
    logs[0], logs[2], logs[3] = 0, logs[1], curve.r - logs[4]
    flat = curve.g1 if group == "g1" else curve.g2
    out = np.empty((40, curve.point_words(group)), np.uint64)
    base = Points.from_affine(curve, group, [flat]).words
    _core.fixed_base(curve.name, group, base, Scalars.from_ints(curve, logs).words, out, 1)
    return Points(curve, group, out)


def as_point(affine: Affine, group: str) -> Point:
    if affine is None:
        return None
    if group == "g1":
        return (affine[0], 0), (affine[1], 0)
    return (affine[0], affine[1]), (affine[2], affine[3])


def sums_of(points: Points, entries: Sequence[Entry]) -> dict[int, Point]:
    """The sum of every key that occurs."""
    law, p = Group(points.curve.p), points.curve.p
    plain = [as_point(affine, points.group) for affine in affine_points(points)]
    sums: dict[int, Point] = defaultdict(lambda: None)
    for key, row in entries:
        point = plain[row & ~MINUS]
        if point is not None and row & MINUS:
            point = point[0], (-point[1][0] % p, -point[1][1] % p)
        sums[key] = law.add(sums[key], point)
    return dict(sums)


def upload(machine: EmulatedMachine, array: NDArray[Any], spare: int = 0) -> Memory:
    memory = machine.alloc(array.nbytes + spare)
    machine.upload(memory, np.ascontiguousarray(array))
    return memory


def run(
    points: Points,
    entries: Sequence[Entry],
    *,
    spare: int = 0,
    tuning: Tuning = SMALL,
    width: int = 2,
    processors: int = 2,
) -> tuple[list[int], Points]:
    """Keys and points after the rounds; ``spare``: how far the capacity is over the count."""
    machine, curve = EmulatedMachine(), points.curve
    machine.processors = processors
    keys = upload(machine, np.array([k for k, _ in entries], np.uint32), 4 * spare)
    rows = upload(machine, np.array([r for _, r in entries], np.uint32), 4 * spare)
    count = upload(machine, np.array([len(entries)], np.uint64))
    given = Digits(WindowPlan.of(curve, width), keys, rows, count, len(entries) + spare)
    table = upload(machine, points.words)
    sums, digits = shorten(machine, curve, points.group, table, given, 0, tuning)
    left = np.empty(1, np.uint64)
    machine.download(digits.count, left)
    assert left[0] <= digits.capacity
    out_keys, out_rows = (np.empty(int(left[0]), np.uint32) for _ in range(2))
    machine.download(digits.keys, out_keys)
    machine.download(digits.rows, out_rows)
    words = np.empty((digits.capacity, points.words.shape[1]), np.uint64)
    assert digits is not given
    assert out_rows.tolist() == list(range(len(out_rows)))
    machine.download(sums, words)
    return out_keys.tolist(), Points(curve, points.group, words[: len(out_keys)])


def expect_sums(points: Points, entries: Sequence[Entry], keys: list[int], sums: Points) -> None:
    assert keys == sorted(keys)
    assert set(keys) == {key for key, _ in entries}
    assert sums_of(sums, [(key, i) for i, key in enumerate(keys)]) == sums_of(points, entries)


def random_entries(rng: random.Random, n: int, keys: int, rows: Sequence[int]) -> list[Entry]:
    found = [(rng.randrange(keys), rng.choice(rows) | rng.choice([0, MINUS])) for _ in range(n)]
    return sorted(found, key=lambda entry: entry[0])


def test_random_lists(curve: Curve, group: str) -> None:
    """Equal, opposite and infinite neighbours are common among forty points."""
    rng, points = random.Random(7), pool(curve.name, group)
    entries = random_entries(rng, 1501, 90, range(40))
    keys, sums = run(points, entries)
    expect_sums(points, entries, keys, sums)
    assert len(keys) < 3 * 90


def test_every_kind_of_pair(curve: Curve, group: str) -> None:
    """One pair a key: O + O, O + P, P + O, P + P, P - P, signs, and coordinates that are zero."""
    zero = (0,) * (curve.coordinates(group) // 2)
    generator = curve.g1 if group == "g1" else curve.g2
    x, y = generator[: len(zero)], generator[len(zero) :]
    on_axis: list[Affine] = [(*zero, *y), (*x, *zero), (*zero, *x)]
    points = Points.concatenate(
        [pool(curve.name, group)[:5], Points.from_affine(curve, group, on_axis)]
    )
    rows = [row | sign for row in range(len(points)) for sign in (0, MINUS)][1:]
    entries = [
        (key, row)
        for key, pair in enumerate((left, right) for left in rows for right in rows)
        for row in pair
    ]
    keys, sums = run(points, entries, spare=600, tuning=Tuning(390, 1 << 13, 64, 3))
    assert keys == list(range(len(rows) ** 2))
    expect_sums(points, entries, keys, sums)


@pytest.mark.parametrize("n", [2, 3, 127, 128, 129, 1000])
def test_one_key_has_all(curve: Curve, n: int) -> None:
    rng, points = random.Random(n), pool(curve.name, "g1")
    entries = [(17, rng.randrange(40) | rng.choice([0, MINUS])) for _ in range(n)]
    keys, sums = run(points, entries, spare=3000)
    expect_sums(points, entries, keys, sums)
    assert len(keys) <= n // 8 + 2


def test_equal_and_opposite_points_only(curve: Curve) -> None:
    """Lists of P alone, of P and -P, of infinity: every round has tangents or sums that are infinity."""
    points = pool(curve.name, "g1")
    lists = [[5] * 64, [5, 5 | MINUS] * 32, [0] * 64, [0, 6] * 32, [1, 2] * 32, [3, 4] * 32]
    entries = [(key, row) for key, rows in enumerate(lists) for row in rows]
    keys, sums = run(points, entries, spare=2000)
    expect_sums(points, entries, keys, sums)


LENGTHS = [1, 2, 30, 31, 32, 33, 34, 1, 1, 3, 3, 64, 65, 2, 1]


@pytest.mark.parametrize(
    "lengths",
    [
        LENGTHS * 4,
        [*LENGTHS, 4096 - sum(LENGTHS) - 1, 7, *LENGTHS],  # seven go on in the second block from an odd place
        [*LENGTHS, 4096 - sum(LENGTHS) - 2, 2, *LENGTHS],
        [4095, 33, *LENGTHS],
        pytest.param([1, 8199, *LENGTHS, 4090, 3], marks=pytest.mark.slow),
        pytest.param([4095 - 40, 6, 9000, 1, 1, 1], marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_half_of_each_key_is_left(lengths: list[int]) -> None:
    """Wherever its entries lie, in one block or across several."""
    rng, points = random.Random(9), pool("bn254", "g1")
    entries = [
        (key, rng.randrange(40) | rng.choice([0, MINUS]))
        for key, length in enumerate(lengths)
        for _ in range(length)
    ]
    tuning = Tuning(1 << 20, 1 << 16, 64, 8, least_rounds=2)
    keys, sums = run(points, entries, tuning=tuning, width=7)
    expect_sums(points, entries, keys, sums)
    assert [keys.count(key) for key in range(len(lengths))] == [-(-n // 4) for n in lengths]


@pytest.mark.parametrize("n", [0, 1, 2, 500])
def test_count_below_capacity(curve: Curve, n: int) -> None:
    """What lies past the count is not read: rubbish there would be rows out of range."""
    rng, points = random.Random(n), pool(curve.name, "g1")
    entries = random_entries(rng, n, 30, range(40))
    keys, sums = run(points, entries, spare=700)
    expect_sums(points, entries, keys, sums)


def test_chunks(curve: Curve, group: str) -> None:
    """Keys go on across the edges of chunks; the last chunks find nothing left."""
    rng, points = random.Random(3), pool(curve.name, group)
    entries = random_entries(rng, 1203, 40, range(40))
    entries = sorted(entries + [(11, 9)] * 300, key=lambda entry: entry[0])
    keys, sums = run(points, entries, spare=600, tuning=Tuning(1, 256, 64, 2), width=3)
    expect_sums(points, entries, keys, sums)
    assert len(keys) < len(entries) // 3


def test_several_inversions_of_a_block(curve: Curve) -> None:
    """2000 pairs for the 1536 or 1024 threads of the emulated machine, one at a time."""
    rng, points = random.Random(5), pool(curve.name, "g1")
    entries = random_entries(rng, 4000, 8, range(1, 40))
    keys, sums = run(points, entries, tuning=Tuning(1, 1 << 13, 64, 1))
    expect_sums(points, entries, keys, sums)


def test_blocks_that_take_turns(curve: Curve) -> None:
    """More than 32 pairs a thread: blocks begin with steps of different lengths; 40 at most between inversions."""
    rng, points = random.Random(6), pool(curve.name, "g1")
    entries = random_entries(rng, 70000 if curve.fp_words == 4 else 48000, 3, range(1, 40))
    tuning = Tuning(20000, 1 << 17, 64, 40)
    keys, sums = run(points, entries, tuning=tuning, processors=1)
    expect_sums(points, entries, keys, sums)


@pytest.mark.parametrize("capacity", [0, 1, 2, 255, 256, 257, 1000])
def test_chunks_cover_the_entries(capacity: int) -> None:
    """Even, no longer than was asked for, and not one too many."""
    shape = Shape.of(WindowPlan.of(CURVES["bn254"], 2), capacity, 256, Tuning(1))
    assert shape.chunk % 2 == 0
    assert shape.chunk <= 256
    assert (shape.chunks - 1) * shape.chunk < max(capacity, 1) <= max(shape.chunks * shape.chunk, 1)


class Watched(EmulatedMachine):
    """Remembers how much was taken at once."""

    peak = 0

    def alloc(self, nbytes: int) -> Memory:
        memory = super().alloc(nbytes)
        self.peak = max(self.peak, self.used)
        return memory


def test_memory_is_what_was_said(curve: Curve, group: str) -> None:
    """The rounds run in the bytes of their shape, and take shorter chunks where there is less."""
    machine, n = Watched(), 3000
    plan, kernels = WindowPlan.of(curve, 3), Kernels(machine, curve, group)
    shape = Shape.of(plan, n, SMALL.chunk, SMALL)
    needed = kernels.bytes(shape, SMALL.depth)
    half = choose_shape(kernels, plan, n, needed - 1, SMALL)
    assert half is not None
    assert half.chunk < shape.chunk
    assert choose_shape(kernels, plan, n, 1000, SMALL) is None
    digits = Digits(plan, machine.alloc(4 * n), machine.alloc(4 * n), machine.alloc(8), n)
    machine.fill(digits.count, 0)
    before, none = machine.used, machine.alloc(0)
    machine.limit = before + 2 * needed + 500  # of which 500 are reserved and half is left
    points, short = shorten(machine, curve, group, none, digits, 500, SMALL)
    assert short.capacity == shape.result
    assert 0.7 * needed < machine.peak - before <= needed
    del points, short
    assert machine.used == before
    machine.limit -= 2
    _, short = shorten(machine, curve, group, none, digits, 500, SMALL)
    assert short.capacity == half.result


def test_short_lists_stay(curve: Curve) -> None:
    """Fewer pairs than a round is worth: what was given comes back, and no kernel runs."""
    machine, plan = EmulatedMachine(), WindowPlan.of(curve, 8)
    none = machine.alloc(0)
    digits = Digits(plan, none, none, none, 1 << 20)
    points, same = shorten(machine, curve, "g1", none, digits, 0)
    assert same is digits
    assert points is none
    assert not machine.launches


@pytest.mark.parametrize("kind", ["random", "witness"])
def test_whole_sums_with_rounds(curve: Curve, group: str, kind: str) -> None:
    """Digits, rounds, slices and reduction: the sum that the points' logarithms give, which the bench checks."""
    machine = EmulatedMachine()
    given = inputs(machine, curve, group, 150, kind, WindowPlan.of(curve, 5), 1)
    ways = {"rounds": Tuning(50, 1 << 12, 64, 4)}
    rows = list(measure(machine, curve, group, given, ways, 1, True))
    assert [row.name for row in rows] == ["slices", "rounds"]
    assert "tree_add 0" in rows[1].stages
    assert "tree_add 0" not in rows[0].stages
    wrong = given._replace(expected=bytes(len(given.expected)))
    with pytest.raises(KernelError, match="slices: the sum is not that"):
        list(measure(machine, curve, group, wrong, ways, 1, False))
