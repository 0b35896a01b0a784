"""Transforms and combinations of points on the emulator, against the native core and discrete logarithms."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import bench.group_ntt
from cuzk import _core
from cuzk.backends.cuda import group_ntt
from cuzk.backends.cuda.endomorphism import HALF_BITS, Endomorphism, beta_words, endomorphism_of
from cuzk.backends.cuda.group_ntt import DevicePoints
from cuzk.constants import from_montgomery
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.r1cs import SparseMatrix
from cuzk.setup.scalars import multiples
from cuzk.vectors import Points, Scalars
from emulator import EmulatedMachine


def montgomery(curve: Curve, values: list[int]) -> Scalars:
    return Scalars.from_ints(curve, values, montgomery=True)


def at(curve: Curve, group: str, logs: list[int]) -> Points:
    """These multiples of the generator."""
    return multiples(montgomery(curve, [log % curve.r for log in logs]), group, 1)


def some_logs(curve: Curve, n: int) -> list[int]:
    """Infinity, equal and opposite points among different ones."""
    logs = [pow(5, 3 * i + 1, curve.r) for i in range(n)]
    edges = {1: 0, 2: logs[0], 4: curve.r - logs[0], 5: 1, 7: 0, 11: 0}
    return [edges.get(i, log) for i, log in enumerate(logs)]


def edge_scalars(r: int) -> list[int]:
    bits = [2**k + d for k in (3, 4, 63, 64, 126, 127, 128, 131, 253) for d in (-1, 0, 1)]
    return [s % r for s in (0, 1, 2, 7, 8, 9, r - 1, r - 2, r - 8, r // 2, r // 2 + 1, *bits)]


def test_halves_are_short(curve: Curve) -> None:
    endomorphism, rng = endomorphism_of(curve), random.Random(1)
    eigenvalue = endomorphism.eigenvalue
    assert (eigenvalue**2 + eigenvalue + 1) % curve.r == 0
    for k in [*edge_scalars(curve.r), *(rng.randrange(curve.r) for _ in range(2000))]:
        low, high = endomorphism.halves(k, curve.r)
        assert (low + high * eigenvalue - k) % curve.r == 0
        assert max(abs(low), abs(high)).bit_length() <= HALF_BITS


def test_the_kernel_finds_the_same_halves(curve: Curve) -> None:
    machine, rng = EmulatedMachine(), random.Random(2)
    device = DevicePoints(machine, curve)
    values = [*edge_scalars(curve.r), *(rng.randrange(curve.r) for _ in range(300))]
    found = np.empty((len(values), 4), np.uint64)
    machine.download(device._halves(montgomery(curve, values)), found)
    sign = 1 << 127
    for k, words in zip(values, found.tolist(), strict=True):
        numbers = [words[0] | words[1] << 64, words[2] | words[3] << 64]
        halves = [-(x - sign) if x & sign else x for x in numbers]
        assert tuple(halves) == endomorphism_of(curve).halves(k, curve.r)


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_beta_is_a_cube_root_of_one(curve: Curve, group: str) -> None:
    number = int.from_bytes(beta_words(curve, group).tobytes(), "little")
    beta = from_montgomery(number, curve.p, curve.fp_words)
    assert beta != 1
    assert pow(beta, 3, curve.p) == 1


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_scalings(curve: Curve, group: str) -> None:
    """One term a row: scalars at every edge, of a point and of infinity."""
    values = [1, curve.r - 1, *edge_scalars(curve.r)]
    values += [pow(3, 71 * i + 5, curve.r) for i in range(20 if group == "g1" else 3)]
    n, logs = len(values), [0xC0FFEE, 0]
    matrix = SparseMatrix(
        np.arange(2 * n + 1, dtype=np.uint64),
        np.tile(np.arange(2, dtype=np.uint32), n),
        np.repeat(np.arange(n, dtype=np.uint32), 2),
        montgomery(curve, values),
    )
    points, nothing = at(curve, group, logs), Points.empty(curve, group)
    found = DevicePoints(EmulatedMachine(), curve).combine(matrix, points, nothing)
    expected = at(curve, group, [value * log for value in values for log in logs])
    assert np.array_equal(found.words, expected.words)


@pytest.mark.parametrize("log_n", range(7))
@pytest.mark.parametrize("factors", ["one", "each"])
def test_transforms(curve: Curve, log_n: int, factors: str) -> None:
    """Both ways, with 1/n and a coset's factors; the native core transforms what it scaled."""
    n, r = 1 << log_n, curve.r
    root, logs = curve.root_of_unity(log_n), some_logs(curve, n)
    inverse = log_n % 2 == 0
    share = pow(n, -1, r) if inverse else 1
    scales = [pow(7, i, r) if factors == "each" else 1 for i in range(n)]
    given = [share * scale % r for scale in scales]
    found = DevicePoints(EmulatedMachine(), curve).transform(
        at(curve, "g1", logs),
        montgomery(curve, given if factors == "each" else given[:1]),
        pow(root, -1, r) if inverse else root,
    )
    expected = at(curve, "g1", [s * log for s, log in zip(scales, logs, strict=True)]).words
    word = montgomery(curve, [root]).words
    _core.group_ntt(curve.name, "g1", expected, word, inverse, 1)
    assert np.array_equal(found.words, expected)


def test_a_transform_in_g2(curve: Curve) -> None:
    n, root = 8, curve.root_of_unity(3)
    points, one = at(curve, "g2", some_logs(curve, n)), montgomery(curve, [1])
    found = DevicePoints(EmulatedMachine(), curve).transform(points, one, root)
    _core.group_ntt(curve.name, "g2", points.words, montgomery(curve, [root]).words, False, 1)
    assert np.array_equal(found.words, points.words)


def test_equal_points_leave_one(curve: Curve) -> None:
    """All butterflies meet equal, opposite and infinite operands."""
    n = 32
    for logs in ([3] * n, [3, curve.r - 3] * (n // 2), [0] * n, [0] * (n - 1) + [3]):
        points, one = at(curve, "g1", logs), montgomery(curve, [1])
        root = curve.root_of_unity(5)
        found = DevicePoints(EmulatedMachine(), curve).transform(points, one, root)
        _core.group_ntt(curve.name, "g1", points.words, montgomery(curve, [root]).words, False, 1)
        assert np.array_equal(found.words, points.words)


@pytest.mark.parametrize("chunk", [1, 5, 1 << 22])
def test_combinations(curve: Curve, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty and long rows, sums that vanish, equal coefficients apart, points added to the last rows."""
    monkeypatch.setattr(group_ntt, "CHUNK", chunk)
    r, logs = curve.r, [3, 5, 0, 5, curve.r - 5, 77]
    values = [1, r - 1, 2, r - 2, 2**20, (r + 1) // 2, 0]
    rows = [
        [],
        [(0, 0)],
        [(1, 1)],
        [(2, 0), (0, 3), (2, 1)],
        [(0, 3), (0, 4)],
        [(2, 3), (3, 1)],
        [(k % 2, k % 6) for k in range(300)],
        [],
        [(4, 5), (5, 1), (6, 0), (5, 2), (0, 1), (2, 5)],
        [(6, 0)],
        [],
    ]
    more = [9, 0, 5, 1]
    terms = [term for row in rows for term in row]
    matrix = SparseMatrix(
        np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.uint64),
        np.array([wire for _, wire in terms], np.uint32),
        np.array([value for value, _ in terms], np.uint32),
        montgomery(curve, values),
    )
    sums = [sum(values[value] * logs[wire] for value, wire in row) for row in rows]
    for added in (more, []):
        found = DevicePoints(EmulatedMachine(), curve).combine(
            matrix, at(curve, "g1", logs), at(curve, "g1", added)
        )
        start = len(rows) - len(added)
        expected = [s + ([0] * start + added)[i] for i, s in enumerate(sums)]
        assert np.array_equal(found.words, at(curve, "g1", expected).words)


def test_what_does_not_fit_is_refused(curve: Curve) -> None:
    device, one = DevicePoints(EmulatedMachine(), curve), montgomery(curve, [1])
    points = at(curve, "g1", [1, 2, 3, 4])
    with pytest.raises(KernelError, match="primitive root of order 4"):
        device.transform(points, one, curve.root_of_unity(3))
    with pytest.raises(KernelError, match="found 3 and 1"):
        device.transform(points[:3], one, curve.root_of_unity(2))
    with pytest.raises(KernelError, match="found 4 and 2"):
        device.transform(points, montgomery(curve, [1, 2]), curve.root_of_unity(2))
    units = montgomery(curve, [1, -1])
    row = SparseMatrix(
        np.array([0, 1], np.uint64), np.array([4], np.uint32), np.array([0], np.uint32), units
    )
    with pytest.raises(KernelError, match="points below 4, found 4"):
        device.combine(row, points, Points.empty(curve, "g1"))
    with pytest.raises(KernelError, match="at most 1 to add"):
        device.combine(row, at(curve, "g1", [1] * 5), points)
    with pytest.raises(KernelError, match="coefficients below 2, found 2"):
        device.combine(replace(row, coefficients=row.coefficients + 2), points, points[:1])


def test_the_bench_compares_with_the_native_core(
    curve: Curve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key whose points were made wrong does not pass, nor would a check that passes anything."""
    monkeypatch.setattr(bench.group_ntt, "COMPARED", 4)
    bench.group_ntt.compare(EmulatedMachine(), curve)
    with monkeypatch.context() as patch:
        patch.setattr(bench.group_ntt, "check_prepared", lambda *_: None)
        with pytest.raises(KernelError, match="a wrong key passed"):
            bench.group_ntt.compare(EmulatedMachine(), curve)
    no_lattice = np.arange(1, 21, dtype=np.uint64)
    monkeypatch.setattr(Endomorphism, "words", lambda *_: no_lattice)
    with pytest.raises(KernelError, match="not those of the key"):
        bench.group_ntt.compare(EmulatedMachine(), curve)
