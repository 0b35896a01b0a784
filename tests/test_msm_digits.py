"""The top signed digit of an MSM: scalars that fill their last window up to a word's end carry out of the word."""

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import Curve
from cuzk.vectors import Points, pack
from reference import sum_points


@pytest.mark.parametrize("bits", [62, 63, 64, 126, 127, 128, 190, 191, 192, 252, 253])
@pytest.mark.parametrize("count", [1, 130])
def test_scalars_of_all_ones(curve: Curve, arithmetic: str, bits: int, count: int) -> None:
    """One point takes the table of multiples, 130 take the buckets."""
    assert _core.path() == arithmetic
    scalar = (1 << bits) - 1
    bases = Points.from_affine(curve, "g1", [curve.g1] * count)
    out = np.zeros((1, curve.point_words("g1")), dtype=np.uint64)
    _core.msm(curve.name, "g1", bases.words, pack([scalar] * count, 4), None, out, 1)
    expected = sum_points(curve, "g1", [curve.g1], [scalar * count % curve.r])
    assert Points(curve, "g1", out).affine() == expected
