"""Do points belong to their group: coordinates below p, on the curve, of order r?

    BN254      G1 is the whole curve; G2 a subgroup of the twist
    BLS12-381  both are subgroups

Infinity belongs. On TOY, whose points are scalars, only the range is a question. What was found good is
remembered on the vector itself as long as nobody can write its words, so that a verifying key with
100,000 points is checked once, by whoever sees it first.
"""

from __future__ import annotations

import numpy as np

from cuzk import _core
from cuzk.vectors import Points, unpack

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
    trusted by a digest.
    """
    if points.known_good:
        return -1, ""
    if points.curve.is_toy:
        values = unpack(points.words)
        bad = next((i for i, value in enumerate(values) if value >= points.curve.p), -1)
        return bad, "range" if bad >= 0 else ""
    words = np.ascontiguousarray(points.words)
    index, reason = _core.first_bad_point(points.curve.name, points.group, words, subgroup, threads)
    if index < 0 and subgroup and not points.words.flags.writeable:
        points.remember_good()
    return index, reason
