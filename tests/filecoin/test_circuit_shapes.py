"""Whole circuits from templates: sizes, densities and R1CS hashes of every sector size, real witnesses."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_programs import Run

from cuzk.filecoin.registered import registered
from cuzk.filecoin.shapes import PUBLISHED, SHAPES
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.porep import porep, porep_of
from cuzk.filecoin.templates.post import post_of, window, winning
from cuzk.filecoin.templates.r1cs_hash import r1cs_hash
from cuzk.filecoin.vanilla import PostSectors, read_post
from cuzk.vectors import unpack

Make = Callable[[Library], CircuitShape]

CIRCUITS: dict[str, Make] = {}
for size, sector in SHAPES.items():
    CIRCUITS[f"porep-{size}"] = partial(porep, shape=sector)
for size in PUBLISHED:
    CIRCUITS[f"winning-{size}"] = partial(winning, shape=SHAPES[size])
    CIRCUITS[f"window-{size}"] = partial(window, shape=SHAPES[size])

# shapes of the reference's own tests
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


HASHED = ["porep-2KiB", "winning-2KiB", "window-2KiB", "window-32GiB"]
HASHED += ["post-test-8", "post-test-8-4", "post-test-8-4-2"]
HASHED_SLOWLY = ["porep-4KiB", "porep-16KiB", "porep-8MiB", "porep-32GiB"]
HASHED_SLOWLY += ["porep-test-8", "porep-test-2", "porep-test-8-4", "porep-test-8-4-2"]
HASHED_SLOWLY += ["winning-8MiB", "winning-512MiB", "winning-32GiB", "winning-64GiB"]
HASHED_SLOWLY += ["window-8MiB", "window-512MiB", "window-64GiB"]
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


def sector_data(post: PostSectors, sector: int) -> Iterator[int]:
    """What a PoSt unit's program takes, in its order."""
    for words in (post.comm_r_last, post.comm_c, post.comm_r):
        yield unpack(words[sector : sector + 1])[0]
    for i in range(post.replica.index.shape[1]):
        yield unpack(post.replica.leaf[sector, i : i + 1])[0]
        siblings = iter(unpack(post.replica.siblings[sector, i]))
        index = int(post.replica.index[sector, i])
        for arity in post.replica.arities:
            yield index % arity
            yield from (next(siblings) for _ in range(arity - 1))
            index //= arity


def test_a_real_sector_of_32_gib(library: Library, fixtures: Path) -> None:
    """All variables and all rows' values are those of the reference's order; every row holds."""
    folder = fixtures / "filecoin"
    stored = json.loads((folder / "witness_digest.json").read_text())["witnesses"]
    entry = next(entry for entry in stored if entry["name"] == "post-sector-32GiB")
    proof = registered("post", "StackedDrgWindow32GiBV1_2")
    post = read_post([folder / "post.vproof"], proof)
    shape = window(library, SHAPES["32GiB"]).with_units(1)
    found = Run(shape, list(sector_data(post, 0)))
    assert found.left == []
    public = [value.to_bytes(32, "little").hex() for value in found.inputs]
    assert public == entry["public_inputs"]
    assert found.broken() == []
    assert found.digests() == entry["digests"]
