"""Programs run natively for many instances: the values are those of the slow model, whatever the number of threads."""

from collections.abc import Sequence

import numpy as np
import pytest
from run_programs import Run

from cuzk.errors import CircuitError
from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.circuit import CircuitShape, circuit_shape
from cuzk.filecoin.templates.gadgets import (
    field_bits,
    given,
    index_level,
    node_bits,
    pack_node,
    poseidon_node,
)
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.paths import octree_path, tree_d_node
from cuzk.filecoin.templates.program import Op
from cuzk.filecoin.templates.recorder import R, Recorder
from cuzk.filecoin.templates.sha256 import digest_bits
from cuzk.filecoin.witness.assign import assign
from cuzk.filecoin.witness.data import Data
from cuzk.vectors import pack


def random_data(shape: CircuitShape, seed: int) -> list[int]:
    """What each GIVEN takes, some at the ends; bits that fit."""
    rng = np.random.default_rng(seed)
    found: list[int] = []
    for placement in shape.placements():
        for op, operands in placement.template.program:
            if op in (Op.GIVEN, Op.GIVEN_BITS):
                bound = R if op is Op.GIVEN else min(R, 1 << operands[0])
                value = int.from_bytes(rng.bytes(32), "little") % bound
                found.append(
                    int(rng.choice(np.array([value, value, value, 0, 1, bound - 1], dtype=object)))
                )
    return found


def data_of(shape: CircuitShape, values: Sequence[int]) -> Data:
    header, unit = (part.size["givens"] for part in (shape.header, shape.unit))
    units = pack(values[header:], 4).reshape(shape.units, unit, 4)
    return Data(pack(values[:header], 4), units)


def agrees(shape: CircuitShape, values: Sequence[int], threads: int = 1) -> None:
    """Every wire, and no datum is left."""
    slow = Run(shape, values)
    assert slow.left == []
    assert assign(shape, data_of(shape, values), threads=threads).ints() == slow.wires


def every_operation(recorder: Recorder) -> list[int]:
    """Two ports, an element and a bit; each operation with plain, negated and constant operands."""
    x = recorder.port()
    p = recorder.port(bit=True)
    y, z = recorder.given(2)
    bits = recorder.bits(Op.GIVEN_BITS, 255, ())
    more = recorder.bits(Op.GIVEN_BITS, 70, ())
    of_x = recorder.bits(Op.BITS, 255, (x,))
    lits = [2 * bit + (i % 3 == 1) for i, bit in enumerate([p, *bits, *more, *of_x])]
    lits[5::17] = [i % 2 for i in range(len(lits[5::17]))]
    for k, width in ((1, 32), (2, 33), (5, 35), (8, 35), (7, 64)):
        recorder.bits(Op.SUM, width, lits[: 32 * k])
    a, b, c = lits[:30], lits[200:230], lits[400:430]
    for i in range(30):
        recorder.define(Op.XOR, (a[i], b[i]), bit=True)
        recorder.define(Op.AND, (b[i], c[i]), bit=True)
        recorder.define(Op.CH, (a[i], b[i], c[i]), bit=True)
        recorder.define(Op.MAJ, (a[i], b[i], c[i]), 2, bit=True)
    picked = [recorder.define(Op.PICK, (lit, x, y)) for lit in lits[:6]]
    terms = {0: 7, x: 1, y: -1, z: 5, p: 3, bits[9]: -4, **{v: v + R // 3 for v in picked}}
    total = recorder.linear(terms)
    many = recorder.linear({v: 3**v for v in [*bits, *more, total]})
    pairs = recorder._pairs({total: 2, many: 1}), recorder._pairs({z: -1, 0: 4, bits[0]: 1})
    products = [*pairs[0], *pairs[1], *recorder._pairs({x: 9, 0: -1})]
    outputs = [total, many, recorder.define(Op.PRODUCT, (2, 3, *products)), bits[3]]
    recorder.public({total: 1, bits[2]: 6})
    recorder.public({many: -1})
    return outputs


def of_every_operation(units: int) -> CircuitShape:
    library = Library()
    header, unit = Assembling(), Assembling(ports=2)
    (x,) = header.place(library(given, 1))
    bit = header.place(library(field_bits), [x])[0]
    first = unit.place(library(every_operation), unit.ports)
    unit.place(library(every_operation), [first[2], first[3]])
    return circuit_shape("every operation", library, header, unit, [[x, bit]] * units)


@pytest.mark.parametrize(("units", "threads"), [(1, 1), (3, 2), (70, 1), (70, 3)])
def test_every_operation(arithmetic: str, units: int, threads: int) -> None:
    assert arithmetic
    shape = of_every_operation(units)
    assert {op for t in shape.templates for op, _ in t.program} == set(Op)
    agrees(shape, random_data(shape, units), threads)


def test_paths_of_many_units() -> None:
    """Poseidon levels, more of them than a batch holds, with the root bound from the header."""
    library = Library()
    header, unit = Assembling(), Assembling(ports=1)
    root = header.place(library(poseidon_node, 2), header.place(library(given, 2)))
    (leaf,) = unit.place(library(given, 1))
    octree_path(unit, library, [8, 4, 2], leaf, unit.ports[0])
    shape = circuit_shape("paths", library, header, unit, [root] * 21)
    agrees(shape, random_data(shape, 1), threads=2)


def test_a_node_of_tree_d_and_what_binds_its_bits() -> None:
    library = Library()
    unit = Assembling()
    nodes = []
    for _ in range(2):
        bits = unit.place(library(node_bits), unit.place(library(given, 2)))
        nodes.append(tree_d_node(unit, library, bits))
    above = tree_d_node(unit, library, unit.place(library(node_bits), nodes))
    unit.place(library(index_level, 2), [above])
    shape = circuit_shape("nodes", library, Assembling(), unit, [[]] * 2)
    agrees(shape, random_data(shape, 2), threads=2)


def test_data_that_do_not_fit() -> None:
    shape = of_every_operation(2)
    data = data_of(shape, random_data(shape, 1))
    with pytest.raises(
        CircuitError, match=r"expected 1 values of the header, 2 units of 8, found 0, 2 of 8"
    ):
        assign(shape, Data(data.header[:0], data.units))
    with pytest.raises(CircuitError, match=r"found 1, 1 of 8"):
        assign(shape, Data(data.header, data.units[:1]))
    units = data.units.copy()
    units[1, 2] = pack([R], 4)[0]
    with pytest.raises(ValueError, match=r"data: value 11 is not below r"):
        assign(shape, Data(data.header, units))
    units[1, 2] = pack([1 << 254], 4)[0]
    assign(shape, Data(data.header, units))
    units[1, 3] = pack([1 << 70], 4)[0]
    with pytest.raises(ValueError, match=r"data: value 12 has more than 70 bits"):
        assign(shape, Data(data.header, units))


def test_a_bit_is_bound_to_a_bit() -> None:
    library = Library()
    part = Assembling()
    values = part.place(library(given, 254))
    part.place(library(pack_node), digest_bits([*values, *values[:2]]))
    shape = circuit_shape("bits", library, part, Assembling(), [])
    bits = [i % 2 for i in range(254)]
    agrees(shape, bits)
    with pytest.raises(ValueError, match=r"ports: wire \d+ is not a bit"):
        assign(shape, data_of(shape, [*bits[:7], 2, *bits[8:]]))
