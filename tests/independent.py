"""The verifier's equation over py_ecc: nothing of this project's arithmetic takes part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import py_ecc.optimized_bls12_381
import py_ecc.optimized_bn128

from cuzk.curves import BLS12_381, BN254
from cuzk.groth16 import Proof, VerifyingKey
from cuzk.vectors import Affine, Points

LIBRARIES: dict[Any, Any] = {
    BN254: py_ecc.optimized_bn128,
    BLS12_381: py_ecc.optimized_bls12_381,
}


def accepts(vk: VerifyingKey, public: Sequence[int], proof: Proof) -> bool:
    """e(A, B) = e(alpha, beta) e(IC(x), gamma) e(C, delta)."""
    library = LIBRARIES[vk.curve]

    def point(points: Points, index: int = 0) -> Any:
        affine: Affine = points.affine(index)
        if affine is None:
            return library.Z1 if points.group == "g1" else library.Z2
        if points.group == "g1":
            return (library.FQ(affine[0]), library.FQ(affine[1]), library.FQ(1))
        return (library.FQ2(affine[:2]), library.FQ2(affine[2:]), library.FQ2((1, 0)))

    x = point(vk.ic)
    for index, value in enumerate(public, start=1):
        x = library.add(x, library.multiply(point(vk.ic, index), value))
    product = library.FQ12.one()
    for left, right in (
        (point(proof.a), proof.b),
        (library.neg(point(vk.alpha_g1)), vk.beta_g2),
        (library.neg(x), vk.gamma_g2),
        (library.neg(point(proof.c)), vk.delta_g2),
    ):
        product *= library.pairing(point(right), left, final_exponentiate=False)
    return bool(library.final_exponentiate(product) == library.FQ12.one())
