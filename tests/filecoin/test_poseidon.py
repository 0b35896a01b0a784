"""Poseidon: constants and digests of neptune, in Python integers and in native code."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import BLS12_381
from cuzk.filecoin.poseidon import ARITIES, RANDOMNESS_TAG, digests, merkle_tag, poseidon, roots
from cuzk.filecoin.poseidon_constants import inverse, round_constants, round_numbers, times
from cuzk.vectors import Words, pack, unpack

R = BLS12_381.r


@pytest.fixture(scope="module")
def known(fixtures: Path) -> dict[str, Any]:
    """Digests of neptune's tests and of random inputs; digests of supra_seal's constant files."""
    data: dict[str, Any] = json.loads((fixtures / "filecoin" / "poseidon.json").read_text())
    return data


def words(nodes: list[str]) -> Words:
    return np.frombuffer(bytes.fromhex("".join(nodes)), dtype="<u8").reshape(1, -1)


def by_definition(inputs: list[int], tag: int) -> int:
    """Keys, S-boxes, one matrix: the paper's form, which the tables never see."""
    p = poseidon(len(inputs))
    state = [tag, *inputs]
    half, end = p.full_rounds // 2, p.full_rounds // 2 + p.partial_rounds
    for r, keys in enumerate(round_constants(p.width, p.full_rounds, p.partial_rounds)):
        state = [(x + k) % R for x, k in zip(state, keys, strict=True)]
        boxes = 1 if half <= r < end else p.width
        state = [pow(x, 5, R) for x in state[:boxes]] + state[boxes:]
        state = list(times(state, p.mds))
    return state[1]


@pytest.mark.parametrize("arity", ARITIES)
def test_constants_are_those_of_filecoin(known: dict[str, Any], arity: int) -> None:
    p, expected = poseidon(arity), known[f"arity_{arity}"]
    assert p.full_rounds == expected["full_rounds"]
    assert p.partial_rounds == expected["partial_rounds"]
    assert hashlib.sha256(p.table.tobytes()).hexdigest() == expected["constants_sha256"]


def test_round_numbers_of_other_widths() -> None:
    """neptune's published table has these arities too."""
    assert [round_numbers(arity + 1) for arity in (16, 24, 36)] == [(8, 59), (8, 59), (8, 60)]


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("arity", ARITIES)
def test_digests(known: dict[str, Any], arity: int) -> None:
    cases = known[f"vectors_{arity}"]
    assert len(cases) > 4
    for case in cases:
        assert case["tag"] == merkle_tag(arity)
        found = digests(words(case["inputs"]), arity)
        assert found.tobytes().hex() == case["digest"]


def test_digests_for_randomness(known: dict[str, Any]) -> None:
    cases = known["vectors_2_randomness"]
    assert cases
    for case in cases:
        assert case["tag"] == RANDOMNESS_TAG
        found = digests(words(case["inputs"]), 2, tag=RANDOMNESS_TAG)
        assert found.tobytes().hex() == case["digest"]


@pytest.mark.parametrize("arity", ARITIES)
def test_many_at_once_are_the_paper_s_form(arity: int) -> None:
    rng = np.random.default_rng(arity)
    n = 67  # several pieces a thread
    inputs = [[int.from_bytes(rng.bytes(31), "little") for _ in range(arity)] for _ in range(n)]
    inputs[0] = [R - 1] * arity
    found = unpack(digests(pack([x for row in inputs for x in row], 4), arity, threads=3))
    for i in (0, 1, n - 1):
        assert found[i] == by_definition(inputs[i], merkle_tag(arity))
    alone = [unpack(digests(pack(row, 4), arity))[0] for row in inputs]
    assert found == alone


@pytest.mark.parametrize("arities", [(8, 8), (8, 8, 2), (8, 4, 2), (2,)])
def test_paths_lead_to_the_root(arities: tuple[int, ...]) -> None:
    """Every leaf of a small tree."""
    rng = np.random.default_rng(1)
    leaves = int(np.prod(arities))
    levels = [pack([int.from_bytes(rng.bytes(31), "little") for _ in range(leaves)], 4)]
    for arity in arities:
        levels.append(digests(levels[-1], arity))
    siblings = []
    for leaf in range(leaves):
        index, path = leaf, []
        for arity, level in zip(arities, levels, strict=False):
            first = index - index % arity
            path.append(np.delete(level[first : first + arity], index % arity, axis=0))
            index //= arity
        siblings.append(np.concatenate(path))
    indices = np.arange(leaves, dtype=np.uint64)
    found = roots(arities, levels[0], np.array(siblings), indices, threads=2)
    assert (found == levels[-1]).all()
    wrong = roots(arities, levels[0], np.array(siblings), np.roll(indices, 1))
    assert not (wrong == levels[-1]).all(axis=1).any()


def test_sparse_matrices_multiply_to_the_mds() -> None:
    """The partial rounds without S-boxes: pre_sparse S_1 ... S_n = mds^(n + 1)."""
    p = poseidon(4)
    vector: tuple[int, ...] = (5, 7, 11, 13, 17)
    expected = vector
    for _ in range(p.partial_rounds + 1):
        expected = times(expected, p.mds)
    found = times(vector, p.pre_sparse)
    for sparse in p.sparse:
        head = sum(a * b for a, b in zip(found, sparse.column, strict=True)) % R
        rest = [(x + found[0] * v) % R for x, v in zip(found[1:], sparse.row, strict=True)]
        found = (head, *rest)
    assert found == expected
    identity = tuple(tuple(int(i == j) for j in range(5)) for i in range(5))
    assert tuple(times(row, inverse(p.mds)) for row in p.mds) == identity


def test_values_that_are_not_below_r_are_refused() -> None:
    table, out = poseidon(2).table, np.zeros((1, 4), dtype=np.uint64)
    with pytest.raises(ValueError, match="inputs: value 1 is not below r"):
        digests(pack([1, R], 4), 2)
    with pytest.raises(ValueError, match="siblings: value 0 is not below r"):
        roots((2,), pack([1], 4), pack([R], 4), np.zeros(1, dtype=np.uint64))
    with pytest.raises(ValueError, match="no table of arity 2"):
        _core.poseidon(2, table[1:], pack([3], 4), pack([1, 2], 4).reshape(1, 8), out, 1)
    with pytest.raises(ValueError, match="expected 2, 4, 8 or 11, found 3"):
        _core.poseidon(3, table, pack([3], 4), np.zeros((1, 12), dtype=np.uint64), out, 1)


def by_table(table: list[int], partial: int, state: list[int]) -> int:
    """The form that the native code runs, with any constants, in integers."""
    width = len(state)
    mds = 8 * width + partial
    pre, sparse = mds + width**2, mds + 2 * width**2
    keys = iter(table[:mds])
    state = [x + next(keys) for x in state]
    for r in range(8 + partial):
        single = 4 <= r < 4 + partial
        for i in range(1 if single else width):
            state[i] = pow(state[i], 5, R) + (0 if r == 7 + partial else next(keys))
        if single:
            first = sparse + (r - 4) * (2 * width - 1)
            head = sum(x * c for x, c in zip(state, table[first : first + width], strict=True))
            row = table[first + width : first + 2 * width - 1]
            rest = [x + state[0] * v for x, v in zip(state[1:], row, strict=True)]
            state = [x % R for x in (head, *rest)]
        else:
            begin = pre if r == 3 else mds
            rows = [table[begin + i * width : begin + (i + 1) * width] for i in range(width)]
            state = list(times([x % R for x in state], rows))
    return state[1]


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("arity", ARITIES)
def test_any_constants(arity: int) -> None:
    """All of a matrix, and of the state before it, are r - 1 in Montgomery form: the largest sums there are."""
    width, partial = arity + 1, 3
    size = 8 * width + partial + 2 * width**2 + partial * (2 * width - 1)
    scale = pow(2, 256, R)
    largest = (R - 1) * pow(scale, -1, R) % R
    rng = np.random.default_rng(width)
    some = [int.from_bytes(rng.bytes(32), "little") % R for _ in range(size)]
    inputs = [R - 1 - i for i in range(width)]
    # the first keys make zeros of the inputs, the S-boxes leave them, the next keys make the state
    extreme = [R - x for x in inputs] + [largest] * (size - width)
    for table in (some, extreme):
        words = pack([x * scale % R for x in table], 4)
        out = np.empty((1, 4), dtype=np.uint64)
        _core.poseidon(
            arity, words, pack(inputs[:1], 4), pack(inputs[1:], 4).reshape(1, -1), out, 1
        )
        assert unpack(out) == [by_table(table, partial, inputs)]


def test_by_table_is_the_hash() -> None:
    """The slow form above, with the real constants, gives a known digest's value."""
    p = poseidon(2)
    values = [x * pow(2, -256, R) % R for x in unpack(p.table)]
    assert by_table(values, p.partial_rounds, [3, 1, 2]) == by_definition([1, 2], 3)
