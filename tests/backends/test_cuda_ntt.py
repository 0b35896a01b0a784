"""The CUDA backend's transforms on the emulated machine: Python integers and the native core's transforms."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cuzk import _core
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.backends.cuda.ntt import LARGEST, LOG_COLUMNS, LOG_TILE, Transforms, plan
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.vectors import Scalars, Words
from emulator import EmulatedMachine


def mont(curve: Curve, values: list[int]) -> Words:
    return Scalars.from_ints(curve, values, montgomery=True).words.copy()


def vector(curve: Curve, log_n: int, seed: int = 1) -> Words:
    """Random scalars with r - 1, 0 and 1 among them."""
    n, rng = 1 << log_n, random.Random(seed)
    return mont(curve, ([rng.randrange(curve.r) for _ in range(n)] + [curve.r - 1, 0, 1])[-n:])


def on(machine: Machine, words: Words) -> Memory:
    memory = machine.alloc(words.nbytes)
    machine.upload(memory, words)
    return memory


def back(machine: Machine, memory: Memory) -> Words:
    words = np.empty((memory.nbytes // 32, 4), np.uint64)
    machine.download(memory, words)
    return words


def expected(
    curve: Curve,
    words: Words,
    root: int,
    *,
    inverse: bool = False,
    shift: int = 1,
    threads: int = 1,
) -> Words:
    """The native core's transform; its tests compare it with direct evaluation."""
    out = words.copy()
    _core.ntt(curve.name, out, mont(curve, [root]), mont(curve, [shift]), inverse, threads)
    return out


def shifts(curve: Curve, log_n: int) -> list[int]:
    return [1, curve.coset_shift(log_n), 7]


@pytest.mark.parametrize("log_n", range(7))
def test_every_value_by_direct_evaluation(curve: Curve, log_n: int) -> None:
    machine, n, r = EmulatedMachine(), 1 << log_n, curve.r
    transforms, root = Transforms(machine, curve), curve.root_of_unity(log_n)
    given = vector(curve, log_n)
    coefficients = Scalars(curve, given, montgomery=True).ints()
    for shift in shifts(curve, log_n):
        memory = on(machine, given)
        transforms.transform(memory, log_n, root, inverse=False, shift=shift)
        found = Scalars(curve, back(machine, memory), montgomery=True).ints()
        for place in range(n):
            j = int(f"{place:0{log_n}b}"[::-1], 2) if log_n else 0
            x = shift * pow(root, j, r) % r
            assert found[place] == sum(c * pow(x, i, r) for i, c in enumerate(coefficients)) % r
        transforms.transform(memory, log_n, root, inverse=True, shift=shift)
        assert (back(machine, memory) == given).all()


@pytest.mark.parametrize(("log_n", "log_tile"), [(n, 11) for n in range(4, 14)] + [(n, t) for t in (6, 7) for n in range(t, 15)])  # fmt: skip
def test_both_ways_in_all_plans(curve: Curve, log_n: int, log_tile: int) -> None:
    machine, root = EmulatedMachine(), curve.root_of_unity(log_n)
    transforms = Transforms(machine, curve, log_tile=log_tile)
    given = vector(curve, log_n, log_n)
    for shift in shifts(curve, log_n):
        for inverse in (False, True):
            memory = on(machine, given)
            transforms.transform(memory, log_n, root, inverse=inverse, shift=shift)
            wanted = expected(curve, given, root, inverse=inverse, shift=shift)
            assert (back(machine, memory) == wanted).all(), (shift, inverse)


@pytest.mark.parametrize(("log_n", "log_tile"), [(0, 11), (1, 11), (3, 11), (4, 11), (9, 11), (12, 11), (12, 6), (13, 7)])  # fmt: skip
def test_pairs_and_extension(curve: Curve, log_n: int, log_tile: int) -> None:
    """``second`` is transformed beside the first; ``extend`` is a transform back and one to the coset."""
    machine, root = EmulatedMachine(), curve.root_of_unity(log_n)
    transforms = Transforms(machine, curve, log_tile=log_tile)
    given = [vector(curve, log_n, seed) for seed in (1, 2)]
    for shift in shifts(curve, log_n)[1:]:
        wanted = [expected(curve, words, root, inverse=True) for words in given]
        extended = [expected(curve, words, root, shift=shift) for words in wanted]
        a, b = (on(machine, words) for words in given)
        transforms.transform(a, log_n, root, inverse=True, second=b)
        assert all((back(machine, m) == w).all() for m, w in zip((a, b), wanted, strict=True))
        a, b = (on(machine, words) for words in given)
        transforms.extend(a, log_n, root, shift, second=b)
        assert all((back(machine, m) == w).all() for m, w in zip((a, b), extended, strict=True))
        alone = on(machine, given[0])
        transforms.extend(alone, log_n, root, shift)
        assert (back(machine, alone) == extended[0]).all()


def test_roots_that_are_no_curves(curve: Curve) -> None:
    """Any primitive root will do: here none whose square root the table could start from."""
    machine, log_n = EmulatedMachine(), 7
    transforms = Transforms(machine, curve, log_tile=6)
    root = pow(curve.root_of_unity(log_n), 5, curve.r)
    given = vector(curve, log_n)
    for shift in (1, 7, pow(curve.root_of_unity(log_n + 1), 5, curve.r)):
        memory = on(machine, given)
        transforms.transform(memory, log_n, root, inverse=False, shift=shift)
        assert (back(machine, memory) == expected(curve, given, root, shift=shift)).all()


def test_one_table_serves_smaller_sizes_and_the_odd_coset(curve: Curve) -> None:
    machine = EmulatedMachine()
    transforms = Transforms(machine, curve)

    def run(log_n: int, shift: int, inverse: bool) -> None:
        memory = on(machine, vector(curve, log_n))
        root = curve.root_of_unity(log_n)
        transforms.transform(memory, log_n, root, inverse=inverse, shift=shift)

    for log_n in (5, 9, 7):
        for shift in shifts(curve, log_n)[:2]:
            for inverse in (False, True):
                run(log_n, shift, inverse)
    assert transforms.bytes == transforms.table_bytes(curve, 9) == 64 * (8 + (1 << 9))
    run(6, 7, True)
    assert transforms.bytes == 64 * (8 + (1 << 9)) + 64 * (8 + (1 << 6))
    assert transforms.bytes == machine.used


def test_tables_beyond_the_limit_are_dropped(curve: Curve) -> None:
    machine, log_n = EmulatedMachine(), 5
    limit = 2 * Transforms.table_bytes(curve, log_n)
    transforms = Transforms(machine, curve, limit=limit)
    root, given = curve.root_of_unity(log_n), vector(curve, log_n)
    for shift in (7, 8, 9, 7, 1):
        memory = on(machine, given)
        transforms.transform(memory, log_n, root, inverse=False, shift=shift)
        assert (back(machine, memory) == expected(curve, given, root, shift=shift)).all()
        assert transforms.bytes <= limit


@pytest.mark.parametrize("log_n", range(4, LARGEST + 1))
def test_plans_fit_the_kernels(log_n: int) -> None:
    passes = plan(log_n)
    assert [p.first for p in passes] == [
        sum(q.stages for q in passes[:i]) for i in range(len(passes))
    ]
    assert sum(p.stages for p in passes) == log_n
    assert all(3 <= p.stages <= p.log_tile <= min(LOG_TILE, log_n) for p in passes)
    assert all(4 <= p.stages <= p.log_tile - LOG_COLUMNS for p in passes[:-1])


def test_what_does_not_fit_is_refused(curve: Curve) -> None:
    machine = EmulatedMachine()
    transforms = Transforms(machine, curve)
    memory = machine.alloc(32 << 3)
    with pytest.raises(
        KernelError, match=r"^cuda: ntt: expected a vector of 512 bytes, found 256$"
    ):
        transforms.transform(memory, 4, curve.root_of_unity(4), inverse=False)
    with pytest.raises(
        KernelError, match=r"^cuda: ntt: expected a primitive 2\^3-th root of unity"
    ):
        transforms.transform(memory, 3, curve.root_of_unity(2), inverse=True)
    with pytest.raises(KernelError, match=r"^cuda: ntt: expected log_n from 0 to 31, found 32$"):
        transforms.transform(memory, 32, 1, inverse=False)
    assert machine.launches == []


@pytest.mark.slow
@pytest.mark.parametrize("log_n", [20, 21])
def test_large_plans(curve: Curve, log_n: int) -> None:
    """Tiles of full size in two and three passes."""
    machine, root, shift = EmulatedMachine(), curve.root_of_unity(log_n), curve.coset_shift(log_n)
    transforms = Transforms(machine, curve)
    given = np.random.default_rng(log_n).integers(0, 2**60, (1 << log_n, 4), np.uint64)
    memory = on(machine, given)
    transforms.transform(memory, log_n, root, inverse=False, shift=shift)
    assert (back(machine, memory) == expected(curve, given, root, shift=shift)).all()
    machine.upload(memory, given)
    transforms.extend(memory, log_n, root, shift)
    middle = expected(curve, given, root, inverse=True)
    assert (back(machine, memory) == expected(curve, middle, root, shift=shift)).all()


@pytest.mark.gpu
@pytest.mark.parametrize("log_tile", [LOG_TILE, 11])
@pytest.mark.parametrize("log_n", [*range(23), 24])
def test_every_value_on_a_gpu(
    curve: Curve, log_n: int, log_tile: int, gpu_machine: Machine
) -> None:
    """Both ways, on the roots and both kinds of coset, alone and in pairs, by the native core."""
    transforms, root = Transforms(gpu_machine, curve, log_tile=log_tile), curve.root_of_unity(log_n)
    given = np.random.default_rng(log_n).integers(0, 2**64, (1 << log_n, 4), np.uint64)
    given[:, 3] >>= np.uint64(4)  # below either prime
    given[-1] = Scalars.from_ints(curve, [-1]).words[0]
    a, b = on(gpu_machine, given), on(gpu_machine, given[::-1].copy())
    for shift in shifts(curve, log_n):
        for inverse in (False, True):
            gpu_machine.upload(a, given)
            gpu_machine.upload(b, given[::-1].copy())
            transforms.transform(a, log_n, root, inverse=inverse, shift=shift, second=b)
            for memory, words in ((a, given), (b, given[::-1])):
                wanted = expected(curve, words, root, inverse=inverse, shift=shift, threads=16)
                assert (back(gpu_machine, memory) == wanted).all(), (shift, inverse)
        gpu_machine.upload(a, given)
        transforms.extend(a, log_n, root, shift)
        middle = expected(curve, given, root, inverse=True, threads=16)
        wanted = expected(curve, middle, root, shift=shift, threads=16)
        assert (back(gpu_machine, a) == wanted).all(), shift
