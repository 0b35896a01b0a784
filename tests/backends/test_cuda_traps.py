"""Scalars and bases that broke other implementations of sums, by every way that a sum takes, one after the other
on one backend: nothing of a sum may be left for the next one.

Ways: whole, in chunks, over tables of multiples, with rounds of affine additions.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from test_cuda_msm import by_cpu

from cuzk import _core
from cuzk.backends import Workload
from cuzk.backends.cuda import CudaBackend, tree
from cuzk.backends.cuda.buffers import bases_of
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.machine import Machine
from cuzk.curves import BN254, Curve
from cuzk.vectors import Points, Scalars
from emulator import EmulatedMachine

Family = Callable[[Curve, int], list[int]]


def full_digits(curve: Curve, digit: int, width: int) -> int:
    """Below r / 2, all digits but the top one as given."""
    windows = (curve.r // 2).bit_length() // width
    return sum(digit << (width * w) for w in range(windows)) % (curve.r // 2)


def skewed(curve: Curve, n: int) -> list[int]:
    rng = random.Random(n)
    return [rng.choice([0, 1, 1, 1, curve.r - 1, rng.randrange(curve.r)]) for _ in range(n)]


FAMILIES: dict[str, Family] = {
    "zeros": lambda _, n: [0] * n,
    "ones": lambda _, n: [1] * n,
    "minus ones": lambda curve, n: [curve.r - 1] * n,
    "about half": lambda curve, n: [(curve.r - 1) // 2 + i % 2 for i in range(n)],
    "one large": lambda curve, n: [curve.r // 3] * n,
    "one of many": lambda curve, n: [curve.r - 2 if i == n - 1 else 0 for i in range(n)],
    "powers of two": lambda curve, n: [(1 << (i * 5) % 256) % curve.r for i in range(n)],
    "largest digits": lambda curve, n: [full_digits(curve, 1 << w % 9 + 1, w % 9 + 2) for w in range(n)],
    "above them": lambda curve, n: [full_digits(curve, (1 << w % 9 + 1) + 1, w % 9 + 2) for w in range(n)],
    "skewed": skewed,
}  # fmt: skip


def bases(curve: Curve, group: str, n: int) -> Points:
    """One point and its opposite, infinity, different ones, also twice."""
    rng = random.Random(n)
    logs = [[5, curve.r - 5, 5, 0, rng.randrange(curve.r), 2 + i // 6][i % 6] for i in range(n)]
    generator = Points.from_affine(curve, group, [{"g1": curve.g1, "g2": curve.g2}[group]])
    out = np.empty((n, curve.point_words(group)), np.uint64)
    factors = Scalars.from_ints(curve, logs)
    _core.fixed_base(curve.name, group, generator.words, factors.words, out, 1)
    return Points(curve, group, out)


def backend_of(
    curve: Curve, machine: Machine, way: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> CudaBackend:
    if way == "rounds":
        monkeypatch.setattr(tree, "LEAST_PAIRS", dict.fromkeys(tree.LEAST_PAIRS, 8))
    backend = CudaBackend(curve, machine, longest_sum=13 if way == "chunks" else None)
    if way == "tables":
        backend.plan(Workload(7, n, (), (("g1", n), ("g2", n)), repeated=True))
    return backend


def check(backend: CudaBackend, group: str, way: str, n: int) -> int:
    """How many sums were right."""
    curve, points = backend.curve, bases(backend.curve, group, n)
    put = backend.put(points)
    assert (bases_of(put).tables is not None) == (way == "tables")
    for montgomery in (False, True):
        for name, family in FAMILIES.items():
            scalars = Scalars.from_ints(curve, family(curve, n), montgomery=montgomery)
            found = backend.msm(put, backend.put(scalars)).words[0].tolist()
            assert found == by_cpu(points, scalars), (name, montgomery)
    return 2 * len(FAMILIES)


def check_emulated(
    curve: Curve, group: str, way: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = EmulatedMachine(1 << 28)
    sums = check(backend_of(curve, machine, way, n, monkeypatch), group, way, n)
    kernels = [kernel for kernel, _, _ in machine.launches]
    assert ("tree_add" in kernels) == (way == "rounds" and n > 1)
    assert kernels.count("scan_coarse") == sums * (-(-n // 13) if way == "chunks" else 1)


WAYS = ["whole", "chunks", "tables", "rounds"]


@pytest.mark.parametrize("way", WAYS)
def test_traps(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_emulated(BN254, "g1", way, 33, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [1, 31, 33, 257])
def test_traps_of_all_lengths(
    curve: Curve, n: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group in ("g1", "g2"):
        check_emulated(curve, group, way, n, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("group", ["g1", "g2"])
def test_traps_on_a_gpu(
    curve: Curve, group: str, way: str, gpu_machine: CudaMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small enough for compute-sanitizer (docs/kernels.md)."""
    check(backend_of(curve, gpu_machine, way, 97, monkeypatch), group, way, 97)
