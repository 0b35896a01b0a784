"""Column polynomials at a point: unit by unit as from all rows, written out and transposed."""

from __future__ import annotations

from functools import cache

import numpy as np
from own_files import circuit

from cuzk.curves import BLS12_381
from cuzk.filecoin.own_keys import own_key
from cuzk.filecoin.templates.matrices import matrices
from cuzk.filecoin.witness.system import constraint_system
from cuzk.groth16 import BELLMAN
from cuzk.r1cs import EvaluatedMatrix, Matrices
from cuzk.setup import Secrets, insecure_setup
from cuzk.setup.insecure import columns
from cuzk.vectors import Scalars

SECRETS = Secrets(tau=123_456_789, alpha=3, beta=5, delta=1)


@cache
def written_out() -> Matrices:
    return matrices(circuit("window-2KiB"))


def test_columns_of_every_wire() -> None:
    system, tau = constraint_system(circuit("window-2KiB")), 0x1234_5678_9ABC_DEF0_1234
    found = columns(system, tau, BLS12_381.bellman_generator, 2)
    expected = columns(written_out(), tau, BLS12_381.bellman_generator, 2)
    for name, ours, theirs in zip("abc", found, expected, strict=True):
        assert ours.words.tobytes() == theirs.words.tobytes(), name


def test_every_term_counts() -> None:
    """A vector of single rows: the columns are those rows, as wires and coefficients in Python integers."""
    shape, r = circuit("window-2KiB"), BLS12_381.r
    system = constraint_system(shape)
    for name, matrix in (("a", system.a), ("b", system.b), ("c", system.c)):
        assert isinstance(matrix, EvaluatedMatrix)
        for row in (0, shape.header.size["rows"], shape.constraints - 1, matrix.rows - 1):
            words = np.zeros((matrix.rows, 4), dtype=np.uint64)
            words[row, 0] = 3
            vector = Scalars(BLS12_381, words)
            found = matrix.transposed_product(vector, threads=1)
            sums: dict[int, int] = {}
            for coefficient, wire in matrix.row(row):
                sums[wire] = (sums.get(wire, 0) + 3 * coefficient) % r
            there = np.flatnonzero(found.words.any(axis=1))
            ints = Scalars(BLS12_381, found.words[there], montgomery=True).ints()
            expected = {wire: value for wire, value in sums.items() if value}
            assert dict(zip(there.tolist(), ints, strict=True)) == expected, (name, row)


def test_the_key_is_the_same() -> None:
    ours = own_key(circuit("window-2KiB"), SECRETS, threads=2)
    theirs = insecure_setup(written_out(), SECRETS, BELLMAN, threads=2)
    assert ours.matrices is None
    for name in ("a", "b_g1", "b_g2", "l"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.points.words.tobytes() == other.points.words.tobytes(), name
        assert list(one.wires) == list(other.wires), name
    assert ours.h.words.tobytes() == theirs.h.words.tobytes()
    assert ours.vk.ic.words.tobytes() == theirs.vk.ic.words.tobytes()
