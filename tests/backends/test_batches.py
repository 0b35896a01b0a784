"""Batches of a streamed sum: every row once, no batch too long, few of them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cuzk.backends.cuda.batches import PINNED, STAGED, Sizes, batches
from cuzk.errors import KernelError

TINY = Sizes(first=1 / 8, growth=2.0, least=2)


def lengths(n: int, most: int, sizes: Sizes | None = None) -> list[int]:
    return [len(part) for part in batches(n, most, sizes)]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 63, 64, 65, 1000])
@pytest.mark.parametrize("most", [1, 2, 3, 10, 1 << 40])
@pytest.mark.parametrize("sizes", [TINY, Sizes(1.0, 1.0, 1), Sizes(0.01, 3.0, 5), None])
def test_every_row_once(n: int, most: int, sizes: Sizes | None) -> None:
    found = batches(n, most, sizes)
    assert [row for part in found for row in part] == list(range(n))
    assert all(0 < len(part) <= most for part in found)


def test_lengths_grow() -> None:
    assert lengths(64, 1 << 40, TINY) == [8, 16, 32, 8]
    assert lengths(64, 20, TINY) == [8, 16, 20, 20]
    assert lengths(65, 20, TINY) == [8, 16, 20, 20, 1]
    assert lengths(57, 1 << 40, TINY) == [7, 14, 28, 8]
    assert lengths(50, 1 << 40, TINY) == [6, 12, 24, 8]
    assert lengths(43, 1 << 40, TINY) == [5, 10, 20, 8]


def test_a_short_rest_goes_with_the_last() -> None:
    assert lengths(9, 1 << 40, Sizes(0.5, 1.0, 2)) == [4, 5]
    assert lengths(9, 4, Sizes(0.5, 1.0, 2)) == [4, 4, 1]


@pytest.mark.parametrize("log_n", [22, 24, 26])
def test_few_batches_where_memory_allows(log_n: int) -> None:
    """A seventh, two sevenths, the rest: three, or a fourth for what rounding leaves."""
    n = 1 << log_n
    found = lengths(n, n)
    assert len(found) == 3
    assert 0.14 < found[0] / n < 0.15
    assert 0.28 < found[1] / n < 0.29


def test_small_sums_are_not_cut() -> None:
    assert lengths(1 << 18, 1 << 40) == [1 << 18]
    assert lengths((1 << 19) - 1, 1 << 40) == [(1 << 19) - 1]


def test_nonsense_is_refused() -> None:
    with pytest.raises(KernelError, match="expected one point or more in a batch, found 0"):
        batches(5, 0)
    for wrong in ((0.0, 1.0, 1), (2.0, 1.0, 1), (0.5, 0.5, 1), (0.5, 1.0, 0)):
        with pytest.raises(KernelError, match="expected 0 < first <= 1"):
            Sizes(*wrong)


def test_points_that_arrive_slowly_go_in_more_and_longer_first_ones() -> None:
    """Each batch of staged points arrives, at half the speed of computing, while the one before it is computed."""
    n = 1 << 24
    cuts = {
        where: batches(n, n, sizes) for where, sizes in (("pinned", PINNED), ("staged", STAGED))
    }
    assert [len(cuts[where]) for where in ("pinned", "staged")] == [3, 4]
    for one, other in pairwise(cuts["staged"]):
        assert 0.6 * len(other) <= len(one) < len(other)
