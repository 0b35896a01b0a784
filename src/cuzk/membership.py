"""Do points belong to their group: coordinates below p, on the curve, of order r?

    BN254      G1 is the whole curve; G2 a subgroup of the twist
    BLS12-381  both are subgroups

Infinity belongs. On TOY, whose points are scalars, only the range is a question. What was found good is
remembered on the vector itself where nobody can write its words (a view of a mapped file may change, so may
a read-only view of an array), so that a verifying key with 100,000 points is checked once, by whoever sees
it first.
"""

from __future__ import annotations

import numpy as np

from cuzk import _core
from cuzk.errors import FormatError
from cuzk.vectors import Points, Words, unpack

EXPECTED = {
    "range": "to have coordinates below the base field's prime",
    "curve": "to lie on the curve",
    "subgroup": "to lie in the subgroup of order r",
}
"""Reason -> what a point was expected to do."""

FOUND = {
    "range": "a coordinate is not below p",
    "curve": "not on the curve",
    "subgroup": "not in the subgroup",
}
"""Reason -> what is wrong with a point."""


def first_bad(points: Points, *, subgroup: bool = True, threads: int = 1) -> tuple[int, str]:
    """(index, reason) of the first point that does not belong, (-1, "") when all do.

    Reasons: the keys of :data:`EXPECTED`. ``subgroup=False`` leaves out the order, for points that are
    trusted by a digest. FormatError where the words are no points at all.
    """
    width, words = points.curve.point_words(points.group), points.words
    if words.ndim != 2 or words.shape[1] != width or words.dtype != np.uint64:
        raise FormatError(
            f"points of {points.curve.title} {points.group}: expected a (n, {width}) array of uint64, "
            f"found {words.shape} of {words.dtype}"
        )
    if points.known_good:
        return -1, ""
    if points.curve.is_toy:
        values = unpack(points.words)
        bad = next((i for i, value in enumerate(values) if value >= points.curve.p), -1)
        return bad, "range" if bad >= 0 else ""
    words = np.ascontiguousarray(words)
    index, reason = _core.first_bad_point(points.curve.name, points.group, words, subgroup, threads)
    if index < 0 and subgroup and _is_constant(points.words):
        points.remember_good()
    return index, reason


def _is_constant(words: Words) -> bool:
    """Memory of its own or of ``bytes``, and read-only all the way down."""
    array: object = words
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)
