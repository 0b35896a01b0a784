"""Gadgets as templates: rows, variables, densities and R1CS hashes of the reference; values against hashlib and neptune."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_programs import Run

from cuzk.errors import CircuitError
from cuzk.filecoin.templates.assembly import Assembling
from cuzk.filecoin.templates.circuit import CircuitShape, circuit_shape
from cuzk.filecoin.templates.gadgets import (
    field_bits,
    given,
    index_level,
    insert,
    node_bits,
    pack_node,
    poseidon_node,
    tree_d_children,
)
from cuzk.filecoin.templates.library import Library
from cuzk.filecoin.templates.paths import tree_d_node
from cuzk.filecoin.templates.program import Op
from cuzk.filecoin.templates.r1cs_hash import r1cs_hash
from cuzk.filecoin.templates.recorder import Coefficients, R, Recorder
from cuzk.filecoin.templates.sha256 import (
    digest_bits,
    label_block,
    label_first_block,
    label_last_block,
    sha256_block,
    sha256_first_block,
    sha256_padding_block,
    tree_d_block,
)
from cuzk.filecoin.templates.template import Rows

GADGETS: dict[str, Callable[[Assembling, Library], Any]] = {}


def gadget(name: str) -> Callable[[Callable[[Assembling, Library], Any]], Any]:
    def register(build: Callable[[Assembling, Library], Any]) -> Any:
        GADGETS[name] = build
        return build

    return register


def message_bits(recorder: Recorder, count: int) -> list[int]:
    return recorder.bits(Op.GIVEN_BITS, count, ())


def one_hash(part: Assembling, library: Library, arity: int) -> list[int]:
    return part.place(library(poseidon_node, arity), part.place(library(given, arity)))


def one_level(part: Assembling, library: Library, arity: int) -> list[int]:
    return part.place(library(index_level, arity), part.place(library(given, 1)))


POSEIDONS = (2, 4, 8, 11, 16, 24, 36)
GADGETS |= {f"poseidon-{arity}": partial(one_hash, arity=arity) for arity in POSEIDONS}
GADGETS |= {f"path-level-{arity}": partial(one_level, arity=arity) for arity in (2, 4, 8)}


@gadget("to-bits")
def bits_of_one(part: Assembling, library: Library) -> list[int]:
    return part.place(library(field_bits), part.place(library(given, 1)))


@gadget("sha256-compression")
def one_block(part: Assembling, library: Library) -> list[int]:
    message = part.place(library(message_bits, 512))
    return part.place(library(sha256_first_block), message)


@gadget("sha256-512")
def padded(part: Assembling, library: Library) -> list[int]:
    return part.place(library(sha256_padding_block), one_block(part, library))


@gadget("tree-d-node")
def node_of_two(part: Assembling, library: Library) -> int:
    children = part.place(library(given, 2))
    return tree_d_node(part, library, part.place(library(node_bits), children))


@gadget("path-level-d")
def level_of_tree_d(part: Assembling, library: Library) -> int:
    (below,) = part.place(library(given, 1))
    return tree_d_node(part, library, part.place(library(tree_d_children), [below])[:-1])


def alone(library: Library, name: str) -> CircuitShape:
    header = Assembling()
    GADGETS[name](header, library)
    return circuit_shape(name, library, header, Assembling(), [])


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


@pytest.fixture(scope="module")
def expected(fixtures: Path) -> dict[str, Any]:
    entries = json.loads((fixtures / "filecoin" / "circuits.json").read_text())["circuits"]
    return {entry["name"]: entry for entry in entries}


SLOW = {"poseidon-24", "poseidon-36"}  # Filecoin has none as wide; their constants take seconds
NAMES = [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in GADGETS]


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_hashes(library: Library, expected: dict[str, Any], name: str) -> None:
    shape = alone(library, name)
    counts = shape.counts()
    assert counts == {key: expected[name][key] for key in counts}
    assert 1 << shape.log_domain == expected[name]["domain"]
    assert r1cs_hash(shape) == expected[name]["r1cs_hash"]["blake2s"]


@pytest.mark.parametrize(
    ("record", "arguments", "rows", "aux", "terms"),
    [
        (sha256_block, (), 26192, 26166, (60848, 26192, 57686)),
        (label_first_block, (1,), 25363, 25337, (58145, 25395, 55455)),
        (label_first_block, (11,), 25363, 25337, (58145, 25395, 55455)),
        (label_block, (), 26184, 26158, (60833, 26184, 57662)),
        (label_last_block, (), 25593, 25567, (59161, 25593, 55889)),
    ],
)
def test_sizes_of_blocks(
    library: Library,
    record: Callable[..., Sequence[int]],
    arguments: tuple[int, ...],
    rows: int,
    aux: int,
    terms: tuple[int, int, int],
) -> None:
    """FILECOIN's table of compressions."""
    template = library(record, *arguments)
    assert (template.rows, template.aux) == (rows, aux)
    assert tuple(m.terms for m in template.matrices) == terms


# A hash that notices


def with_rows(shape: CircuitShape, change: Callable[[Rows], Rows]) -> CircuitShape:
    first, *others = shape.templates
    return replace(shape, templates=(replace(first, a=change(first.a)), *others))


def test_the_hash_notices_a_swapped_row_and_a_changed_coefficient(library: Library) -> None:
    shape = alone(library, "path-level-2")
    shape = replace(shape, templates=shape.templates[::-1], header=replace(
        shape.header, templates=1 - shape.header.templates))  # fmt: skip
    whole = r1cs_hash(shape)
    assert whole == r1cs_hash(alone(library, "path-level-2"))

    def swapped(rows: Rows) -> Rows:
        columns, coefficients = rows.columns.copy(), rows.coefficients.copy()
        ends = rows.starts[1], rows.starts[2]
        assert ends[1] == 2 * ends[0]
        for array in (columns, coefficients):
            array[: ends[1]] = np.concatenate((array[ends[0] : ends[1]], array[: ends[0]]))
        return replace(rows, columns=columns, coefficients=coefficients)

    def changed(rows: Rows) -> Rows:
        coefficients = rows.coefficients.copy()
        coefficients[-1] += 1
        return replace(rows, coefficients=coefficients)

    hashes = {whole, r1cs_hash(with_rows(shape, swapped)), r1cs_hash(with_rows(shape, changed))}
    assert len(hashes) == 3


# Values


def random_numbers(count: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    return [int.from_bytes(rng.bytes(32), "little") % R for _ in range(count)]


def value_of(bits: Sequence[int]) -> int:
    return sum(bit << i for i, bit in enumerate(bits))


def run(library: Library, build: Callable[[Assembling], Any], data: Sequence[int]) -> Run:
    header = Assembling()
    build(header)
    return Run(circuit_shape("gadget", library, header, Assembling(), []), data)


def broken_after(found: Run, slot: int) -> list[int]:
    """Rows that fail with one private variable changed."""
    wire = found.shape.inputs + slot
    before = found.wires[wire]
    found.wires[wire] = 1 - before if before in (0, 1) else before + 1
    rows = found.broken()
    found.wires[wire] = before
    return rows


def test_values_of_a_tree_d_node(library: Library) -> None:
    children = random_numbers(2, 1)
    found = run(library, lambda part: node_of_two(part, library), children)
    assert found.broken() == []
    data = b"".join(child.to_bytes(32, "little") for child in children)
    digest = int.from_bytes(hashlib.sha256(data).digest(), "little")
    assert found.aux[-1] == digest % (1 << 254)
    assert broken_after(found, 700)
    assert broken_after(found, len(found.aux) - 1) == [found.shape.constraints - 1]


def test_every_variable_of_a_compression_is_held_by_a_row(library: Library) -> None:
    """Each kind of variable, carries included, breaks a row when it changes."""
    found = run(library, lambda part: padded(part, library), random_numbers(1, 2))
    assert found.broken() == []
    for slot in range(513, len(found.aux), 15013):
        assert broken_after(found, slot)


def label_message(part: Assembling, library: Library, layer: int) -> list[int]:
    """Three blocks of a label, the middle one once."""
    words = part.place(library(message_bits, 255 + 64))
    words = part.place(library(label_first_block, layer), words)
    words = part.place(library(label_block), [*words, *part.place(library(message_bits, 510))])
    last = part.place(library(message_bits, 255))
    return part.place(library(label_last_block), [*words, *last])


def test_values_of_label_blocks(library: Library) -> None:
    """As hashlib's compressions: of a message whose length differs, the last block's padding is written out."""
    rng = np.random.default_rng(3)
    data = [value_of(rng.integers(0, 2, n).tolist()) for n in (255 + 64, 510, 255)]
    found = run(library, lambda part: label_message(part, library, 7), data)
    assert found.broken() == []
    bits = [
        [n >> i & 1 for i in range(size)] for n, size in zip(data, (319, 510, 255), strict=True)
    ]

    def node(chunk: Sequence[int]) -> list[int]:
        return [*chunk[:248], 0, *chunk[248:]]

    layer = [7 >> i & 1 for i in reversed(range(32))]
    message = [*node(bits[0][:255]), *layer, *bits[0][255:], *[0] * 160]
    message += [*node(bits[1][:255]), *node(bits[1][255:]), *node(bits[2])]
    length = 512 + 37 * 256
    tail = [1, *[0] * 191, *(length >> i & 1 for i in reversed(range(64)))]
    expected = compressed(np.packbits(np.array(message + tail, dtype=np.uint8)).tobytes())
    words = [value_of(found.aux[i : i + 32]) for i in outputs_of(found)]
    assert words == expected


def outputs_of(found: Run) -> list[int]:
    """Where the eight words of the last placement begin among the variables."""
    last = found.shape.templates[int(found.shape.header.templates[-1])]
    first = int(found.shape.header.aux[-2]) - 1 - last.ports
    return [first + int(slot) for slot in last.outputs[::32]]


def compressed(padded_message: bytes) -> list[int]:
    """SHA-256's chaining value after whole blocks, by the standard's text."""
    primes = [n for n in range(2, 312) if all(n % p for p in range(2, n))]

    def root(p: int, degree: int) -> int:
        n, x = p << 32 * degree, 1 << 40
        while x**degree > n:
            x -= max(1, (x**degree - n) // (degree * x ** (degree - 1)))
        return x & 0xFFFFFFFF

    def rotate(x: int, *counts: int) -> int:
        value = 0
        for n in counts:
            value ^= (x >> n | x << 32 - n) & 0xFFFFFFFF
        return value

    state = [root(p, 2) for p in primes[:8]]
    for begin in range(0, len(padded_message), 64):
        block = padded_message[begin : begin + 64]
        w = [int.from_bytes(block[i : i + 4], "big") for i in range(0, 64, 4)]
        for i in range(16, 64):
            s0 = rotate(w[i - 15], 7, 18) ^ w[i - 15] >> 3
            s1 = rotate(w[i - 2], 17, 19) ^ w[i - 2] >> 10
            w.append((w[i - 16] + s0 + w[i - 7] + s1) & 0xFFFFFFFF)
        a, b, c, d, e, f, g, h = state
        for i in range(64):
            t = h + rotate(e, 6, 11, 25) + (e & f ^ ~e & g) + root(primes[i], 3) + w[i]
            s = rotate(a, 2, 13, 22) + (a & b ^ a & c ^ b & c)
            a, b, c, d, e, f, g, h = (t + s) & 0xFFFFFFFF, a, b, c, (d + t) & 0xFFFFFFFF, e, f, g
        state = [(x + y) & 0xFFFFFFFF for x, y in zip(state, (a, b, c, d, e, f, g, h), strict=True)]
    return state


def test_compressed_is_hashlib_s() -> None:
    message = bytes(range(50))
    block = message + b"\x80" + bytes(64 - 50 - 9) + (400).to_bytes(8, "big")
    digest = b"".join(word.to_bytes(4, "big") for word in compressed(block))
    assert digest == hashlib.sha256(message).digest()


@pytest.mark.parametrize("arity", [2, 4, 8, 11])
def test_values_of_poseidon(library: Library, fixtures: Path, arity: int) -> None:
    cases = json.loads((fixtures / "filecoin" / "poseidon.json").read_text())[f"vectors_{arity}"]
    for case in cases[:3] + cases[-2:]:
        data = [int.from_bytes(bytes.fromhex(node), "little") for node in case["inputs"]]
        found = run(library, lambda part: GADGETS[f"poseidon-{arity}"](part, library), data)
        assert found.broken() == []
        assert found.aux[-1].to_bytes(32, "little").hex() == case["digest"]
    assert all(broken_after(found, slot) for slot in range(arity, len(found.aux), 17))


@pytest.mark.parametrize("arity", [2, 4, 8])
def test_the_child_is_inserted_where_the_bits_say(arity: int) -> None:
    def children(recorder: Recorder) -> list[int]:
        element = recorder.port()
        bits = recorder.bits(Op.GIVEN_BITS, arity.bit_length() - 1, ())
        return insert(recorder, element, bits, recorder.given(arity - 1))

    own = Library()
    header = Assembling()
    slots = header.place(own(children), header.place(own(given, 1)))
    shape = circuit_shape("insert", own, header, Assembling(), [])
    element, *siblings = random_numbers(arity, 4)
    for place in range(arity):
        found = Run(shape, [element, place, *siblings])
        assert found.broken() == []
        inserted = [*siblings[:place], element, *siblings[place:]]
        assert [found.wires[slot] for slot in slots] == inserted


def test_numbers_that_have_two_forms_of_bits(library: Library) -> None:
    """Bits are those of the number below r."""
    for value in (0, 1, (1 << 254) % R, R - 1):
        found = run(library, lambda part: bits_of_one(part, library), [value])
        assert found.broken() == []
        assert value_of(found.aux[1:]) == value


def test_a_packed_digest_is_a_number_in_byte_order(library: Library) -> None:
    def build(part: Assembling) -> None:
        words = part.place(library(message_bits, 256))
        part.place(library(pack_node), digest_bits(words))

    digest = hashlib.sha256(b"a node").digest()
    words = [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4)]
    found = run(library, build, [sum(word << 32 * i for i, word in enumerate(words))])
    assert found.aux[-1] == int.from_bytes(digest, "little") % (1 << 254)


def test_what_a_template_cannot_be(library: Library) -> None:
    recorder = Recorder(Coefficients())
    x = recorder.port()
    recorder.given()
    with pytest.raises(CircuitError, match="a port after the first variable"):
        recorder.port()
    with pytest.raises(CircuitError, match="an output is none of"):
        recorder.template("echo", [x])
    with pytest.raises(CircuitError, match=r"tree_d_block: expected 510 bindings, found 2"):
        Assembling().place(library(tree_d_block), [1, 2])
    part = Assembling()
    part.place(library(field_bits), [400])
    with pytest.raises(CircuitError, match="a slot that is not there"):
        circuit_shape("loose", library, part, Assembling(), [])
