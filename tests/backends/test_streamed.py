"""Sums over points in host memory, in every form and number of batches, against the native core's unbatched ones."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from test_cuda_msm import by_cpu, some_points, some_scalars

from cuzk.backends import Buffer
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend, device, kept
from cuzk.backends.cuda import sums as sums_module
from cuzk.backends.cuda.batches import Sizes
from cuzk.backends.cuda.buffers import Bases
from cuzk.backends.cuda.digits import Digits
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.backends.cuda.msm import Sums
from cuzk.backends.cuda.streamed import SMALL_BYTES, Streamed, Streaming
from cuzk.backends.cuda.sums import Group
from cuzk.backends.cuda.transfers import CHOICES
from cuzk.backends.cuda.tree import Tuning
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import OutOfMemory
from cuzk.vectors import Points, Scalars
from emulator import EmulatedMachine
from emulator.driver import LONG, FakeDriver, install

FORMS = CHOICES["batches"]
EVEN = Sizes(1e-9, 1.0, 50)
ROUNDS = Tuning(least_pairs=1, chunk=1 << 10, shortest_chunk=1 << 8)
EIGHT = 8  # points of a batch


class Counting(EmulatedMachine):
    """Knows the most memory that was ever taken."""

    most = 0
    _main: Counting

    def alloc(self, nbytes: int) -> Memory:
        memory = super().alloc(nbytes)
        self._main.most = max(self._main.most, self.used)
        return memory


class Case:
    """A backend whose sums over host points go in batches of ``longest`` points."""

    def __init__(
        self, machine: Machine, curve: Curve, form: str, longest: int = EIGHT, *, pin: bool = True
    ) -> None:  # fmt: skip
        self.machine = machine
        self.backend = CudaBackend(curve, machine)
        sizes = Sizes(1e-9, 1.0, longest)  # all of one length, the last one shorter
        self.streamed = Streamed(machine, curve, Streaming(form, sizes))
        self.sums = Sums(machine, curve, 1, longest, self.streamed)
        self.pin = pin

    def bases(self, points: Points) -> Buffer:
        """In host memory, its pages locked."""
        width = points.words.shape[1]
        pages = np.empty((mmap.PAGESIZE, width), np.uint64)  # more than a page of bytes
        pages[: len(points)] = points.words
        points = Points(points.curve, points.group, pages[: len(points)])
        bases = Bases(points, pages=self.machine.pin(pages) if self.pin else None)
        return Buffer(points.curve, points.group, len(points), True, bases)

    def start(self, points: Points, scalars: Scalars, wires: object = None) -> Callable[[], Any]:
        return self.sums.start(self.bases(points), self.backend.put(scalars), wires)

    def sum(self, points: Points, scalars: Scalars, wires: object = None) -> list[int]:
        return list(self.start(points, scalars, wires)()[0])


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("curve", "group", "n"),
    [(BN254, "g1", n) for n in (0, 8, 9, 20)]
    + [(BLS12_381, "g2", 20)]
    + [pytest.param(BLS12_381, "g1", n, marks=pytest.mark.slow) for n in (0, 1, 8, 9, 16, 24, 35)]
    + [pytest.param(BN254, "g1", n, marks=pytest.mark.slow) for n in (1, 16, 24, 35)]
    + [pytest.param(BN254, "g2", n, marks=pytest.mark.slow) for n in (8, 20)],
)
def test_batches(curve: Curve, group: str, n: int, form: str) -> None:
    """None, one, two, three and five; infinities, equal points, zeros, ones and minus ones are among them."""
    points, scalars = some_points(curve, group, n), some_scalars(curve, max(n, 1))
    machine = EmulatedMachine(1 << 26)
    wires = range(n)
    assert Case(machine, curve, form).sum(points, scalars, wires) == by_cpu(points, scalars, wires)
    assert [name for name, _, _ in machine.launches].count("recode") == -(-n // EIGHT)
    gc.collect()
    assert not machine.pins


@pytest.mark.parametrize(
    ("form", "in_montgomery"),
    [
        ("kept", False),
        ("deferred", True),
        pytest.param("kept", True, marks=pytest.mark.slow),
        pytest.param("each", False, marks=pytest.mark.slow),
    ],
)
def test_wires(form: str, in_montgomery: bool) -> None:
    curve, n = BN254, 17
    points = some_points(curve, "g1", n)
    scalars = some_scalars(curve, n + 8, montgomery=in_montgomery)
    repeated = np.array([5, 3, 3, 24] * 4 + [0], np.uint32)
    for wires in (
        range(n + 7, 7, -1),
        np.arange(5, n + 5, dtype=np.uint32),
        repeated,
    ):
        case = Case(EmulatedMachine(1 << 26), curve, form)
        assert case.sum(points, scalars, wires) == by_cpu(points, scalars, wires)


def test_a_bit_reversed_vector(form: str) -> None:
    """As h is: a transform's result."""
    curve = BN254
    values, points = some_scalars(curve, 16, montgomery=True), some_points(curve, "g1", 15)
    case = Case(EmulatedMachine(1 << 26), curve, form, 4)
    h = case.backend.ntt(case.backend.put(values), curve.root_of_unity(4))
    natural = case.backend.get(h)
    assert isinstance(natural, Scalars)
    bases = Buffer(curve, "g1", 15, True, Bases(points))
    assert list(case.sums.start(bases, h, range(15))()[0]) == by_cpu(points, natural, range(15))


@pytest.mark.parametrize("value", [0, 1, -1])
def test_equal_scalars(form: str, value: int) -> None:
    """One bucket is added to by every batch, from the middle and the ends of slices."""
    curve, n = BN254, 100
    points = some_points(curve, "g1", n)
    scalars = Scalars.from_ints(curve, [value % curve.r] * n)
    case = Case(EmulatedMachine(1 << 27), curve, form, 40)
    assert case.sum(points, scalars) == by_cpu(points, scalars)


def test_equal_points(form: str) -> None:
    """A batch adds to a bucket the point that it holds, or its opposite."""
    curve = BN254
    first = some_points(curve, "g1", 1)
    points = Points(curve, "g1", np.repeat(first.words, 24, axis=0))
    for values in ([3] * 24, [3, curve.r - 3] * 12, [3] * 8 + [curve.r - 3] * 16):
        scalars = Scalars.from_ints(curve, values)
        found = Case(EmulatedMachine(1 << 26), curve, form).sum(points, scalars)
        assert found == by_cpu(points, scalars)


@pytest.mark.parametrize("longest", [40, 150])
def test_growing_batches(longest: int, form: str) -> None:
    n = 150
    points, scalars = some_points(BN254, "g1", n), some_scalars(BN254, n)
    case, how = (
        Case(EmulatedMachine(1 << 27), BN254, form, longest),
        Streaming(form, Sizes(1 / 7, 2.0, 4)),
    )
    case.streamed = case.sums.streamed = Streamed(case.machine, BN254, how)
    assert case.sum(points, scalars) == by_cpu(points, scalars)


def kept_in_lists(machine: EmulatedMachine) -> bool:
    """Or else in buckets."""
    names = [name for name, _, _ in machine.launches]
    return "merge_entries" in names and "accumulate_kept" not in names


@pytest.mark.parametrize(
    ("curve", "group", "n"),  # two, three, five batches
    [(BLS12_381, "g1", 100), (BLS12_381, "g1", 220), (BN254, "g2", 150)]
    + [
        pytest.param(c, g, 220, marks=pytest.mark.slow)
        for c in (BN254, BLS12_381)
        for g in ("g1", "g2")
    ],
)
def test_lists_kept_across_batches(curve: Curve, group: str, n: int) -> None:
    points = some_points(curve, group, n)
    for scalars in (some_scalars(curve, n), Scalars.from_ints(curve, [7] * n)):
        machine = EmulatedMachine(1 << 28)
        case = Case(machine, curve, "kept", 50)
        case.streamed = case.sums.streamed = Streamed(
            machine, curve, Streaming(sizes=EVEN, tuning=ROUNDS)
        )
        assert case.sum(points, scalars) == by_cpu(points, scalars)
        assert kept_in_lists(machine)


def test_buckets_where_lists_have_no_room() -> None:
    """From the first batch on, or for those that room is short for when their turn comes."""
    curve, n = BLS12_381, 150
    points, scalars = some_points(curve, "g1", n), some_scalars(curve, n)
    machine = EmulatedMachine(1 << 28)
    case = Case(machine, curve, "kept", 50)
    case.sums.streamed = Streamed(machine, curve, Streaming(sizes=EVEN, tuning=ROUNDS, left=None))
    assert case.sum(points, scalars) == by_cpu(points, scalars)
    assert not kept_in_lists(machine)


@pytest.mark.parametrize("bad", [[0], [2], [0, 2]])
def test_some_batches_in_lists_and_some_in_buckets(
    bad: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    n, machine = 150, EmulatedMachine(1 << 28)
    points, scalars = some_points(BN254, "g1", n), some_scalars(BN254, n)
    case = Case(machine, BN254, "kept", 50)
    case.sums.streamed = Streamed(machine, BN254, Streaming(sizes=EVEN, tuning=ROUNDS))
    asked = list[int]()

    def shortened(
        sums: Group, points: Memory, digits: Digits, tuning: Tuning, room: Any = None
    ) -> Any:
        if room is not None:
            asked.append(len(asked))
            if asked[-1] in bad:
                return points, digits
        return sums_module.shortened(sums, points, digits, tuning, room)

    monkeypatch.setattr(kept, "shortened", shortened)
    assert case.sum(points, scalars) == by_cpu(points, scalars)
    assert asked == [0, 1, 2]
    assert not kept_in_lists(machine)


def test_sums_one_behind_the_other(form: str) -> None:
    """Through the same slots, all queued before the first is waited for."""
    curve, sizes = BN254, (("g1", 10), ("g2", 9), ("g1", 17))
    case = Case(EmulatedMachine(1 << 27), curve, form)
    given = [(some_points(curve, group, n), some_scalars(curve, n)) for group, n in sizes]
    started = [case.start(*each) for each in given]
    assert [list(wait()[0]) for wait in started] == [by_cpu(*each) for each in given]


@pytest.mark.parametrize("form", ["kept", pytest.param("deferred", marks=pytest.mark.slow)])
def test_a_sum_behind_another_goes_in_long_batches(form: str) -> None:
    """Its points are copied while the other is computed; not where that one was taken, or dropped, before, as
    with the other forms in any case.
    """
    machine, n = EmulatedMachine(1 << 27), 40
    case = Case(machine, BN254, form, n)
    case.sums.streamed = Streamed(machine, BN254, Streaming(form, Sizes(1e-9, 1.0, EIGHT)))
    given = some_points(BN254, "g1", n), some_scalars(BN254, n)
    expected = by_cpu(*given)

    def batches(*, keep: bool) -> int:
        """Of a second sum."""
        first = case.start(*given)
        if not keep:
            del first
        before = [name for name, _, _ in machine.launches].count("recode")
        second = case.start(*given)
        assert list(second()[0]) == expected
        if keep:
            assert list(first()[0]) == expected
        return [name for name, _, _ in machine.launches].count("recode") - before

    assert batches(keep=True) == (1 if form == "kept" else 5)
    assert batches(keep=False) == 5
    case.sums.longest = 16
    assert batches(keep=True) == (3 if form == "kept" else 5)


@pytest.mark.parametrize(("before", "batches"), [(40, 1), (30, 1), (19, 5)])
def test_a_sum_behind_a_resident_one(before: int, batches: int) -> None:
    """It is copied while that one is computed, where that takes long enough: half as many finite points or more."""
    machine, n = EmulatedMachine(1 << 27), 40
    case = Case(machine, BN254, "kept", n)
    case.sums.streamed = Streamed(machine, BN254, Streaming("kept", Sizes(1e-9, 1.0, EIGHT)))
    points, scalars = some_points(BN254, "g1", n), some_scalars(BN254, n)
    there = Points(BN254, "g1", points.words[:before].copy())
    resident = case.backend.put(there)
    first = case.sums.start(resident, case.backend.put(scalars[:before]), None)
    recoded = [name for name, _, _ in machine.launches].count("recode")
    second = case.start(points, scalars)
    assert [name for name, _, _ in machine.launches].count("recode") - recoded == batches
    assert list(second()[0]) == by_cpu(points, scalars)
    assert list(first()[0]) == by_cpu(there, scalars[:before])


class Ahead:
    """In place of a driver's dice: some streams do all that they can at once, the others when they are waited for."""

    CHOICES: ClassVar[dict[str, Callable[[int], bool]]] = {
        "last": lambda number: number >= 3,
        "copies": lambda number: number != 0,
        "compute": lambda number: number == 0,
        "odd": lambda number: number % 2 == 1,
        "even": lambda number: number % 2 == 0,
    }

    def __init__(self, name: str) -> None:
        self._chosen = self.CHOICES[name]
        self._next = 0

    def sample(self, streams: list[Any], _count: int) -> list[Any]:
        """In their order, so that numbers can be told."""
        self._next = 0
        return streams

    def randrange(self, most: int) -> int:
        """Steps that the next stream may do; asked for its mood, it stays as it is."""
        if most == LONG:
            return 1
        self._next += 1
        return 1 << 30 if self._chosen(self._next - 1) else 0


@pytest.fixture(
    params=[
        *list(Ahead.CHOICES)[:2],
        *(pytest.param(each, marks=pytest.mark.slow) for each in list(Ahead.CHOICES)[2:]),
    ]
)
def eager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = FakeDriver()
    driver._dice = Ahead(request.param)
    return install(driver, monkeypatch)


@pytest.mark.parametrize("pinned", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_streams_that_run_ahead(eager: FakeDriver, form: str, pinned: bool) -> None:
    """Two sums, so that slots are filled again: a guard that is missing gives a wrong sum in one of the ways."""
    curve, n = BN254, 24
    case = Case(device.open_machine(0, curve), curve, form, pin=pinned)
    given = [(some_points(curve, group, n), some_scalars(curve, n)) for group in ("g1", "g1")]
    started = [case.start(*each) for each in given]
    assert [list(wait()[0]) for wait in started] == [by_cpu(*each) for each in given]
    del case, started
    gc.collect()
    assert not eager.registered
    assert not eager.pinned
    assert not eager.used


def test_scalars_that_are_still_computed(eager: FakeDriver, form: str) -> None:
    """As h is when its sum is asked for: the second stream waits for it, too."""
    curve = BN254
    values, points = some_scalars(curve, 16, montgomery=True), some_points(curve, "g1", 16)
    cpu = CpuBackend(curve, 1)
    h = cpu.get(cpu.ntt(cpu.put(values), curve.root_of_unity(4)))
    assert isinstance(h, Scalars)
    expected = by_cpu(points, h)
    case = Case(device.open_machine(0, curve), curve, form)
    given, bases = case.backend.put(values), case.bases(points)
    found = case.sums.start(bases, case.backend.ntt(given, curve.root_of_unity(4)), None)()
    assert list(found[0]) == expected
    assert "cuLaunchKernel" in eager.calls


@pytest.mark.parametrize("longest", [10_000, 300])
@pytest.mark.parametrize("group", ["g1", pytest.param("g2", marks=pytest.mark.slow)])
def test_memory_that_is_planned(longest: int, group: str, form: str) -> None:
    """A sum takes no more, and not much less."""
    n, machine = 1000, Counting(1 << 27)
    points, scalars = some_points(BN254, group, n), some_scalars(BN254, n)
    case = Case(machine, BN254, form, longest)
    how = Streaming(form, Sizes(1 / 7, 2.0, 100))
    case.sums.streamed = Streamed(machine, BN254, how)
    before = machine.used + scalars.words.nbytes
    assert case.sum(points, scalars) == by_cpu(points, scalars)
    ring = case.sums.ring_bytes(group, n, min(longest, n))
    planned = ring + case.sums.streamed_bytes(group, n, min(longest, n))
    assert (planned - SMALL_BYTES) / 4 < machine.most - before <= planned
    gc.collect()
    assert machine.used - before + scalars.words.nbytes <= ring


def test_memory_that_is_not_there(form: str) -> None:
    """Shorter batches from then on; nothing stays taken where even those do not fit."""
    n, machine = 1500, EmulatedMachine(1 << 26)
    points, scalars = some_points(BN254, "g1", n), some_scalars(BN254, n)
    case = Case(machine, BN254, form, n)
    held = machine.alloc(machine.free_bytes() - (1250 << 10))
    assert case.sum(points, scalars) == by_cpu(points, scalars)
    assert 0 < machine.refused < 6
    assert case.sums.longest is not None
    assert case.sums.longest < n
    case.streamed.drop()
    gc.collect()
    more = machine.alloc(machine.free_bytes() - (60 << 10))
    before = machine.used
    with pytest.raises(OutOfMemory):
        case.sum(points, scalars)
    gc.collect()
    assert machine.used == before
    del held, more
    assert case.sum(points, scalars) == by_cpu(points, scalars)
