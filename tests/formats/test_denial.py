"""Input that would cost far more than its size: refused, or read in time and memory linear in it."""

from __future__ import annotations

import struct
import tracemalloc
from time import process_time

import pytest
from iden3_files import CORPUS, assemble, take_apart

from cuzk.curves import BN254
from cuzk.errors import FormatError
from cuzk.formats.iden3.r1cs import read_r1cs_header
from cuzk.formats.snarkjs_json import read_proof, read_public, read_verification_key
from cuzk.formats.source import Source
from cuzk.load import kind_of, load_verifying_key

MEBIBYTE = 1 << 20


@pytest.mark.parametrize("string", [b'"' + b'\\"' * 15_000, b'"\\' * 15_000, b'"a' * 15_001])
def test_a_string_without_an_end(string: bytes) -> None:
    """Depth is counted outside strings; finding them must not take quadratic time."""
    start = process_time()
    with pytest.raises(FormatError):
        read_public(b"[" * 33 + string, BN254)
    assert process_time() - start < 1.0


@pytest.mark.parametrize(
    "item", [b"-1,", b"0.5,", b"NaN,", b'{"a":1},', b'"ab",', b"1000,", b'"","",[],', b'"\\u00e9",']
)
@pytest.mark.parametrize("read", ["public", "key"])
def test_memory_is_a_small_multiple_of_the_text(item: bytes, read: str) -> None:
    content = b"[" + item * (MEBIBYTE // len(item)) + b"1]"
    if read == "key":
        content = b'{"protocol": "groth16", "curve": "bn128", "other": ' + content + b"}"
    tracemalloc.start()
    try:
        if item == b"1000," and read == "public":
            assert read_public(content, BN254)[:2] == [1000, 1000]
        else:
            with pytest.raises(FormatError):
                read_public(content, BN254) if read == "public" else read_verification_key(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(content)


def test_sizes_that_no_file_of_the_kind_has() -> None:
    for read, limit in (
        (read_proof, 1 << 16),
        (lambda data: read_public(data, BN254), 1 << 25),
        (read_verification_key, 1 << 27),
    ):
        with pytest.raises(FormatError, match=f"at most {limit} bytes"):
            read(b" " * (limit + 1))


def test_custom_gates_beyond_any_circuit() -> None:
    """A name of a million letters would be walked letter by letter."""
    sections = take_apart((CORPUS / "bn254.r1cs").read_bytes())
    gates = struct.pack("<I", 1) + b"n" * MEBIBYTE + b"\\0" + struct.pack("<I", 0)
    start = process_time()
    with pytest.raises(FormatError, match="at most 1048576 bytes of custom gates"):
        read_r1cs_header(assemble("r1cs", [*sections, (4, gates)]))
    assert process_time() - start < 0.5


@pytest.mark.parametrize("head", [b"\n{", b"\n[", b"\r\n{", b" \t["])
def test_bellman_keys_that_begin_like_json(head: bytes) -> None:
    """They have no mark, and one in 650 begins with white space and a bracket."""
    body = bytes(range(256)) * 4
    assert kind_of(Source.open(head + body)) == ""
    with pytest.raises(FormatError, match=r"alpha_g1|ic:"):
        load_verifying_key(head + body)
    text = head + b'"pi_a": "\\u00e9"' + "é".encode()
    assert kind_of(Source.open(text)) == ("object" if b"{" in head else "array")
