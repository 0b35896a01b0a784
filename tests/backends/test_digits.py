"""Sorted digits against Python integers, on the emulator."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk.backends.cuda.digits import (
    Digits,
    Partition,
    WindowPlan,
    choose_plan,
    first_not_canonical,
    select,
    sort_digits,
)
from cuzk.backends.cuda.machine import Memory
from cuzk.backends.cuda.windows import group_cost
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import KernelError
from cuzk.vectors import Scalars
from emulator import EmulatedMachine

NONE = 2**32 - 1


def put(machine: EmulatedMachine, array: NDArray[np.generic]) -> Memory:
    memory = machine.alloc(array.nbytes + 8)
    machine.upload(memory, np.ascontiguousarray(array))
    return memory


def entries(machine: EmulatedMachine, digits: Digits) -> list[tuple[int, int]]:
    count = np.empty(1, np.uint64)
    machine.download(digits.count, count)
    assert count[0] <= digits.capacity
    both = [np.empty(int(count[0]), np.uint32) for _ in range(2)]
    machine.download(digits.keys, both[0])
    machine.download(digits.rows, both[1])
    return list(zip(both[0].tolist(), both[1].tolist(), strict=True))


def expected_entries(plan: WindowPlan, r: int, scalars: list[int]) -> Counter[tuple[int, int]]:
    """Digits by their definition: the residue of what is left in [-(2^(c-1) - 1), 2^(c-1)]."""
    out: Counter[tuple[int, int]] = Counter()
    for i, s in enumerate(scalars):
        negative, left = (s > r - s), min(s, r - s)
        for w in range(plan.windows):
            digit = left % (1 << plan.width)
            if digit > plan.buckets:
                digit -= 1 << plan.width
            left = (left - digit) >> plan.width
            if digit:
                key = w * plan.buckets + abs(digit) - 1
                out[key, i | (negative != (digit < 0)) << 31] += 1
        assert left == 0
    return out


def sorted_entries(
    curve: Curve,
    values: list[int],
    width: int,
    *,
    montgomery: bool = False,
    bit_reversed: bool = False,
    partition: Partition | None = None,
) -> list[tuple[int, int]]:
    machine, plan = EmulatedMachine(), WindowPlan.of(curve, width)
    given = values
    if bit_reversed:
        bits = len(values).bit_length() - 1
        given = [values[int(f"{i:0{bits}b}"[::-1], 2) if bits else 0] for i in range(len(values))]
    scalars = put(machine, Scalars.from_ints(curve, given, montgomery=montgomery).words)
    digits = sort_digits(
        machine, curve, scalars, len(values), plan,
        montgomery=montgomery, bit_reversed=bit_reversed, partition=partition,
    )  # fmt: skip
    found = entries(machine, digits)
    keys = [key for key, _ in found]
    assert keys == sorted(keys)
    assert Counter(found) == expected_entries(plan, curve.r, values)
    del scalars, digits
    assert machine.used == 0
    return found


def draw(curve: Curve, n: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(curve.r) for _ in range(n)]


def corners(curve: Curve, width: int) -> list[int]:
    """Scalars around r / 2 and r, and with digits at the limits of the windows."""
    r, half = curve.r, 1 << (width - 1)
    plan = WindowPlan.of(curve, width)
    full = [
        sum(d << (width * w) for w in range(plan.windows - 1)) for d in (half, half - 1, half + 1)
    ]
    powers = [1 << k for k in (0, 1, width - 1, width, plan.bits - 1)]
    return [0, 1, 2, r - 1, r - 2, (r - 1) // 2, (r + 1) // 2, *powers, *(x % r for x in full), *(-x % r for x in full)]  # fmt: skip


@pytest.mark.parametrize("width", [2, 3, 5, 7, 8, 11, 13])
def test_corner_scalars(curve: Curve, width: int) -> None:
    sorted_entries(curve, corners(curve, width) + draw(curve, 3, width), width)


@pytest.mark.parametrize("width", [16, 17, 20, 22, 24])
def test_wide_windows(width: int) -> None:
    sorted_entries(BLS12_381, corners(BLS12_381, width), width)


@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33, 513, 1025])
def test_lengths(n: int) -> None:
    found = sorted_entries(BN254, draw(BN254, n, n), 8)
    assert len(found) >= 20 * n


@pytest.mark.parametrize("montgomery", [False, True])
@pytest.mark.parametrize("bit_reversed", [False, True])
@pytest.mark.parametrize("n", [1, 64])
def test_forms_and_orders(curve: Curve, n: int, montgomery: bool, bit_reversed: bool) -> None:
    values = draw(curve, n, 5)
    sorted_entries(curve, values, 9, montgomery=montgomery, bit_reversed=bit_reversed)


@pytest.mark.parametrize("width", [4, 10])
def test_skewed_scalars(width: int) -> None:
    """All in one bucket, half of them, none at all: many segments of one bin."""
    r, n = BN254.r, 200
    cut = Partition(low=3, tile=70, segment=100, portion=250)
    assert len(sorted_entries(BN254, [1] * n, width, partition=cut)) == n
    assert len(sorted_entries(BN254, [r - 1] * n, width, partition=cut)) == n
    assert sorted_entries(BN254, [0] * n, width, partition=cut) == []
    same = draw(BN254, 1, 3) * (n // 2) + draw(BN254, 7, 4) + [0, 1] * 20
    sorted_entries(BN254, same, width, partition=cut)


@pytest.mark.parametrize(("repeated", "segment", "portion"), [(0, 50, 400), (0, 500, 500), (150, 50, 100), (150, 7, 90)])  # fmt: skip
def test_bins_of_one_block_and_of_several(repeated: int, segment: int, portion: int) -> None:
    """Bins that are empty, fit a segment, take several segments of one block, and are shared by blocks."""
    values = draw(BN254, 260, 5) + draw(BN254, 1, 6) * repeated
    cut = Partition(low=4, tile=64, segment=segment, portion=portion)
    found = sorted_entries(BN254, values, 8, partition=cut)
    sizes = Counter(key >> cut.low for key, _ in found)
    assert len(sizes) < WindowPlan.of(BN254, 8).total_buckets >> cut.low
    largest = max(sizes.values())
    assert any(size <= segment for size in sizes.values()) or segment < 10
    assert (largest > portion) == (repeated > 0)
    assert any(segment < size <= portion for size in sizes.values()) == (segment < 100)


@pytest.mark.parametrize("sets", [1, 3])
def test_tables_share_bins(sets: int) -> None:
    """Windows of several tables in the same bins, with rows of their own, some of them left out."""
    machine, plan, n, rng = (
        EmulatedMachine(),
        WindowPlan.of(BN254, 9, sets=sets),
        90,
        random.Random(2),
    )
    values = draw(BN254, n - 40, 8) + [3] * 40
    row_of = np.array([rng.choice([NONE, 5 * i]) for i in range(n)], np.uint32)
    digits = sort_digits(
        machine, BN254, put(machine, Scalars.from_ints(BN254, values).words), n, plan,
        montgomery=False, bit_reversed=False, row_of=put(machine, row_of), stride=5 * n,
        partition=Partition(low=5, tile=50, segment=40, portion=100),
    )  # fmt: skip
    found = entries(machine, digits)
    assert [key for key, _ in found] == sorted(key for key, _ in found)
    expected: Counter[tuple[int, int]] = Counter()
    alone = expected_entries(WindowPlan.of(BN254, 9), BN254.r, values)
    for key, row in alone:
        window, bucket = divmod(key, plan.buckets)
        table, own = divmod(window, sets)
        index, sign = row % 2**31, row >> 31
        if row_of[index] != NONE:
            at = int(row_of[index]) + table * 5 * n
            expected[own * plan.buckets + bucket, at | sign << 31] += 1
    assert Counter(found) == expected


def test_default_cut_in_many_tiles() -> None:
    sorted_entries(BN254, draw(BN254, 1100, 1) + [5] * 400, 14)


@pytest.mark.parametrize("sets", [None, 1, 3])
def test_cut_by_size(sets: int | None) -> None:
    """Large tiles in many scalars, one for each block in few; shared memory holds them."""
    for width in range(8, 25):
        plan = WindowPlan.of(BLS12_381, width, sets=sets)
        for n in (0, 1, 1 << 12, 1 << 16, 1 << 24, 1 << 27):
            cut = Partition.of(plan, n, processors=132)
            keys, set_bins = 1 << cut.low, 1 << (width - 1 - cut.low)
            assert 1024 <= cut.tile <= 1 << 14  # places in a tile are 16 bits wide
            assert 1024 <= cut.segment <= 36 * 512
            assert 4096 <= cut.portion <= 16 * cut.segment
            assert 3 * (4 * plan.sets * set_bins + 1024) <= 227 << 10
            assert 4 * (2 * set_bins + 1) + 6 * cut.tile <= 112 << 10
            assert 4 * (2 * keys + 1) + 6 * cut.segment <= 112 << 10
            assert cut.low <= 13  # low bits of a key are 16 bits wide
            bin_entries = n * plan.windows // (plan.sets * set_bins)
            assert cut.portion >= min(bin_entries, 16 * cut.segment)
    full = Partition.of(WindowPlan.of(BLS12_381, 20), 1 << 24, 132)
    assert full == Partition(low=9, tile=16224, segment=18431, portion=73724)


def test_refusals() -> None:
    machine, plan = EmulatedMachine(), WindowPlan.of(BN254, 8)
    nothing = machine.alloc(8)
    with pytest.raises(KernelError, match=r"below 2\^32, found 268435456 \* 32: use wider windows"):
        sort_digits(machine, BN254, nothing, 1 << 28, plan, montgomery=False, bit_reversed=False)
    with pytest.raises(KernelError, match=r"2\^k scalars in bit-reversed order, found 6"):
        sort_digits(machine, BN254, nothing, 6, plan, montgomery=False, bit_reversed=True)
    with pytest.raises(
        KernelError, match=r"expected windows for BLS12-381, found some for 253 bits"
    ):
        sort_digits(machine, BLS12_381, nothing, 1, plan, montgomery=False, bit_reversed=False)
    with pytest.raises(KernelError, match=r"found 1 and 254"):
        WindowPlan.of(BN254, 1)
    with pytest.raises(KernelError, match=r"found 8 and 31"):
        WindowPlan(253, 8, 31)


@pytest.mark.parametrize("kept", [0.0, 0.4, 1.0])
def test_select(kept: float) -> None:
    machine, n, rng = EmulatedMachine(), 530, random.Random(7)
    values = draw(BN254, n, 11)
    plan = WindowPlan.of(BN254, 7)
    scalars = put(machine, Scalars.from_ints(BN254, values).words)
    digits = sort_digits(machine, BN254, scalars, n, plan, montgomery=False, bit_reversed=False)
    wires = sorted(rng.sample(range(n), int(kept * n)))
    row_of = np.full(n, NONE, np.uint32)
    row_of[wires] = np.arange(len(wires))
    before = entries(machine, digits)
    chosen = select(machine, BN254, digits, put(machine, row_of), n)
    sign = 1 << 31
    assert entries(machine, chosen) == [
        (key, int(row_of[row % sign]) | row & sign)
        for key, row in before
        if row_of[row % sign] != NONE
    ]
    own = sort_digits(
        machine, BN254, scalars, n, plan,
        montgomery=False, bit_reversed=False, row_of=put(machine, row_of),
    )  # fmt: skip
    assert Counter(entries(machine, own)) == Counter(entries(machine, chosen))


@pytest.mark.parametrize("bad", [(), (0,), (699,), (3, 300, 650)])
def test_first_scalar_not_below_r(curve: Curve, bad: tuple[int, ...]) -> None:
    machine = EmulatedMachine()
    words = Scalars.from_ints(curve, [curve.r - 1] * 700).words.copy()
    for i in bad:
        words[i] = [curve.r >> (64 * k) & (2**64 - 1) for k in range(4)]
    out = np.empty(1, np.uint64)
    machine.download(first_not_canonical(machine, curve, put(machine, words), len(words)), out)
    assert int(out[0]) == min(bad, default=2**64 - 1)


@pytest.mark.parametrize(("log_n", "width"), [(16, 13), (18, 15), (20, 16), (22, 17), (24, 20), (25, 20), (26, 22)])  # fmt: skip
def test_chosen_windows(log_n: int, width: int) -> None:
    """The best widths of the card's limits, computed apart from this code."""
    plan = choose_plan(1 << log_n, BLS12_381, group_cost(BLS12_381, "g1"))
    assert (plan.bits, plan.width) == (254, width)
    assert plan.windows == 254 // width + 1
