"""Known answers before a device is trusted: each verb once, on small vectors, against the CPU's native core.

A right device may still err later, which verifying every proof finds; a wrong one (bad memory, a driver or
compiler that miscompiles) is found here in milliseconds instead of after a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from cuzk import _core
from cuzk.backends import Backend
from cuzk.backends.cpu import CpuBackend
from cuzk.curves import Curve
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Points, Scalars

N = 256


def fault_of(backend: Backend) -> str:
    """Names of the verbs that gave wrong answers; empty where all were right."""
    cpu = CpuBackend(backend.curve, 1)
    verbs: dict[str, Callable[[Backend], Scalars | Points]] = {
        "sparse product": _product,
        "pointwise product": _pointwise,
        "NTT": _ntt,
        "sum in G1": partial(_sum, "g1"),
        "sum in G2": partial(_sum, "g2"),
    }
    wrong = [
        name
        for name, verb in verbs.items()
        if not np.array_equal(verb(backend).words, verb(cpu).words)
    ]
    return f"wrong {', '.join(wrong)}" if wrong else ""


def _scalars(curve: Curve, seed: int, *, montgomery: bool = False) -> Scalars:
    """Powers of the seed, and among them what sums treat apart: 0, 1, r - 1, equal and opposite values."""
    values = [pow(seed, i + 1, curve.r) for i in range(N)]
    values[3:9] = [0, 1, curve.r - 1, 1, values[0], curve.r - values[0]]
    return Scalars.from_ints(curve, values, montgomery=montgomery)


def _product(on: Backend) -> Scalars | Points:
    """Rows of 0 to 6 terms with coefficients +1, -1, 7 and 3^100."""
    curve, rows = on.curve, N - 5
    row_ptr = np.cumsum([0, *(i % 7 for i in range(rows))]).astype(np.uint64)
    terms = np.arange(row_ptr[-1], dtype=np.uint32)
    values = Scalars.from_ints(curve, [1, curve.r - 1, 7, 3**100], montgomery=True)
    matrix = SparseMatrix(
        row_ptr, terms * np.uint32(89) % np.uint32(N), terms % np.uint32(4), values
    )
    return on.get(on.product(on.put(matrix), on.put(_scalars(curve, 5)), N))


def _pointwise(on: Backend) -> Scalars | Points:
    a, b, minus = (on.put(_scalars(on.curve, seed, montgomery=True)) for seed in (5, 7, 11))
    return on.get(on.pointwise(a, b, minus, scale=13))


def _ntt(on: Backend) -> Scalars | Points:
    """From natural order to natural order through both directions, on a coset."""
    root = on.curve.root_of_unity(N.bit_length() - 1)
    values = on.put(_scalars(on.curve, 5, montgomery=True))
    spectrum = on.ntt(values, root, inverse=False, shift=1)
    spectrum = on.pointwise(spectrum, scale=3)
    return on.get(on.ntt(on.ntt(spectrum, root, inverse=True), root, shift=5))


def _sum(group: str, on: Backend) -> Scalars | Points:
    """Over i G, i from 0: infinity, the generator, and no two equal."""
    curve = on.curve
    generator = Points.from_affine(curve, group, [getattr(curve, group)])
    bases = Points(curve, group, np.empty((N, curve.point_words(group)), np.uint64))
    multiples = Scalars.from_ints(curve, list(range(N))).words
    _core.fixed_base(curve.name, group, generator.words, multiples, bases.words, 1)
    return on.msm(on.put(bases), on.put(_scalars(curve, 5)))
