"""Products by constants in loose form (``native/gpu/shoup.hpp``) against Python's integers, mostly at the edges."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from cuzk.backends.cuda.machine import Unit
from cuzk.curves import Curve
from cuzk.vectors import pack, unpack
from emulator import EmulatedMachine


def run(curve: Curve, kernel: str, values: list[int], threads: int, argument: int) -> list[int]:
    machine, flat = EmulatedMachine(), pack(values, curve.fr_words)
    source, out = machine.alloc(flat.nbytes), machine.alloc(flat.nbytes)
    machine.upload(source, flat)
    machine.launch(Unit("loose_rates.cu", curve), kernel, 1, threads, source, out, argument)
    result = np.empty_like(flat)
    machine.download(out, result)
    return unpack(result)


def loose(curve: Curve) -> list[int]:
    """Values in [0, 2r): the ends of the range, limbs of all ones and of zeros."""
    r, rng = curve.r, random.Random(curve.name)
    top = 2 * r >> 224
    limbs = [(top - 1) << 224, ((top - 1) << 224) + (1 << 224) - 1, (top << 224) - (1 << 192)]
    edges = [0, 1, 2**32 - 1, 2**64 - 1, r - 1, r, r + 1, 2 * r - 2, 2 * r - 1]
    return edges + limbs + [rng.randrange(2 * r) for _ in range(4)]


def constants(curve: Curve) -> list[int]:
    """Plain values below r, also such that floor(2^256 w / r) is all ones or a single bit, and next to them."""
    r, rng = curve.r, random.Random(curve.name)
    near = [(r << k >> 256) + d for k in (32, 64, 128, 224, 255) for d in (-1, 0, 1)]
    return [0, 1, 2, r - 1, r - 2, (r - 1) // 2, *near, *(rng.randrange(r) for _ in range(4))]


def short_quotients(curve: Curve, w: int) -> list[int]:
    """x with v x a little above a multiple of 2^256, v = floor(2^256 w / r): the quotient comes out one less."""
    v = (w << 256) // curve.r
    found = [t * pow(v, -1, 1 << 256) % (1 << 256) for t in range(1, 9)] if v % 2 else []
    return [x for x in found if x < 2 * curve.r]


def test_butterflies(curve: Curve) -> None:
    r, tried = curve.r, 0
    for w in constants(curve):
        short = short_quotients(curve, w)
        values, tried = loose(curve) + short, tried + len(short)
        for b in range(0, len(values) ** 2, 98):
            rows = list(product(values, values))[b : b + 98]
            flat = [x for row in rows for x in (*row, (w << 256) % r)]
            found = run(curve, "butterfly_fr", flat, len(rows), 1)
            for i, (x, y) in enumerate(rows):
                a, c = x + w * y, x - w * y
                assert (found[3 * i] - (a + c)) % r == 0, (x, y, w)
                assert (found[3 * i + 1] - w * (c - a)) % r == 0, (x, y, w)
                assert max(found[3 * i], found[3 * i + 1]) < 2 * r, (x, y, w)
    assert tried > 20


@pytest.mark.parametrize("log", [1, 2, 20, 31])
def test_divisions_and_reductions(curve: Curve, log: int) -> None:
    r, values = curve.r, loose(curve)
    found = run(curve, "endings_fr", [x for x in values for _ in (0, 1)], len(values), log)
    wanted = [v for x in values for v in (x * pow(2, -log, r) % r, x % r)]
    assert found == wanted
