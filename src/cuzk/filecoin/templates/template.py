"""A template: the rows of a gadget over its own slots, and the program that finds its variables' values.

Row i of A, B, C is a sparse combination of slots (:mod:`cuzk.filecoin.templates.program` numbers them); it states
(A s)_i (B s)_i = (C s)_i. Six bytes a term: a column and the number of a coefficient in the circuit's dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuzk.filecoin.templates.program import Program

Slots = NDArray[np.uint32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """One of A, B, C."""

    starts: NDArray[np.uint32]  # (rows + 1,)
    columns: NDArray[np.uint32]  # (terms,) slots
    coefficients: NDArray[np.uint16]  # (terms,) numbers

    @property
    def terms(self) -> int:
        """Non-zero entries."""
        return len(self.columns)


@dataclass(frozen=True)
class Template:
    """A gadget as it was recorded."""

    name: str
    ports: int
    aux: int
    inputs: int
    givens: int
    a: Rows
    b: Rows
    c: Rows
    port_bits: Flags  # (ports,) True: a bit, False: a field element
    aux_bits: Flags  # (aux,)
    outputs: Slots
    """What others may want to bind, in the order that the recording function says."""
    program: Program

    @property
    def rows(self) -> int:
        """Constraints."""
        return len(self.a.starts) - 1

    @property
    def slots(self) -> int:
        """ONE, ports, own variables, own public inputs."""
        return 1 + self.ports + self.aux + self.inputs

    @property
    def matrices(self) -> tuple[Rows, Rows, Rows]:
        """A, B, C."""
        return self.a, self.b, self.c

    @cached_property
    def used(self) -> tuple[Flags, Flags, Flags]:
        """(slots,) flags of A, B and C: which columns hold a term."""
        a, b, c = (np.zeros(self.slots, dtype=np.bool_) for _ in range(3))
        for flags, rows in zip((a, b, c), self.matrices, strict=True):
            flags[rows.columns] = True
        return a, b, c
