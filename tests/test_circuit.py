"""The recorder against hand-written rows."""

from __future__ import annotations

import pytest

from circuits import chain, cubic
from cuzk.circuit import Circuit, Linear
from cuzk.curves import BN254, TOY, Curve
from cuzk.errors import CircuitError, FormatError
from cuzk.r1cs import MINUS_ONE, PLUS_ONE, SparseMatrix


def rows(matrix: SparseMatrix | None) -> list[list[tuple[int, int]]]:
    assert matrix is not None
    return [matrix.row(i) for i in range(matrix.rows)]


def test_cubic_rows(curve: Curve) -> None:
    circuit = cubic(curve)
    m, r = circuit.matrices(), curve.r
    # wires: 1, out, x, x^2
    assert (m.wires, m.public, m.constraints, m.rows, m.log_domain) == (4, 1, 2, 4, 2)
    assert circuit.witness().ints() == [1, 35, 3, 9]
    assert rows(m.a) == [[(1, 2)], [(1, 3)], [(1, 0)], [(1, 1)]]
    assert rows(m.b) == [[(1, 2)], [(1, 2)]]
    assert rows(m.c) == [[(1, 3)], [(1, 1), (r - 1, 2), (r - 5, 0)]]
    assert m.a.values.ints()[PLUS_ONE] == 1
    assert m.a.values.ints()[MINUS_ONE] == r - 1


def test_public_signals_come_first_whenever_they_are_made() -> None:
    circuit = Circuit(TOY)
    x = circuit.private(10)
    p = circuit.public(20)
    y = circuit.private(30)
    q = circuit.public(40)
    circuit.enforce(x + p, y, q)
    assert circuit.witness().ints() == [1, 20, 40, 10, 30]
    assert circuit.public_values() == [20, 40]
    assert rows(circuit.matrices().a)[0] == [(1, 3), (1, 1)]


def test_operators() -> None:
    circuit = Circuit(TOY)
    x, y = circuit.private(3), circuit.private(5)
    for linear, value in [
        (x + y, 8), (x - y, -2), (2 * x + 7, 13), (7 + x * 2, 13), (1 - x, -2), (-y, -5), (x - 1, 2),
        (x + x - 2 * x, 0),
    ]:  # fmt: skip
        assert circuit.value(linear) == value % TOY.r
    assert circuit.value(11) == 11


def test_product_is_constrained() -> None:
    circuit = Circuit(TOY)
    x = circuit.private(300)
    y = circuit.product(x, x + 1)
    assert circuit.value(y) == 300 * 301 % TOY.r
    m = circuit.matrices()
    assert (rows(m.a)[0], rows(m.b)[0], rows(m.c)[0]) == ([(1, 1)], [(1, 1), (1, 0)], [(1, 2)])


def test_zero_coefficients_leave_no_term() -> None:
    circuit = Circuit(TOY)
    x = circuit.private(3)
    circuit.enforce(x - x, TOY.r, 0)
    m = circuit.matrices()
    assert (rows(m.a), rows(m.b), rows(m.c)) == ([[], [(1, 0)]], [[]], [[]])


def test_no_constraint_at_all() -> None:
    m = Circuit(BN254).matrices()
    assert (m.wires, m.public, m.constraints, m.rows, m.log_domain) == (1, 0, 0, 1, 0)


def test_digest_names_the_circuit_not_the_witness() -> None:
    assert cubic(BN254, 3).matrices().digest == cubic(BN254, 8).matrices().digest
    assert chain(BN254, 3).matrices().digest != chain(BN254, 4).matrices().digest


def test_foreign_signal_is_refused() -> None:
    circuit = Circuit(BN254)
    with pytest.raises(CircuitError, match="signal 3 is not one of this circuit's"):
        circuit.enforce(Linear({3: 1}), 1, 0)


def test_unknown_curve_is_refused() -> None:
    with pytest.raises(FormatError, match="expected bn128 or bls12381"):
        Circuit("secp256k1")
