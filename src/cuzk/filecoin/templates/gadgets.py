"""The gadgets between hashes: bits of numbers and back, picks, the children of a node; and small templates of them.

    unpack   255 bits, then 0 * 0 = sum 2^i b_i - x       pack   (sum 2^i b_i) * 1 = x
    pick     (y - x) * condition = y - z                  equal  x * 1 = y

A recording function returns its outputs: slots that others may bind.

Definitions: storage-proofs-core::gadgets (insertion, por, uint64, pick), bellperson's gadgets::num, multipack.
"""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.filecoin.templates.bits import both, literal
from cuzk.filecoin.templates.poseidon import poseidon_hash
from cuzk.filecoin.templates.program import Op
from cuzk.filecoin.templates.recorder import ONE, Recorder
from cuzk.filecoin.templates.sha256 import FIELD_BITS, PACKED_BITS

CHALLENGE_BITS = 64


def weighted(slots: Sequence[int]) -> dict[int, int]:
    """Bits read as a number, lowest first."""
    return {slot: 1 << i for i, slot in enumerate(slots)}


def unpack(recorder: Recorder, x: int) -> list[int]:
    """255 bits of a variable."""
    bits = recorder.bits(Op.BITS, FIELD_BITS, (x,))
    recorder.enforce({}, {}, {**weighted(bits), x: -1})
    return bits


def lowest_bits(recorder: Recorder, x: int, count: int) -> list[int]:
    """All bits of a variable below 2^count; here the sum stands in A."""
    bits = recorder.bits(Op.BITS, count, (x,))
    recorder.enforce(weighted(bits), {ONE: 1}, {x: 1})
    return bits


def inputize(recorder: Recorder, x: int) -> None:
    """A public input equal to a variable; here the input stands in A."""
    public = recorder.public({x: 1})
    recorder.enforce({public: 1}, {ONE: 1}, {x: 1})


def equal(recorder: Recorder, x: int, y: int) -> None:
    """Two variables have one value."""
    recorder.enforce({x: 1}, {ONE: 1}, {y: 1})


def pack_public(recorder: Recorder, bits: Sequence[int]) -> None:
    """A public input with the value of bits."""
    public = recorder.public(weighted(bits))
    recorder.enforce(weighted(bits), {ONE: 1}, {public: 1})


def pick(recorder: Recorder, condition: int, x: int, y: int) -> int:
    """x if the bit's slot holds one, else y."""
    z = recorder.define(Op.PICK, (literal(condition), x, y))
    recorder.enforce({y: 1, x: -1}, {condition: 1}, {y: 1, z: -1})
    return z


def insert(recorder: Recorder, a: int, bits: Sequence[int], siblings: Sequence[int]) -> list[int]:
    """The children of a node: ``a`` at the place that the bits say, siblings around it."""
    return _INSERT[len(siblings)](recorder, a, bits, siblings)


def _insert_2(r: Recorder, a: int, bits: Sequence[int], siblings: Sequence[int]) -> list[int]:
    (b0,), (b,) = bits, siblings
    return [pick(r, b0, b, a), pick(r, b0, a, b)]


def _insert_4(r: Recorder, a: int, bits: Sequence[int], siblings: Sequence[int]) -> list[int]:
    (b0, b1), (b, c, d) = bits, siblings
    return [
        pick(r, b1, b, pick(r, b0, b, a)),
        pick(r, b1, c, pick(r, b0, a, b)),
        pick(r, b1, pick(r, b0, d, a), c),
        pick(r, b1, pick(r, b0, a, d), d),
    ]


def _insert_8(r: Recorder, a: int, bits: Sequence[int], siblings: Sequence[int]) -> list[int]:
    (b0, b1, b2), (b, c, d, e, f, g, h) = bits, siblings
    neither = both(r, literal(b0) ^ 1, literal(b1) ^ 1) >> 1
    all_set = both(r, literal(b0), literal(b1)) >> 1
    return [
        pick(r, b2, b, pick(r, neither, a, b)),
        pick(r, b2, c, pick(r, b1, c, pick(r, b0, a, b))),
        pick(r, b2, d, pick(r, b1, pick(r, b0, d, a), c)),
        pick(r, b2, e, pick(r, all_set, a, d)),
        pick(r, b2, pick(r, neither, a, f), e),
        pick(r, b2, pick(r, b1, g, pick(r, b0, a, f)), f),
        pick(r, b2, pick(r, b1, pick(r, b0, h, a), g), g),
        pick(r, b2, pick(r, all_set, a, h), h),
    ]


_INSERT = {1: _insert_2, 3: _insert_4, 7: _insert_8}


# Templates


def given(recorder: Recorder, count: int) -> list[int]:
    """Field elements of the instance's data. Outputs: they."""
    return recorder.given(count)


def challenge(recorder: Recorder) -> list[int]:
    """The challenged node: data; a public input. Outputs: its 64 bits."""
    bits = recorder.bits(Op.GIVEN_BITS, CHALLENGE_BITS, ())
    pack_public(recorder, bits)
    return bits


def field_bits(recorder: Recorder) -> list[int]:
    """Port: a number. Outputs: its 255 bits."""
    return unpack(recorder, recorder.port())


def pack_node(recorder: Recorder) -> list[int]:
    """Ports: 254 bits. Output: their number."""
    return [recorder.linear(weighted(recorder.ports(PACKED_BITS, bit=True)))]


def node_bits(recorder: Recorder) -> list[int]:
    """Ports: two nodes. Outputs: 255 bits of the first, 255 of the second."""
    x, y = recorder.ports(2)
    return unpack(recorder, x) + unpack(recorder, y)


def poseidon_node(recorder: Recorder, arity: int, tag: int | None = None) -> list[int]:
    """Ports: the children. Output: the digest."""
    return [poseidon_hash(recorder, recorder.ports(arity), tag)]


def same(recorder: Recorder) -> list[int]:
    """Ports: two variables that are equal. No outputs."""
    equal(recorder, *recorder.ports(2))
    return []


def path_end(recorder: Recorder, bits: int) -> list[int]:
    """Ports: the root that the path led to, the root, the index's bits, which become a public input."""
    found, root = recorder.ports(2)
    pack_public(recorder, recorder.ports(bits, bit=True))
    equal(recorder, found, root)
    return []


def index_level(recorder: Recorder, arity: int) -> list[int]:
    """One level of a Poseidon path. Port: the node below; data: its place, its siblings. Outputs: node, bits."""
    below = recorder.port()
    bits = recorder.bits(Op.GIVEN_BITS, arity.bit_length() - 1, ())
    siblings = recorder.given(arity - 1)
    return [poseidon_hash(recorder, insert(recorder, below, bits, siblings)), *bits]


def tree_d_children(recorder: Recorder) -> list[int]:
    """One level of a path in tree D, up to the hash. Port: the node below; data: its place, its sibling.

    Outputs: 255 bits of the left child, 255 of the right one, the bit of the index.
    """
    below = recorder.port()
    bits = recorder.bits(Op.GIVEN_BITS, 1, ())
    left, right = insert(recorder, below, bits, recorder.given(1))
    return [*unpack(recorder, left), *unpack(recorder, right), *bits]


def placed_level(recorder: Recorder, arity: int) -> list[int]:
    """One level of a Poseidon path. Ports: the node below, its siblings, bits of its place. Output: the node."""
    below = recorder.port()
    siblings = recorder.ports(arity - 1)
    bits = recorder.ports(arity.bit_length() - 1, bit=True)
    return [poseidon_hash(recorder, insert(recorder, below, bits, siblings))]


def placed_children(recorder: Recorder) -> list[int]:
    """One level of a path in tree D, up to the hash. Ports: the node below, its sibling, the bit of its place.

    Outputs: 255 bits of the left child, 255 of the right one.
    """
    below, sibling = recorder.ports(2)
    left, right = insert(recorder, below, recorder.ports(1, bit=True), [sibling])
    return unpack(recorder, left) + unpack(recorder, right)
