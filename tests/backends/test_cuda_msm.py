"""Sums of the CUDA backend beyond the common suite: sizes, chunks, shared digits, memory that is not there."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cuzk import _core
from cuzk.backends import Workload
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.curves import BN254, Curve
from cuzk.errors import KernelError, OutOfMemory
from cuzk.vectors import Points, Scalars
from emulator import EmulatedMachine


def some_points(curve: Curve, group: str, n: int) -> Points:
    """Multiples of the generator, infinities and doubles among them."""
    rng = random.Random(n)
    factors = [rng.randrange(curve.r) for _ in range(n)]
    factors[1::7] = [0] * len(factors[1::7])
    factors[2::9] = [5] * len(factors[2::9])
    generator = Points.from_affine(curve, group, [{"g1": curve.g1, "g2": curve.g2}[group]])
    out = np.empty((n, curve.point_words(group)), np.uint64)
    _core.fixed_base(curve.name, group, generator.words, Scalars.from_ints(curve, factors).words, out, 1)  # fmt: skip
    return Points(curve, group, out)


def some_scalars(curve: Curve, n: int, *, montgomery: bool = False) -> Scalars:
    """A third zeros, ones and minus ones."""
    rng = random.Random(n + 1)
    values = [rng.choice([0, 1, curve.r - 1, *[rng.randrange(curve.r)] * 6]) for _ in range(n)]
    return Scalars.from_ints(curve, values, montgomery=montgomery)


def by_cpu(points: Points, scalars: Scalars, wires: object = None) -> list[int]:
    cpu = CpuBackend(points.curve, 1)
    return list(cpu.msm(cpu.put(points), cpu.put(scalars), wires).words[0])


def by_cuda(backend: CudaBackend, points: Points, scalars: Scalars, wires: object = None) -> list[int]:  # fmt: skip
    return list(backend.msm(backend.put(points), backend.put(scalars), wires).words[0])


SIZES = [1, 2, 31, 32, 33, 255, 257]


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", SIZES)
def test_sizes(curve: Curve, group: str, n: int) -> None:
    points, scalars = some_points(curve, group, n), some_scalars(curve, n)
    backend = CudaBackend(curve, EmulatedMachine(1 << 28))
    assert by_cuda(backend, points, scalars) == by_cpu(points, scalars)


@pytest.mark.gpu
@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", [*SIZES, 65535, 65536, 65537, 105_000])
def test_sizes_on_a_gpu(curve: Curve, group: str, n: int, gpu_machine: CudaMachine) -> None:
    """With 132 processors the sort of 105,000 scalars has blocks of just over 48 KiB of shared memory, 128 bytes of it static."""
    points, scalars = some_points(curve, group, n), some_scalars(curve, n)
    backend = CudaBackend(curve, gpu_machine)
    assert by_cuda(backend, points, scalars) == by_cpu(points, scalars)


@pytest.mark.gpu
@pytest.mark.parametrize("longest", [1, 100, 4096, 65536])
def test_chunks_on_a_gpu(curve: Curve, longest: int, gpu_machine: CudaMachine) -> None:
    n = 300 if longest == 1 else 70_001
    points, scalars = some_points(curve, "g1", n), some_scalars(curve, n)
    backend = CudaBackend(curve, gpu_machine, longest_sum=longest)
    assert by_cuda(backend, points, scalars) == by_cpu(points, scalars)


@pytest.mark.parametrize("longest", [1, 7, 39, 40, 41])
@pytest.mark.parametrize("in_montgomery", [False, True])
def test_chunks(curve: Curve, longest: int, in_montgomery: bool) -> None:
    n = 40 if longest > 1 else 5
    points = some_points(curve, "g1", n)
    scalars = some_scalars(curve, n + 8, montgomery=in_montgomery)
    for wires in (range(3, n + 3), range(n + 7, 7, -1), np.arange(5, n + 5, dtype=np.uint32)):
        machine = EmulatedMachine(1 << 26)
        backend = CudaBackend(curve, machine, longest_sum=longest)
        assert by_cuda(backend, points, scalars, wires) == by_cpu(points, scalars, wires)
        sorts = [name for name, _, _ in machine.launches if name == "recode"]
        assert len(sorts) == -(-n // longest)


def test_chunks_of_a_bit_reversed_vector(curve: Curve) -> None:
    """As h is: a transform's result, longer than the plan lets a sum be."""
    values = some_scalars(curve, 16, montgomery=True)
    points = some_points(curve, "g1", 15)
    found = []
    for backend in (
        CpuBackend(curve, 1),
        CudaBackend(curve, EmulatedMachine(1 << 26)),
        CudaBackend(curve, EmulatedMachine(1 << 26), longest_sum=4),
    ):
        h = backend.ntt(backend.put(values), curve.root_of_unity(4))
        found.append(list(backend.msm(backend.put(points), h, range(15)).words[0]))
    assert found[0] == found[1] == found[2]


def test_digits_of_a_witness_are_made_once(curve: Curve) -> None:
    machine = EmulatedMachine(1 << 27)
    backend = CudaBackend(curve, machine)
    points = {group: some_points(curve, group, 20) for group in ("g1", "g2")}
    bases = {group: backend.put(points[group]) for group in points}
    sparse = np.arange(0, 40, 2, dtype=np.uint32)
    for proof in range(2):
        scalars = some_scalars(curve, 40 + proof)
        w = backend.put(scalars)
        for group in points:
            for wires in (range(20), range(7, 27), sparse):
                found = list(backend.msm(bases[group], w, wires).words[0])
                assert found == by_cpu(points[group], scalars, wires)
    names = [name for name, _, _ in machine.launches]
    assert names.count("recode") == 2
    assert names.count("number_rows") == 12  # 40 and 41 wires: otherwise once per query
    backend.msm(bases["g1"], w, sparse)
    assert [name for name, _, _ in machine.launches].count("number_rows") == 12


def test_20_a_sum_in_g2_is_made_where_one_in_g1_is(curve: Curve) -> None:
    """Fault 20: it was made on the host, under a throttle that all shared."""
    kernels = {}
    for group in ("g1", "g2"):
        machine = EmulatedMachine(1 << 28)
        backend = CudaBackend(curve, machine)
        points, scalars = some_points(curve, group, 300), some_scalars(curve, 300)
        assert by_cuda(backend, points, scalars) == by_cpu(points, scalars)
        kernels[group] = [name for name, _, _ in machine.launches]
    assert kernels["g1"] == kernels["g2"]
    assert len(set(kernels["g2"])) > 5


def test_repeated_wires_and_infinities_only(curve: Curve) -> None:
    backend = CudaBackend(curve, EmulatedMachine(1 << 26))
    scalars = some_scalars(curve, 9)
    points = some_points(curve, "g1", 4)
    for wires in ([8, 2, 2, 0], [3, 3, 3, 3], [0, 1, 3, 8]):
        index = np.array(wires, np.uint32)
        assert by_cuda(backend, points, scalars, index) == by_cpu(points, scalars, index)
    nothing = Points.from_affine(curve, "g1", [None] * 9)
    assert by_cuda(backend, nothing, scalars) == [0] * curve.point_words("g1")


def test_wires_are_checked() -> None:
    backend = CudaBackend(BN254, EmulatedMachine(1 << 26))
    bases, k = backend.put(some_points(BN254, "g1", 2)), backend.put(some_scalars(BN254, 3))
    for wires in (range(2, 4), range(-1, 1), np.array([0, 3], np.uint32)):
        with pytest.raises(KernelError, match="expected wires within 3 scalars"):
            backend.msm(bases, k, wires)
    for count in (range(3), None):
        with pytest.raises(KernelError, match="expected 2 wires, found 3"):
            backend.msm(bases, k, count)
    with pytest.raises(KernelError, match="expected wires as None, a range or a uint32 array"):
        backend.msm(bases, k, np.array([0, 1]))


def test_memory_taken_after_the_plan() -> None:
    """What a whole sum needs is gone, what a shorter one needs is there: found once, then planned so."""
    machine, n = EmulatedMachine(1 << 26), 2000
    points, scalars = some_points(BN254, "g1", n), some_scalars(BN254, n)
    backend = CudaBackend(BN254, machine)
    backend.plan(Workload(11, n, (), (("g1", n),)))
    bases, k = backend.put(points), backend.put(scalars)
    held = machine.alloc(machine.free_bytes() - (1100 << 10))
    expected = by_cpu(points, scalars)
    assert list(backend.msm(bases, k).words[0]) == expected
    refused = machine.refused
    assert 0 < refused < 4
    assert list(backend.msm(bases, k).words[0]) == expected
    assert machine.refused == refused
    more = machine.alloc(machine.free_bytes() - 1000)
    with pytest.raises(OutOfMemory):
        backend.msm(bases, k)
    del held, more
    assert list(backend.msm(bases, k).words[0]) == expected
