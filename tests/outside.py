"""Points on the curves and their twists that lie outside the groups of order r, made with Python integers."""

from __future__ import annotations

import random
from math import isqrt

from cuzk.constants import Fp2, fp2_mul, fp2_pow, twist_b
from cuzk.curves import BN254, Curve
from cuzk.vectors import Affine


def trace(curve: Curve) -> int:
    return 6 * curve.x**2 + 1 if curve is BN254 else curve.x + 1


def twist_order(curve: Curve) -> int:
    """#E'(Fp2): of the six twists of E over Fp2, the one whose order r divides (and that is not E)."""
    p, t = curve.p, trace(curve)
    t2 = t * t - 2 * p  # the trace of E over Fp2
    f = isqrt((4 * p * p - t2 * t2) // 3)
    traces = [(s * t2 + u * 3 * f) // 2 for s in (1, -1) for u in (1, -1)]
    (order,) = [p * p + 1 - trace for trace in traces if (p * p + 1 - trace) % curve.r == 0]
    return order


def cofactor(curve: Curve, group: str) -> int:
    if group == "g1":
        return (curve.p + 1 - trace(curve)) // curve.r
    return twist_order(curve) // curve.r


def square_root(a: Fp2, p: int) -> Fp2 | None:
    """In Fp2, p = 3 mod 4 (Adj and Rodriguez-Henriquez, algorithm 9)."""
    a1 = fp2_pow(a, (p - 3) // 4, p)
    x0 = fp2_mul(a1, a, p)
    alpha = fp2_mul(a1, x0, p)
    if alpha == (p - 1, 0):
        root = (-x0[1] % p, x0[0])
    else:
        root = fp2_mul(fp2_pow(((1 + alpha[0]) % p, alpha[1]), (p - 1) // 2, p), x0, p)
    return root if fp2_mul(root, root, p) == (a[0] % p, a[1] % p) else None


def on_curve(curve: Curve, group: str, seed: int) -> Affine:
    """A point with random x: outside the subgroup but with probability 1 / cofactor."""
    rng, p = random.Random(seed), curve.p
    b = (curve.b, 0) if group == "g1" else twist_b(curve)
    while True:
        x = (rng.randrange(p), 0 if group == "g1" else rng.randrange(p))
        cube = fp2_mul(fp2_mul(x, x, p), x, p)
        y = square_root((cube[0] + b[0], cube[1] + b[1]), p)
        if y is not None and (group == "g2" or y[1] == 0):
            return (x[0], y[0]) if group == "g1" else (*x, *y)
