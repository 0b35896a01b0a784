"""Phase 2: from A, B, C on the domain of n-th roots of unity to the scalars of the key's H points.

A B - C vanishes on the domain, so Z = X^n - 1 divides it: A B = C + h Z with deg C < n, deg h <= n - 2.
On the coset {g x : x^n = 1} Z is the constant z = g^n - 1 (-2 where g is a 2n-th root of unity).

    snarkjs   H_i = L_i(tau) Z(tau) / (z delta), L over the coset: the scalars are A B - C on the coset.
    bellman   H_i = tau^i Z(tau) / delta: the scalars are the coefficients of h. The polynomial of degree
              below n that agrees with A B on the coset is C + z h, hence h = (that - C) / z: C need not
              be evaluated there, which saves one of seven transforms. h does not depend on g.
    prepared  bellman's key with both inverse transforms applied to its points (setup/prepare.py): the
              scalars are A B on the coset.
"""

from __future__ import annotations

from cuzk.backends import Backend, Buffer
from cuzk.groth16 import SNARKJS
from cuzk.prover.resident import ResidentKey


def quotient(key: ResidentKey, a: Buffer, b: Buffer, c: Buffer | None, backend: Backend) -> Buffer:
    """Scalars for H (Montgomery); consumes its operands. No ``c``: the key is prepared."""
    curve, log_n, generator = key.key.curve, key.key.log_domain, key.key.generator
    root = curve.root_of_unity(log_n, generator)
    g = curve.coset_shift(log_n, generator)
    if c is not None and key.key.recipe == SNARKJS:
        a, b, c = backend.extend([a, b, c], root, g)
        return backend.pointwise(a, b, minus=c, into=a)
    a, b = backend.extend([a, b], root, g)
    if c is None:
        return backend.pointwise(a, b, into=a)
    c = backend.ntt(c, root, inverse=True)
    ab = backend.ntt(backend.pointwise(a, b, into=a), root, inverse=True, shift=g)
    z = (pow(g, 1 << log_n, curve.r) - 1) % curve.r
    return backend.pointwise(ab, minus=c, scale=pow(z, -1, curve.r), into=ab)
