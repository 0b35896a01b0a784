"""How an MSM cuts its scalars: the width of the windows, chosen by what the additions cost.

With |s| = min(s, r - s) of b bits and W = b // c + 1 windows of c bits, n scalars give up to n W mixed
additions into W 2^(c-1) buckets, which two full additions each reduce. Unit: one 32 x 32 -> 64 bit product,
the resource that bounds all of it (8.34e12 a second on an H200).
"""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.curves import Curve
from cuzk.errors import KernelError

# Keys stay below 128 * 2^23 and fit 32 bits; wider windows have more bins of keys than shared memory holds.
WIDTHS = range(2, 25)
# 22 bits make 12 windows; 23 save none, 24 save one at four times the buckets.
CHOSEN = range(2, 23)

MOST_TABLES = 32  # `scatter_coarse` keeps the number of one in five bits

MIXED = 2658  # XYZZ + affine, 381 bits: 8 products and 2 squarings, one reduction saved
FULL = 3984  # XYZZ + XYZZ: 12 products and 2 squarings
SORT = 150  # an entry's share of the sort: 18 ps
FIELD = {4: 0.45, 6: 1.0}  # words of Fp -> its products over those of 381 bits
EXTENSION = 2.6  # G2 over G1


@dataclass(frozen=True)
class WindowPlan:
    """``windows`` windows of ``width`` bits over numbers of ``bits`` bits; the top one takes the rest.

    The bases may come with tables of their multiples by 2^(width sets), 2^(2 width sets), ... (``tables``
    of them, the bases themselves the first): window w = t sets + v takes its bases from table t, and
    digit d, not 0, belongs to bucket v * buckets + abs(d) - 1.
    """

    bits: int  # of |s|: 253 (BN254) or 254 (BLS12-381)
    width: int
    windows: int
    tables: int = 1

    def __post_init__(self) -> None:
        if self.width not in WIDTHS or self.windows != self.bits // self.width + 1:
            raise KernelError(
                f"cuda: windows of {self.bits} bits: expected a width of {WIDTHS[0]} to {WIDTHS[-1]} "
                f"and bits // width + 1 windows, found {self.width} and {self.windows}"
            )
        if not 1 <= self.tables <= min(self.windows, MOST_TABLES):
            raise KernelError(
                f"cuda: windows: expected 1 to {min(self.windows, MOST_TABLES)} tables of multiples, "
                f"found {self.tables}"
            )

    @classmethod
    def of(cls, curve: Curve, width: int, *, sets: int | None = None) -> WindowPlan:
        """The plan of that width, with tables so that its windows share ``sets`` sets of buckets."""
        bits = (curve.r // 2).bit_length()
        windows = bits // max(width, 1) + 1
        return cls(bits, width, windows, -(-windows // sets) if sets else 1)

    @property
    def sets(self) -> int:
        """Sets of buckets: the windows, or fewer where there are tables."""
        return -(-self.windows // self.tables)

    @property
    def buckets(self) -> int:
        """Buckets of a window: the largest digit."""
        return 1 << (self.width - 1)

    @property
    def total_buckets(self) -> int:
        """Buckets of all sets; keys are below it."""
        return self.sets * self.buckets

    def cost(self, n: int, group_cost: float) -> float:
        """Work of a sum of ``n`` points, in products."""
        additions = n * self.windows * MIXED + 2 * self.total_buckets * FULL
        return additions * group_cost + n * self.windows * SORT


def group_cost(curve: Curve, group: str) -> float:
    """An addition's cost over one in G1 of BLS12-381."""
    return FIELD[curve.fp_words] * (EXTENSION if group == "g2" else 1.0)


def choose_plan(n: int, curve: Curve, group_cost: float, *, sets: int | None = None) -> WindowPlan:
    """The cheapest windows for ``n`` points; with tables for so many sets of buckets, or without any."""
    widths = [width for width in CHOSEN if not sets or tables_of(curve, width, sets) <= MOST_TABLES]
    plans = [WindowPlan.of(curve, width, sets=sets) for width in widths]
    return min(plans, key=lambda plan: plan.cost(n, group_cost))


def tables_of(curve: Curve, width: int, sets: int) -> int:
    """How many tables leave so many sets of buckets."""
    return -(-((curve.r // 2).bit_length() // width + 1) // sets)
