"""What every backend must do, on every curve it has: one suite, instantiated for each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import py_ecc.optimized_bls12_381
import py_ecc.optimized_bn128
import pytest

from cuzk import _core
from cuzk.backends import Backend, Workload
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.curves import BLS12_381, BN254, CURVES, Curve
from cuzk.errors import FormatError, KernelError
from cuzk.r1cs import SparseMatrix
from cuzk.timeline import Timeline
from cuzk.vectors import Affine, Points, Scalars
from emulator import EmulatedMachine
from reference import ReferenceBackend

SUBJECTS = [
    ("reference", "toy", ""),
    ("reference", "bn254", ""),
    ("reference", "bls12_381", ""),
    ("cuda-emulated", "bn254", ""),
    ("cuda-emulated", "bls12_381", ""),
    pytest.param(("cuda", "bn254", ""), marks=pytest.mark.gpu),
    pytest.param(("cuda", "bls12_381", ""), marks=pytest.mark.gpu),
] + [("cpu", curve, path) for curve in ("bn254", "bls12_381") for path in _core.paths()]


@pytest.fixture(params=SUBJECTS, ids=lambda subject: "-".join(filter(None, subject)))
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    name, curve_name, path = request.param
    curve = CURVES[curve_name]
    if name == "reference":
        yield ReferenceBackend(curve)
        return
    if name == "cuda-emulated":
        yield CudaBackend(curve, EmulatedMachine())
        return
    if name == "cuda":
        yield CudaBackend(curve, request.getfixturevalue("gpu_machine"))
        return
    before = _core.path()
    _core.use_path(path)
    yield CpuBackend(curve, threads=2)
    _core.use_path(before)


@cache
def multiple(curve: Curve, group: str, k: int) -> Affine:
    """k times the generator: py_ecc's, or k itself on TOY."""
    k %= curve.r
    if not k:
        return None
    if curve.is_toy:
        return (k,)
    oracle = {BN254: py_ecc.optimized_bn128, BLS12_381: py_ecc.optimized_bls12_381}[curve]
    base = {"g1": oracle.G1, "g2": oracle.G2}[group]
    coordinates = oracle.normalize(oracle.multiply(base, k))
    if group == "g1":
        return tuple(int(c) for c in coordinates)
    return tuple(int(part) for c in coordinates for part in c.coeffs)


def montgomery(backend: Backend, values: list[int]) -> Scalars:
    return Scalars.from_ints(backend.curve, values, montgomery=True)


def sample(curve: Curve, n: int, seed: int = 1) -> list[int]:
    """Scalars of every kind: edges first, then spread over the whole field."""
    edges = [0, 1, curve.r - 1, 2, curve.r // 2]
    return (edges + [pow(seed + 3, 77 * i + 1, curve.r) for i in range(n)])[:n]


def ints(backend: Backend, buffer: object) -> list[int]:
    result = backend.get(buffer)  # type: ignore[arg-type]
    if not isinstance(result, Scalars):
        raise TypeError
    return result.ints()


@pytest.mark.parametrize("in_montgomery", [False, True])
def test_scalars_come_back_in_their_form(backend: Backend, in_montgomery: bool) -> None:
    values = sample(backend.curve, 9)
    given = Scalars.from_ints(backend.curve, values, montgomery=in_montgomery)
    back = backend.get(backend.put(given))
    assert isinstance(back, Scalars)
    assert back.montgomery is in_montgomery
    assert np.array_equal(back.words, given.words)


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_points_come_back(backend: Backend, group: str) -> None:
    affine = [multiple(backend.curve, group, k) for k in (1, 0, 5)]
    points = Points.from_affine(backend.curve, group, affine)
    back = backend.get(backend.put(points))
    assert isinstance(back, Points)
    assert [back.affine(i) for i in range(3)] == affine


def random_matrix(curve: Curve, rows: int, wires: int) -> SparseMatrix:
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 5, rows)
    counts[0] = 0  # an empty row
    total = int(counts.sum())
    dictionary = [1, curve.r - 1, 7, curve.r - 9, curve.r // 3]
    return SparseMatrix(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64),
        rng.integers(0, wires, total).astype(np.uint32),
        rng.integers(0, len(dictionary), total).astype(np.uint32),
        Scalars.from_ints(curve, dictionary, montgomery=True),
    )


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (1, 2), (5, 8), (16, 16), (33, 64)])
def test_product(backend: Backend, rows: int, size: int) -> None:
    curve, wires = backend.curve, 12
    matrix, w = random_matrix(curve, rows, wires), sample(curve, wires)
    result = backend.product(backend.put(matrix), backend.put(Scalars.from_ints(curve, w)), size)
    assert result.montgomery
    expected = [sum(c * w[j] for c, j in matrix.row(i)) % curve.r for i in range(rows)]
    assert ints(backend, result) == expected + [0] * (size - rows)


@pytest.mark.parametrize("log_n", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("shift", [1, 11])
def test_ntt_is_evaluation(backend: Backend, log_n: int, shift: int) -> None:
    r, n = backend.curve.r, 1 << log_n
    root, x = backend.curve.root_of_unity(log_n), sample(backend.curve, n)
    result = backend.ntt(backend.put(montgomery(backend, x)), root, shift=shift)
    points = [shift * pow(root, j, r) % r for j in range(n)]
    assert ints(backend, result) == [
        sum(v * pow(p, i, r) for i, v in enumerate(x)) % r for p in points
    ]


@pytest.mark.parametrize("log_n", [0, 1, 4, 8])
@pytest.mark.parametrize("shift", [1, 11])
def test_inverse_ntt_undoes(backend: Backend, log_n: int, shift: int) -> None:
    root, x = backend.curve.root_of_unity(log_n), sample(backend.curve, 1 << log_n)
    y = backend.ntt(backend.put(montgomery(backend, x)), root, shift=shift)
    assert ints(backend, backend.ntt(y, root, inverse=True, shift=shift)) == x


def test_inverse_ntt_of_given_values(backend: Backend) -> None:
    # the inverse applied first, to what was put in natural order
    r, n = backend.curve.r, 8
    root, y = backend.curve.root_of_unity(3), sample(backend.curve, 8, seed=4)
    x = ints(backend, backend.ntt(backend.put(montgomery(backend, y)), root, inverse=True))
    assert [sum(v * pow(root, i * j, r) for i, v in enumerate(x)) % r for j in range(n)] == y


@pytest.mark.parametrize("log_n", [0, 1, 3, 6])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_extend(backend: Backend, log_n: int, count: int) -> None:
    """Polynomials of degree below n, by their values: on the roots of unity, then on a coset."""
    r, n, g = backend.curve.r, 1 << log_n, backend.curve.coset_shift(log_n)
    root = backend.curve.root_of_unity(log_n)
    coefficients = [sample(backend.curve, n, seed) for seed in range(count)]

    def values(x: list[int], shift: int) -> list[int]:
        at = [shift * pow(root, j, r) % r for j in range(n)]
        return [sum(c * pow(p, i, r) for i, c in enumerate(x)) % r for p in at]

    given = [backend.put(montgomery(backend, values(x, 1))) for x in coefficients]
    extended = backend.extend(given, root, g)
    assert [ints(backend, y) for y in extended] == [values(x, g) for x in coefficients]


@pytest.mark.parametrize("form", ["plain", "montgomery"])
@pytest.mark.parametrize(("n", "size"), [(1, 1), (5, 8), (8, 8), (3, 7), (0, 4), (300, 512)])
def test_padded(backend: Backend, form: str, n: int, size: int) -> None:
    x = sample(backend.curve, n)
    given = backend.put(Scalars.from_ints(backend.curve, x, montgomery=form == "montgomery"))
    found = backend.padded(given, size)
    assert (found.length, found.montgomery) == (size, True)
    assert ints(backend, found) == x + [0] * (size - n)
    assert ints(backend, given) == x
    if size.bit_count() == 1:
        root = backend.curve.root_of_unity(size.bit_length() - 1)
        y = backend.ntt(backend.padded(given, size), root, inverse=True)
        assert ints(backend, backend.ntt(y, root)) == x + [0] * (size - n)


def test_padded_refuses(backend: Backend) -> None:
    with pytest.raises(KernelError, match="padded: expected at most 4"):
        backend.padded(backend.put(montgomery(backend, [1] * 5)), 4)


def test_pointwise(backend: Backend) -> None:
    r = backend.curve.r
    a, b, c = (sample(backend.curve, 8, seed) for seed in (1, 2, 3))

    def put(values: list[int]) -> object:
        return backend.put(montgomery(backend, values))

    def run(*names: str, scale: int = 1, into: str = "") -> list[int]:
        operands = {name: put({"a": a, "b": b, "c": c}[name]) for name in names}
        result = backend.pointwise(
            operands["a"],  # type: ignore[arg-type]
            operands.get("b"),  # type: ignore[arg-type]
            operands.get("c"),  # type: ignore[arg-type]
            scale,
            into=operands.get(into),  # type: ignore[arg-type]
        )
        if not into:  # operands stay what they were
            assert ints(backend, operands["a"]) == a
        return ints(backend, result)

    zipped = list(zip(a, b, c, strict=True))
    assert run("a", "b") == [x * y % r for x, y, _ in zipped]
    for into in ("", "a", "b", "c"):
        assert run("a", "b", "c", into=into) == [(x * y - z) % r for x, y, z in zipped]
    for into in ("", "a", "c"):
        assert run("a", "c", scale=r - 5, into=into) == [(x - z) * -5 % r for x, _, z in zipped]
    assert run("a", scale=3) == [3 * x % r for x in a]


def test_quotient_chain_stays_in_natural_order(backend: Backend) -> None:
    """inverse, forward on a coset, product, inverse there: a backend's inner order must not show."""
    r, n, g = backend.curve.r, 8, 11
    root = backend.curve.root_of_unity(3)
    half = [3, 1, 4, 1, 0, 0, 0, 0]  # degree 3: the square has degree 6 < 8
    values = [sum(v * pow(root, i * j, r) for i, v in enumerate(half)) % r for j in range(n)]
    x = backend.ntt(backend.put(montgomery(backend, values)), root, inverse=True)
    y = backend.ntt(x, root, shift=g)
    square = backend.ntt(backend.pointwise(y, y, into=y), root, inverse=True, shift=g)
    expected = [sum(half[i] * half[k - i] for i in range(k + 1)) % r for k in range(n)]
    assert ints(backend, square) == expected


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize(
    ("logs", "scalars"),
    [
        ([], []),
        ([3], [0]),
        ([3], [1]),
        ([3], [-1]),
        ([0], [5]),
        ([3, 3], [2, -2]),  # cancels
        ([3, -3], [9, 9]),
        ([1, 1, 1, 0, 2], [7, 7, 1, 3, 2**15]),
        ([1, 2, 3, 4, 5, 6, 7], [0, 1, -1, 2**14 - 1, 2**13, -(2**13), 12345]),
    ],
)
def test_msm(backend: Backend, group: str, logs: list[int], scalars: list[int]) -> None:
    curve = backend.curve
    points = Points.from_affine(curve, group, [multiple(curve, group, k) for k in logs])
    expected = multiple(curve, group, sum(x * k for x, k in zip(logs, scalars, strict=True)))
    for in_montgomery in (False, True):
        k = Scalars.from_ints(curve, scalars, montgomery=in_montgomery)
        total = backend.msm(backend.put(points), backend.put(k))
        assert len(total) == 1
        assert total.affine() == expected


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_msm_takes_chosen_wires(backend: Backend, group: str) -> None:
    curve = backend.curve
    logs, w = [2, 3, 5], sample(curve, 9)
    bases = backend.put(Points.from_affine(curve, group, [multiple(curve, group, k) for k in logs]))
    scalars = backend.put(Scalars.from_ints(curve, w))
    for wires in (range(4, 7), range(3), np.array([8, 2, 2], dtype=np.uint32)):
        expected = sum(k * w[int(i)] for k, i in zip(logs, wires, strict=True))
        total = backend.msm(bases, scalars, wires)
        assert total.affine() == multiple(curve, group, expected)


def test_msm_leaves_its_operands(backend: Backend) -> None:
    values = montgomery(backend, [5, 6])
    before = values.words.copy()
    scalars = backend.put(values)
    bases = backend.put(
        Points.from_affine(backend.curve, "g1", [multiple(backend.curve, "g1", 1)] * 2)
    )
    first = backend.msm(bases, scalars)
    assert backend.msm(bases, scalars).affine() == first.affine()
    assert ints(backend, scalars) == [5, 6]
    assert np.array_equal(values.words, before)


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_started_sums_are_what_msm_gives(backend: Backend, group: str) -> None:
    curve = backend.curve
    w = sample(curve, 9)
    scalars = backend.put(Scalars.from_ints(curve, w))
    started = []
    for logs, wires in (([2, 3, 5], range(4, 7)), ([7], np.array([8], np.uint32)), ([], range(0))):
        points = Points.from_affine(curve, group, [multiple(curve, group, k) for k in logs])
        total = sum(k * w[int(i)] for k, i in zip(logs, wires, strict=True))
        started.append((backend.start_msm(backend.put(points), scalars, wires), total))
    for finish, total in started:
        assert finish().affine() == multiple(curve, group, total)


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_combine(backend: Backend, group: str) -> None:
    curve = backend.curve
    points = Points.from_affine(
        curve, group, [multiple(curve, group, 3), None, multiple(curve, group, 7)]
    )
    total = backend.combine(points, Scalars.from_ints(curve, [5, 6, curve.r - 2]))
    assert total.affine() == multiple(curve, group, 15 - 14)


@pytest.mark.parametrize("n", [1, 2, 64])
def test_first_nonzero(backend: Backend, n: int) -> None:
    assert backend.first_nonzero(backend.put(montgomery(backend, [0] * n))) is None
    for index in {0, n // 3, n - 1}:
        values = montgomery(backend, [0] * index + [5] * (n - index))
        assert backend.first_nonzero(backend.put(values)) == index
    # of a transform: 1 at every point is the constant 1
    root, ones = backend.curve.root_of_unity(n.bit_length() - 1), montgomery(backend, [1] * n)
    constant = backend.ntt(backend.put(ones), root, inverse=True)
    rest = backend.put(montgomery(backend, [1] + [0] * (n - 1)))
    assert backend.first_nonzero(backend.pointwise(constant, minus=rest)) is None
    assert backend.first_nonzero(backend.ntt(constant, root)) == 0


def test_plan_and_resident_bytes(backend: Backend) -> None:
    curve = backend.curve
    work = Workload(3, 9, ((5, 11, 2),), (("g1", 2), ("g2", 2)))
    planned = backend.plan(work)
    points = Points.from_affine(curve, "g1", [multiple(curve, "g1", 1)] * 2)
    buffer = backend.put(points)
    assert 0 <= backend.resident_bytes() <= planned
    del buffer
    assert backend.resident_bytes() == 0


def test_marks_are_in_order(backend: Backend) -> None:
    start, x = backend.mark(), backend.put(montgomery(backend, sample(backend.curve, 8)))
    middle = backend.mark()
    ints(backend, backend.pointwise(x, x))
    end = backend.mark()
    parts = [backend.milliseconds(start, middle), backend.milliseconds(middle, end)]
    assert min(parts) >= 0
    assert backend.milliseconds(start, end) == pytest.approx(sum(parts), rel=1e-3, abs=0.01)


def test_free_bytes_is_plausible(backend: Backend) -> None:
    assert backend.free_bytes() > 1 << 20


def test_staged_vectors_are_put(backend: Backend) -> None:
    """They are used before they are settled, and may be settled when they were consumed."""
    r, root = backend.curve.r, backend.curve.root_of_unity(3)
    a, b = (sample(backend.curve, 8, seed) for seed in (1, 2))
    given = [montgomery(backend, x) for x in (a, b)]
    first, second = (backend.stage(x) for x in given)
    product = backend.pointwise(first, second)
    spectrum = backend.ntt(first, root)
    for buffer in (first, second, product):
        backend.settle(buffer)
    backend.settle(second)
    assert ints(backend, product) == [x * y % r for x, y in zip(a, b, strict=True)]
    assert ints(backend, backend.ntt(spectrum, root, inverse=True)) == a
    assert backend.notes() == []


def test_staged_scalars_are_below_r(backend: Backend) -> None:
    """Said by one of the two steps, by number."""
    words = Scalars.from_ints(backend.curve, sample(backend.curve, 8)).words.copy()
    words[5] = words[6] = 2**64 - 1
    if backend.name == "reference":  # which reduces them
        found = ints(backend, backend.stage(Scalars(backend.curve, words)))
        assert found[5] == (2 ** (64 * words.shape[1]) - 1) % backend.curve.r
        return
    with pytest.raises(FormatError, match=r"^scalar 5: expected a value below"):
        backend.settle(backend.stage(Scalars(backend.curve, words)))


def test_lanes_share_points_and_matrices(backend: Backend) -> None:
    """A lane beside uses what the first one put, and the other way round; vectors are its own."""
    curve, wires = backend.curve, 12
    backend.plan(Workload(4, wires, ((16, 32, 5),), (("g1", 3),), lanes=2))
    assert backend.lanes == 2
    lane = backend.beside()
    assert lane.lanes == 2
    assert lane.timeline is backend.timeline
    matrix, w = random_matrix(curve, 16, wires), sample(curve, wires)
    rows = [sum(c * w[j] for c, j in matrix.row(i)) % curve.r for i in range(16)]
    points = Points.from_affine(curve, "g1", [multiple(curve, "g1", k) for k in (2, 3, 5)])
    there, bases = backend.put(matrix), lane.put(points)
    assert lane.resident_bytes() == backend.resident_bytes()
    for each in (lane, backend):
        witness = each.stage(Scalars.from_ints(curve, w))
        assert ints(each, each.product(there, witness, 16)) == rows
        total = each.msm(bases, witness, range(4, 7))
        assert total.affine() == multiple(curve, "g1", 2 * w[4] + 3 * w[5] + 5 * w[6])
        each.settle(witness)


def test_a_backend_records_where_it_is_told(backend: Backend) -> None:
    timeline = Timeline()
    backend.timeline = timeline
    assert backend.timeline is timeline
