"""Small circuits of every shape, recorded with :mod:`cuzk.circuit`."""

from __future__ import annotations

from cuzk.circuit import Circuit
from cuzk.curves import Curve


def cubic(curve: Curve, x: int = 3) -> Circuit:
    """x^3 + x + 5 = out, out public."""
    circuit = Circuit(curve)
    out = circuit.public(x**3 + x + 5)
    root = circuit.private(x)
    square = circuit.product(root, root)
    circuit.enforce(square, root, out - root - 5)
    return circuit


def chain(curve: Curve, constraints: int, public: int = 1, seed: int = 7) -> Circuit:
    """Squarings x <- x^2 + i; the last values are public."""
    circuit = Circuit(curve)
    values, x = [], seed
    for i in range(constraints):
        values.append((x, (x * x + i) % curve.r))
        x = values[-1][1]
    outputs = [circuit.public(after) for _, after in values[constraints - public :]]
    x_signal = circuit.private(seed)
    for i, (_, after) in enumerate(values):
        last = i - (constraints - public)
        result = outputs[last] if last >= 0 else circuit.private(after)
        circuit.enforce(x_signal, x_signal, result - i)
        x_signal = result
    return circuit
