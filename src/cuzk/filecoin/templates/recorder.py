"""The recorder: a gadget written down as a template, rows and program at once.

    recorder = Recorder(Coefficients())
    x = recorder.port()                           # bound where the template is placed
    square = recorder.product({x: 1}, {x: 1})     # a variable, its row and its operation
    template = recorder.template("square", [square])

A combination is a dict from slot to coefficient, any integers; zeros are dropped and coefficients reduced when the
template is made. The order of the calls is the order of variables and rows, and part of the circuit's definition:
:meth:`Recorder.define` makes a variable without a row, :meth:`Recorder.enforce` a row without a variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from cuzk.curves import BLS12_381
from cuzk.errors import CircuitError
from cuzk.filecoin.templates.program import Op, Program
from cuzk.filecoin.templates.template import Rows, Slots, Template

R = BLS12_381.r
ONE = 0
_DROPPED = 0xFFFF  # number of the coefficient zero

Combination = Mapping[int, int]


class Coefficients(dict[int, int]):
    """Numbers of coefficients by any integer that is congruent to them; 0 is +1 and 1 is -1."""

    def __init__(self) -> None:
        super().__init__()
        self.values_by_number = [1, R - 1]
        self._by_value = {1: 0, R - 1: 1, 0: _DROPPED}

    def __missing__(self, value: int) -> int:
        reduced = value % R
        number = self._by_value.get(reduced)
        if number is None:
            number = len(self.values_by_number)
            if number >= _DROPPED:
                raise CircuitError(f"circuit: more than {_DROPPED} different coefficients")
            self._by_value[reduced] = number
            self.values_by_number.append(reduced)
        self[value] = number
        return number


class _Growing:
    """One of A, B, C while it is recorded."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.coefficients: list[int] = []
        self.lengths: list[int] = []

    def add(self, combination: Combination) -> None:
        self.columns.extend(combination)
        self.coefficients.extend(combination.values())
        self.lengths.append(len(combination))

    def rows(self, numbers: Coefficients, inputs_from: int) -> Rows:
        """Public inputs, negative so far, follow the variables."""
        columns = np.array(self.columns, dtype=np.int64)
        coefficients = np.array([numbers[c] for c in self.coefficients], dtype=np.uint16)
        columns = np.where(columns < 0, inputs_from - 1 - columns, columns)
        rows = np.repeat(np.arange(len(self.lengths)), self.lengths)
        kept = coefficients != _DROPPED
        lengths = np.bincount(rows[kept], minlength=len(self.lengths))
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint32)
        return Rows(starts, columns[kept].astype(np.uint32), coefficients[kept])


class Recorder:
    """Ports first, then variables, rows and public inputs in any order."""

    def __init__(self, numbers: Coefficients) -> None:
        self._numbers = numbers
        self._port_bits: list[bool] = []
        self._aux_bits: list[bool] = []
        self._inputs = 0
        self._givens = 0
        self._opcodes: list[int] = []
        self._starts = [0]
        self._operands: list[int] = []
        self._a, self._b, self._c = _Growing(), _Growing(), _Growing()

    # Slots

    def port(self, *, bit: bool = False) -> int:
        """A new formal parameter: the slot of a field element or of a bit."""
        return self.ports(1, bit=bit)[0]

    def ports(self, count: int, *, bit: bool = False) -> list[int]:
        """Several of them."""
        if self._aux_bits:
            raise CircuitError("template: a port after the first variable")
        first = 1 + len(self._port_bits)
        self._port_bits += [bit] * count
        return list(range(first, first + count))

    def define(self, op: Op, operands: Iterable[int], count: int = 1, *, bit: bool = False) -> int:
        """The first of ``count`` new variables that an operation defines, without rows."""
        first = 1 + len(self._port_bits) + len(self._aux_bits)
        self._aux_bits += [bit] * count
        self._givens += op in (Op.GIVEN, Op.GIVEN_BITS)
        self._operation(op, operands)
        return first

    def enforce(self, a: Combination, b: Combination, c: Combination) -> None:
        """The row a * b = c."""
        self._a.add(a)
        self._b.add(b)
        self._c.add(c)

    # Variables with their rows

    def given(self, count: int = 1) -> list[int]:
        """Field elements of the instance's data; no rows."""
        return [self.define(Op.GIVEN, ()) for _ in range(count)]

    def bits(self, op: Op, count: int, operands: Sequence[int]) -> list[int]:
        """``count`` new bits, each with its row (1 - v) v = 0; the operation takes the count first."""
        first = self.define(op, (count, *operands), count, bit=True)
        found = list(range(first, first + count))
        for v in found:
            self.enforce({ONE: 1, v: -1}, {v: 1}, {})
        return found

    def linear(self, combination: Combination) -> int:
        """A new variable equal to a combination: its row has the combination in A, ONE in B."""
        result = self.define(Op.LINEAR, self._pairs(combination))
        self.enforce(combination, {ONE: 1}, {result: 1})
        return result

    def product(self, a: Combination, b: Combination, plus: int = 0) -> int:
        """A new variable equal to a * b + plus."""
        pairs = [*self._pairs(a), *self._pairs(b), *self._pairs({ONE: -plus} if plus else {})]
        result = self.define(Op.PRODUCT, (len(a), len(b), *pairs))
        self.enforce(a, b, {result: 1, ONE: -plus})
        return result

    def public(self, combination: Combination) -> int:
        """A new public input of a combination's value, without a row; good for :meth:`enforce` only."""
        self._inputs += 1
        self._operation(Op.PUBLIC, self._pairs(combination))
        return -self._inputs

    # The template

    def template(self, name: str, outputs: Sequence[int]) -> Template:
        """All that was recorded."""
        ports, aux = len(self._port_bits), len(self._aux_bits)
        if not all(ports < slot <= ports + aux for slot in outputs):
            raise CircuitError(f"{name}: an output is none of the template's variables")
        a, b, c = (
            matrix.rows(self._numbers, 1 + ports + aux) for matrix in (self._a, self._b, self._c)
        )
        return Template(
            name=name,
            ports=ports,
            aux=aux,
            inputs=self._inputs,
            givens=self._givens,
            a=a,
            b=b,
            c=c,
            port_bits=np.array(self._port_bits, dtype=np.bool_),
            aux_bits=np.array(self._aux_bits, dtype=np.bool_),
            outputs=_slots(outputs),
            program=Program(
                np.array(self._opcodes, dtype=np.uint8),
                _slots(self._starts),
                _slots(self._operands),
            ),
        )

    def _operation(self, op: Op, operands: Iterable[int]) -> None:
        self._opcodes.append(op)
        self._operands.extend(operands)
        self._starts.append(len(self._operands))

    def _pairs(self, combination: Combination) -> list[int]:
        pairs: list[int] = []
        for slot, coefficient in combination.items():
            number = self._numbers[coefficient]
            if number == _DROPPED:
                raise CircuitError("template: a term of a program has the coefficient zero")
            pairs += (number, slot)
        return pairs


def _slots(values: Sequence[int]) -> Slots:
    return np.array(values, dtype=np.uint32)
