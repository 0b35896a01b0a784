"""The shipped circuit, against its statement in Python integers."""

import json
from pathlib import Path

import pytest

from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.load import load_witness

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ROUNDS = 72
LARGEST_BYTES = 1 << 20


def compress(left: int, right: int, r: int) -> int:
    a, b, constant = left, right, 0
    for k in range(ROUNDS):
        a, b = (b + pow(a + constant, 5, r)) % r, a
        constant = 1 if k == 0 else (constant * constant + k) % r
    return (a + left + right) % r


@pytest.mark.parametrize(("name", "curve"), [("membership20", BN254), ("membership4", BLS12_381)])
def test_witness_holds_root_nullifier_and_context(name: str, curve: Curve) -> None:
    given = json.loads((EXAMPLES / f"{name}.json").read_text())
    secret, context, position = (int(given[n]) for n in ("secret", "context", "position"))
    node = compress(secret, 0, curve.r)
    for level, sibling in enumerate(map(int, given["siblings"])):
        right = position >> level & 1
        node = compress(*((sibling, node) if right else (node, sibling)), curve.r)
    nullifier = compress(secret, context, curve.r)
    witness = load_witness(EXAMPLES / f"{name}.wtns")
    assert witness.curve is curve
    assert witness[:4].ints() == [1, node, nullifier, context]


def test_no_file_is_large() -> None:
    for path in EXAMPLES.iterdir():
        assert path.stat().st_size < LARGEST_BYTES, path
