"""Copies by threads of the native core: in order, complete, and no thread left behind."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cuzk import _core
from native_threads import native_threads
from until import PATIENCE, until

LONG = (3 << 20) + 5  # worth threads, not a whole number of parts
ALARM = int(PATIENCE)
STAY = 0.02  # seconds for which a thread stays that has nothing to copy


def random(nbytes: int, seed: int = 1) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


def await_none(copier: _core.Copier) -> None:
    """Until its threads have ended by themselves."""
    until(lambda: copier.threads == 0)


def threads_of(copier: _core.Copier, target: NDArray[np.uint8], source: NDArray[np.uint8]) -> tuple[int, set[int]]:  # fmt: skip
    """Of a copy that has begun: how many it has, and all of the process; looked at again where that took too long."""
    for _ in range(1000):
        await_none(copier)
        begun = time.monotonic()
        number = copier.begin(target, source)
        found = copier.threads, native_threads()
        if time.monotonic() - begun < STAY:
            return found
        copier.wait(number)
    raise TimeoutError


@pytest.mark.parametrize("threads", [-1, 1, 2, 5])
@pytest.mark.parametrize("nbytes", [0, 1, (256 << 10) + 1, LONG])
def test_copies_bytes(nbytes: int, threads: int) -> None:
    copier, source, target = _core.Copier(threads), random(nbytes), np.zeros(nbytes + 2, np.uint8)
    number = copier.begin(target[1:-1], source)
    assert copier.wait(number) == number == 1
    assert target.tobytes() == b"\0" + source.tobytes() + b"\0"


def test_what_is_wrong_is_refused() -> None:
    copier, bytes_of = _core.Copier(2), np.zeros(9, np.uint8)
    with pytest.raises(ValueError, match="source: expected 9 bytes, found 8"):
        copier.begin(bytes_of, np.zeros(8, np.uint8))
    with pytest.raises(ValueError, match="target: shares memory with source"):
        copier.begin(bytes_of[1:], bytes_of[:-1])
    with pytest.raises(ValueError, match="target: expected one dimension"):
        copier.begin(bytes_of.reshape(3, 3), np.zeros(9, np.uint8))
    fixed = np.zeros(9, np.uint8)
    fixed.flags.writeable = False
    wrong: list[Any] = [fixed, np.zeros(18, np.uint8)[::2], np.zeros(9, np.int8)]
    for target in wrong:
        with pytest.raises(TypeError):
            copier.begin(target, bytes_of)
    assert copier.wait(copier.begin(bytes_of, fixed)) == 1  # a source may be read-only


@pytest.mark.parametrize("threads", [1, 3])
def test_copies_are_done_in_their_order(threads: int) -> None:
    """Each reads what the one before it wrote only after that was waited for; wait tells how far all are."""
    copier = _core.Copier(threads)
    sizes = [0, 5, LONG, 1, 0, 300_000, LONG]
    sources = [random(n, seed) for seed, n in enumerate(sizes)]
    targets = [np.zeros(n, np.uint8) for n in sizes]
    numbers = [copier.begin(t, s) for t, s in zip(targets, sources, strict=True)]
    assert numbers == [*range(1, 8)]
    for i, number in enumerate(numbers):
        done = copier.wait(number)
        assert number <= done <= 7
        assert all(np.array_equal(targets[j], sources[j]) for j in range(max(i + 1, done)))
    assert copier.wait(99) == 7  # never begun: nothing to wait for


def test_threads_end_by_themselves_and_come_again() -> None:
    before = native_threads()
    copier, source, target = _core.Copier(4), random(LONG), np.zeros(LONG, np.uint8)
    copier.wait(copier.begin(target[:9], source[:9]))
    assert copier.threads == 0  # not worth any
    for _ in range(2):
        target[:] = 0
        threads, there = threads_of(copier, target, source)
        assert threads == len(there - before) == 3
        copier.wait(2**63)
        assert np.array_equal(target, source)
        await_none(copier)
    copier.wait(copier.begin(target, source))
    copier.close()
    assert copier.threads == 0
    assert native_threads() <= before
    copier.begin(target, source)
    del copier
    assert native_threads() <= before


def test_what_was_not_begun_is_given_up() -> None:
    """And nothing is written after that, nor an array held."""
    copier, source = _core.Copier(2), random(64 << 20)
    target = np.zeros(len(source), np.uint8)
    held = sys.getrefcount(source)
    numbers = [copier.begin(target, source) for _ in range(20)]
    assert sys.getrefcount(source) > held
    copier.close()
    found, done = target.copy(), copier.wait(numbers[-1])
    assert done == 20
    assert sys.getrefcount(source) == held
    target[:] = 0
    time.sleep(0.02)
    assert not target.any()
    assert found[: 256 << 10].tobytes() in (source[: 256 << 10].tobytes(), bytes(256 << 10))
    copier.wait(copier.begin(target, source))
    assert np.array_equal(target, source)


def test_a_child_begins_anew() -> None:
    copier, source, target = _core.Copier(3), random(LONG), np.zeros(LONG, np.uint8)
    copier.begin(target, source)
    child = os.fork()
    if child == 0:  # no exception may leave here
        signal.alarm(ALARM)
        target[:] = 0
        good = copier.threads == 0 and copier.wait(copier.begin(target, source)) == 1
        good = good and bool((target == source).all())
        good = good and threads_of(copier, target, source)[0] == 2
        copier.close()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    copier.wait(copier.begin(target, source))
    assert np.array_equal(target, source)


def test_without_threads_the_caller_copies() -> None:
    """In a child that may not have any more of them."""
    child = os.fork()
    if child == 0:
        signal.alarm(ALARM)
        if os.getuid() == 0:
            os.setuid(65534)  # root has no such limit
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        copier, source, target = _core.Copier(4), random(LONG), np.zeros(LONG, np.uint8)
        copier.wait(copier.begin(target, source))
        os._exit(0 if (target == source).all() and copier.threads == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_callers_of_several_threads() -> None:
    copier, good = _core.Copier(3), list[bool]()

    def work(seed: int) -> None:
        source, target = random(LONG, seed), np.zeros(LONG, np.uint8)
        for _ in range(5):
            target[:] = 0
            copier.wait(copier.begin(target, source))
            good.append(np.array_equal(target, source))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert good == [True] * 15
