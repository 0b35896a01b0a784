"""Witnesses of real vanilla proofs: every wire is the reference's, the public inputs those that a verifier derives."""

from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_witnesses import real_c1, real_sector, stored_witnesses

from cuzk.errors import FormatError
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.public import porep_inputs, post_inputs
from cuzk.filecoin.registered import registered
from cuzk.filecoin.shapes import SHAPES
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.porep import porep
from cuzk.filecoin.templates.post import window, winning
from cuzk.filecoin.vanilla import PostSectors
from cuzk.filecoin.witness.assign import assign
from cuzk.filecoin.witness.data import Data, porep_data, post_data
from cuzk.filecoin.witness.schedule import waves
from cuzk.vectors import Scalars


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


@pytest.fixture(scope="module")
def stored(fixtures: Path) -> dict[str, Any]:
    return stored_witnesses(fixtures)


def is_stored(shape: CircuitShape, wires: Scalars, entry: dict[str, Any]) -> None:
    """Public inputs, and the private variables of every section."""
    public, aux = wires.words[: shape.inputs], wires.words[shape.inputs :]
    assert [value.tobytes().hex() for value in public] == entry["public_inputs"]
    ends = [0, *(section["aux"] for section in entry["sections"])]
    assert ends[-1] == len(aux) == entry["aux"]
    hashed = blake2b(digest_size=32)
    for (begin, end), section in zip(pairwise(ends), entry["sections"], strict=True):
        hashed.update(aux[begin:end].data)
        assert hashed.copy().hexdigest() == section["digests"]["aux"], section["section"]
    assert hashed.hexdigest() == entry["digests"]["aux"]


def derived(c1: C1) -> Scalars:
    return porep_inputs(c1.proof, c1.replica_id, c1.comm_d, c1.comm_r, c1.seed, 0)


@pytest.mark.parametrize(("size", "threads"), [("2KiB", 1), ("8MiB", 2)])
def test_porep(
    library: Library, fixtures: Path, stored: dict[str, Any], size: str, threads: int
) -> None:
    c1 = real_c1(fixtures, size)
    shape = porep(library, c1.proof.shape)
    wires = assign(shape, porep_data(c1, 0), threads=threads)
    is_stored(shape, wires, stored[f"porep-{size}"])
    assert wires.words[1 : shape.inputs].tobytes() == derived(c1).words.tobytes()


def test_a_sector_of_a_post(library: Library, fixtures: Path, stored: dict[str, Any]) -> None:
    data = post_data(real_sector(fixtures))
    shape = window(library, SHAPES["32GiB"])
    assert len(data.units) == shape.units
    wires = assign(shape.with_units(1), Data(data.header, data.units[:1]))
    is_stored(shape.with_units(1), wires, stored["post-sector-32GiB"])


def test_sectors_that_are_missing_repeat_the_last_one(library: Library, fixtures: Path) -> None:
    post = real_sector(fixtures)
    data = post_data(post)
    shape = window(library, SHAPES["32GiB"]).with_units(3)
    wires = assign(shape, Data(data.header, data.units[:3]), threads=2)
    expected = post_inputs(post.comm_r, post.replica.index, 3)
    assert wires.words[1 : shape.inputs].tobytes() == expected.words.tobytes()
    first, *others = np.split(wires.words[shape.inputs :], 3)
    assert all(other.tobytes() == first.tobytes() for other in others)


def test_winning_post_has_a_unit_for_each_challenge(library: Library, fixtures: Path) -> None:
    """Its 66 challenges here are the ten of a window's sector, again and again."""
    post = real_sector(fixtures)
    order = np.arange(66) % post.replica.index.shape[1]
    paths = post.replica
    chosen = {
        name: getattr(paths, name)[:, order] for name in ("leaf", "siblings", "index", "root")
    }
    proof = registered("post", "StackedDrgWinning32GiBV1")
    data = post_data(
        PostSectors(
            proof, post.sector_ids, post.comm_r, post.comm_c, post.comm_r_last,
            type(paths)(paths.arities, **chosen),
        )
    )  # fmt: skip
    shape = winning(library, SHAPES["32GiB"])
    wires = assign(shape, data)
    roots = np.repeat(post.comm_r, 66, axis=0)
    expected = post_inputs(roots, paths.index[0, order][:, None], 66)
    assert wires.words[1 : shape.inputs].tobytes() == expected.words.tobytes()


def test_a_partition_that_is_not_there(fixtures: Path) -> None:
    c1 = real_c1(fixtures, "2KiB")
    with pytest.raises(FormatError, match="expected a partition below 1, found 1"):
        porep_data(c1, 1)


def test_waves(library: Library) -> None:
    """Of a 32 GiB PoRep: every place once, and what it reads was made in an earlier wave."""
    shape = porep(library, SHAPES["32GiB"]).with_units(2)
    made = np.full(shape.inputs + shape.aux, -1, dtype=np.int16)
    made[0] = 0
    places = 0
    for number, wave in enumerate(waves(shape), 1):
        for group in wave:
            read = made[group.ports]
            assert np.all((read >= 0) & (read < number))
        for group in wave:
            template = shape.templates[group.template]
            for first, size in ((group.aux, template.aux), (group.inputs, template.inputs)):
                own = first[:, None] + np.arange(size)
                assert np.all(made[own] == -1)
                made[own] = number
            places += len(group.aux)
    assert np.all(made >= 0)
    assert places == len(shape.header) + 2 * len(shape.unit)
