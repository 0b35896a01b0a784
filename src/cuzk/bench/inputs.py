"""Large inputs, quickly: scalars below r, and points whose logarithms are known.

Points are 2^16 different multiples of the generator, repeated: making one costs microseconds of a core,
copying one nanoseconds. Equal points lie 2^16 places apart; with uniform scalars two entries of a bucket
hold the same point with probability below 2^-16, so hardly one addition in 65,536 is a doubling.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import Curve
from cuzk.setup.scalars import multiples
from cuzk.vectors import Points, Scalars, Words

DISTINCT = 1 << 16
BLOCK = 1 << 18  # rows one thread makes at a time, with a generator of its own
KINDS = ("random", "witness", "ones")


@dataclass(frozen=True)
class Known:
    """The points k_0 G .. k_(m-1) G of one group, and the k in Montgomery form."""

    points: Points
    logarithms: Scalars

    def repeated(self, n: int, threads: int, first: int = 0) -> Points:
        """n points: number i is k_((first + i) mod m) G."""
        few = np.roll(self.points.words, -first, axis=0) if first else self.points.words
        m = len(few)
        words = np.empty((n, few.shape[1]), np.uint64)

        def copy(block: int) -> None:
            part = words[block * m : (block + 1) * m]
            part[:] = few[: len(part)]

        _each(copy, -(-n // m), threads)
        return Points(self.points.curve, self.points.group, words)


@cache
def known_points(curve: Curve, group: str, count: int, threads: int) -> Known:
    """``count`` multiples of the generator by uniform scalars, the same ones every time."""
    plain = uniform(curve, count, 1, threads)
    logarithms = Scalars.from_ints(curve, plain.ints(), montgomery=True)
    return Known(multiples(logarithms, group, threads), logarithms)


def distinct(n: int) -> int:
    """How many different points stand behind n."""
    return max(1, min(n, DISTINCT))


def scalars(curve: Curve, kind: str, n: int, seed: int, threads: int) -> Scalars:
    """Plain scalars of one of KINDS.

    "witness" is a half zeros, a quarter ones, an eighth of 16 bits and an eighth of full length, mixed.
    """
    if kind == "ones":
        words = np.zeros((n, curve.fr_words), np.uint64)
        words[:, 0] = 1
        return Scalars(curve, words)
    found = uniform(curve, n, seed, threads)
    if kind == "witness":
        part = np.random.default_rng(seed).integers(0, 8, n, dtype=np.uint8)
        found.words[part < 7, 1:] = 0
        found.words[part == 6, 0] &= np.uint64(0xFFFF)
        found.words[part < 6, 0] = 1
        found.words[part < 4, 0] = 0
    return found


def uniform(curve: Curve, n: int, seed: int, threads: int) -> Scalars:
    """Plain scalars, uniform below r."""
    return Scalars(curve, uniform_below(curve.r, n, seed, threads))


def uniform_below(bound: int, n: int, seed: int, threads: int) -> Words:
    """Rows of words, by rejection; the same for the same seed, whatever the number of threads."""
    words = np.empty((n, -(-bound.bit_length() // 64)), np.uint64)
    top = np.uint64((1 << ((bound.bit_length() - 1) % 64 + 1)) - 1)

    def draw(block: int) -> None:
        rows = words[block * BLOCK : (block + 1) * BLOCK]
        generator = np.random.default_rng([seed, block])
        again = np.ones(len(rows), np.bool_)
        while again.any():
            fresh = generator.integers(0, 2**64, (int(again.sum()), rows.shape[1]), np.uint64)
            fresh[:, -1] &= top
            rows[again] = fresh
            again = not_below(rows, bound)

    _each(draw, -(-n // BLOCK), threads)
    return words


def not_below(words: Words, bound: int) -> NDArray[np.bool_]:
    """(n,) flags of rows whose number is ``bound`` or more."""
    above = np.zeros(len(words), np.bool_)
    equal = np.ones(len(words), np.bool_)
    for k in reversed(range(words.shape[1])):
        limb = np.uint64(bound >> (64 * k) & (2**64 - 1))
        above |= equal & (words[:, k] > limb)
        equal &= words[:, k] == limb
        if not equal.any():
            break
    flags: NDArray[np.bool_] = above | equal
    return flags


def _each(work: Callable[[int], None], count: int, threads: int) -> None:
    """``work`` of 0 .. count - 1; numpy lets other threads run while it copies and draws."""
    with ThreadPoolExecutor(max(1, min(threads, count))) as pool:
        for _ in pool.map(work, range(count)):
            pass
