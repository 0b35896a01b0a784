"""``bench.sparse_sector``: its C1 passes the vanilla check, satisfies the circuit, and hangs together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bench.sparse_sector import Draw, SparseTree, seal_of, sparse_c1
from cuzk.errors import FormatError, UnsatisfiedError
from cuzk.filecoin import poseidon
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.parameters import Parameters
from cuzk.filecoin.registered import SEAL
from cuzk.filecoin.task import seal_task
from cuzk.filecoin.templates.catalogue import circuit_of
from cuzk.filecoin.witness.assign import assign
from cuzk.filecoin.witness.rows import PlacedMatrices
from cuzk.vectors import Words

SIZES = ("2KiB", "8MiB", "512MiB", "32GiB", "64GiB")


def flipped(words: Words, *place: int) -> Words:
    out = words.copy()
    out[place][0] ^= np.uint64(1)
    return out


WRONG: dict[str, Callable[[C1], C1]] = {
    "tree D": lambda c: replace(c, data=replace(c.data, siblings=flipped(c.data.siblings, 0, 1, 3))),
    "tree R_last": lambda c: replace(c, replica=replace(c.replica, leaf=flipped(c.replica.leaf, 0, 1))),
    "leaf of tree C": lambda c: replace(c, columns=flipped(c.columns, 0, 0, 14, 1)),
    "layer 1: label of parent 0": lambda c: replace(c, label_parents=flipped(c.label_parents, 0, 1, 0, 0)),
    "challenged node": lambda c: replace(c, seed=bytes(32)),
    "comm_r": lambda c: replace(c, comm_c=bytes(32)),
}  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_passes_the_vanilla_check(size: str) -> None:
    c1 = sparse_c1(seal_of(size), threads=2)
    assert c1.proof.shape.name == size
    assert c1.columns.shape[:3] == (c1.proof.partitions, c1.proof.shape.challenges, 15)
    assert seal_task(c1, threads=2).proof is c1.proof


@pytest.mark.parametrize("what", WRONG)
def test_a_changed_value_is_found(what: str) -> None:
    with pytest.raises(UnsatisfiedError, match=what):
        seal_task(WRONG[what](sparse_c1(seal_of("8MiB"))))


def challenged_parents(c1: C1) -> bool:
    return bool(np.isin(c1.column_openings.index[..., 1:7], c1.nodes).any())


@pytest.mark.parametrize(("seed", "met"), [(1, False), (13, True), (30, True)])
def test_challenged_parents_of_challenged_nodes(seed: int, met: bool) -> None:
    """Of 64 nodes two are challenged, with six DRG parents each: with some seeds one is the other's parent."""
    c1 = sparse_c1(seal_of("2KiB"), seed=seed)
    assert challenged_parents(c1) == met
    seal_task(c1)


def test_a_tree_of_which_all_leaves_are_known() -> None:
    """The root is that of the whole tree, and every path leads to it."""
    every = np.arange(64, dtype=np.uint64)
    leaves = Draw(3)("leaves", every)
    tree = SparseTree.of("C", (8, 8), Draw(3), (every, leaves), poseidon.digests)
    whole = poseidon.digests(poseidon.digests(leaves, 8), 8)
    assert tree.root == whole.tobytes()
    paths = tree.open(every)
    found = poseidon.roots((8, 8), paths.leaf, paths.siblings, every)
    assert (found == whole).all()


def test_another_seed_is_another_sector() -> None:
    one, same, other = (sparse_c1(seal_of("8MiB"), seed=seed) for seed in (1, 1, 2))
    assert one.comm_r == same.comm_r != other.comm_r
    assert not (one.nodes == other.nodes).any()


def test_what_cannot_be_made() -> None:
    with pytest.raises(FormatError, match=r"expected one of 2KiB, 8MiB, .*64GiB, found '1MiB'"):
        seal_of("1MiB")
    for proof in (SEAL[10], SEAL[15]):
        with pytest.raises(FormatError, match="expected interactive challenges, found"):
            sparse_c1(proof)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["2KiB", "8MiB"])
def test_its_witness_satisfies_the_circuit(size: str) -> None:
    task = seal_task(sparse_c1(seal_of(size)))
    shape = circuit_of(Parameters(task.proof.kind, task.proof.shape))
    wires = assign(shape, task.data(0), threads=2)
    assert wires.words[1 : shape.inputs].tobytes() == task.statement.inputs(0).words.tobytes()
    assert not len(PlacedMatrices.of(shape).broken(wires, threads=2))
