"""Whole circuits from templates: sizes, densities and R1CS hashes of every sector size, real witnesses."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c1_files import c1_8mib
from made_sectors import updated
from program_data import porep_data, sector_data, update_data
from run_programs import Run

from cuzk.errors import CircuitError
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.registered import UPDATE, registered
from cuzk.filecoin.shapes import PUBLISHED, SHAPES
from cuzk.filecoin.templates.assembly import Assembly
from cuzk.filecoin.templates.catalogue import circuit_of
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.matrices import matrices
from cuzk.filecoin.templates.porep import porep, porep_of
from cuzk.filecoin.templates.post import post_of, window, winning
from cuzk.filecoin.templates.program import Op
from cuzk.filecoin.templates.r1cs_hash import r1cs_hash
from cuzk.filecoin.templates.store import digest, read, write
from cuzk.filecoin.templates.template import Flags, Template
from cuzk.filecoin.templates.update import update
from cuzk.filecoin.vanilla import read_post
from cuzk.vectors import Words

Make = Callable[[Library], CircuitShape]

CIRCUITS: dict[str, Make] = {}
for size, sector in SHAPES.items():
    CIRCUITS[f"porep-{size}"] = partial(porep, shape=sector)
    CIRCUITS[f"update-{size}"] = partial(update, shape=sector)
for size in PUBLISHED:
    CIRCUITS[f"winning-{size}"] = partial(winning, shape=SHAPES[size])
    CIRCUITS[f"window-{size}"] = partial(window, shape=SHAPES[size])

# shapes of the reference's own tests; PoRep's fields are of no account for an update
UPDATE_TESTS = [
    replace(SHAPES["2KiB"], name="1KiB", log2_nodes=5, base_levels=1, sub=4),
    replace(SHAPES["2KiB"], name="8KiB", log2_nodes=8, base_levels=2, sub=4),
    replace(SHAPES["16KiB"], name="32KiB", log2_nodes=10, base_levels=3, sub=2),
]
CIRCUITS |= {f"update-{sector.name}": partial(update, shape=sector) for sector in UPDATE_TESTS}
POREP_TESTS: dict[str, list[int]] = {"8": [8], "2": [2, 2, 2], "8-4": [8, 4], "8-4-2": [8, 4, 2]}
POST_TESTS: dict[str, list[int]] = {"8": [8, 8], "8-4": [8, 8, 4], "8-4-2": [8, 8, 4, 2]}


def reference_porep(library: Library, levels: str) -> CircuitShape:
    arities = POREP_TESTS[levels]
    depth = sum(arity.bit_length() - 1 for arity in arities)
    return porep_of(f"porep-test-{levels}", library, depth, arities, layers=2, challenges=1)


def reference_post(library: Library, levels: str) -> CircuitShape:
    arities = POST_TESTS[levels]
    return post_of(f"post-test-{levels}", library, arities, sectors=3, challenges=5)


CIRCUITS |= {f"porep-test-{name}": partial(reference_porep, levels=name) for name in POREP_TESTS}
CIRCUITS |= {f"post-test-{name}": partial(reference_post, levels=name) for name in POST_TESTS}


@pytest.fixture(scope="module")
def library() -> Library:
    """Shared, so that each template is recorded once."""
    return Library()


@pytest.fixture(scope="module")
def expected(fixtures: Path) -> dict[str, Any]:
    entries = json.loads((fixtures / "filecoin" / "circuits.json").read_text())["circuits"]
    return {entry["name"]: entry for entry in entries}


@pytest.mark.parametrize("name", list(CIRCUITS))
def test_sizes_and_densities(library: Library, expected: dict[str, Any], name: str) -> None:
    shape, entry = CIRCUITS[name](library), expected[name]
    counts = shape.counts()
    assert shape.name == name
    assert counts == {key: entry[key] for key in counts}
    assert 1 << shape.log_domain == entry["domain"]
    assert shape.units == entry.get("units", 1)


HASHED = ["porep-test-8", "winning-2KiB", "window-2KiB", "window-32GiB"]
HASHED += ["update-1KiB", "post-test-8", "post-test-8-4", "post-test-8-4-2"]
HASHED_SLOWLY = ["porep-2KiB", "porep-4KiB", "porep-16KiB", "porep-8MiB", "porep-32GiB"]
HASHED_SLOWLY += ["porep-test-2", "porep-test-8-4", "porep-test-8-4-2"]
HASHED_SLOWLY += ["winning-8MiB", "winning-512MiB", "winning-32GiB", "winning-64GiB"]
HASHED_SLOWLY += ["window-8MiB", "window-512MiB", "window-64GiB"]
HASHED_SLOWLY += ["update-2KiB", "update-4KiB", "update-8KiB", "update-32GiB"]
SLOWLY = [pytest.param(name, marks=pytest.mark.slow) for name in HASHED_SLOWLY]


def test_no_hash_is_forgotten(expected: dict[str, Any]) -> None:
    stored = {name for name, entry in expected.items() if entry.get("r1cs_hash")}
    assert {*HASHED, *HASHED_SLOWLY} == stored & CIRCUITS.keys()


@pytest.mark.parametrize("name", [*HASHED, *SLOWLY])
def test_hashes(library: Library, expected: dict[str, Any], name: str) -> None:
    """Of large circuits with one unit only, where the file says so."""
    entry = expected[name]["r1cs_hash"]
    assert r1cs_hash(CIRCUITS[name](library).with_units(entry["units"])) == entry["blake2s"]


def test_a_circuit_does_not_depend_on_what_else_its_library_holds(library: Library) -> None:
    alone, beside = (window(lib, SHAPES["64GiB"]) for lib in (Library(), library))
    assert alone.coefficients.words.tobytes() == beside.coefficients.words.tobytes()
    for a, b in zip(alone.templates, beside.templates, strict=True):
        assert a.name == b.name
        assert a.program.operands.tobytes() == b.program.operands.tobytes()
        for x, y in zip(a.matrices, b.matrices, strict=True):
            assert x.coefficients.tobytes() == y.coefficients.tobytes()


def test_the_largest_circuit_is_small(library: Library) -> None:
    """FILECOIN's figures: 2,466 coefficients, of them 2,131 in A, 23 in B, 590 in C."""
    shape = porep(library, SHAPES["32GiB"])
    assert len(shape.coefficients) == 2466
    found = [
        {int(n) for t in shape.templates for n in np.unique(t.matrices[i].coefficients)}
        for i in range(3)
    ]
    assert [len(numbers) for numbers in found] == [2131, 23, 590]
    assert len(shape.unit) < 1000


# Real witnesses


@pytest.fixture(scope="module")
def witnesses(fixtures: Path) -> dict[str, Any]:
    stored = json.loads((fixtures / "filecoin" / "witness_digest.json").read_text())["witnesses"]
    return {entry["name"]: entry for entry in stored}


def expect_witness(found: Run, entry: dict[str, Any]) -> None:
    assert found.left == []
    public = [value.to_bytes(32, "little").hex() for value in found.inputs]
    assert public == entry["public_inputs"]
    assert found.digests() == entry["digests"]


def test_a_real_sector_of_32_gib(
    library: Library, witnesses: dict[str, Any], fixtures: Path
) -> None:
    """All variables and all rows' values are those of the reference's order; every row holds."""
    proof = registered("post", "StackedDrgWindow32GiBV1_2")
    post = read_post([fixtures / "filecoin" / "post.vproof"], proof)
    shape = window(library, proof.shape).with_units(1)
    found = Run(shape, list(sector_data(post, 0)))
    expect_witness(found, witnesses["post-sector-32GiB"])
    assert found.broken() == []
    found.wires[shape.inputs + 700] += 1
    assert found.broken()


@pytest.mark.slow
@pytest.mark.parametrize("size", ["2KiB", "8MiB"])
def test_c1_outputs(library: Library, witnesses: dict[str, Any], fixtures: Path, size: str) -> None:
    """A self-made sector and a real one."""
    folder = fixtures / "filecoin"
    c1 = read_c1(folder / "c1-2KiB.bincode" if size == "2KiB" else c1_8mib(fixtures)[0])
    found = Run(porep(library, c1.proof.shape), list(porep_data(c1, 0)))
    expect_witness(found, witnesses[f"porep-{size}"])
    assert found.broken() == []


@pytest.mark.slow
@pytest.mark.parametrize(("size", "h"), [("2KiB", 0), ("16KiB", 5)])
def test_made_updates(library: Library, size: str, h: int) -> None:
    """Every row holds, and a leaf that was encoded otherwise breaks one. No foreign witness is at hand."""
    proof = replace(UPDATE[0], shape=SHAPES[size])
    made, commitments = updated(proof, 1)
    partition = proof.shape.update_partitions - 1
    others = [apex_root(made.apex_leaves[k]) for k in range(partition)]
    shape = update(library, proof.shape)
    found = Run(shape, list(update_data(made, partition, h, commitments, others)))
    assert found.left == []
    k_and_h, *public = found.inputs[1:]
    assert k_and_h == partition | 1 << proof.shape.update_partition_bits + h
    assert [value.to_bytes(32, "little") for value in public] == list(commitments)
    assert found.broken() == []
    last = shape.inputs + shape.header.size["aux"] + shape.unit.size["aux"] * shape.units - 1
    found.wires[last] += 1
    assert len(found.broken()) == 2  # it was packed, and is compared with the apex leaf


def apex_root(leaves: Words) -> int:
    level = [leaf.tobytes() for leaf in leaves]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [hashlib.sha256(a + b).digest() for a, b in pairs]
        level = [node[:31] + bytes([node[31] & 0x3F]) for node in level]
    return int.from_bytes(level[0], "little")


# The rows written out


@pytest.mark.parametrize("name", ["window-2KiB", "porep-2KiB", "update-1KiB"])
def test_matrices_are_the_placed_rows(library: Library, name: str) -> None:
    """Made another way: by header and unit, not by placements."""
    shape = CIRCUITS[name](library)
    found = matrices(shape)
    assert found.c is not None
    assert (found.wires, found.public) == (shape.inputs + shape.aux, shape.inputs - 1)
    assert (found.rows, found.log_domain) == (shape.constraints + shape.inputs, shape.log_domain)
    placements = list(shape.placements())
    for i, matrix in enumerate((found.a, found.b, found.c)):
        parts = [placed.template.matrices[i] for placed in placements]
        wires = [p.wires[m.columns] for p, m in zip(placements, parts, strict=True)]
        lengths = np.concatenate([np.diff(m.starts) for m in parts])
        terms = shape.terms[i]
        assert np.array_equal(np.concatenate(wires), matrix.wires[:terms])
        numbers = np.concatenate([m.coefficients for m in parts])
        assert np.array_equal(numbers, matrix.coefficients[:terms])
        assert np.array_equal(lengths, np.diff(matrix.row_ptr)[: shape.constraints])
    assert [found.a.row(shape.constraints + i) for i in (0, found.public)] == [
        [(1, 0)],
        [(1, found.public)],
    ]
    used = [m.used(found.wires) for m in (found.a, found.b)]
    assert used[0][: shape.inputs].all()
    assert used[1][: shape.inputs].sum() == shape.b_inputs
    for flags, density in zip(used, shape.densities, strict=True):
        assert np.array_equal(flags[shape.inputs :], density.flags())


def test_more_units_than_there_are(library: Library) -> None:
    with pytest.raises(CircuitError, match=r"window-2KiB: expected up to 2 units, found 3"):
        window(library, SHAPES["2KiB"]).with_units(3)


# Kept on disk


def test_a_circuit_is_kept_and_mapped(tmp_path: Path) -> None:
    proof = registered("post", "StackedDrgWinning8MiBV1")
    made = circuit_of(proof, tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("winning-8MiB-")
    kept = circuit_of(proof, tmp_path)
    mapped = kept.templates[0].a.columns
    assert not mapped.flags.writeable
    assert (kept.name, kept.counts()) == (made.name, made.counts())
    assert digest(kept) == digest(made) == matrices(kept).digest
    assert r1cs_hash(kept) == r1cs_hash(made)
    assert digest(made.with_units(1)) != digest(made)


def test_a_damaged_file_counts_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "circuit"
    assert read(path) is None
    write(winning(Library(), SHAPES["2KiB"]), path)
    whole = path.read_bytes()
    assert read(path) is not None
    damaged = [b"", whole[:40], whole[:-1], whole + b"\0", b"x" + whole[1:]]
    damaged += [whole[:8] + b"\x07" + whole[9:], whole[: 1 << 13] + b"?" + whole[(1 << 13) + 1 :]]
    for data in damaged:
        assert data != whole
        path.write_bytes(data)
        assert read(path) is None


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    proof = registered("post", "StackedDrgWinning2KiBV1")
    shapes = [circuit_of(proof, folder) for folder in (blocked / "circuits", None)]
    assert digest(shapes[0]) == digest(shapes[1])
    assert list(tmp_path.iterdir()) == [blocked]


# What a witness generator may rely on

BOOLEAN = {Op.XOR: 2, Op.AND: 2, Op.CH: 3, Op.MAJ: 3}


def field_slots(op: Op, operands: list[int]) -> list[int]:
    """Slots that are read as field elements or as either kind."""
    if op is Op.PRODUCT:
        return operands[3::2]
    return {Op.PICK: operands[1:], Op.BITS: operands[1:]}.get(
        op, operands[1::2] if op in (Op.LINEAR, Op.PUBLIC) else []
    )


def literals(op: Op, operands: list[int]) -> list[int]:
    if op is Op.PICK:
        return operands[:1]
    return operands[1:] if op is Op.SUM else operands if op in BOOLEAN else []


def defines(op: Op, operands: list[int]) -> tuple[int, bool]:
    """How many variables, and whether they are bits."""
    if op in (Op.GIVEN_BITS, Op.BITS, Op.SUM):
        return operands[0], True
    if op is Op.PUBLIC:
        return 0, False
    return (2 if op is Op.MAJ else 1), op in BOOLEAN


def expect_well_formed(template: Template, coefficients: int) -> None:
    bits = [True, *template.port_bits.tolist()]
    for op, operands in template.program:
        known = len(bits)
        assert all(slot < known for slot in field_slots(op, operands))
        assert all(
            literal >> 1 < known and bits[literal >> 1] for literal in literals(op, operands)
        )
        if op in BOOLEAN:
            assert len(operands) == BOOLEAN[op]
            assert min(operands) > 1, "no constants"
        assert op is not Op.XOR or not any(literal & 1 for literal in operands)
        assert op is not Op.SUM or len(operands) % 32 == 1
        count, kind = defines(op, operands)
        bits += [kind] * count
    assert bits[1 + template.ports :] == template.aux_bits.tolist()
    givens = np.isin(template.program.opcodes, [Op.GIVEN, Op.GIVEN_BITS])
    assert givens.sum() == template.givens
    assert (template.program.opcodes == Op.PUBLIC).sum() == template.inputs
    assert template.program.coefficients.max(initial=0) < coefficients


def test_programs_are_well_formed(library: Library) -> None:
    """Operands come before what they define, bits are bits, counts are right."""
    seen = set()
    for name in ("porep-64GiB", "window-32GiB", "update-16KiB", "update-64GiB"):
        shape = CIRCUITS[name](library)
        for template in shape.templates:
            if template.name not in seen:
                expect_well_formed(template, len(shape.coefficients))
            seen.add(template.name)
    assert len(seen) > 30


@pytest.mark.parametrize("name", ["porep-64GiB", "window-32GiB", "update-16KiB"])
def test_bits_are_bound_to_bits(library: Library, name: str) -> None:
    """Through ports, too, and each port to an earlier variable."""
    shape = CIRCUITS[name](library)
    header = kinds(shape, shape.header, np.zeros(0, dtype=np.bool_))
    for bound in shape.unit_bindings[:3]:
        kinds(shape, shape.unit, header[bound])


def kinds(shape: CircuitShape, part: Assembly, ports: Flags) -> Flags:
    """Which slots of a header or unit are bits; ONE is."""
    bits = np.zeros(part.slots, dtype=np.bool_)
    bits[: 1 + len(ports)] = [True, *ports]
    for i, number in enumerate(part.templates.tolist()):
        template = shape.templates[number]
        slots = part.slots_of(i, template)
        own = 1 + template.ports
        bound = slots[1:own]
        assert np.array_equal(bits[bound], template.port_bits)
        assert bound.max(initial=0) <= part.ports + part.aux[i]
        assert bound.min(initial=1) > 0
        bits[slots[own : own + template.aux]] = template.aux_bits
    return bits
