"""What is the CPU backend's own: orders of vectors, ownership, forms, its errors. The verbs are tested in test_backend."""

from pathlib import Path

import numpy as np
import pytest

from cuzk import _core
from cuzk.backends import Buffer, cpu
from cuzk.backends.cpu import CpuBackend
from cuzk.curves import TOY, Curve
from cuzk.errors import DeviceUnavailable, FormatError, KernelError, OutOfMemory
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Points, Scalars


@pytest.fixture
def backend(curve: Curve) -> CpuBackend:
    return CpuBackend(curve, threads=2)


def scalars(backend: CpuBackend, buffer: Buffer) -> list[int]:
    found = backend.get(buffer)
    assert isinstance(found, Scalars)
    return found.ints()


def put(backend: CpuBackend, values: list[int]) -> Buffer:
    return backend.put(Scalars.from_ints(backend.curve, values, montgomery=True))


def identity(curve: Curve, n: int) -> SparseMatrix:
    return SparseMatrix(
        np.arange(n + 1, dtype=np.uint64),
        np.arange(n, dtype=np.uint32),
        np.zeros(n, np.uint32),
        Scalars.from_ints(curve, [1, -1], montgomery=True),
    )


def test_orders_meet(backend: CpuBackend) -> None:
    """A bit-reversed operand and a natural one: products, transforms, both directions."""
    r, n = backend.curve.r, 16
    w = list(range(1, n + 1))
    witness = backend.put(Scalars.from_ints(backend.curve, w))
    matrix = backend.put(identity(backend.curve, n))

    def reversed_vector() -> Buffer:
        buffer = backend.product(matrix, witness, n)
        assert isinstance(buffer.data, cpu.Vector)
        assert buffer.data.bit_reversed
        return buffer

    assert scalars(backend, reversed_vector()) == w
    natural = put(backend, w)
    mixed = backend.pointwise(reversed_vector(), natural, minus=reversed_vector())
    assert scalars(backend, mixed) == [v * v - v for v in w]
    root = backend.curve.root_of_unity(4)
    values = [sum(v * pow(root, i * j, r) for i, v in enumerate(w)) % r for j in range(n)]
    assert scalars(backend, backend.ntt(reversed_vector(), root)) == values
    assert scalars(backend, backend.ntt(put(backend, values), root, inverse=True)) == w


def test_what_was_put_is_never_written(backend: CpuBackend) -> None:
    value = Scalars.from_ints(backend.curve, list(range(64)), montgomery=True)
    words = value.words.copy()
    mine = Scalars(backend.curve, words, montgomery=True)
    root = backend.curve.root_of_unity(6)
    backend.ntt(backend.put(mine), root)
    backend.ntt(backend.put(mine), root, inverse=True)
    buffer = backend.put(mine)
    backend.pointwise(buffer, buffer, into=buffer)
    assert (words == value.words).all()
    assert scalars(backend, buffer) == [i * i for i in range(64)]


def test_get_is_a_copy(backend: CpuBackend) -> None:
    buffer = backend.pointwise(put(backend, [1, 2, 3, 4]), scale=5)
    seen = backend.get(buffer)
    backend.ntt(buffer, backend.curve.root_of_unity(2))
    assert isinstance(seen, Scalars)
    assert seen.ints() == [5, 10, 15, 20]


def test_consumed_buffers_are_refused(backend: CpuBackend) -> None:
    buffer = put(backend, [1, 2, 3, 4])
    backend.ntt(buffer, backend.curve.root_of_unity(2))
    with pytest.raises(KernelError, match="already consumed"):
        backend.get(buffer)


def test_twiddles_follow_the_root(backend: CpuBackend) -> None:
    """Sizes up and down, and another generator's roots: the kept table must never be the wrong one."""
    curve = backend.curve
    for generator in (curve.generator, curve.bellman_generator, curve.generator):
        for log_n in (3, 6, 2, 6, 1, 0, 7):
            n, root = 1 << log_n, curve.root_of_unity(log_n, generator)
            w = list(range(2, n + 2))
            found = scalars(backend, backend.ntt(put(backend, w), root, shift=3))
            for j in (0, n // 3, n - 1):
                x = 3 * pow(root, j, curve.r)
                assert found[j] == sum(v * pow(x, i, curve.r) for i, v in enumerate(w)) % curve.r


def test_forms_are_checked(backend: CpuBackend) -> None:
    plain = backend.put(Scalars.from_ints(backend.curve, [1, 2]))
    montgomery = put(backend, [1, 2])
    matrix = backend.put(identity(backend.curve, 2))
    root = backend.curve.root_of_unity(1)
    with pytest.raises(KernelError, match="ntt: expected scalars in Montgomery form"):
        backend.ntt(plain, root)
    with pytest.raises(KernelError, match="pointwise: expected scalars in Montgomery form"):
        backend.pointwise(montgomery, plain)
    with pytest.raises(KernelError, match="product: expected a witness in plain form"):
        backend.product(matrix, montgomery, 2)
    with pytest.raises(KernelError, match="product: expected a matrix, found a buffer of scalar"):
        backend.product(plain, plain, 2)
    with pytest.raises(KernelError, match="ntt: expected a buffer of scalars, found one of matrix"):
        backend.ntt(matrix, root)


def test_values_not_below_the_prime_are_named(backend: CpuBackend) -> None:
    words = Scalars.from_ints(backend.curve, list(range(3000))).words.copy()
    words[2718] = np.frombuffer(backend.curve.r.to_bytes(32, "little"), np.uint64)
    with pytest.raises(FormatError, match=f"scalar 2718: .* found {backend.curve.r:#x}"):
        backend.put(Scalars(backend.curve, words))


def test_native_refusals_are_kernel_errors(backend: CpuBackend) -> None:
    root = backend.curve.root_of_unity(2)
    with pytest.raises(KernelError, match=r"ntt: .*power of two, found 3"):
        backend.ntt(put(backend, [1, 2, 3]), root)
    with pytest.raises(KernelError, match="ntt: root: expected a primitive root"):
        backend.ntt(put(backend, [1, 2]), root)
    witness = backend.put(Scalars.from_ints(backend.curve, [1, 2]))
    with pytest.raises(KernelError, match="product: row 2: wire 2 of 2"):
        backend.product(backend.put(identity(backend.curve, 3)), witness, 4)


def test_wires_of_an_msm_are_checked(backend: CpuBackend) -> None:
    bases = backend.put(Points.from_affine(backend.curve, "g1", [backend.curve.g1[:2]] * 2))
    k = put(backend, [1, 2, 3])
    for wires in (range(2, 4), range(-1, 1)):
        with pytest.raises(KernelError, match="expected wires within 3 scalars"):
            backend.msm(bases, k, wires)
    with pytest.raises(KernelError, match="expected wires as None, a range or a uint32 array"):
        backend.msm(bases, k, np.array([0, 1]))


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("offset", [0, 4])
def test_points_of_a_mapped_file(
    backend: CpuBackend, tmp_path: Path, group: str, offset: int
) -> None:
    """Read-only memory, at any offset, goes to the native code as it is."""
    curve = backend.curve
    generator = curve.g1 if group == "g1" else curve.g2
    points = Points.from_affine(curve, group, [generator, None, generator])
    path = tmp_path / "points"
    path.write_bytes(bytes(offset) + points.words.tobytes())
    mapped = np.memmap(path, "<u8", "r", offset, points.words.shape)
    bases = backend.put(Points(curve, group, mapped))
    assert np.shares_memory(bases.data, mapped)
    total = backend.msm(bases, put(backend, [3, 4, curve.r - 2]))
    assert total.affine() == generator


def test_no_memory_is_a_typed_error(backend: CpuBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError("Unable to allocate 3 TiB")

    monkeypatch.setattr(_core, "pointwise", refuse)
    with pytest.raises(OutOfMemory, match=r"cpu: pointwise found no memory .*3 TiB"):
        backend.pointwise(put(backend, [1]))


def test_an_impossible_size_is_out_of_memory(backend: CpuBackend) -> None:
    witness = backend.put(Scalars.from_ints(backend.curve, [1]))
    matrix = backend.put(identity(backend.curve, 1))
    with pytest.raises(OutOfMemory):
        backend.product(matrix, witness, 1 << 56)


def test_free_bytes(backend: CpuBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:     1234 kB\n")
    monkeypatch.setattr(cpu, "MEMINFO", meminfo)
    assert backend.free_bytes() == 1234 * 1024
    monkeypatch.setattr(cpu, "MEMINFO", tmp_path / "absent")
    assert backend.free_bytes() > 1 << 20


def test_what_cannot_be_made(curve: Curve) -> None:
    with pytest.raises(DeviceUnavailable, match="reference backend"):
        CpuBackend(TOY, threads=1)
    with pytest.raises(DeviceUnavailable, match="at least 1 thread, found 0"):
        CpuBackend(curve, threads=0)
