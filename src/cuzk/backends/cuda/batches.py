"""Into which batches the points of a streamed sum are cut: a pure plan of sizes.

While batch i is computed, batch i + 1 is copied. Copying all points takes a quarter to two fifths of the time
that the sum takes, their digits 5 %: a first batch of a seventh arrives while digits are sorted, and each
further one, twice as long, while the one before it is computed. Every batch costs what it leaves unfinished
(a copy a bucket and the merging of lists, see :mod:`cuzk.backends.cuda.kept`), so there are as few as that allows.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.errors import KernelError


@dataclass(frozen=True)
class Sizes:
    """``first`` is the part of all points that the first batch has, ``growth`` the next one's length over its."""

    first: float = 1 / 7
    growth: float = 2.0
    least: int = 1 << 18  # points: below it launches cost more than waiting for the copy

    def __post_init__(self) -> None:
        if not (0 < self.first <= 1 and self.growth >= 1 and self.least >= 1):
            raise KernelError(
                f"cuda: batches: expected 0 < first <= 1, growth and least of 1 or more, found {self}"
            )


def batches(n: int, most: int, sizes: Sizes | None = None) -> list[range]:
    """Rows [0, n) cut into ranges, none empty and none of more than ``most`` rows.

    The last one takes a rest that would be shorter than ``least`` where ``most`` allows it.
    """
    sizes, found = sizes or Sizes(), list[range]()
    if most < 1:
        raise KernelError(f"cuda: batches: expected one point or more in a batch, found {most}")
    begin, length = 0, max(sizes.least, int(n * sizes.first))
    while begin < n:
        count = min(length, most, n - begin)
        rest = n - begin - count
        if rest < sizes.least and n - begin <= most:
            count += rest
        found.append(range(begin, begin + count))
        begin, length = begin + count, int(min(length, most) * sizes.growth)
    return found
