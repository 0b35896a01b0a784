"""Small circuits of every shape, recorded with :mod:`cuzk.circuit`."""

from __future__ import annotations

from random import Random

from cuzk.circuit import Circuit, Linear
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


def tangle(curve: Curve, seed: int) -> Circuit:
    """Random: counts, combinations of any signals with large and small coefficients, public ones anywhere."""
    rng = Random(seed)
    circuit = Circuit(curve)
    signals = [circuit.private(rng.randrange(curve.r)), circuit.public(rng.randrange(3))]
    for _ in range(rng.randrange(4)):
        signals.append(circuit.public(rng.choice([0, 1, curve.r - 1, rng.randrange(curve.r)])))

    def combination() -> Linear:
        total = Linear({0: rng.randrange(3)})
        for signal in rng.choices(signals, k=rng.randrange(1, 5)):
            total += signal * rng.choice([1, -1, 2, rng.randrange(curve.r)])
        return total

    for _ in range(rng.randrange(1, 40)):
        a, b = combination(), combination()
        value = circuit.value(a) * circuit.value(b)
        new = circuit.public(value) if rng.random() < 0.2 else circuit.private(value)
        rest = combination()
        circuit.enforce(a, b, new + rest - circuit.value(rest))
        signals.append(new)
    return circuit
