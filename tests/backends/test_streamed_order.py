"""In what order a streamed sum is done: on the device, where streams run ahead as far as they may, and on the host."""

# ruff: noqa: N802 - names are the driver's
from __future__ import annotations

import ctypes
import itertools
from collections import Counter
from typing import Any

import pytest
from test_cuda_msm import by_cpu, some_points, some_scalars
from test_streamed import EIGHT, FORMS, Ahead, Case

from cuzk.backends.cuda import device
from cuzk.curves import BN254
from emulator import library
from emulator.driver import FakeDriver, install

Block = tuple[int, int]  # where it begins, and the how manieth there: addresses are given again
BATCHES = [
    *(pytest.param(n, marks=pytest.mark.slow) for n in (8, 16, 24)),
    36,
]  # one, two, three; five


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Traced(FakeDriver):
    """Writes down what is queued and done: by the host, and by streams when they come to it."""

    def __init__(self, **how: int) -> None:
        super().__init__(**how)
        self.host: list[tuple[str, int]] = []  # what the host did, and to which stream
        self.done: list[tuple[str, int, set[Block]]] = []  # what a stream did, with which blocks
        self.results: list[
            tuple[int, bool]
        ] = []  # where results go on the host, and whether that is pinned
        self._times: Counter[int] = Counter()  # how often an address was

    def _given(self, piece: Any) -> Any:
        self._times[piece.address] += 1
        return super()._given(piece)

    def _cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: Any) -> Any:
        self.note("copy", stream, [to])
        return super()._cuMemcpyHtoDAsync(to, source, nbytes, stream)

    def _cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, stream: Any) -> Any:
        self.note("fetch", stream, [])
        self.results.append((to, to in self.pinned))
        return super()._cuMemcpyDtoHAsync(to, source, nbytes, stream)

    def _cuLaunchKernel(self, function: Any, *rest: Any) -> Any:
        stream, places = rest[7], rest[8]
        count = library(function.unit)[f"parameters_{function.name}"]()
        words = [
            ctypes.c_uint64.from_address(a).value
            for a in (ctypes.c_uint64 * count).from_address(places)
        ]
        self.note(function.name, stream, words)
        return super()._cuLaunchKernel(function, *rest)

    def _cuEventSynchronize(self, event: Any) -> Any:
        self.host.append(("wait", self.streams.index(event.stream)))
        return super()._cuEventSynchronize(event)

    def note(self, what: str, stream: Any, words: list[int]) -> None:
        found = {
            (a, self._times[a])
            for a, block in self.blocks.items()
            for w in words
            if a <= w < a + block.nbytes - 256
        }
        number = self.streams.index(stream)
        self.host.append((what, number))
        stream.waiting.append(lambda: self.done.append((what, number, found)))


def traced(
    monkeypatch: pytest.MonkeyPatch, form: str, n: int, ahead: str = "copies"
) -> tuple[Traced, list[Block]]:
    """A sum of n points, eight a batch; its driver, and the slots' blocks."""
    driver = Traced()
    driver._dice = Ahead(ahead)
    install(driver, monkeypatch)
    case = Case(device.open_machine(0, BN254), BN254, form)
    points, scalars = some_points(BN254, "g1", n), some_scalars(BN254, n)
    buffer = case.backend.put(scalars)
    driver.host.clear()
    driver.done.clear()
    driver.results.clear()
    found = case.sums.start(case.bases(points), buffer, None)()
    assert list(found[0]) == by_cpu(points, scalars)
    slots = list(
        dict.fromkeys(
            block for what, _, blocks in driver.done if what == "copy" for block in blocks
        )
    )
    return driver, slots


@pytest.mark.parametrize("n", BATCHES)
@pytest.mark.parametrize("ahead", ["copies", pytest.param("compute", marks=pytest.mark.slow)])
def test_order_on_the_device(
    form: str, n: int, ahead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copy i before compute i, compute i - 2 before copy i: a slot is filled and read in turn."""
    driver, slots = traced(monkeypatch, form, n, ahead)
    count = -(-n // EIGHT)
    assert len(slots) == min(count, 2)
    for number, slot in enumerate(slots):
        turns = [what == "copy" for what, _, blocks in driver.done if slot in blocks]
        runs = [filled for filled, _ in itertools.groupby(turns)]
        assert runs == [True, False] * len(range(number, count, 2))
    streams = {
        stream for what, stream, blocks in driver.done if what == "copy" and blocks & set(slots)
    }
    computing = [stream for what, stream, _ in driver.done if what.startswith("accumulate")]
    assert len(streams) == 1
    assert not streams & set(computing)
    lanes = list(dict.fromkeys(computing))
    alternating = [lanes[i % len(lanes)] for i in range(count)]
    assert [stream for stream, _ in itertools.groupby(computing)] == (
        alternating if form == "deferred" and count > 1 else lanes
    )
    assert len(lanes) == (2 if form == "deferred" and count > 1 else 1)


@pytest.mark.parametrize("n", BATCHES)
def test_order_on_the_host(form: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch i - 1 is taken when batch i was queued, the last one from its own stream; or each at once, or one sum."""
    driver, _ = traced(monkeypatch, form, n)
    count = -(-n // EIGHT)
    results, seen = [], list[tuple[str, int]]()
    for what, stream in driver.host:
        if what == "fetch":
            results.append(stream)
            seen.append(("queued", len(results) - 1))
        elif what == "wait" and stream in results:
            batch = next(
                i for i in range(len(results)) if results[i] == stream and ("taken", i) not in seen
            )
            seen.append(("taken", batch))
    each = [(what, i) for i in range(count) for what in ("queued", "taken")]
    deferred = [("queued", 0)]
    for i in range(1, count):
        deferred += [("queued", i), ("taken", i - 1)]
    deferred.append(("taken", count - 1))
    kept = [("queued", 0), ("taken", 0)]
    assert seen == {"each": each, "deferred": deferred, "kept": kept}[form]
    assert results == [
        results[0] if form != "deferred" or i % 2 == 0 else results[1] for i in range(len(results))
    ]


@pytest.mark.parametrize("ahead", ["copies", pytest.param("compute", marks=pytest.mark.slow)])
def test_no_batch_fills_buckets_that_another_ones_result_is_made_of(
    ahead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a batch is added up in belongs to one stream, whose order is the guard until the result is copied out."""
    driver, slots = traced(monkeypatch, "deferred", 24, ahead)
    kernels = [(what, stream, blocks) for what, stream, blocks in driver.done if what != "copy"]
    summing = [blocks for what, _, blocks in kernels if what.startswith("accumulate")]
    assert len(summing) == 3
    for block in set[Block]().union(*summing) - set(slots):
        assert len({stream for _, stream, blocks in kernels if block in blocks}) == 1


@pytest.mark.parametrize("form", ["kept", "deferred"])
def test_results_come_back_through_pinned_pages(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy to pageable memory may be waited for by the call; of two that are under way each has a buffer."""
    driver, _ = traced(monkeypatch, form, 24)
    assert len(driver.results) == (1 if form == "kept" else 3)
    assert all(pinned for _, pinned in driver.results)
    assert all(one != other for one, other in itertools.pairwise(driver.results))


def test_no_points_are_no_work(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, slots = traced(monkeypatch, form, 0)
    assert (driver.done, driver.host, slots) == ([], [], [])


def test_a_mark_behind_a_sum_is_behind_all_its_batches(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of two batches may be another stream's: a phase's time on the device has it, too."""
    driver = Traced()
    install(driver, monkeypatch)
    machine = device.open_machine(0, BN254)
    case = Case(machine, BN254, form)
    buffer = case.backend.put(some_scalars(BN254, 16))
    collect = case.sums.start(case.bases(some_points(BN254, "g1", 16)), buffer, None)
    machine.wait(machine.mark())
    assert not any(stream.waiting for stream in driver.streams)
    collect()
