"""Bucket sums on the emulator: sorted entries in, one point out, against discrete logarithms and py_ecc."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk import _core
from cuzk.backends.cuda.digits import Digits, sort_digits
from cuzk.backends.cuda.lines import by_column, by_row
from cuzk.backends.cuda.machine import Memory, ceil
from cuzk.backends.cuda.sums import Group, fill_buckets, start_sum, sum_bytes
from cuzk.backends.cuda.tree import Tuning
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve
from cuzk.errors import OutOfMemory
from cuzk.vectors import Affine, Points, Scalars
from emulator import EmulatedMachine
from reference import Group as Law
from test_msm import expected, pool

Entry = tuple[int, int, bool]  # key, row, minus
SIGN = 1 << 31


def plan_of(bits: int, width: int) -> WindowPlan:
    return WindowPlan(bits, width, bits // width + 1)


def put(machine: EmulatedMachine, array: NDArray[Any]) -> Memory:
    memory = machine.alloc(array.nbytes)
    machine.upload(memory, array)
    return memory


def sorted_digits(
    machine: EmulatedMachine,
    plan: WindowPlan,
    entries: Sequence[Entry],
    capacity: int | None = None,
) -> Digits:
    """Entries as the sort leaves them, with rubbish past their count."""
    capacity = max(len(entries) if capacity is None else capacity, 1)
    keys, rows = np.full((2, capacity), 0xDEADBEEF, np.uint32)
    for i, (key, row, minus) in enumerate(sorted(entries, key=lambda entry: entry[0])):
        keys[i], rows[i] = key, row | SIGN * minus
    count = put(machine, np.array([len(entries)], np.uint64))
    return Digits(plan, put(machine, keys), put(machine, rows), count, capacity)


def weight(plan: WindowPlan, key: int) -> int:
    return (key % plan.buckets + 1) << (key // plan.buckets * plan.width)


def total(curve: Curve, group: str, plan: WindowPlan, entries: Sequence[Entry]) -> Affine:
    """sum +- weight(key) * log(row) times the generator."""
    _, logs = pool(curve.name, group)
    weights = [-weight(plan, key) if minus else weight(plan, key) for key, _, minus in entries]
    return expected(curve, group, [logs[row] for _, row, _ in entries], weights)


def found(
    curve: Curve,
    group: str,
    plan: WindowPlan,
    entries: Sequence[Entry],
    *,
    processors: int = 2,
    capacity: int | None = None,
    tuning: Tuning | None = None,
) -> Affine:
    machine = EmulatedMachine()
    machine.processors = processors
    points = put(machine, pool(curve.name, group)[0].words)
    digits = sorted_digits(machine, plan, entries, capacity)
    collect = start_sum(machine, curve, group, points, digits, tuning)
    del digits, points
    kernels = {kernel for kernel, _, _ in machine.launches}
    assert ("place_columns" in kernels) == (tuning is not None)
    assert machine.used == 0
    words = collect()
    return Points(curve, group, words).affine()


def top_buckets(plan: WindowPlan) -> int:
    """Of the last window, those that a digit can reach."""
    return min(plan.buckets, 1 << plan.bits % plan.width)


def random_entries(plan: WindowPlan, n: int, seed: int = 0) -> list[Entry]:
    rng = random.Random(seed)
    keys = (plan.windows - 1) * plan.buckets + top_buckets(plan)
    return [(rng.randrange(keys), rng.randrange(400), rng.random() < 0.5) for _ in range(n)]


@pytest.fixture(params=["g1", "g2"])
def group(request: pytest.FixtureRequest) -> str:
    return str(request.param)


PLAN = plan_of(11, 4)  # three windows of eight buckets


@pytest.mark.parametrize("n", [0, 1, 2, 3, 127, 128, 129, 1000])
def test_sizes(curve: Curve, group: str, n: int) -> None:
    """Around a block of slices and the shortest slice; rows 7, 296, ... are infinity."""
    entries = random_entries(PLAN, n)
    assert found(curve, group, PLAN, entries) == total(curve, group, PLAN, entries)


def test_entries_than_room(curve: Curve, group: str) -> None:
    """The count is the device's: slices are cut by it, not by the capacity."""
    entries = random_entries(PLAN, 700)
    for capacity in (701, 1023, 1024, 1025, 5000):
        assert found(curve, group, PLAN, entries, capacity=capacity) == total(
            curve, group, PLAN, entries
        )


def test_one_bucket_over_all_slices(curve: Curve, group: str) -> None:
    """And one bucket over many slices between short ones; several levels of merging."""
    entries = [(5, i % 400, False) for i in range(1500)]
    machine_slices = Group(EmulatedMachine(), curve, group).slices(1500)
    assert ceil(2 * machine_slices, Group(EmulatedMachine(), curve, group).run_threads()) > 1
    assert found(curve, group, PLAN, entries) == total(curve, group, PLAN, entries)
    entries = random_entries(PLAN, 200) + entries
    assert found(curve, group, PLAN, entries) == total(curve, group, PLAN, entries)


def test_three_levels_of_merging(curve: Curve) -> None:
    """Thousands of slices: a bucket over most of them, one over a block's worth, others within one."""
    n, plan = 40000, WindowPlan.of(curve, 9)
    rng = random.Random(2)
    kinds: list[Callable[[], int]] = [
        lambda: 700,
        lambda: 1200,
        lambda: rng.randrange(plan.total_buckets - plan.buckets),
    ]
    keys = [rng.choices(kinds, [80, 5, 15])[0]() for _ in range(n)]
    entries = [(key, rng.randrange(400), rng.random() < 0.5) for key in keys]
    machine = EmulatedMachine()
    machine.processors = 16
    sums = Group(machine, curve, "g1")
    assert 2 * ceil(2 * sums.slices(n), sums.run_threads()) > sums.run_threads()
    assert found(curve, "g1", plan, entries, processors=16) == total(curve, "g1", plan, entries)


def test_equal_opposite_and_infinite_points_in_a_bucket(curve: Curve, group: str) -> None:
    """In all orders within a slice, across slices, in pieces and folds."""
    rng = random.Random(1)
    for n in (4, 40, 600):
        entries = [
            (rng.choice([0, 1, 9]), rng.choice([3, 3, 7]), rng.random() < 0.5) for _ in range(n)
        ]
        assert found(curve, group, PLAN, entries) == total(curve, group, PLAN, entries)
    nothing = [(k, 3, minus) for k in range(16) for minus in (False, True)]
    assert found(curve, group, PLAN, nothing) is None
    assert found(curve, group, PLAN, [(k, 7, False) for k in range(16)]) is None
    same = [(k, 3, False) for k in range(16)]
    assert found(curve, group, PLAN, same) == total(curve, group, PLAN, same)


@pytest.mark.parametrize(
    ("bits", "width"),
    [(5, 2), (7, 3), (12, 4), (14, 5), (11, 6), (20, 11), (254, 8)],
)
def test_plans(curve: Curve, bits: int, width: int) -> None:
    """Windows of two buckets; a top window of one bucket (12 = 3 * 4), of half of them and of all."""
    plan = plan_of(bits, width)
    last = (plan.windows - 1) * plan.buckets + top_buckets(plan) - 1
    entries = [
        *random_entries(plan, 300),
        (0, 1, False),
        (last, 2, True),
        (plan.buckets - 1, 3, True),
    ]
    assert found(curve, "g1", plan, entries) == total(curve, "g1", plan, entries)


@pytest.mark.parametrize("processors", [1, 3, 132])
def test_any_number_of_processors(curve: Curve, processors: int) -> None:
    entries = random_entries(PLAN, 900)
    assert found(curve, "g1", PLAN, entries, processors=processors) == total(
        curve, "g1", PLAN, entries
    )


@pytest.mark.parametrize("n", [0, 1, 33, 400])
def test_whole_msm(curve: Curve, group: str, n: int) -> None:
    """Scalars in, a point out: what the native core says."""
    machine, words = EmulatedMachine(), pool(curve.name, group)[0].words[:n]
    rng = random.Random(n)
    values = [rng.choice([0, 1, curve.r - 1, rng.randrange(curve.r)]) for _ in range(n)]
    scalars = Scalars.from_ints(curve, values).words if n else np.zeros((0, 4), np.uint64)
    out = np.zeros((1, curve.point_words(group)), np.uint64)
    _core.msm(curve.name, group, words, scalars, None, out, 1)
    plan = WindowPlan.of(curve, 6)
    given = put(machine, scalars)
    digits = sort_digits(machine, curve, given, n, plan, montgomery=False, bit_reversed=False)
    collect = start_sum(machine, curve, group, put(machine, words), digits)
    assert np.array_equal(collect(), out)


def test_lines_of_entries(curve: Curve) -> None:
    """Keys become rows and columns of four buckets; a column has the rows of its own keys."""
    machine, plan, low = EmulatedMachine(), plan_of(23, 6), 2
    entries = random_entries(plan, 700)
    digits = sorted_digits(machine, plan, entries, 1000)
    rows, columns = by_row(machine, curve, digits, low), by_column(machine, curve, digits, low)
    pairs = {}
    for name, lines in (("row", rows), ("column", columns)):
        found = np.empty((2, 1000), np.uint32)
        machine.download(lines.keys, found[0])
        machine.download(lines.rows, found[1])
        assert (np.diff(found[0, :700].astype(np.int64)) >= 0).all()
        pairs[name] = sorted(map(tuple, found[:, :700].T.tolist()))
    named = [(key, row | SIGN * minus) for key, row, minus in entries]
    assert pairs["row"] == sorted((key // 32 * 8 + key % 32 // 4, name) for key, name in named)
    assert pairs["column"] == sorted((key // 32 * 4 + key % 4, name) for key, name in named)
    assert (rows.plan.total_buckets, columns.plan.total_buckets) == (32, 16)


@pytest.mark.parametrize(("bits", "width"), [(7, 3), (12, 4), (14, 5), (11, 6)])
def test_sums_of_lines_without_buckets(curve: Curve, group: str, bits: int, width: int) -> None:
    """After rounds of affine additions; with many entries, with few, with infinite sums among them."""
    plan, tuning = plan_of(bits, width), Tuning(1, chunk=1 << 13, shortest_chunk=64, depth=3)
    for n in (200, 900):
        entries = [*random_entries(plan, n), (1, 3, False), (1, 3, True)]
        assert found(curve, group, plan, entries, tuning=tuning) == total(
            curve, group, plan, entries
        )


def test_every_bucket(curve: Curve, group: str) -> None:
    """Empty ones are infinity, words all zero; the others hold their entries' sum."""
    machine, plan = EmulatedMachine(), plan_of(4, 3)
    points, logs = pool(curve.name, group)
    entries = [e for e in random_entries(plan, 150) if e[0] not in (1, 4)]
    sums = Group(machine, curve, group)
    buckets = fill_buckets(sums, put(machine, points.words), sorted_digits(machine, plan, entries))
    per = curve.coordinates(group) // 2
    words = np.empty((plan.total_buckets, 4 * per, curve.fp_words), np.uint64)
    machine.download(buckets, words)
    for key in range(plan.total_buckets):
        rows = [(row, -1 if minus else 1) for k, row, minus in entries if k == key]
        want = expected(curve, group, [logs[row] for row, _ in rows], [s for _, s in rows])
        if want is None:
            assert not words[key].any()
            continue
        x, y, zz, zzz = Points(curve, group, words[key].reshape(4, -1)).words.reshape(4, -1)
        assert scaled(curve, group, np.hstack([x, y])[None], np.hstack([zz, zzz])[None]) == want


def scaled(curve: Curve, group: str, xy: NDArray[np.uint64], z: NDArray[np.uint64]) -> Affine:
    """X / ZZ, Y / ZZZ in Python integers."""
    law, point, scale = (
        Law(curve.p),
        Points(curve, group, xy).affine(),
        Points(curve, group, z).affine(),
    )
    assert point is not None
    assert scale is not None
    if group == "g1":
        return tuple(n * pow(d, -1, curve.p) % curve.p for n, d in zip(point, scale, strict=True))
    pairs = [law.div((point[i], point[i + 1]), (scale[i], scale[i + 1])) for i in (0, 2)]
    return (*pairs[0], *pairs[1])


def test_memory_plan(curve: Curve, group: str) -> None:
    """What a sum takes at its height is what sum_bytes says."""
    for n, plan in ((3000, plan_of(11, 4)), (50, plan_of(20, 9))):
        machine = EmulatedMachine()
        points = put(machine, pool(curve.name, group)[0].words)
        digits = sorted_digits(machine, plan, random_entries(plan, n))
        before = machine.used
        planned = sum_bytes(machine, curve, group, plan, digits.capacity)
        machine.limit = before + planned
        start_sum(machine, curve, group, points, digits)()
        machine.limit = before + planned * 9 // 10
        with pytest.raises(OutOfMemory):
            start_sum(machine, curve, group, points, digits)
