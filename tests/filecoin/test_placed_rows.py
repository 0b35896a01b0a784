"""Rows evaluated from templates: as the slow model has them for any wires, as the matrices written out have them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_sectors import sealed, updated
from program_data import update_data as numbers_of_update
from run_programs import Run
from stored_witnesses import real_c1, real_sector, stored_witnesses

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.errors import CircuitError
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.openings import Openings
from cuzk.filecoin.public import porep_inputs, update_inputs
from cuzk.filecoin.registered import SEAL, UPDATE
from cuzk.filecoin.shapes import SHAPES, Shape
from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.circuit import CircuitShape, circuit_shape
from cuzk.filecoin.templates.gadgets import given, node_bits
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.matrices import matrices
from cuzk.filecoin.templates.paths import octree_path, tree_d_node
from cuzk.filecoin.templates.porep import porep
from cuzk.filecoin.templates.post import window
from cuzk.filecoin.templates.update import update
from cuzk.filecoin.witness.assign import assign
from cuzk.filecoin.witness.data import Data, porep_data, post_data, update_data
from cuzk.filecoin.witness.rows import PlacedMatrices, where
from cuzk.vectors import Scalars, unpack

R = BLS12_381.r


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


def small(library: Library) -> CircuitShape:
    """A hash of tree D in the header, Poseidon paths of three arities in two units."""
    header, unit = Assembling(), Assembling(ports=1)
    bits = header.place(library(node_bits), header.place(library(given, 2)))
    root = tree_d_node(header, library, bits)
    (leaf,) = unit.place(library(given, 1))
    octree_path(unit, library, [8, 4, 2], leaf, unit.ports[0])
    return circuit_shape("small", library, header, unit, [[root]] * 2)


def plain(values: Scalars) -> bytes:
    assert values.montgomery
    out = np.empty_like(values.words)
    _core.from_montgomery(BLS12_381.name, "fr", values.words, out, 1)
    return out.tobytes()


@pytest.mark.parametrize("kind", ["bits where bits are", "anything"])
def test_values_for_any_wires(library: Library, kind: str) -> None:
    """Also for wires that no program would make."""
    shape = small(library)
    run = Run(shape, [1, 2, *[0] * (2 * shape.unit.size["givens"])])
    rng = np.random.default_rng(1)
    run.wires = [1, *(int.from_bytes(rng.bytes(32), "little") % R for _ in run.wires[1:])]
    for placement in shape.placements():
        own = placement.wires[1 + placement.template.ports :][: placement.template.aux]
        for wire in own[placement.template.aux_bits].tolist():
            run.wires[wire] &= 1
    if kind == "anything":
        run.wires[shape.inputs + 3 :: 999] = [R - 1] * len(run.wires[shape.inputs + 3 :: 999])
    rows = list(run.row_values())
    rest = [(public, 0, 0) for public in run.inputs] + [(0, 0, 0)] * 5
    expected = [list(column) for column in zip(*rows, *rest, strict=True)]
    broken = [i for i, (a, b, c) in enumerate(rows) if (a * b - c) % R]
    placed, wires = PlacedMatrices.of(shape), Scalars.from_ints(BLS12_381, run.wires)
    for _ in every_arithmetic():
        for threads in (1, 3):
            found = placed.products(wires, len(expected[0]), threads=threads)
            assert [values.ints() for values in found] == expected
            assert placed.broken(wires, threads=threads).tolist() == broken


def every_arithmetic() -> Iterator[str]:
    before = _core.path()
    for path in _core.paths():
        _core.use_path(path)
        yield path
    _core.use_path(before)


def test_products_are_those_of_the_matrices_written_out(library: Library) -> None:
    """Bit-reversed, as a transform takes them."""
    shape = small(library)
    rng = np.random.default_rng(2)
    words = rng.integers(0, 1 << 62, (shape.inputs + shape.aux, 4), dtype=np.uint64)
    wires, whole = Scalars(BLS12_381, words), matrices(shape)
    size = 1 << shape.log_domain
    products = PlacedMatrices.of(shape).products(wires, size, bit_reversed=True, threads=2)
    for found, m in zip(products, (whole.a, whole.b, whole.c), strict=True):
        assert m is not None
        out = np.empty((size, 4), dtype=np.uint64)
        _core.product(
            BLS12_381.name, m.row_ptr, m.wires, m.coefficients, m.values.words, words, out, True, 1
        )
        assert found.words.tobytes() == out.tobytes()


# Real witnesses


def porep_case(fixtures: Path, library: Library, size: str) -> tuple[CircuitShape, Data]:
    c1 = real_c1(fixtures, size)
    return porep(library, c1.proof.shape), porep_data(c1, 0)


def post_case(fixtures: Path, library: Library) -> tuple[CircuitShape, Data]:
    data = post_data(real_sector(fixtures))
    shape = window(library, SHAPES["32GiB"]).with_units(1)
    return shape, Data(data.header, data.units[:1])


CASES: dict[str, Callable[[Path, Library], tuple[CircuitShape, Data]]] = {
    "porep-2KiB": partial(porep_case, size="2KiB"),
    "porep-8MiB": partial(porep_case, size="8MiB"),
    "post-sector-32GiB": post_case,
}


SLOWLY = pytest.param("porep-2KiB", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", ["porep-8MiB", "post-sector-32GiB", SLOWLY])
def test_rows_of_real_witnesses(library: Library, fixtures: Path, name: str) -> None:
    """As the reference has them, with and without the rows of the public inputs; all hold."""
    shape, data = CASES[name](fixtures, library)
    stored = stored_witnesses(fixtures)
    wires = assign(shape, data)
    placed = PlacedMatrices.of(shape)
    assert len(placed.broken(wires, threads=2)) == 0
    rows = shape.constraints + shape.inputs
    for letter, product in zip("abc", placed.products(wires, rows, threads=2), strict=True):
        values = memoryview(plain(product))
        hashed = blake2b(values[: shape.constraints * 32], digest_size=32)
        assert hashed.hexdigest() == stored[name]["digests"][letter], letter
        hashed.update(values[shape.constraints * 32 :])
        assert hashed.hexdigest() == stored[name]["digests_with_input_rows"][letter], letter


@pytest.mark.parametrize(
    ("size", "h"), [("2KiB", 0), pytest.param("16KiB", 5, marks=pytest.mark.slow)]
)
def test_made_updates(library: Library, size: str, h: int) -> None:
    """The last partition: data in the order of the model, public inputs of the verifier, all rows hold."""
    proof = replace(UPDATE[0], shape=SHAPES[size])
    made, commitments = updated(proof, 1)
    partition = proof.shape.update_partitions - 1
    data = update_data(made, partition, h_select=h)
    apex = unpack(data.header[len(data.header) - proof.shape.update_partition_bits :])
    model = list(numbers_of_update(made, partition, h, commitments, apex))
    assert unpack(data.joined()) == model
    shape = update(library, proof.shape)
    wires = assign(shape, data, threads=2)
    expected = update_inputs(proof, *commitments, partition, h)
    assert wires.words[1 : shape.inputs].tobytes() == expected.words.tobytes()
    assert len(PlacedMatrices.of(shape).broken(wires)) == 0


ELEVEN_LAYERS = Shape("tiny", 7, 1, 8, 2, 11, 1, 1, 13, 26, 2, 1, 10, 8)
"""Columns and trees as 64 GiB has them, over 128 nodes; one challenge."""


@pytest.mark.parametrize(
    "sector", [SHAPES["4KiB"], SHAPES["16KiB"], ELEVEN_LAYERS], ids=lambda sector: sector.name
)
def test_made_seals(library: Library, sector: Shape) -> None:
    """Whole sectors made here: all rows hold, the public inputs are the verifier's."""
    c1 = sealed(replace(SEAL[5], shape=sector))
    shape = porep(library, sector)
    wires = assign(shape, porep_data(c1, 0), threads=2)
    expected = porep_inputs(c1.proof, c1.replica_id, c1.comm_d, c1.comm_r, c1.seed, 0)
    assert wires.words[1 : shape.inputs].tobytes() == expected.words.tobytes()
    assert len(PlacedMatrices.of(shape).broken(wires, threads=2)) == 0


# Wrong vanilla proofs


@pytest.fixture(scope="module")
def c1(fixtures: Path) -> C1:
    return real_c1(fixtures, "2KiB")


@pytest.fixture(scope="module")
def of_2kib(library: Library) -> PlacedMatrices:
    return PlacedMatrices.of(porep(library, SHAPES["2KiB"]))


def incremented(values: Any, *item: int) -> Any:
    """A copy with one node changed."""
    changed = np.array(values)
    changed[(*item, 0)] += np.uint64(1)
    return changed


def sibling(paths: Openings, *item: int) -> Openings:
    return replace(paths, siblings=incremented(paths.siblings, *item))


WRONG: dict[str, tuple[Callable[[C1], C1], list[str]]] = {
    # what is hashed upwards is right but for its end: the root that the path leads to
    "sibling in D": (
        lambda c1: replace(c1, data=sibling(c1.data, 0, 0, 2)),
        ["unit 0: path in D"],
    ),
    "sibling of an expander parent": (
        lambda c1: replace(c1, column_openings=sibling(c1.column_openings, 0, 1, 14, 9)),
        ["unit 1: path 13 in C"],
    ),
    "sibling in R_last": (
        lambda c1: replace(c1, replica=sibling(c1.replica, 0, 1, 0)),
        ["unit 1: path in R_last"],
    ),
    # the column's hash; both labels follow from layer 1 of a DRG parent: the replica's node, the challenged column
    "label of a DRG parent": (
        lambda c1: replace(c1, columns=incremented(c1.columns, 0, 0, 3, 0)),
        ["unit 0: path 2 in C", "unit 0: path 14 in C"],
    ),
    "label of a DRG parent in the last layer": (
        lambda c1: replace(c1, columns=incremented(c1.columns, 0, 0, 3, 1)),
        ["unit 0: path 2 in C", "unit 0: path in R_last", "unit 0: path 14 in C"],
    ),
    # expander parents are read a layer below: nobody reads their last labels
    "last label of an expander parent": (
        lambda c1: replace(c1, columns=incremented(c1.columns, 0, 1, 9, 1)),
        ["unit 1: path 8 in C"],
    ),
    "data": (
        lambda c1: replace(c1, data=replace(c1.data, leaf=incremented(c1.data.leaf, 0, 1))),
        ["unit 1: path in D", "unit 1: path in R_last"],
    ),
}


def ends_of_paths(shape: CircuitShape) -> dict[int, str]:
    """Rows that compare a path's end with a root, by name: the last ones of `path_end`."""
    names = ["path in D", *(f"path {i} in C" for i in range(14)), "path in R_last", "path 14 in C"]
    found = {}
    for unit in range(shape.units):
        ends = [
            i
            for i, number in enumerate(shape.unit.templates.tolist())
            if shape.templates[number].name.startswith("path_end")
        ]
        for name, place in zip(names, ends, strict=True):
            row = shape.header.size["rows"] + unit * shape.unit.size["rows"]
            found[row + int(shape.unit.rows[place + 1]) - 1] = f"unit {unit}: {name}"
    return found


@pytest.mark.parametrize("what", list(WRONG))
def test_what_is_wrong_breaks_its_rows_and_no_others(
    of_2kib: PlacedMatrices, c1: C1, what: str
) -> None:
    change, expected = WRONG[what]
    shape = of_2kib.shape
    wires = assign(shape, porep_data(change(c1), 0))
    ends = ends_of_paths(shape)
    broken = of_2kib.broken(wires, threads=2).tolist()
    assert [ends.get(row, where(shape, row)) for row in broken] == expected


def test_a_row_is_named(of_2kib: PlacedMatrices) -> None:
    shape = of_2kib.shape
    assert where(shape, 0) == "header: placement 0 (porep_header): row 0"
    assert where(shape, 570) == "header: placement 0 (porep_header): row 570"
    last = len(shape.unit) - 1
    assert where(shape, shape.constraints - 1).startswith(
        f"unit 1: placement {last} (path_end(6)): row 1"
    )


def test_products_that_cannot_be(of_2kib: PlacedMatrices) -> None:
    shape = of_2kib.shape
    words = np.zeros((shape.inputs + shape.aux, 4), dtype=np.uint64)
    wires = Scalars(BLS12_381, words)
    with pytest.raises(CircuitError, match=r"expected 2685713 wires in plain form, found 5"):
        of_2kib.products(wires[:5], 1 << 22)
    with pytest.raises(CircuitError, match=r"expected room for 2687961 rows, found 2687960"):
        of_2kib.products(wires, 2687960)
    words[777, 3] = 1 << 63
    with pytest.raises(CircuitError, match=r"wire 777: expected a value below r"):
        of_2kib.broken(wires)
