"""What the native functions over programs and placed rows refuse, so that nothing is read or written elsewhere."""

from typing import Any

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.circuit import CircuitShape, circuit_shape
from cuzk.filecoin.templates.gadgets import given, index_level, path_end
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.program import Op
from cuzk.filecoin.witness.assign import _places, _program
from cuzk.filecoin.witness.rows import _places as _row_places
from cuzk.filecoin.witness.rows import _rows
from cuzk.filecoin.witness.schedule import waves
from cuzk.vectors import Scalars

COEFFICIENTS = Scalars.from_ints(BLS12_381, [1, -1, 5], montgomery=True).words
UNTOUCHED = np.uint64(0xC0FFEE)


def numbers(*values: int) -> Any:
    return np.array(values, dtype=np.uint32)


def run(*operations: tuple[int, ...], **changed: Any) -> list[int]:
    """One instance whose ports are ONE (a bit) and ONE (a field element)."""
    ends = np.cumsum([len(operands) for _, *operands in operations], dtype=np.uint32)
    program = {
        "opcodes": np.array([op for op, *_ in operations], dtype=np.uint8),
        "starts": np.concatenate((numbers(0), ends)),
        "operands": numbers(*(x for _, *operands in operations for x in operands)),
        "port_bits": np.array([1, 0], dtype=np.uint8),
        "aux": len(operations),
        "inputs": 0,
        "givens": 0,
    }
    places = {"ports": numbers(0, 0).reshape(1, 2), "aux": numbers(1), "inputs": numbers(1)}
    places |= {"givens": numbers(0)}
    program |= {key: changed[key] for key in program if key in changed}
    places |= {key[3:]: changed[key] for key in changed if key.startswith("at_")}
    wires = np.zeros((1 + len(operations), 4), dtype=np.uint64)
    number = changed.get("number", 0)
    data = np.zeros((1, 4), dtype=np.uint64)
    programs: Any = [tuple(program.values())]
    waves_of_one: Any = [[(number, *places.values())]]
    _core.run_programs(programs, COEFFICIENTS, waves_of_one, data, wires, 1)
    return Scalars(BLS12_381, wires).ints()


def test_what_is_taken() -> None:
    assert run((Op.XOR, 2, 3), (Op.LINEAR, 2, 2, 0, 1)) == [1, 1, 6]
    assert run((Op.PICK, 2, 2, 2), (Op.PRODUCT, 1, 1, 2, 2, 2, 3)) == [1, 1, 25]


REFUSED: dict[str, tuple[tuple[tuple[int, ...], ...], str]] = {
    "opcode": (((12,),), "operation 0: expected an opcode"),
    "slot of a later variable": (((Op.XOR, 2, 6),), "operands that were defined before"),
    "slot far away": (((Op.LINEAR, 0, 1 << 31),), "operands that were defined before"),
    "a field element as literal": (((Op.AND, 2, 4),), "a literal of a bit"),
    "a bit as field element": (((Op.BITS, 3, 1),), "a field element"),
    "a bit picked": (((Op.PICK, 2, 2, 1),), "a field element"),
    "a coefficient that is not there": (((Op.LINEAR, 3, 2),), "the number of a coefficient"),
    "half a pair": (((Op.LINEAR, 1, 2, 0),), "pairs"),
    "missing operand": (((Op.XOR, 2),), "more operands"),
    "operand too many": (((Op.XOR, 2, 2, 2),), "fewer operands"),
    "no bits": (((Op.BITS, 0, 2),), "a number of bits that fits"),
    "too many bits": (((Op.BITS, 257, 2),), "a number of bits that fits"),
    "too wide a sum": (((Op.SUM, 65, *[2] * 32),), "a number of bits that fits"),
    "part of a word": (((Op.SUM, 33, *[2] * 31),), "whole words"),
    "factors longer than the pairs": (((Op.PRODUCT, 1, 1, 0, 2),), "as many pairs as the factors"),
    "factors beyond all numbers": (
        ((Op.PRODUCT, 0xFFFFFFFF, 0xFFFFFFFF, 0, 2),),
        "as many pairs as the factors",
    ),
    "more variables": (((Op.MAJ, 2, 2, 2),), "as many variables"),
    "data": (((Op.GIVEN,),), "as many variables, public inputs and data"),
    "public input": (((Op.PUBLIC, 0, 2),), "as many variables, public inputs"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_programs_that_are_refused(what: str) -> None:
    operations, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        run(*operations)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"starts": numbers(0)}, "one more than there are operations"),
        ({"starts": numbers(1, 2)}, "operands that begin at 0"),
        ({"starts": numbers(0, 9)}, "operands inside of the program"),
        ({"number": 1}, "the number of a template"),
        ({"at_ports": numbers(0, 0)}, r"ports: expected shape \(n, 2\)"),
        ({"at_ports": numbers(0, 2).reshape(1, 2)}, "instance 0 is not inside of the circuit"),
        ({"at_aux": numbers(2)}, "instance 0 is not inside of the circuit"),
        ({"at_aux": numbers(0xFFFFFFFF)}, "instance 0 is not inside of the circuit"),
        ({"at_inputs": numbers(3)}, "instance 0 is not inside of the circuit"),
        ({"at_givens": numbers(2)}, "instance 0 is not inside of the circuit"),
        ({"at_aux": numbers(1, 1)}, "as many as rows of ports"),
    ],
)
def test_places_that_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run((Op.XOR, 2, 2), **changed)


def circuit() -> CircuitShape:
    library = Library()
    unit = Assembling()
    root, leaf = unit.place(library(given, 2))
    found, *bits = unit.place(library(index_level, 2), [leaf])
    unit.place(library(path_end, 1), [found, root, *bits])
    return circuit_shape("path", library, Assembling(), unit, [[]] * 3)


def mutated(rng: np.random.Generator, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """One number of one part changed, as likely to a small one as to any."""
    changed = list(parts)
    i = int(rng.integers(len(parts)))
    array = np.atleast_1d(np.array(parts[i]))
    if array.size == 0:
        return parts
    at = int(rng.integers(array.size))
    most = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else 255
    most = min(most, 1 << 40)
    value = int(rng.choice([0, 1, int(array.flat[at]) + 1, int(rng.integers(700)), most]))
    if isinstance(parts[i], int):
        changed[i] = value
    else:
        array = array.reshape(parts[i].shape)
        array.flat[at] = min(value, most)
        changed[i] = array
    return tuple(changed)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_beside_the_wires_is_written(seed: int) -> None:
    """Damaged programs, rows and places: refused with a ValueError, or run within their arrays."""
    shape, rng = circuit(), np.random.default_rng(seed)
    wires_there, rows_there = shape.inputs + shape.aux, shape.constraints + shape.inputs
    memory = np.full((50 + wires_there + 50, 4), UNTOUCHED)
    values = np.full((50 + rows_there + 50, 4), UNTOUCHED)
    data = np.ones((shape.units * shape.unit.size["givens"], 4), dtype=np.uint64)
    data[:, 1:] = 0
    refused = 0
    for _ in range(100):
        programs = [_program(t) for t in shape.templates]
        groups = [[_places(g) for g in wave] for wave in waves(shape)]
        rows = [_rows(t, t.a) for t in shape.templates]
        places = [_row_places(g) for wave in waves(shape) for g in wave]
        some: Any = (programs, rows, places, groups[int(rng.integers(len(groups)))])
        for chosen in some:
            i = int(rng.integers(len(chosen)))
            chosen[i] = mutated(rng, chosen[i])
        wires, out = memory[50:-50], values[50:-50]
        dictionary, rows_in_all = shape.coefficients.words, shape.constraints
        try:
            _core.run_programs(programs, dictionary, groups, data, wires, 2)
        except (ValueError, MemoryError):
            refused += 1
        try:
            _core.placed_product(rows, dictionary, places, rows_in_all, 1, wires, out, False, 2)
        except (ValueError, MemoryError):
            refused += 1
        for array in (memory, values):
            assert np.all(array[:50] == UNTOUCHED)
            assert np.all(array[-50:] == UNTOUCHED)
    assert 20 < refused < 200
