"""A whole backend in Python integers: slow, obvious, and the oracle for the fast ones.

Scalars are lists of plain integers whatever form the buffer claims; points are ``None`` (infinity) or a
pair of Fp2 elements (c0, c1), with c1 = 0 throughout in G1; on TOY a point is its discrete logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from cuzk.backends import Buffer, Workload
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.r1cs import Matrix
from cuzk.timeline import Timeline
from cuzk.vectors import Affine, Points, Scalars, unpack

Fp2 = tuple[int, int]
Point = tuple[Fp2, Fp2] | None


@dataclass(frozen=True)
class Group:
    """Chord and tangent over Fp2 = Fp[u]/(u^2 + 1)."""

    p: int

    def mul(self, a: Fp2, b: Fp2) -> Fp2:
        return (a[0] * b[0] - a[1] * b[1]) % self.p, (a[0] * b[1] + a[1] * b[0]) % self.p

    def sub(self, a: Fp2, b: Fp2) -> Fp2:
        return (a[0] - b[0]) % self.p, (a[1] - b[1]) % self.p

    def div(self, a: Fp2, b: Fp2) -> Fp2:
        norm = pow(b[0] * b[0] + b[1] * b[1], -1, self.p)
        return self.mul(a, (b[0] * norm % self.p, -b[1] * norm % self.p))

    def add(self, left: Point, right: Point) -> Point:
        if left is None or right is None:
            return right if left is None else left
        (x1, y1), (x2, y2) = left, right
        if x1 != x2:
            slope = self.div(self.sub(y2, y1), self.sub(x2, x1))
        elif y1 == y2 and y1 != (0, 0):
            square = self.mul(x1, x1)
            slope = self.div((3 * square[0], 3 * square[1]), (2 * y1[0], 2 * y1[1]))
        else:
            return None
        x3 = self.sub(self.sub(self.mul(slope, slope), x1), x2)
        return x3, self.sub(self.mul(slope, self.sub(x1, x3)), y1)

    def sum(self, points: Sequence[Point], scalars: Sequence[int]) -> Point:
        """sum scalars[i] * points[i], four bits at a time: sum_d d * bucket_d by running sums."""
        total: Point = None
        top = max((k.bit_length() for k in scalars), default=0)
        for low in range(-(-top // 4) * 4 - 4, -1, -4):
            for _ in range(4):
                total = self.add(total, total)
            buckets: list[Point] = [None] * 16
            for point, k in zip(points, scalars, strict=True):
                digit = k >> low & 15
                if digit:
                    buckets[digit] = self.add(buckets[digit], point)
            running: Point = None
            for bucket in reversed(buckets[1:]):
                running = self.add(running, bucket)
                total = self.add(total, running)
        return total


def affine_points(points: Points) -> list[Affine]:
    """Every point's plain coordinates (``Points.affine`` does one)."""
    curve, per = points.curve, points.curve.coordinates(points.group)
    factor = pow(2, -64 * curve.fp_words, curve.p)
    flat = [v * factor % curve.p for v in unpack(points.words.reshape(-1, curve.fp_words))]
    rows = [tuple(flat[i : i + per]) for i in range(0, len(flat), per)]
    return [row if any(row) else None for row in rows]


def sum_points(
    curve: Curve, group: str, points: Sequence[Affine], scalars: Sequence[int]
) -> Affine:
    """The multi-scalar multiplication on integers."""
    if curve.is_toy:
        logs = [point[0] if point else 0 for point in points]
        value = sum(k * log for k, log in zip(scalars, logs, strict=True)) % curve.r
        return (value,) if value else None
    split: list[Point] = []
    for q in points:
        if q is None:
            split.append(None)
        else:
            split.append(((q[0], 0), (q[1], 0)) if group == "g1" else ((q[0], q[1]), (q[2], q[3])))
    total = Group(curve.p).sum(split, scalars)
    if total is None:
        return None
    (x, y) = total
    return (x[0], y[0]) if group == "g1" else (*x, *y)


def transform(values: Sequence[int], root: int, r: int) -> list[int]:
    """y_j = sum_i x_i root^(ij), by even and odd halves."""
    if len(values) == 1:
        return [values[0] % r]
    even = transform(values[0::2], root * root % r, r)
    odd = transform(values[1::2], root * root % r, r)
    out, power = [0] * len(values), 1
    for i, (x, y) in enumerate(zip(even, odd, strict=True)):
        out[i] = (x + power * y) % r
        out[i + len(even)] = (x - power * y) % r
        power = power * root % r
    return out


class ReferenceBackend:
    """:class:`cuzk.backends.Backend` on lists."""

    name = "reference"
    title = "Python"

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.timeline = Timeline()
        self.lanes, self.waiting = 1, 0

    def scalars(self, values: list[int], *, montgomery: bool = True) -> Buffer:
        return Buffer(self.curve, "scalar", len(values), montgomery, values)

    def ints(self, buffer: Buffer) -> list[int]:
        if not isinstance(buffer.data, list):
            raise TypeError(f"a buffer of {type(buffer.data)}")
        return buffer.data

    def plan(self, work: Workload) -> int:
        self.lanes = work.lanes
        return 0

    def put(self, value: Scalars | Points | Matrix) -> Buffer:
        if isinstance(value, Scalars):
            return self.scalars(value.ints(), montgomery=value.montgomery)
        if isinstance(value, Points):
            return Buffer(self.curve, value.group, len(value), True, affine_points(value))
        rows = [value.row(i) for i in range(value.rows)]
        return Buffer(self.curve, "matrix", value.rows, False, rows)

    def stage(self, values: Scalars) -> Buffer:
        return self.put(values)

    def settle(self, buffer: Buffer) -> None:
        pass

    def beside(self) -> ReferenceBackend:
        return self

    def notes(self) -> list[str]:
        return []

    def get(self, buffer: Buffer) -> Scalars | Points:
        values = self.ints(buffer)
        if buffer.kind == "scalar":
            return Scalars.from_ints(self.curve, values, montgomery=buffer.montgomery)
        return Points.from_affine(self.curve, buffer.kind, values)  # type: ignore[arg-type]

    def product(self, matrix: Buffer, witness: Buffer, size: int) -> Buffer:
        w, rows = self.ints(witness), self.ints(matrix)
        values = [sum(c * w[j] for c, j in row) % self.curve.r for row in rows]  # type: ignore[attr-defined]
        return self.scalars(values + [0] * (size - len(values)))

    def padded(self, values: Buffer, size: int) -> Buffer:
        given = self.ints(values)
        if len(given) > size:
            raise KernelError(f"reference: padded: expected at most {size}, found {len(given)}")
        return self.scalars(given + [0] * (size - len(given)))

    def ntt(self, values: Buffer, root: int, *, inverse: bool = False, shift: int = 1) -> Buffer:
        r, x, n = self.curve.r, self.ints(values), values.length
        if inverse:
            y = transform(x, pow(root, -1, r), r)
            return self.scalars([v * pow(n * pow(shift, i, r), -1, r) % r for i, v in enumerate(y)])
        return self.scalars(transform([v * pow(shift, i, r) for i, v in enumerate(x)], root, r))

    def extend(self, values: Sequence[Buffer], root: int, shift: int) -> list[Buffer]:
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
        factors = self.ints(b) if b else [1] * a.length
        less = self.ints(minus) if minus else [0] * a.length
        rows = zip(self.ints(a), factors, less, strict=True)
        result = self.scalars([(x * y - z) * scale % self.curve.r for x, y, z in rows])
        if into is None:
            return result
        into.data = result.data
        return into

    def msm(self, bases: Buffer, scalars: Buffer, wires: object = None) -> Points:
        k = self.ints(scalars)
        chosen = range(bases.length) if wires is None else wires
        picked = [k[int(i)] for i in chosen]  # type: ignore[attr-defined]
        points: list[Affine] = self.ints(bases)  # type: ignore[assignment]
        total = sum_points(self.curve, bases.kind, points, picked)
        return Points.from_affine(self.curve, bases.kind, [total])

    def start_msm(
        self, bases: Buffer, scalars: Buffer, wires: object = None
    ) -> Callable[[], Points]:
        return partial(self.msm, bases, scalars, wires)

    def combine(self, points: Points, scalars: Scalars) -> Points:
        return self.msm(self.put(points), self.put(scalars))

    def first_nonzero(self, values: Buffer) -> int | None:
        return next((i for i, value in enumerate(self.ints(values)) if value), None)

    def mark(self) -> Any:
        return perf_counter()

    def milliseconds(self, start: Any, end: Any) -> float:
        return float(1000 * (end - start))

    def free_bytes(self) -> int:
        return 1 << 40

    def resident_bytes(self) -> int:
        return 0

    def shares(self) -> tuple[int, int]:
        return 0, 0

    def streamed_bytes(self) -> int:
        return 0
