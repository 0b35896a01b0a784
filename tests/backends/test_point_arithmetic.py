"""The device's point arithmetic, built for the host, against chord and tangent in Python's integers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from cuzk.backends.cuda.machine import Unit
from cuzk.constants import to_montgomery
from cuzk.curves import Curve
from cuzk.vectors import pack, unpack
from emulator import EmulatedMachine
from reference import Fp2, Group, Point


@dataclass
class Lab:
    """One group of a curve: points as the kernels hold them, and their law in integers."""

    curve: Curve
    group: str
    law: Group = field(init=False)
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.law = Group(self.curve.p)
        self.rng = random.Random(f"{self.curve.name} {self.group}")

    @property
    def coordinates(self) -> int:
        """Elements of Fp in one coordinate."""
        return 1 if self.group == "g1" else 2

    def random_point(self) -> Point:
        flat = self.curve.g1 if self.group == "g1" else self.curve.g2
        generator = ((flat[0], 0), (flat[1], 0))
        if self.group == "g2":
            generator = ((flat[0], flat[1]), (flat[2], flat[3]))
        return self.law.sum([generator], [self.rng.randrange(1, 2**40)])

    def opposite(self, point: Point) -> Point:
        return point and (point[0], self.law.sub((0, 0), point[1]))

    def scaled(self, point: Point) -> list[Fp2]:
        """X, Y, ZZ, ZZZ with a random Z; infinity with X and Y that are not zero."""
        z = (self.rng.randrange(1, self.law.p), self.rng.randrange(self.law.p))
        if self.coordinates == 1:
            z = (z[0], 0)
        if point is None:
            return [z, z, (0, 0), (0, 0)]
        zz = self.law.mul(z, z)
        zzz = self.law.mul(zz, z)
        return [self.law.mul(point[0], zz), self.law.mul(point[1], zzz), zz, zzz]

    def words(self, elements: list[Fp2]) -> np.ndarray:
        p, count = self.law.p, self.curve.fp_words
        flat = [to_montgomery(c, p, count) for e in elements for c in e[: self.coordinates]]
        return pack(flat, count)

    def run(self, kernel: str, operands: np.ndarray, threads: int, steps: int) -> list[Point]:
        p, count, machine = self.law.p, self.curve.fp_words, EmulatedMachine()
        source = machine.alloc(operands.nbytes)
        machine.upload(source, operands)
        result = np.empty((threads * 4 * self.coordinates, count), np.uint64)
        out = machine.alloc(result.nbytes)
        unit = Unit("point_rates.cu", self.curve, self.group)
        machine.launch(unit, kernel, 1, threads, source, out, steps)
        machine.download(out, result)
        flat, leave = unpack(result), pow(2, -64 * count, p)
        assert all(value < p for value in flat)
        plain = [value * leave % p for value in flat]
        pad = [(*plain[i : i + self.coordinates], 0)[:2] for i in range(0, len(plain), self.coordinates)]  # fmt: skip
        sums: list[Point] = []
        for x, y, zz, zzz in zip(*(pad[i::4] for i in range(4)), strict=True):
            cube, square = self.law.mul(zz, self.law.mul(zz, zz)), self.law.mul(zzz, zzz)
            assert cube == square
            sums.append(None if zz == (0, 0) else (self.law.div(x, zz), self.law.div(y, zzz)))
        return sums

    def pairs(self) -> list[tuple[Point, Point]]:
        """Different, equal, opposite and infinite ones, and sums that become those in two steps."""
        points = [self.random_point() for _ in range(6)]
        found: list[tuple[Point, Point]] = [
            (a, b) for a in points[:3] for b in (*points[3:], a, self.opposite(a), None)
        ]
        twice = self.law.add(points[0], points[0])
        found += [(None, points[0]), (None, None), (self.opposite(twice), points[0])]
        return found


@pytest.fixture(params=["g1", "g2"])
def lab(curve: Curve, request: pytest.FixtureRequest) -> Lab:
    return Lab(curve, request.param)


@pytest.mark.parametrize("steps", [1, 3])
def test_affine_points_are_added(lab: Lab, steps: int) -> None:
    pairs, expected = lab.pairs(), []
    for total, point in pairs:
        for _ in range(steps):
            total = lab.law.add(total, point)
        expected.append(total)
    zero: Fp2 = (0, 0)
    operands = lab.words([c for pair in pairs for point in pair for c in point or (zero, zero)])
    assert lab.run("add_mixed", operands, len(pairs), steps) == expected


@pytest.mark.parametrize("steps", [1, 3])
def test_scaled_points_are_added(lab: Lab, steps: int) -> None:
    pairs, expected = lab.pairs(), []
    for total, point in pairs:
        for _ in range(steps):
            total = lab.law.add(total, point)
        expected.append(total)
    operands = lab.words([c for pair in pairs for point in pair for c in lab.scaled(point)])
    assert lab.run("add_full", operands, len(pairs), steps) == expected


def test_scaled_points_are_doubled(lab: Lab) -> None:
    points = [*(lab.random_point() for _ in range(5)), None]
    expected = [lab.law.add(point, point) for point in points]
    operands = lab.words([c for point in points for c in lab.scaled(point)])
    assert lab.run("double_sum", operands, len(points), 1) == expected


def test_coordinates_are_multiplied(lab: Lab) -> None:
    """Fp2 where the group is G2: edges of both parts against each other."""
    p, count = lab.law.p, lab.curve.fp_words
    enter, leave = 1 << 64 * count, pow(2, -64 * count, p)
    parts = [0, 1, p - 1, (p - 1) // 2, 2 ** (p.bit_length() - 1) - 1, lab.rng.randrange(p)]
    held = [v * leave % p for v in parts[:5]] + parts  # edges in Montgomery form and as integers
    seconds = held if lab.coordinates == 2 else [0]
    values = [(x, y) for x in held for y in seconds]
    a, b = ([lab.rng.choice(values) for _ in range(500)] for _ in range(2))
    unit, machine = Unit("point_rates.cu", lab.curve, lab.group), EmulatedMachine()

    def run(kernel: str, rows: list[Fp2]) -> list[Fp2]:
        operands = lab.words(rows)
        memory = machine.alloc(operands.nbytes)
        machine.upload(memory, operands)
        machine.launch(unit, kernel, 1, 500, memory, memory, 1)
        machine.download(memory, operands)
        flat = [v * leave % p for v in unpack(operands)]
        step = lab.coordinates
        return [(flat[i], flat[i + 1] if step == 2 else 0) for i in range(0, len(flat), step)]

    assert enter * leave % p == 1
    product = [lab.law.mul(x, y) for x, y in zip(a, b, strict=True)]
    both = [e for x, y in zip(product, b, strict=True) for e in (x, lab.law.mul(y, x))]
    assert run("multiply_coordinate", [e for pair in zip(a, b, strict=True) for e in pair]) == both
    squares = [lab.law.mul(x, x) for x in a]
    assert run("square_coordinate", a) == [lab.law.mul(x, x) for x in squares]
