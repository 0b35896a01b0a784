"""A Filecoin circuit: a header and equal units (challenges or sectors), whose ports are bound to the header.

Wires are numbered as in :mod:`cuzk.r1cs`: ONE, the public inputs of header and units in their order, then the
private variables in theirs. Rows likewise: header, units; the rows of public inputs come last, where they are
asked for. So all offsets of unit u are those of unit 0 plus u times the unit's size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import BLS12_381
from cuzk.errors import CircuitError
from cuzk.filecoin.templates.assembly import Assembling, Assembly
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.recorder import R
from cuzk.filecoin.templates.template import Flags, Rows, Slots, Template
from cuzk.vectors import Scalars


@dataclass(frozen=True)
class Frame:
    """The header or a unit in its place."""

    part: Assembly
    wires: Slots  # (slots,) of the part: their wires
    row: int  # the first one


@dataclass(frozen=True)
class Placement:
    """One template in one place of a circuit."""

    template: Template
    wires: Slots  # (slots,) of the template: their wires
    row: int  # the first one


@dataclass(frozen=True)
class Density:
    """Which private variables have a term in A or B: of the header, and of every unit alike."""

    header: Flags
    unit: Flags
    units: int

    @property
    def count(self) -> int:
        """How many in all."""
        return int(self.header.sum()) + self.units * int(self.unit.sum())

    def flags(self) -> Flags:
        """(aux,) of the whole circuit."""
        return np.concatenate((self.header, np.tile(self.unit, self.units)))


@dataclass(frozen=True)
class CircuitShape:
    """What constrains; it holds no row that is not in a template."""

    name: str
    templates: tuple[Template, ...]
    coefficients: Scalars
    """The dictionary, Montgomery form; +1 and -1 first."""
    header: Assembly
    unit: Assembly
    unit_bindings: NDArray[np.uint32]  # (units, unit.ports) slots of the header

    @property
    def units(self) -> int:
        """Challenges or sectors."""
        return len(self.unit_bindings)

    @property
    def inputs(self) -> int:
        """Public inputs, ONE included."""
        return 1 + self._total("inputs")

    @property
    def aux(self) -> int:
        """Private variables."""
        return self._total("aux")

    @property
    def constraints(self) -> int:
        """Rows without those of the public inputs."""
        return self._total("rows")

    @property
    def log_domain(self) -> int:
        """log2 of the smallest power of two that holds all rows."""
        return (self.constraints + self.inputs - 1).bit_length()

    def with_units(self, units: int) -> CircuitShape:
        """The same circuit with the first units only."""
        if not 0 <= units <= self.units:
            raise CircuitError(f"{self.name}: expected up to {self.units} units, found {units}")
        return replace(self, unit_bindings=self.unit_bindings[:units])

    @cached_property
    def terms(self) -> tuple[int, int, int]:
        """Non-zero entries of A, B, C without the rows of the public inputs."""
        sizes = np.array([[m.terms for m in t.matrices] for t in self.templates], dtype=np.int64)
        total = sizes[self.header.templates].sum(axis=0)
        total = total + self.units * sizes[self.unit.templates].sum(axis=0)
        a, b, c = total.tolist()
        return a, b, c

    @cached_property
    def densities(self) -> tuple[Density, Density]:
        """Of the private variables, in A and in B."""
        return self._density(0), self._density(1)

    @property
    def b_inputs(self) -> int:
        """Public inputs, ONE included, that have a term in B: ONE or none, by the gadgets' form."""
        used = [self.templates[t] for part in (self.header, self.unit) for t in set(part.templates)]
        if any(t.used[1][1 + t.ports + t.aux :].any() for t in used):
            raise CircuitError(f"{self.name}: a public input has a term in B")
        return int(any(t.used[1][0] for t in used))

    def counts(self) -> dict[str, int]:
        """All that describes the size of the circuit and of its parameters."""
        a, b, c = self.terms
        return {
            "constraints": self.constraints,
            "inputs": self.inputs,
            "aux": self.aux,
            "nnz_a": a,
            "nnz_b": b,
            "nnz_c": c,
            "a_aux": self.densities[0].count,
            "b_aux": self.densities[1].count,
            "b_inputs": self.b_inputs,
        }

    def frames(self) -> Iterator[Frame]:
        """The header and every unit, with their places in the circuit."""
        header = self._frame(self.header, np.zeros(0, dtype=np.uint32), self.inputs, 1, 0)
        yield header
        first, step = self.header.size, self.unit.size
        for unit, bound in enumerate(self.unit_bindings):
            aux, inputs, row = (
                first[name] + unit * step[name] for name in ("aux", "inputs", "rows")
            )
            yield self._frame(self.unit, header.wires[bound], self.inputs + aux, 1 + inputs, row)

    def placements(self) -> Iterator[Placement]:
        """Every template's rows in every place, in the order of the circuit's rows."""
        for frame in self.frames():
            for i, number in enumerate(frame.part.templates.tolist()):
                template = self.templates[number]
                wires = frame.wires[frame.part.slots_of(i, template)]
                yield Placement(template, wires, frame.row + int(frame.part.rows[i]))

    def _frame(self, part: Assembly, ports: Slots, aux: int, inputs: int, row: int) -> Frame:
        own = np.arange(aux, aux + part.size["aux"], dtype=np.uint32)
        public = np.arange(inputs, inputs + part.size["inputs"], dtype=np.uint32)
        one = np.zeros(1, dtype=np.uint32)
        return Frame(part, np.concatenate((one, ports, own, public)), row)

    def _total(self, name: str) -> int:
        return self.header.size[name] + self.units * self.unit.size[name]

    def used(self, matrix: int) -> Flags:
        """(inputs + aux,) flags: which wires have a term in A, B or C, without the rows of the public inputs."""
        header, unit = self._used_slots(matrix)
        (header_inputs, header_aux), (unit_inputs, unit_aux) = (
            (
                flags[1 + part.ports + part.size["aux"] :],
                flags[1 + part.ports :][: part.size["aux"]],
            )
            for flags, part in ((header, self.header), (unit, self.unit))
        )
        one, n = header[:1] | (unit[:1] & bool(self.units)), self.units
        inputs = (one, header_inputs, np.tile(unit_inputs, n))
        return np.concatenate((*inputs, header_aux, np.tile(unit_aux, n)))

    def _density(self, matrix: int) -> Density:
        header, unit = self._used_slots(matrix)
        first = 1 + self.unit.ports
        aux = unit[first : first + self.unit.size["aux"]]
        return Density(header[1 : 1 + self.header.size["aux"]], aux, self.units)

    def _used_slots(self, matrix: int) -> tuple[Flags, Flags]:
        """Of the header, through ports of units too, and of every unit."""
        header, unit = (self._slots_used(part, matrix) for part in (self.header, self.unit))
        through_ports = self.unit_bindings[:, unit[1 : 1 + self.unit.ports]]
        header[through_ports.ravel()] = True
        return header, unit

    def _slots_used(self, part: Assembly, matrix: int) -> Flags:
        flags = np.zeros(part.slots, dtype=np.bool_)
        for i, number in enumerate(part.templates.tolist()):
            template = self.templates[number]
            used = template.used[matrix]
            own = 1 + template.ports
            bound = part.bindings[part.bound[i] : part.bound[i + 1]]
            flags[bound[used[1:own]]] = True
            first = 1 + part.ports + int(part.aux[i])
            flags[first : first + template.aux] |= used[own : own + template.aux]
            first = 1 + part.ports + part.size["aux"] + int(part.inputs[i])
            flags[first : first + template.inputs] |= used[own + template.aux :]
            flags[0] |= used[0]
        return flags


def circuit_shape(
    name: str,
    library: Library,
    header: Assembling,
    unit: Assembling,
    unit_bindings: Sequence[Sequence[int]],
) -> CircuitShape:
    """Of the library it keeps what is placed, in order, and the coefficients that occur, by value."""
    placed = {t.name: t for t in (*header.placed, *unit.placed)}
    values = library.coefficients.values_by_number
    there: set[int] = {0, 1}
    for template in placed.values():
        there.update(_numbers(template))
    order = [0, 1, *sorted(there - {0, 1}, key=values.__getitem__)]
    renumbered = np.zeros(len(values), dtype=np.uint16)
    renumbered[order] = np.arange(len(order), dtype=np.uint16)
    templates = tuple(_with_numbers(t, renumbered) for t in placed.values())
    numbers = {name: i for i, name in enumerate(placed)}
    shape = (len(unit_bindings), len(unit.ports))
    return CircuitShape(
        name,
        templates,
        Scalars.from_ints(BLS12_381, [values[i] % R for i in order], montgomery=True),
        header.assembly(numbers),
        unit.assembly(numbers),
        np.array(unit_bindings, dtype=np.uint32).reshape(shape),
    )


def _numbers(template: Template) -> set[int]:
    found = {int(n) for m in template.matrices for n in np.unique(m.coefficients)}
    found.update(template.program.coefficients.tolist())
    return found


def _with_numbers(template: Template, renumbered: NDArray[np.uint16]) -> Template:
    a, b, c = (Rows(m.starts, m.columns, renumbered[m.coefficients]) for m in template.matrices)
    return replace(template, a=a, b=b, c=c, program=template.program.renumbered(renumbered))
