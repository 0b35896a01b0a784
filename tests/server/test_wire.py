"""A message taken apart is the message that protobuf reads."""

from __future__ import annotations

import mmap
import random
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.errors import FormatError
from cuzk.server.proving_pb2 import ProveRequest, SubmitProofRequest
from cuzk.server.wire import FIELD_LIMIT, Parts, split, split_inside

LARGE = {10: "vanilla_proof", 11: "vanilla_proofs", 101: "witness"}
REPEATED = {11}


def put_together(data: bytes, parts: Parts) -> SubmitProofRequest:
    """What the parts say, as one message."""
    message = SubmitProofRequest.FromString(bytes(parts.rest))
    for number, ranges in parts.large.items():
        found = [data[start:end] for start, end in ranges]
        if number in REPEATED:
            message.vanilla_proofs.extend(found)
        else:
            setattr(message, LARGE[number], found[-1])
    return message


def without_unknown(message: SubmitProofRequest) -> bytes:
    message.DiscardUnknownFields()
    return message.SerializeToString(deterministic=True)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def tag(number: int, kind: int) -> bytes:
    return varint(number << 3 | kind)


NUMBERS = st.sampled_from([1, 2, 3, 5, 10, 11, 20, 22, 23, 30, 99, 100, 101, 102, 5000, 2**29 - 1])
TEXT = st.text(max_size=5).map(str.encode)


def one_field(number: int) -> st.SearchStrategy[bytes]:
    """Any kind under any number; text where protobuf wants it."""
    text = TEXT if number in (1, 100) else st.binary(max_size=200)
    return st.one_of(
        st.integers(0, 2**64 - 1).map(lambda v: tag(number, 0) + varint(v)),
        st.binary(min_size=8, max_size=8).map(lambda v: tag(number, 1) + v),
        text.map(lambda v: tag(number, 2) + varint(len(v)) + v),
        st.binary(min_size=4, max_size=4).map(lambda v: tag(number, 5) + v),
    )


FIELD = NUMBERS.flatmap(one_field)
GROUP = st.tuples(NUMBERS, st.lists(FIELD, max_size=3)).map(
    lambda g: tag(g[0], 3) + b"".join(g[1]) + tag(g[0], 4)
)
FIELDS = st.lists(st.one_of(FIELD, FIELD, FIELD, GROUP), max_size=12).map(b"".join)


@settings(deadline=None)
@given(FIELDS)
def test_the_parts_are_what_protobuf_reads(data: bytes) -> None:
    wanted = SubmitProofRequest.FromString(data)
    found = put_together(data, split(memoryview(data), LARGE))
    assert without_unknown(found) == without_unknown(wanted)


@settings(deadline=None)
@given(st.lists(FIELDS, min_size=1, max_size=3), FIELDS)
def test_a_message_inside_that_comes_twice_is_one(inner: list[bytes], other: bytes) -> None:
    others = b"".join(tag(7, 2) + varint(len(other)) + other for _ in inner)
    data = others + b"".join(tag(1, 2) + varint(len(i)) + i for i in inner)
    wanted = ProveRequest.FromString(data).submit
    parts = split_inside(memoryview(data), 1, LARGE)
    assert parts.found
    assert without_unknown(put_together(data, parts)) == without_unknown(wanted)


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=40), FIELDS.flatmap(lambda d: st.integers(0, len(d)).map(lambda n: d[:n]))))  # fmt: skip
def test_what_protobuf_refuses_is_refused_and_nothing_else(data: bytes) -> None:
    try:
        wanted = SubmitProofRequest.FromString(data)
    except DecodeError:
        with pytest.raises((FormatError, DecodeError)):
            put_together(data, split(memoryview(data), LARGE))
        return
    assert without_unknown(put_together(data, split(memoryview(data), LARGE))) == without_unknown(
        wanted
    )


def test_ranges_are_those_of_the_file(tmp_path: Path) -> None:
    rng = random.Random(1)
    proofs = [rng.randbytes(rng.choice([0, 1, 5000, 300_000])) for _ in range(50)]
    message = ProveRequest(
        submit=SubmitProofRequest(request_id="a", vanilla_proofs=proofs, miner_id=9)
    )
    path = tmp_path / "message"
    path.write_bytes(message.SerializeToString())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        parts = split_inside(view, 1, LARGE)
        assert [bytes(view[a:b]) for a, b in parts.large[11]] == proofs
        assert len(parts.rest) == 6
        view.release()


def test_no_message_inside_is_known() -> None:
    assert not split_inside(memoryview(tag(2, 2) + b"\x00"), 1, LARGE).found
    assert not split_inside(memoryview(tag(1, 0) + b"\x00"), 1, LARGE).found
    assert split_inside(memoryview(tag(1, 2) + b"\x00"), 1, LARGE).found


@pytest.mark.parametrize(
    ("data", "offset", "found"),
    [
        (b"\x08\x01\x52\x05abc", 3, "field 10 with 5 bytes where 3 are left"),
        (b"\x08\x01\x07", 2, "field number 0"),
        (b"\x08\x01\x0f", 2, "field 1 of kind 7, which there is not"),
        (b"\x08\x01\x08\xff", 3, "a number that is cut short"),
        (b"\x08" + b"\xff" * 11, 1, "a number of more than 10 bytes"),
        (b"\x80\x80\x80\x80\x80\x01", 0, "a number of more than 5 bytes"),
        (b"\x0c", 0, "the end of a group 1 that has not begun"),
        (b"\x0b\x14", 1, "the end of group 2 in group 1"),
        (b"\x0b\x08\x01", 3, "no end of group 1"),
        (b"\x0b" * 101, 101, "groups within groups, more than 100"),
        (b"\x0d\x01\x02\x03", 1, "field 1 with 4 bytes where 3 are left"),
    ],
)
def test_what_is_malformed_is_named_by_its_offset(data: bytes, offset: int, found: str) -> None:
    with pytest.raises(FormatError) as error:
        split(memoryview(data), LARGE)
    assert str(error.value).startswith(f"message: byte {offset}: expected ")
    assert found in str(error.value)
    with pytest.raises(DecodeError):
        SubmitProofRequest.FromString(data)


def test_a_field_ends_where_the_message_that_it_is_in_does() -> None:
    """A number that is cut there is not gone on with in what follows it."""
    inner = tag(2, 0) + b"\xe4"
    data = tag(1, 2) + varint(len(inner)) + inner + tag(9, 0) + b"\x01"
    with pytest.raises(DecodeError):
        ProveRequest.FromString(data)
    with pytest.raises(FormatError, match=r"byte 3: .* found a number that is cut short"):
        split_inside(memoryview(data), 1, LARGE)


def test_a_length_has_five_bytes_at_most() -> None:
    data = tag(10, 2) + b"\x81\x80\x80\x80\x80\x00" + b"x"
    with pytest.raises(DecodeError):
        SubmitProofRequest.FromString(data)
    with pytest.raises(FormatError, match="a number of more than 5 bytes"):
        split(memoryview(data), LARGE)


def test_many_fields_and_a_large_rest_are_bounded() -> None:
    most = tag(11, 2) + b"\x00"
    assert len(split(memoryview(most * FIELD_LIMIT), LARGE).large[11]) == FIELD_LIMIT
    with pytest.raises(FormatError, match="at most 16,384 fields, found more"):
        split(memoryview(most * (FIELD_LIMIT + 1)), LARGE)
    text = bytes(1 << 20)
    with pytest.raises(FormatError, match=r"1,048,576 bytes in all fields but .* in field 22"):
        split(memoryview(tag(22, 2) + varint(len(text)) + text), LARGE)
