"""SHA-256 in native code: nodes of tree D and labels, against hashlib and known labels."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from cuzk import _core
from cuzk.vectors import Words

RNG = np.random.default_rng(256)


def node(data: bytes) -> bytes:
    digest = sha256(data).digest()
    return digest[:31] + bytes([digest[31] & 0x3F])


def words(data: bytes, columns: int = 4) -> Words:
    return np.frombuffer(data, dtype="<u8").reshape(-1, columns)


def test_tree_d_nodes() -> None:
    pairs = [bytes(64), b"\xff" * 64, *(RNG.bytes(64) for _ in range(500))]
    out = np.empty((len(pairs), 4), dtype=np.uint64)
    _core.tree_d_nodes(words(b"".join(pairs), 8), out, 3)
    assert out.tobytes() == b"".join(map(node, pairs))


@pytest.mark.parametrize("levels", [0, 1, 6])
def test_tree_d_paths(levels: int) -> None:
    tree = [[RNG.bytes(32) for _ in range(1 << levels)]]
    while len(tree[-1]) > 1:
        tree.append([node(a + b) for a, b in zip(tree[-1][::2], tree[-1][1::2], strict=True)])
    n = 1 << levels
    siblings = b"".join(tree[k][i >> k ^ 1] for i in range(n) for k in range(levels))
    out = np.empty((n, 4), dtype=np.uint64)
    flat = words(siblings, 4 * levels) if levels else np.empty((1, 0), dtype=np.uint64)
    _core.tree_d_roots(words(b"".join(tree[0])), flat, np.arange(n, dtype=np.uint64), out, 2)
    assert out.tobytes() == tree[-1][0] * n


def labels(replica_id: bytes, cases: list[tuple[int, int, bytes]]) -> bytes:
    layers = np.array([layer for layer, _, _ in cases], dtype=np.uint32)
    nodes = np.array([index for _, index, _ in cases], dtype=np.uint64)
    parents = words(b"".join(p.ljust(32 * 14, b"\xaa") for _, _, p in cases), 4 * 14)
    out = np.empty((len(cases), 4), dtype=np.uint64)
    _core.sdr_labels(words(replica_id), layers, nodes, parents, out, 2)
    return out.tobytes()


def test_labels_are_the_hash_of_their_message() -> None:
    replica_id = RNG.bytes(32)
    cases = [(1, 1, RNG.bytes(32 * 6)), (2, 1 << 31, RNG.bytes(32 * 14))]
    cases += [
        (int(RNG.integers(3, 12)), int(RNG.integers(1 << 40)), RNG.bytes(448)) for _ in range(50)
    ]
    expected = b""
    for layer, index, parents in cases:
        header = replica_id + layer.to_bytes(4, "big") + index.to_bytes(8, "big") + bytes(20)
        expected += node(header + (parents * 7)[: 37 * 32])
    assert labels(replica_id, cases) == expected


def test_known_labels(fixtures: Path) -> None:
    data = json.loads((fixtures / "filecoin" / "sdr_labels.json").read_text())
    cases = [case for case in data["single_labels"] if case["parents"]]
    assert len(cases) == 5  # two more are of node 0, which has no parents and is never challenged
    for case in cases:
        parents = bytes.fromhex("".join(case["parents"]))
        found = labels(bytes.fromhex(case["replica_id"]), [(case["layer"], case["node"], parents)])
        assert found.hex() == case["label"]


def test_arrays_that_do_not_fit_are_refused() -> None:
    def zeros(*shape: int) -> Words:
        return np.zeros(shape, dtype=np.uint64)

    with pytest.raises(ValueError, match="out: expected 3 rows, found 2"):
        _core.tree_d_nodes(zeros(3, 8), zeros(2, 4), 1)
    with pytest.raises(ValueError, match=r"pairs: expected shape \(n, 8\)"):
        _core.tree_d_nodes(zeros(3, 4), zeros(3, 4), 1)
    with pytest.raises(ValueError, match=r"parents: expected shape \(n, 56\)"):
        _core.sdr_labels(
            zeros(1, 4), np.zeros(1, dtype=np.uint32), zeros(1), zeros(1, 24), zeros(1, 4), 1
        )
    with pytest.raises(ValueError, match="indices: expected as many as leaves"):
        _core.tree_d_roots(zeros(2, 4), zeros(2, 4), zeros(1), zeros(2, 4), 1)
    with pytest.raises(ValueError, match=r"siblings: expected shape \(n, 8\)"):
        _core.tree_d_roots(zeros(1, 4), zeros(1, 11), zeros(1), zeros(1, 4), 1)
