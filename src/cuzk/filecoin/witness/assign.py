"""All wires of a circuit by its programs, natively: ONE, the public inputs, the private variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.errors import CircuitError
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.template import Template
from cuzk.filecoin.witness.data import Data
from cuzk.filecoin.witness.schedule import Group, Numbers, waves
from cuzk.vectors import CanonicalScalars


def assign(shape: CircuitShape, data: Data, *, threads: int = 1) -> CanonicalScalars:
    """(inputs + aux,) plain: ONE, bits, and field elements reduced below r, as the programs write nothing else.

    CircuitError where ``data`` are not as many values as the programs take.
    """
    expected = shape.header.size["givens"], shape.units, shape.unit.size["givens"]
    found = len(data.header), *data.units.shape[:2]
    if expected != found:
        raise CircuitError(
            f"{shape.name}: data: expected {expected[0]} values of the header, {expected[1]} units of "
            f"{expected[2]}, found {found[0]}, {found[1]} of {found[2]}"
        )
    wires = np.empty((shape.inputs + shape.aux, 4), dtype=np.uint64)
    _core.run_programs(
        [_program(template) for template in shape.templates],
        shape.coefficients.words,
        [[_places(group) for group in wave] for wave in waves(shape)],
        data.joined(),
        wires,
        threads,
    )
    return CanonicalScalars(BLS12_381, wires)


def _program(
    template: Template,
) -> tuple[NDArray[np.uint8], Numbers, Numbers, NDArray[np.uint8], int, int, int]:
    program, port_bits = template.program, template.port_bits.view(np.uint8)
    sizes = template.aux, template.inputs, template.givens
    return program.opcodes, program.starts, program.operands, port_bits, *sizes


def _places(group: Group) -> tuple[int, Numbers, Numbers, Numbers, Numbers]:
    return group.template, group.ports, group.aux, group.inputs, group.givens
