"""What the arithmetic and the bytes of a kernel cost at the least, in milliseconds of one H200.

Two rates bound everything here (measured 2026-11-29, 132 SMs at 1.97 GHz): products of 32 x 32 -> 64 bits,
32 a clock and SM, and memory, read or written. Products an operation takes (``native/limbs.hpp``, ``gpu/shoup.hpp``;
one whose upper half is not needed counts as half):

                                  381 bits   254 bits    point addition, mixed     8M + 2S
    product, unreduced               144         64                      full     12M + 2S
    square, unreduced                 78         36      G1: two of the products share a reduction
    reduction                        150         68      G2: M is 3 products and 2 reductions, S 2 and 2
    by a constant of a transform                107, BLS12-381's r: 93

A sum of n points has n W mixed additions (W windows) and two full ones a bucket. A transform of N = 2^k has N (k / 2 -
7/8) products; 64 N bytes a pass, 64 N of constants.
"""

from __future__ import annotations

from cuzk.backends.cuda.ntt import plan
from cuzk.backends.cuda.windows import choose_plan, group_cost
from cuzk.curves import BLS12_381, Curve

PRODUCTS_PER_MS = 8.34e9
BYTES_PER_MS = 4.2e9
OPERATIONS = {4: (64, 36, 68), 6: (144, 78, 150)}  # product, square, reduction by 64-bit words
BY_CONSTANT = {"bn254": 107, "bls12_381": 93}


def additions(curve: Curve, group: str) -> tuple[int, int]:
    """Products of a mixed and of a full addition."""
    product, square, reduction = OPERATIONS[curve.fp_words]
    if group == "g1":
        m, s, shared = product + reduction, square + reduction, reduction
    else:
        m, s, shared = 3 * product + 2 * reduction, 2 * (product + reduction), 0
    return 8 * m + 2 * s - shared, 12 * m + 2 * s - shared


def msm(curve: Curve, group: str, log_n: int) -> float:
    """Additions only: sorting runs at a hundredth of their cost."""
    n, (mixed, full) = 1 << log_n, additions(curve, group)
    windows = choose_plan(n, curve, group_cost(curve, "g1"))
    work = n * windows.windows * mixed + 2 * windows.total_buckets * full
    return work / PRODUCTS_PER_MS


def ntt(curve: Curve, log_n: int) -> float:
    """The larger of arithmetic and memory."""
    n = 1 << log_n
    products = n * (log_n / 2 - 7 / 8) * BY_CONSTANT[curve.name]
    traffic = n * (64 * len(plan(log_n)) + 64)
    return max(products / PRODUCTS_PER_MS, traffic / BYTES_PER_MS)


def proof(log_n: int, transforms: int) -> float:
    """BLS12-381, every wire in every query: four sums in G1, one in G2, the transforms."""
    sums = 4 * msm(BLS12_381, "g1", log_n) + msm(BLS12_381, "g2", log_n)
    return sums + transforms * ntt(BLS12_381, log_n)
