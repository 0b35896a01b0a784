"""The program of a template: how every variable's value follows from the ports and earlier variables.

A template is recorded once and then placed many times; its program says in numbers what its rows say in
equations, so that a witness generator needs to know neither hash functions nor the circuit.

**Slots.** What a template speaks of is numbered: 0 is ONE, 1..ports are the ports (given other wires wherever the
template is placed), then come the own private variables in the order of their allocation, then the own public
inputs. Every slot is a bit or a field element (``port_bits``, ``aux_bits``; public inputs are field elements).

**Literals.** A bit operand is 2 * slot, or 2 * slot + 1 for its negation. So 0 is true and 1 is false: constants
occur only in the words of SUM.

**Combinations** are (coefficient number, slot) pairs, one after the other; numbers index the circuit's dictionary.

**Operations** stand in the order in which they define variables: each defines the next ones, and none refers to
what comes later. PUBLIC alone defines the next public input. Operation i has the opcode ``opcodes[i]`` and the
operands ``operands[starts[i]:starts[i + 1]]``:

    opcode     defines          operands            value
    GIVEN      1 field element  -                   the next value of the instance's data
    GIVEN_BITS n bits           n                   the next value of the instance's data, which is below 2^n
    BITS       n bits           n, slot             bits 0..n-1 of the slot's canonical value (below r)
    SUM        width bits       width, 32 k lits    bits of the sum of k 32-bit words, lowest bits first
    XOR        1 bit            x, y                x + y mod 2; both literals plain
    AND        1 bit            x, y                x y
    CH         1 bit            a, b, c             b if a, else c
    MAJ        2 bits           a, b, c             what two of the three have; then b c
    PICK       1 field element  condition, x, y     x if the literal holds, else y; x and y are slots
    LINEAR     1 field element  pairs               the combination's value
    PRODUCT    1 field element  na, nb, pairs       a b - c: the first na pairs are a, nb pairs b, the others c
    PUBLIC     1 public input   pairs               the combination's value

**Data.** The values that GIVEN and GIVEN_BITS take are one sequence for a header and one for each unit, plain
numbers in the order of the placements and, inside of one, of the operations. ``Template.givens`` counts them;
:mod:`cuzk.filecoin.templates.assembly` says where a placement's begin. What they are, in order, is stated by
the modules of the circuits: :mod:`porep`, :mod:`post`, :mod:`update`.

All values are canonical, so there is one witness; bits of field elements are 255, of the number below r, although
the rows would also allow that number plus r where it has 255 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

TRUE, FALSE = 0, 1
"""Constant literals: ONE and its negation."""


class Op(IntEnum):
    """Numbers of the operations, as the native code reads them."""

    GIVEN = 0
    GIVEN_BITS = 1
    BITS = 2
    SUM = 3
    XOR = 4
    AND = 5
    CH = 6
    MAJ = 7
    PICK = 8
    LINEAR = 9
    PRODUCT = 10
    PUBLIC = 11


@dataclass(frozen=True)
class Program:
    """The operations of one template."""

    opcodes: NDArray[np.uint8]  # (n,)
    starts: NDArray[np.uint32]  # (n + 1,)
    operands: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.opcodes)

    @cached_property
    def _coefficient_places(self) -> NDArray[np.bool_]:
        """Which operands are numbers of coefficients."""
        lengths = np.diff(self.starts)
        opcodes = np.repeat(self.opcodes, lengths)
        places = np.arange(len(self.operands)) - np.repeat(self.starts[:-1], lengths)
        products = opcodes == Op.PRODUCT
        sums = (opcodes == Op.LINEAR) | (opcodes == Op.PUBLIC)
        found: NDArray[np.bool_] = (sums | (products & (places >= 2))) & (places % 2 == 0)
        return found

    @property
    def coefficients(self) -> NDArray[np.uint32]:
        """The numbers of coefficients in the order of the operands."""
        return self.operands[self._coefficient_places]

    def renumbered(self, numbers: NDArray[np.uint16]) -> Program:
        """The same with other numbers of coefficients."""
        operands = self.operands.copy()
        operands[self._coefficient_places] = numbers[self.coefficients]
        return Program(self.opcodes, self.starts, operands)

    def __iter__(self) -> Iterator[tuple[Op, list[int]]]:
        starts, operands = self.starts.tolist(), self.operands.tolist()
        for i, code in enumerate(self.opcodes.tolist()):
            yield Op(code), operands[starts[i] : starts[i + 1]]
