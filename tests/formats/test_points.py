"""The zcash encodings against zkcrypto's vectors (multiples 0..999 of the generators) and every bad form."""

import random
from pathlib import Path

import numpy as np
import py_arkworks_bls12381 as ark
import pytest
from py_ecc.bls.point_compression import compress_G1, compress_G2
from py_ecc.optimized_bls12_381.optimized_curve import G1, G2, multiply

from cuzk import _core
from cuzk.curves import BLS12_381, BN254
from cuzk.errors import FormatError
from cuzk.formats.points import (
    decode_compressed,
    decode_uncompressed,
    encode_compressed,
    encode_uncompressed,
    encoded_bytes,
)
from cuzk.vectors import Points

P = BLS12_381.p
GENERATORS = {"g1": BLS12_381.g1, "g2": BLS12_381.g2}


def vectors(fixtures: Path, group: str, form: str) -> bytes:
    return (fixtures / "zkcrypto" / f"{group}_{form}_valid_test_vectors.dat").read_bytes()


def generator(group: str) -> Points:
    return Points.from_affine(BLS12_381, group, [GENERATORS[group]])


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("group", ["g1", "g2"])
def test_zkcrypto_vectors(fixtures: Path, group: str) -> None:  # CASES V21
    compressed = vectors(fixtures, group, "compressed")
    uncompressed = vectors(fixtures, group, "uncompressed")
    points = decode_compressed(compressed, group, "vectors", threads=2)
    assert len(points) == 1000
    assert points.affine(0) is None
    assert points.affine(1) == GENERATORS[group]
    assert np.array_equal(points.words, decode_uncompressed(uncompressed, group, "vectors").words)
    assert encode_compressed(points) == compressed
    assert encode_uncompressed(points) == uncompressed
    signs = {byte & 0x20 for byte in compressed[:: encoded_bytes(group, compressed=True)]}
    assert signs == {0, 0x20}


def test_multiples_agree_with_py_ecc() -> None:
    for k in (1, 2, 5, BLS12_381.r - 1):
        one = compress_G1(multiply(G1, k)).to_bytes(48, "big")
        assert encode_compressed(decode_compressed(one, "g1", "py_ecc")) == one
        high, low = compress_G2(multiply(G2, k))
        two = high.to_bytes(48, "big") + low.to_bytes(48, "big")
        assert encode_compressed(decode_compressed(two, "g2", "py_ecc")) == two


def test_arkworks_decodes_the_same_bytes() -> None:
    assert encode_compressed(generator("g1")) == ark.G1Point().to_compressed_bytes()
    assert encode_compressed(generator("g2")) == ark.G2Point().to_compressed_bytes()


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_infinity_and_empty(group: str) -> None:
    both = Points.from_affine(BLS12_381, group, [None, GENERATORS[group]])
    for encode, decode in (
        (encode_compressed, decode_compressed),
        (encode_uncompressed, decode_uncompressed),
    ):
        assert np.array_equal(decode(encode(both), group, "x").words, both.words)
        assert encode(Points.empty(BLS12_381, group)) == b""
        assert len(decode(b"", group, "x")) == 0
    assert encode_compressed(both)[0] == 0xC0
    assert encode_uncompressed(both)[0] == 0x40


def test_any_bytes_like() -> None:
    data = encode_uncompressed(generator("g1"))
    for form in (bytearray(data), memoryview(data), np.frombuffer(data, dtype=np.uint8)):
        assert decode_uncompressed(form, "g1", "x").affine() == BLS12_381.g1


def changed(data: bytes, index: int, mask: int) -> bytes:
    return data[:index] + bytes([data[index] ^ mask]) + data[index + 1 :]


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize(
    ("mask", "reason"),
    [(0x80, "flag of a compressed point"), (0x40, "infinity with further bits")],
)
def test_bad_flags_compressed(group: str, mask: int, reason: str) -> None:
    good = encode_compressed(generator(group))
    with pytest.raises(FormatError, match=rf"pi: {group} point 1: .*{reason}"):
        decode_compressed(good + changed(good, 0, mask), group, "pi")


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (0x80, "flag of a compressed"),
        (0x20, "sign flag"),
        (0x40, "infinity with further bits"),
    ],
)
def test_bad_flags_uncompressed(group: str, mask: int, reason: str) -> None:
    good = encode_uncompressed(generator(group))
    with pytest.raises(FormatError, match=rf"pi: {group} point 1: .*{reason}"):
        decode_uncompressed(good + changed(good, 0, mask), group, "pi")


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("group", ["g1", "g2"])
def test_the_first_of_many_bad_points_is_named(group: str, threads: int) -> None:
    """In ranges of several threads, each fault of another kind; good ones up to there, infinity among them."""
    size, count = encoded_bytes(group, compressed=False), 10_000
    one = np.frombuffer(encode_uncompressed(generator(group)), np.uint8)
    data = np.tile(one, (count, 1))
    data[5] = 0
    data[5, 0] = 0x40
    points = decode_uncompressed(
        data.reshape(-1), group, "key", curve=False, subgroup=False, threads=threads
    )
    assert np.flatnonzero(points.is_infinity()).tolist() == [5]
    assert points[4:5].affine() == points[count - 1 : count].affine() == generator(group).affine()
    data[9_999, 0] |= 0x20
    data[8_000] = 0
    data[7_001, size - 48 :] = 0xFF
    for row, reason in ((7_001, "not below p"), (8_000, "without the flag"), (9_999, "sign flag")):
        with pytest.raises(FormatError, match=f"key: {group} point {100 + row}: .*{reason}"):
            decode_uncompressed(
                data.reshape(-1),
                group,
                "key",
                curve=False,
                subgroup=False,
                threads=threads,
                first=100,
            )
        data[row] = one


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_infinity_has_one_encoding(group: str) -> None:
    size = encoded_bytes(group, compressed=True)
    for data in (
        bytes([0xE0]) + bytes(size - 1),  # the sign flag
        bytes([0xC0]) + bytes(size - 2) + b"\1",
        bytes([0xC1]) + bytes(size - 1),
    ):
        with pytest.raises(FormatError, match="infinity with further bits"):
            decode_compressed(data, group, "x")
    for data in (bytes([0x60]) + bytes(2 * size - 1), bytes([0x40]) + bytes(2 * size - 2) + b"\1"):
        with pytest.raises(FormatError, match=r"sign flag|infinity with further bits"):
            decode_uncompressed(data, group, "x")
    with pytest.raises(FormatError, match="without the flag of infinity"):
        decode_uncompressed(bytes(2 * size), group, "x")


def coordinates(*values: int, flags: int = 0) -> bytes:
    data = b"".join(v.to_bytes(48, "big") for v in values)
    return bytes([data[0] | flags]) + data[1:]


def test_coordinates_at_or_above_p() -> None:
    x, y = BLS12_381.g1
    x0, x1, y0, y1 = BLS12_381.g2
    for one in (
        coordinates(P, y),
        coordinates(x, P),
        coordinates(2**381 - 1, y),
    ):
        with pytest.raises(FormatError, match="g1 point 0: a coordinate is not below p"):
            decode_uncompressed(one, "g1", "x")
    for two in (
        coordinates(P, x0, y1, y0),
        coordinates(x1, P, y1, y0),
        coordinates(x1, x0, P, y0),
        coordinates(x1, x0, y1, P),
    ):
        with pytest.raises(FormatError, match="g2 point 0: a coordinate is not below p"):
            decode_uncompressed(two, "g2", "x", curve=False, subgroup=False)
    with pytest.raises(FormatError, match="a coordinate is not below p"):
        decode_compressed(coordinates(P, flags=0x80), "g1", "x")
    for two in (coordinates(P, x0, flags=0x80), coordinates(x1, P, flags=0x80)):
        with pytest.raises(FormatError, match="a coordinate is not below p"):
            decode_compressed(two, "g2", "x")


def test_x_without_a_point() -> None:
    x = next(x for x in range(1, 99) if pow(x**3 + 4, (P - 1) // 2, P) == P - 1)
    with pytest.raises(FormatError, match="g1 point 0: x is not on the curve"):
        decode_compressed(coordinates(x, flags=0x80), "g1", "x")
    refused = 0
    for c0 in range(16):  # x = c0: a square exactly where the norm of x^3 + 4 + 4u is one in Fp
        norm = (c0**3 + 4) ** 2 + 16
        data = coordinates(0, c0, flags=0x80)
        if pow(norm, (P - 1) // 2, P) == 1:
            decode_compressed(data, "g2", "x", subgroup=False)
        else:
            refused += 1
            with pytest.raises(FormatError, match="g2 point 0: x is not on the curve"):
                decode_compressed(data, "g2", "x", subgroup=False)
    assert 0 < refused < 16


def test_checks_can_be_left_out() -> None:
    x = next(x for x in range(1, 99) if pow(x**3 + 4, (P - 1) // 2, P) == 1)
    y = pow(x**3 + 4, (P + 1) // 4, P)
    outside = coordinates(x, y)
    with pytest.raises(FormatError, match="not in the subgroup"):
        decode_uncompressed(outside, "g1", "x")
    point = decode_uncompressed(outside, "g1", "x", subgroup=False)
    assert point.affine() == (x, y)
    with pytest.raises(FormatError, match="not in the subgroup"):
        decode_compressed(encode_compressed(point), "g1", "x")
    off = coordinates(x, y - 1)
    with pytest.raises(FormatError, match="not on the curve"):
        decode_uncompressed(off, "g1", "x", subgroup=False)
    assert decode_uncompressed(off, "g1", "x", curve=False, subgroup=False).affine() == (x, y - 1)


def test_lengths_groups_and_curves() -> None:
    with pytest.raises(FormatError, match=r"vk\.ic: expected a multiple of 96 bytes"):
        decode_uncompressed(bytes(95), "g1", "vk.ic")
    with pytest.raises(FormatError, match="expected a multiple of 48 bytes"):
        decode_compressed(bytes(47), "g1", "x")
    with pytest.raises(FormatError, match="g1 or g2"):
        decode_compressed(b"", "g3", "x")
    with pytest.raises(FormatError, match="BLS12-381"):
        encode_compressed(Points.from_affine(BN254, "g1", [BN254.g1]))
    with pytest.raises(ValueError, match="bls12_381"):
        _core.decompress("bn254", "g1", np.zeros((1, 32), np.uint8), np.zeros((1, 8), np.uint64), 1)
    with pytest.raises(ValueError, match="out"):
        _core.decompress(
            "bls12_381", "g1", np.zeros((2, 48), np.uint8), np.zeros((1, 12), np.uint64), 1
        )


def test_first_of_several_threads() -> None:
    good = encode_compressed(generator("g1"))
    data = good * 300 + changed(good, 0, 0x80) + good * 50 + changed(good, 0, 0x40) * 20
    with pytest.raises(
        FormatError, match="g1 point 300: the flag of a compressed point is not set"
    ):
        decode_compressed(data, "g1", "x", threads=4)


def accepted(data: bytes, group: str, *, compressed: bool) -> bool:
    """Whatever is accepted must be the one encoding of its point."""
    decode, encode = (
        (decode_compressed, encode_compressed)
        if compressed
        else (decode_uncompressed, encode_uncompressed)
    )
    try:
        points = decode(data, group, "x", subgroup=False)
    except FormatError:
        return False
    assert encode(points) == data
    return True


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_one_encoding_of_every_point(group: str) -> None:
    rng = random.Random(2177)
    size = encoded_bytes(group, compressed=True)
    taken = 0
    for _ in range(400):
        data = bytearray(rng.randbytes(size))
        data[0] = rng.choice((0x80, 0xA0, 0x80, 0xA0, 0xC0, 0xE0, 0x00)) | rng.randrange(0x1B)
        data[-48] = data[-48] % 0x1B if group == "g2" else data[-48]  # most are below p
        taken += accepted(bytes(data), group, compressed=True)
    assert 50 < taken < 150  # 4 of 7 choices of flags are good, and every second x has a point
    good = encode_uncompressed(generator(group))
    for bit in range(8 * len(good)):
        assert not accepted(changed(good, bit // 8, 1 << bit % 8), group, compressed=False)
