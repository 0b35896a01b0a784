"""The processor as a device: :class:`cuzk.backends.Backend` over the native core, one curve, some threads.

A vector is a numpy array with a note of its order. The sparse product writes bit-reversed order, the
inverse NTT reads it and the forward NTT leaves it, so that a proof never permutes a vector: A B - C on
the coset is turned to natural order once, for the last MSM. Points and matrices stay where the caller
has them, a mapped file for instance.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.backends import Buffer, Workload
from cuzk.curves import Curve
from cuzk.errors import DeviceUnavailable, FormatError, KernelError, OutOfMemory
from cuzk.r1cs import EvaluatedMatrix, Matrix, SparseMatrix
from cuzk.timeline import Timeline
from cuzk.vectors import Points, Scalars, Words

MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class Vector:
    """Scalars as a buffer holds them; ``owned`` memory may be overwritten."""

    words: Words
    bit_reversed: bool = False
    owned: bool = True


@contextmanager
def native(verb: str) -> Iterator[None]:
    """Give the native code's exceptions their place in the tree."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(
            f"cpu: {verb} found no memory ({str(error) or 'allocation refused'}), "
            f"{available_bytes()} bytes are free"
        ) from error
    except (ValueError, RuntimeError) as error:
        raise KernelError(f"cpu: {verb}: {error}") from error


def available_bytes() -> int:
    """What the system says programs may still take (0 where it says nothing)."""
    if MEMINFO.exists():
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


class CpuBackend:
    """One curve on ``threads`` threads; calls return when the work is done."""

    name = "cpu"
    title = "CPU"

    def __init__(self, curve: Curve, threads: int) -> None:
        if curve.is_toy:
            raise DeviceUnavailable(
                f"cpu: {curve.title} has no native arithmetic, its proofs are made by the reference backend"
            )
        if threads < 1:
            raise DeviceUnavailable(f"cpu: expected at least 1 thread, found {threads}")
        self.curve = curve
        self.threads = threads
        self.timeline = Timeline()
        self.lanes = 1
        self.waiting = 0  # nothing is copied ahead
        self._twiddles = np.zeros((0, 4), np.uint64)  # of the last root asked for

    def plan(self, work: Workload) -> int:
        """The prover plans the host's memory, for all lanes."""
        self.lanes = work.lanes
        return 0

    def put(self, value: Scalars | Points | Matrix) -> Buffer:
        """Nothing is copied; FormatError names the first scalar that is not below r."""
        if isinstance(value, Scalars):
            words = self._canonical(value, "scalar")
            return self._scalars(Vector(words, owned=False), montgomery=value.montgomery)
        if isinstance(value, Points):
            words = np.ascontiguousarray(value.words)
            return Buffer(self.curve, value.group, len(value), True, words)
        if not value.values.montgomery:
            raise KernelError("cpu: matrix: expected coefficients in Montgomery form")
        self._canonical(value.values, "coefficient")
        return Buffer(self.curve, "matrix", value.rows, True, value)

    def stage(self, values: Scalars) -> Buffer:
        """There is nothing to copy."""
        return self.put(values)

    def settle(self, buffer: Buffer) -> None:
        """It was checked when it was staged."""

    def beside(self) -> CpuBackend:
        """Itself: calls may come from several threads at once, each has its own native threads."""
        return self

    def notes(self) -> list[str]:
        """There is one way only."""
        return []

    def get(self, buffer: Buffer) -> Scalars | Points:
        """A copy of scalars; points are the array that was put."""
        if buffer.kind == "scalar":
            with native("get"):
                given = vector(buffer, "get")
                ordered = self._natural(given)
                words = ordered.words.copy() if ordered is given else ordered.words
                return Scalars(self.curve, words, buffer.montgomery)
        return Points(self.curve, buffer.kind, points(buffer))

    def product(self, matrix: Buffer, witness: Buffer, size: int) -> Buffer:
        """Bit-reversed where ``size`` is a power of two."""
        held = matrix.data
        if not isinstance(held, SparseMatrix | EvaluatedMatrix):
            raise KernelError(f"cpu: product: expected a matrix, found a buffer of {matrix.kind}")
        if witness.montgomery:
            raise KernelError("cpu: product: expected a witness in plain form")
        bit_reversed = size.bit_count() == 1
        with native("product"):
            w = self._natural(vector(witness, "product"))
            out = np.empty((size, 4), np.uint64)
            if isinstance(held, SparseMatrix):
                self._sparse_product(held, w.words, out, bit_reversed=bit_reversed)
            else:
                held.product(w.words, out, bit_reversed=bit_reversed, threads=self.threads)
        return self._scalars(Vector(out, bit_reversed))

    def padded(self, values: Buffer, size: int) -> Buffer:
        """A copy in natural order."""
        if values.length > size:
            raise KernelError(
                f"cpu: padded: expected at most {size} elements, found {values.length}"
            )
        with native("padded"):
            given = self._natural(vector(values, "padded")).words
            out = np.zeros((size, 4), np.uint64)
            if values.montgomery:
                out[: len(given)] = given
            else:
                _core.to_montgomery(self.curve.name, "fr", given, out[: len(given)], self.threads)
        return self._scalars(Vector(out))

    def ntt(self, values: Buffer, root: int, *, inverse: bool = False, shift: int = 1) -> Buffer:
        """In place where the memory is this backend's; ``values`` cannot be used afterwards."""
        given = montgomery_vector(values, "ntt")
        with native("ntt"):
            words = given.words if given.owned else given.words.copy()
            if given.bit_reversed != inverse:
                _core.bit_reverse(words, self.threads)
            w, g = self._element(root), self._element(shift)
            table = self._table(w, len(words))
            _core.ntt(self.curve.name, words, w, g, inverse, self.threads, table)
        values.data = None
        return self._scalars(Vector(words, bit_reversed=not inverse))

    def extend(self, values: Sequence[Buffer], root: int, shift: int) -> list[Buffer]:
        """Two transforms each."""
        return [self.ntt(self.ntt(x, root, inverse=True), root, shift=shift) for x in values]

    def pointwise(
        self,
        a: Buffer,
        b: Buffer | None = None,
        minus: Buffer | None = None,
        scale: int = 1,
        *,
        into: Buffer | None = None,
    ) -> Buffer:
        """Operands of unlike order are brought to natural order first."""
        given = [montgomery_vector(x, "pointwise") for x in (a, b, minus) if x]
        with native("pointwise"):
            if len({x.bit_reversed for x in given}) > 1:
                given = [self._natural(x) for x in given]
            words = [x.words for x in given]
            right = words[1] if b else None
            less = words[-1] if minus else None
            target = vector(into, "pointwise") if into else None
            reusable = target is not None and target.owned and len(target.words) == a.length
            out = target.words if target and reusable else np.empty((a.length, 4), np.uint64)
            factor = self._element(scale)
            _core.pointwise(self.curve.name, words[0], right, less, factor, out, self.threads)
        result = Vector(out, given[0].bit_reversed)
        if into is None:
            return self._scalars(result)
        into.data, into.length, into.montgomery = result, len(out), True
        return into

    def msm(self, bases: Buffer, scalars: Buffer, wires: object = None) -> Points:
        """Scalars in Montgomery form or another order are copied first."""
        with native("msm"):
            words = self._plain(scalars)
            index: NDArray[np.uint32] | None = None
            if isinstance(wires, range):
                words = self._span(words, wires)
            elif isinstance(wires, np.ndarray) and wires.dtype == np.uint32:
                index = np.ascontiguousarray(wires)
            elif wires is not None:
                raise KernelError("cpu: msm: expected wires as None, a range or a uint32 array")
            out = np.zeros((1, self.curve.point_words(bases.kind)), np.uint64)
            _core.msm(self.curve.name, bases.kind, points(bases), words, index, out, self.threads)
        return Points(self.curve, bases.kind, out)

    def start_msm(
        self, bases: Buffer, scalars: Buffer, wires: object = None
    ) -> Callable[[], Points]:
        """There is no queue: the returned function does the work."""
        return partial(self.msm, bases, scalars, wires)

    def combine(self, points: Points, scalars: Scalars) -> Points:
        """An MSM as any other."""
        return self.msm(self.put(points), self.put(scalars))

    def first_nonzero(self, values: Buffer) -> int | None:
        """By a copy in natural order, where there is one at all."""
        given = vector(values, "first_nonzero")
        if not given.words.any():
            return None
        return int(self._natural(given).words.any(axis=1).argmax())

    def mark(self) -> Any:
        """Now: calls return when the work is done."""
        return perf_counter()

    def milliseconds(self, start: Any, end: Any) -> float:
        """Of the clock on the wall."""
        return float(1000 * (end - start))

    def free_bytes(self) -> int:
        """Memory that the system still gives without swapping."""
        return available_bytes()

    def resident_bytes(self) -> int:
        """Nothing was copied."""
        return 0

    def shares(self) -> tuple[int, int]:
        """No memory of its own."""
        return 0, 0

    def streamed_bytes(self) -> int:
        """Nothing has to be copied."""
        return 0

    def _scalars(self, value: Vector, *, montgomery: bool = True) -> Buffer:
        return Buffer(self.curve, "scalar", len(value.words), montgomery, value)

    def _element(self, value: int) -> Words:
        return Scalars.from_ints(self.curve, [value], montgomery=True).words

    def _canonical(self, value: Scalars, what: str) -> Words:
        words = np.ascontiguousarray(value.words)
        bad = _core.first_not_canonical(self.curve.name, "fr", words, self.threads)
        if bad >= 0:
            raise FormatError(
                f"{what} {bad}: expected a value below the scalar field's prime of "
                f"{self.curve.title}, found {int.from_bytes(words[bad].tobytes(), 'little'):#x}"
            )
        return words

    def _sparse_product(
        self, matrix: SparseMatrix, w: Words, out: Words, *, bit_reversed: bool
    ) -> None:
        _core.product(
            self.curve.name,
            np.ascontiguousarray(matrix.row_ptr, np.uint64),
            np.ascontiguousarray(matrix.wires, np.uint32),
            np.ascontiguousarray(matrix.coefficients, np.uint32),
            np.ascontiguousarray(matrix.values.words),
            w,
            out,
            bit_reversed,
            self.threads,
        )

    def _span(self, words: Words, wires: range) -> Words:
        if len(wires) and not (0 <= wires[0] < len(words) and 0 <= wires[-1] < len(words)):
            raise KernelError(
                f"cpu: msm: expected wires within {len(words)} scalars, found {wires}"
            )
        if wires.step != 1:
            return words[np.asarray(wires, np.int64)]
        return words[wires.start : wires.start + len(wires)]

    def _plain(self, scalars: Buffer) -> Words:
        """Plain form, natural order; at most one copy."""
        given = vector(scalars, "msm")
        if not scalars.montgomery:
            return self._natural(given).words
        words = np.empty_like(given.words)
        _core.from_montgomery(self.curve.name, "fr", given.words, words, self.threads)
        if given.bit_reversed:
            _core.bit_reverse(words, self.threads)
        return words

    def _natural(self, value: Vector) -> Vector:
        """A copy in natural order, or the vector itself where it is that already."""
        if not value.bit_reversed:
            return value
        words = value.words.copy()
        _core.bit_reverse(words, self.threads)
        return Vector(words)

    def _table(self, root: Words, n: int) -> Words | None:
        """Twiddles of ``root``, kept from one transform to the next: a proof has seven of them."""
        if n < 4:
            return None
        table = self._twiddles
        if len(table) < n // 2 or (table[n // 4] != root[0]).any():
            table = np.empty((n // 2, 4), np.uint64)
            _core.twiddles(self.curve.name, root, table, self.threads)
            self._twiddles = table
        return table


def vector(buffer: Buffer, verb: str) -> Vector:
    """The scalars of a buffer of this backend that was not consumed."""
    if not isinstance(buffer.data, Vector):
        found = "one already consumed" if buffer.data is None else f"one of {buffer.kind}"
        raise KernelError(f"cpu: {verb}: expected a buffer of scalars, found {found}")
    return buffer.data


def montgomery_vector(buffer: Buffer, verb: str) -> Vector:
    """The same, in the form that arithmetic needs."""
    if not buffer.montgomery:
        raise KernelError(f"cpu: {verb}: expected scalars in Montgomery form, found plain ones")
    return vector(buffer, verb)


def points(buffer: Buffer) -> Words:
    """The words of a buffer of points."""
    if not isinstance(buffer.data, np.ndarray):
        raise KernelError(f"cpu: expected a buffer of points, found one of {buffer.kind}")
    return buffer.data
