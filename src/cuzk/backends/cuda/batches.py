"""Into which batches the points of a streamed sum are cut: a pure plan of sizes.

While batch i is computed, batch i + 1 is copied. Every batch costs what it leaves unfinished (an addition or a copy a
bucket, see :mod:`cuzk.backends.cuda.streamed`), so there are as few as arrive in time. In G1 of BLS12-381:

- From locked pages all points arrive in 0.30 to 0.35 of the time that the sum takes, their digits take 0.05: a first
  batch of a seventh arrives while digits are sorted, each further one, twice as long, while the one before it is
  computed. Three batches.
- Through buffers (27 to 33 GB/s) they arrive in 0.5 to 0.7 of it: a first batch of an eighth, each further one 1.6 times
  as long. Four batches.

Predicted with a cut at 0.6, 1.3 and 4 ms at 2^22, 2^24 and 2^26, in percent over the resident sum (the same model gave
14 and 9 where 15 and 10 were measured, from locked pages, a cut at 1.7 and 3.9 ms):

    first, growth      55 GB/s            33                30               27
    1/7, 2            5   3   3        9  14  18        13  20  24       19  27  31
    1/8, 1.6          8   6   5       11   9   8        11  10  11       12  13  16
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


PINNED, STAGED = Sizes(), Sizes(1 / 8, 1.6)
BUCKETS = Sizes(
    1 / 5, 1.6
)  # in G1 of BN254 at 2^24 1.7 % over the resident sum, 1/7 and 2 4.0 (H200, 2026-11-30)


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
