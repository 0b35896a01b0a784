"""One SHA-256 compression as a template: 64 bytes of message, a chaining value in, a chaining value out.

Words are lists of 32 literals, lowest bit first. Variables come in this order: for each word of the schedule
s0, s1 (two xors each) and the sum; for each round e, S1, ch, a, S0, maj, where e and a are the sums put off by the
round before; then the eight words of the result. A sum has as many bits as it can need; those above 32 stay
unused.

A sum's row states (its operands) * 1 = (its bits), and several share one: they are packed at increasing powers of
two until the next would reach 254 bits, when the row is written (after the bits of that next sum were), and
what is left is written at the end.

Blocks differ in what is constant: the first one's chaining value, padding, the zero above each 255-bit number, the
layer in a label. So each kind is a template of its own:

    tree D node   message: 2 children; then a block of padding
    label         replica id, layer, node, zeros; then 18 blocks of two parents; then a parent and padding

A message is in the order of SHA-256, the highest bit of every byte first; :func:`byte_order` makes it.

Definitions: bellperson's gadgets::sha256, multieq, uint32; storage-proofs-porep::stacked::circuit::create_label.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import isqrt

from cuzk.filecoin.shapes import LABEL_PARENTS, NODE_BYTES
from cuzk.filecoin.templates.bits import (
    add,
    choose,
    constant,
    is_constant,
    literal,
    majority,
    xor,
)
from cuzk.filecoin.templates.program import FALSE, TRUE, Op
from cuzk.filecoin.templates.recorder import ONE, Recorder

WORD_BITS = 32
MASK = (1 << WORD_BITS) - 1
BLOCK_BITS = 512
LENGTH_BITS = 64  # of the message's length, in its padding
DIGEST_WORDS = 8
NODE_BITS = 8 * NODE_BYTES
FIELD_BITS = 255
PACKED_BITS = 254
"""Bits that fit one field element whatever their values."""

Word = list[int]


def _root_bits(degree: int, count: int) -> list[int]:
    """The first 32 bits of the fractions of roots of the first primes."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return [_root(p << WORD_BITS * degree, degree) & MASK for p in primes]


def _root(n: int, degree: int) -> int:
    """Floor of the square or cube root."""
    if degree == 2:
        return isqrt(n)
    x = 1 << -(-n.bit_length() // 3)
    while x**3 > n:
        x = (2 * x + n // (x * x)) // 3
    return x


INITIAL = _root_bits(2, DIGEST_WORDS)
ROUND_KEYS = _root_bits(3, 64)


# Orders of bits


def byte_order(bits: Sequence[int], filler: int = FALSE) -> list[int]:
    """Whole bytes with their bits reversed: from numbers to SHA-256's order and back."""
    padded = [*bits, *[filler] * (-len(bits) % 8)]
    return [padded[8 * (i // 8) + 7 - i % 8] for i in range(len(padded))]


def digest_bits(words: Sequence[int]) -> list[int]:
    """The lowest 254 bits of a digest as a node's number, from a block's 256 outputs."""
    high_first = [words[32 * (i // 32) + 31 - i % 32] for i in range(len(words))]
    return byte_order(high_first)[:PACKED_BITS]


# The gadget


class _Sums:
    """Additions modulo 2^32, and the rows that several of them share."""

    CAPACITY = 254

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._clear()

    def _clear(self) -> None:
        self._operands: dict[int, int] = {}
        self._results: dict[int, int] = {}
        self._used = 0

    def add(self, words: Sequence[Word]) -> Word:
        """A new word, constant if all operands are."""
        if all(is_constant(x) for word in words for x in word):
            total = sum((x == TRUE) << i for word in words for i, x in enumerate(word))
            return constant_word(total & MASK)
        width = (len(words) * MASK).bit_length()
        operands = [x for word in words for x in word]
        result = self._recorder.bits(Op.SUM, width, operands)
        if self._used + width >= self.CAPACITY:
            self.flush()
        for word in words:
            for i, x in enumerate(word):
                add(self._operands, x, 1 << (i + self._used))
        self._results.update({v: 1 << (i + self._used) for i, v in enumerate(result)})
        self._used += width
        return [literal(v) for v in result[:WORD_BITS]]

    def flush(self) -> None:
        """Write the row of what is pending."""
        if self._used:
            self._recorder.enforce(self._operands, {ONE: 1}, self._results)
        self._clear()


def constant_word(value: int) -> Word:
    """32 constant bits."""
    return [constant(value >> i & 1) for i in range(WORD_BITS)]


def _rotated(word: Word, count: int) -> Word:
    return word[count:] + word[:count]


def _shifted(word: Word, count: int) -> Word:
    return word[count:] + [FALSE] * count


def _xor_words(recorder: Recorder, words: Sequence[Word]) -> Word:
    return reduce(lambda x, y: [xor(recorder, p, q) for p, q in zip(x, y, strict=True)], words)


def _sigma(recorder: Recorder, word: Word, *rotations: int, shift: int | None = None) -> Word:
    words = [_rotated(word, count) for count in rotations]
    if shift is not None:
        words.append(_shifted(word, shift))
    return _xor_words(recorder, words)


def _schedule(recorder: Recorder, sums: _Sums, message: Sequence[int]) -> list[Word]:
    w = [list(message[i : i + WORD_BITS])[::-1] for i in range(0, BLOCK_BITS, WORD_BITS)]
    for i in range(16, 64):
        s0 = _sigma(recorder, w[i - 15], 7, 18, shift=3)
        s1 = _sigma(recorder, w[i - 2], 17, 19, shift=10)
        w.append(sums.add([w[i - 16], s0, w[i - 7], s1]))
    return w


def compress(recorder: Recorder, message: Sequence[int], chaining: Sequence[Word]) -> list[Word]:
    """The next chaining value; ``message`` has 512 literals."""
    sums = _Sums(recorder)
    w = _schedule(recorder, sums, message)
    _, b, c, d, _, f, g, h = chaining
    a_parts, e_parts = [chaining[0]], [chaining[4]]  # summed when a round needs their bits
    for i in range(64):
        e = _sum_of(sums, e_parts)
        s1 = _sigma(recorder, e, 6, 11, 25)
        ch = [choose(recorder, *bits) for bits in zip(e, f, g, strict=True)]
        first = [h, s1, ch, constant_word(ROUND_KEYS[i]), w[i]]
        a = _sum_of(sums, a_parts)
        s0 = _sigma(recorder, a, 2, 13, 22)
        maj = [majority(recorder, *bits) for bits in zip(a, b, c, strict=True)]
        h, g, f, e_parts = g, f, e, [*first, d]
        d, c, b, a_parts = c, b, a, [*first, s0, maj]
    last = [a_parts, [b], [c], [d], e_parts, [f], [g], [h]]
    result = [sums.add([*parts, word]) for parts, word in zip(last, chaining, strict=True)]
    sums.flush()
    return result


def _sum_of(sums: _Sums, parts: list[Word]) -> Word:
    return parts[0] if len(parts) == 1 else sums.add(parts)


# Templates: 256 outputs, eight words of 32 bits


def _block(recorder: Recorder, message: Sequence[int | None], *, first: bool) -> list[int]:
    """``message``: constants, and None for each bit of a port. Ports: chaining value (not first), message."""
    chaining = [constant_word(value) for value in INITIAL]
    if not first:
        slots = recorder.ports(DIGEST_WORDS * WORD_BITS, bit=True)
        words = [slots[i : i + WORD_BITS] for i in range(0, len(slots), WORD_BITS)]
        chaining = [[literal(v) for v in word] for word in words]
    ports = iter(recorder.ports(sum(x is None for x in message), bit=True))
    bits = [literal(next(ports)) if x is None else x for x in message]
    return [x >> 1 for word in compress(recorder, bits, chaining) for x in word]


_NODE: list[int | None] = [None] * (NODE_BITS - 8) + [FALSE] + [None] * 7
"""A 255-bit number: the highest bit of the last byte is zero."""


def _padding(message_bits: int, there: int) -> list[int]:
    """What follows a message that has ``there`` bits in its last block."""
    zeros = BLOCK_BITS - there - 1 - LENGTH_BITS
    length = [constant(message_bits >> i & 1) for i in reversed(range(LENGTH_BITS))]
    return [TRUE, *[FALSE] * zeros, *length]


def sha256_block(recorder: Recorder) -> list[int]:
    """Everything variable."""
    return _block(recorder, [None] * BLOCK_BITS, first=False)


def sha256_first_block(recorder: Recorder) -> list[int]:
    """512 variable bits after the initial value."""
    return _block(recorder, [None] * BLOCK_BITS, first=True)


def sha256_padding_block(recorder: Recorder) -> list[int]:
    """The second and last block of a message of 512 bits, and so of a node of tree D."""
    return _block(recorder, _padding(BLOCK_BITS, 0), first=False)


def tree_d_block(recorder: Recorder) -> list[int]:
    """Two children, 255 bits each in byte order: ports 0..254 and 255..509."""
    return _block(recorder, _NODE * 2, first=True)


def label_first_block(recorder: Recorder, layer: int) -> list[int]:
    """Ports: the replica id, 255 bits in byte order, and the node, 64 bits, highest first."""
    message = [*_NODE, *constant_word(layer)[::-1], *[None] * 64]
    return _block(recorder, [*message, *[FALSE] * (BLOCK_BITS - len(message))], first=True)


def label_block(recorder: Recorder) -> list[int]:
    """Two parents."""
    return _block(recorder, _NODE * 2, first=False)


def label_last_block(recorder: Recorder) -> list[int]:
    """One parent, the 37th."""
    bits = BLOCK_BITS + LABEL_PARENTS * NODE_BITS
    return _block(recorder, [*_NODE, *_padding(bits, NODE_BITS)], first=False)
