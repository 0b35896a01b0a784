"""Are the points that a .ptau prepared those of its own powers?  Five sums answer for accidents.

    sum L_i(tau) = 1 in both groups      sum alpha L_i(tau) = alpha      sum beta L_i(tau) = beta
    sum H_i = Z(tau) / Z(g),  H_i = L_i(tau / g) Z(tau) / Z(g),  g the coset's shift

A damaged point changes its sum. That the powers themselves come from a ceremony is for the file's own
verification (``snarkjs powersoftau verify``) to say.
"""

from __future__ import annotations

import numpy as np

from cuzk.errors import FormatError
from cuzk.groth16 import Lagrange, PowersOfTau
from cuzk.r1cs import SparseMatrix
from cuzk.setup.powers import product_points, scaled
from cuzk.setup.scalars import multiple
from cuzk.vectors import Points, Scalars


def expect_intact(
    ptau: PowersOfTau, basis: Lagrange, h: Points, z: Points, log_n: int, threads: int
) -> None:
    """FormatError where a sum is wrong; ``z`` is tau^n - 1 in G1."""
    curve = ptau.curve
    at_g = pow(curve.coset_shift(log_n), 1 << log_n, curve.r) - 1
    for name, points, expected in (
        ("section 12 (Lagrange tauG1)", basis.tau_g1, multiple(curve, "g1", 1)),
        ("section 13 (Lagrange tauG2)", basis.tau_g2, multiple(curve, "g2", 1)),
        ("section 14 (Lagrange alphaTauG1)", basis.alpha_tau_g1, ptau.alpha_tau_g1[:1]),
        ("section 15 (Lagrange betaTauG1)", basis.beta_tau_g1, ptau.beta_tau_g1[:1]),
        ("section 12 (Lagrange tauG1), next level", h, scaled(z, pow(at_g, -1, curve.r), 1)),
    ):
        if not np.array_equal(_sum(points, threads).words, expected.words):
            raise FormatError(
                f"{ptau.source}: {name}: expected the {len(points)} points of level {log_n} to add up "
                "to what sections 2 to 5 say, found another sum: the file is damaged"
            )


def _sum(points: Points, threads: int) -> Points:
    n = len(points)
    ones = np.zeros(n, dtype=np.uint32)
    one = Scalars.from_ints(points.curve, [1], montgomery=True)
    row = SparseMatrix(np.array([0, n], dtype=np.uint64), np.arange(n, dtype=np.uint32), ones, one)
    return product_points(row, points, threads)
