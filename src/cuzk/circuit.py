"""The recorder: a circuit and its witness written down at once, in Python.

    circuit = Circuit("bn254")
    out = circuit.public(35)
    x = circuit.private(3)
    square = circuit.product(x, x)
    circuit.enforce(square, x, out - x - 5)      # x^3 + x + 5 = out

gives ``circuit.matrices()`` and ``circuit.witness()``. Values may differ from run to run; the matrices
depend only on the calls. Public signals become wires 1, 2, ... in the order of their calls, whatever
comes between; private ones follow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import Curve, curve_named
from cuzk.errors import CircuitError
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.vectors import Scalars


@dataclass(frozen=True)
class Linear:
    """sum of coefficient * signal; a constant is a multiple of signal 0, which is 1."""

    terms: Mapping[int, int]  # signal number (of its circuit's own count) -> coefficient

    def __add__(self, other: Linear | int) -> Linear:
        terms = dict(self.terms)
        for signal, coefficient in _linear(other).terms.items():
            terms[signal] = terms.get(signal, 0) + coefficient
        return Linear(terms)

    def __mul__(self, factor: int) -> Linear:
        return Linear({signal: c * factor for signal, c in self.terms.items()})

    def __neg__(self) -> Linear:
        return self * -1

    def __sub__(self, other: Linear | int) -> Linear:
        return self + -_linear(other)

    def __rsub__(self, other: int) -> Linear:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__


def _linear(value: Linear | int) -> Linear:
    return value if isinstance(value, Linear) else Linear({0: value})


@dataclass
class _Recorded:
    """One of A, B, C while it grows."""

    ends: list[int] = field(default_factory=lambda: [0])
    signals: list[int] = field(default_factory=list)
    coefficients: list[int] = field(default_factory=list)


class Circuit:
    """Records signals with their values, and constraints a * b = c over them."""

    def __init__(self, curve: Curve | str) -> None:
        self.curve = curve_named(curve) if isinstance(curve, str) else curve
        self._values = [1]
        self._public: list[int] = []
        self._private: list[int] = []
        self._numbers = {1: 0, self.curve.r - 1: 1}  # coefficient -> place in the dictionary
        self._rows = (_Recorded(), _Recorded(), _Recorded())

    def public(self, value: int) -> Linear:
        """A new public signal."""
        return self._signal(self._public, value)

    def private(self, value: int) -> Linear:
        """A new private signal."""
        return self._signal(self._private, value)

    def value(self, linear: Linear | int) -> int:
        """What a combination comes to under the recorded values."""
        terms = _linear(linear).terms.items()
        return sum(c * self._values[signal] for signal, c in terms) % self.curve.r

    def enforce(self, a: Linear | int, b: Linear | int, c: Linear | int) -> None:
        """Add the constraint a * b = c; whether the recorded values satisfy it is not asked here."""
        for rows, linear in zip(self._rows, (a, b, c), strict=True):
            for signal, coefficient in _linear(linear).terms.items():
                if not 0 <= signal < len(self._values):
                    raise CircuitError(f"enforce: signal {signal} is not one of this circuit's")
                reduced = coefficient % self.curve.r
                if reduced:
                    rows.signals.append(signal)
                    number = self._numbers.setdefault(reduced, len(self._numbers))
                    rows.coefficients.append(number)
            rows.ends.append(len(rows.signals))

    def product(self, a: Linear | int, b: Linear | int) -> Linear:
        """A new private signal that is constrained to be a * b."""
        result = self.private(self.value(a) * self.value(b))
        self.enforce(a, b, result)
        return result

    def witness(self) -> Scalars:
        """The values in the order of the wires, plain form."""
        order = [0, *self._public, *self._private]
        return Scalars.from_ints(self.curve, [self._values[signal] for signal in order])

    def public_values(self) -> list[int]:
        """The values of wires 1..public."""
        return [self._values[signal] for signal in self._public]

    def matrices(self) -> Matrices:
        """The circuit so far."""
        place = np.zeros(len(self._values), dtype=np.uint32)
        order = np.array([0, *self._public, *self._private], dtype=np.int64)
        place[order] = np.arange(len(order), dtype=np.uint32)
        values = Scalars.from_ints(self.curve, list(self._numbers), montgomery=True)
        a, b, c = (self._matrix(rows, place, values) for rows in self._rows)
        digest = hashlib.blake2b(self.curve.name.encode(), digest_size=32)
        digest.update(np.array([len(self._values), len(self._public)], dtype="<u8").tobytes())
        for part in (a, b, c):
            for array in (part.row_ptr, part.wires, part.coefficients, part.values.words):
                digest.update(array.tobytes())
        return Matrices(
            curve=self.curve,
            wires=len(self._values),
            public=len(self._public),
            constraints=a.rows,
            a=self._with_public_rows(a),
            b=b,
            c=c,
            digest=digest.hexdigest(),
        )

    def _signal(self, numbers: list[int], value: int) -> Linear:
        number = len(self._values)
        self._values.append(value % self.curve.r)
        numbers.append(number)
        return Linear({number: 1})

    @staticmethod
    def _matrix(rows: _Recorded, place: NDArray[np.uint32], values: Scalars) -> SparseMatrix:
        return SparseMatrix(
            np.array(rows.ends, dtype=np.uint64),
            place[np.array(rows.signals, dtype=np.int64)],
            np.array(rows.coefficients, dtype=np.uint32),
            values,
        )

    def _with_public_rows(self, a: SparseMatrix) -> SparseMatrix:
        count = len(self._public) + 1
        ends = a.terms + np.arange(1, count + 1, dtype=np.uint64)
        return SparseMatrix(
            np.concatenate([a.row_ptr, ends.astype(np.uint64)]),
            np.concatenate([a.wires, np.arange(count, dtype=np.uint32)]),
            np.concatenate([a.coefficients, np.zeros(count, dtype=np.uint32)]),
            a.values,
        )
