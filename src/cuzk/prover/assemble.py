"""Phase 4: the blinded group elements, each a multi-scalar multiplication of a handful of points."""

from __future__ import annotations

from cuzk.backends import Backend
from cuzk.groth16 import Proof
from cuzk.prover.commit import Sums
from cuzk.prover.resident import ResidentKey
from cuzk.vectors import Points, Scalars


def assemble(key: ResidentKey, sums: Sums, r: int, s: int, backend: Backend) -> Proof:
    """A = alpha + sum + r delta; B = beta + sum + s delta; C = sums + s A + r B - r s delta."""

    def combination(*terms: tuple[Points, int]) -> Points:
        points, factors = zip(*terms, strict=True)
        scalars = Scalars.from_ints(backend.curve, factors)
        return backend.combine(Points.concatenate(points), scalars)

    vk, delta_g1 = key.key.vk, key.key.delta_g1
    a = combination((vk.alpha_g1, 1), (sums.a, 1), (delta_g1, r))
    b = combination((vk.beta_g2, 1), (sums.b_g2, 1), (vk.delta_g2, s))
    b_g1 = combination((key.key.beta_g1, 1), (sums.b_g1, 1), (delta_g1, s))
    c = combination((sums.l, 1), (sums.h, 1), (a, s), (b_g1, r), (delta_g1, -r * s))
    return Proof(a, b, c)
