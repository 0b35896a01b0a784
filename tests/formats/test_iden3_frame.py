import struct
from pathlib import Path

import iden3_files as files
import pytest

from cuzk.curves import BN254, CURVES, TOY, Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.fields import (
    MappedPoints,
    check_points,
    prime_bytes,
    take_base_field,
    take_scalar_field,
)
from cuzk.formats.iden3.frame import MOST_SECTIONS, Frame, frame_chunks, read_frame
from cuzk.formats.source import Source
from cuzk.vectors import Points

SECTIONS = [(2, b"second"), (1, b""), (7, b"\x01\x02\x03\x04\x05\x06\x07\x08\x09")]
NAMES = {1: "header", 2: "constraints"}


def frame(data: bytes, kind: str = "r1cs") -> Frame:
    return read_frame(Source.open(data), kind, (1, 2), NAMES)


def refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        frame(data)
    assert str(error.value) == f"<bytes>: {message}"


def test_f1_sections_in_any_order() -> None:
    data = files.assemble("r1cs", SECTIONS, version=2)
    found = frame(data)
    assert (found.kind, found.version, list(found.table)) == ("r1cs", 2, [2, 1, 7])
    assert found.section(2).take(6, "x").tobytes() == b"second"
    assert found.section(1).length == 0
    assert found.section(7).u64("x") == 0x0807060504030201
    assert 7 in found
    assert 3 not in found
    assert found.warnings == ()
    assert data == b"".join(frame_chunks("r1cs", 2, [(n, [c[:3], c[3:]]) for n, c in SECTIONS]))


def test_f19_magic_and_version() -> None:
    good = files.assemble("r1cs", SECTIONS)
    refused(b"zkey" + good[4:], 'expected an .r1cs file, which begins with "r1cs", found "zkey"')
    refused(b"\0\xff\n " + good[4:], 'expected an .r1cs file, which begins with "r1cs", found the bytes 00 ff 0a 20')  # fmt: skip
    refused(b"r1c", 'expected an .r1cs file, which begins with "r1cs", found "r1c"')
    refused(good[:11], "expected a header of 12 bytes, found 11 bytes")
    refused(files.assemble("r1cs", SECTIONS, 3), "expected version 1 or 2 of .r1cs, found 3")


def test_f18_duplicate_sections() -> None:
    refused(
        files.assemble("r1cs", [*SECTIONS, (2, b"second")]),
        "expected each section once, found duplicate section 2",
    )


def test_f3_cut_files() -> None:
    data = files.assemble("r1cs", SECTIONS)
    refused(data[:20], "expected at most 0 sections in 20 bytes, found 3")
    refused(data[:50], "expected 3 sections, found the end of the file after 2")
    refused(data[:-1], "section 7: expected 9 bytes, found 8 before the end of the file (is it cut off?)")  # fmt: skip
    huge = data[:16] + struct.pack("<Q", 2**64 - 1) + data[24:]
    refused(huge, f"section 2: expected {2**64 - 1} bytes, found {len(data) - 24} before the end of the file (is it cut off?)")  # fmt: skip


def test_section_counts_are_bounded() -> None:
    many = files.assemble("r1cs", [(i, b"") for i in range(MOST_SECTIONS + 1)])
    refused(many, f"expected at most 256 sections in {len(many)} bytes, found 257")
    refused(b"r1cs\x01\0\0\0" + b"\xff" * 16, "expected at most 1 sections in 24 bytes, found 4294967295")  # fmt: skip


def test_trailing_bytes_are_a_warning() -> None:
    found = frame(files.assemble("r1cs", SECTIONS) + b"xyz")
    assert found.warnings == ("3 bytes after the last section",)


def test_a_missing_section_is_named() -> None:
    found = frame(files.assemble("r1cs", SECTIONS[1:]))
    with pytest.raises(FormatError) as error:
        found.section(2)
    assert str(error.value) == "<bytes>: section 2 (constraints) is missing, found sections 1, 7"


def test_takes_are_checked_against_the_section() -> None:
    cursor = frame(files.assemble("r1cs", SECTIONS)).section(7)
    assert (cursor.u8("a"), cursor.u32("b")) == (1, 0x05040302)
    with pytest.raises(FormatError) as error:
        cursor.u64("labels")
    assert (
        str(error.value)
        == "<bytes>: section 7: expected 8 bytes of labels at offset 5, found 4 bytes"
    )
    with pytest.raises(FormatError, match=r"section 7: expected 5 bytes, found 9$"):
        cursor.end()
    with pytest.raises(FormatError, match=r"section 7: expected 2 points = 128 bytes, found 9$"):
        cursor.expect_length(128, "2 points")


def cursor_over(content: bytes):  # type: ignore[no-untyped-def]
    return frame(files.assemble("r1cs", [(1, content)])).section(1)


def test_primes_name_the_curve(curve: Curve) -> None:
    base, scalar = files.sizes(curve)
    content = files.prime(curve.p, base) + files.prime(curve.r, scalar)
    assert prime_bytes(curve.p, curve.fp_words) + prime_bytes(curve.r, curve.fr_words) == content
    cursor = cursor_over(content)
    assert take_base_field(cursor) is curve
    assert take_scalar_field(cursor) is curve


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (struct.pack("<I", 0), "a scalar field's prime of 32 or 48 bytes, found 0 bytes"),
        (struct.pack("<I", 2**31), "a scalar field's prime of 32 or 48 bytes, found 2147483648 bytes"),
        (struct.pack("<I", 33) + bytes(33), "a scalar field's prime of 32 or 48 bytes, found 33 bytes"),
        (files.prime(BN254.r, 40), "32 bytes for a prime of BN254, found 40 bytes"),
        (files.prime(TOY.r, 8), "a prime of BN254 or BLS12-381, found 0xfc01"),
        (files.prime(BN254.p, 32), "the scalar field of BN254 or BLS12-381, found the prime 0x30644e"),
        (files.prime(2**64 - 2**32 + 1, 8), "the scalar field of BN254 or BLS12-381, found the prime 0xffffffff00000001"),
        (files.prime(BN254.r, 32)[:-1], "32 bytes of scalar field's prime at offset 4, found 31 bytes"),
    ],
)  # fmt: skip
def test_primes_that_are_none_of_ours(content: bytes, expected: str) -> None:
    with pytest.raises(FormatError) as error:
        take_scalar_field(cursor_over(content))
    assert str(error.value).startswith(f"<bytes>: section 1 (header): expected {expected}")


@pytest.mark.parametrize("offset", [0, 4])
def test_mapped_points_are_points(curve: Curve, tmp_path: Path, offset: int) -> None:
    for group in ("g1", "g2"):
        scalars = [1, 2, 0, 5]
        path = tmp_path / group
        path.write_bytes(bytes(offset) + files.points(curve, group, scalars))
        mapped = MappedPoints(curve, group, Source.open(path), offset, 4)
        library = files.LIBRARY[curve.name]
        x, _ = library.normalize(library.multiply(getattr(library, group.upper()), 5))
        expected = (x.n,) if group == "g1" else tuple(int(c) for c in x.coeffs)
        for points in (mapped, mapped[:], mapped[1:], mapped[2:4][0:]):
            assert points.affine(len(points) - 1)[: len(expected)] == expected  # type: ignore[index]
            assert points.affine(-1) == mapped.affine(3)
            assert points.words.tobytes() == path.read_bytes()[-points.words.nbytes :]
        assert mapped.affine(2) is None
        assert mapped.is_infinity().tolist() == [False, False, True, False]
        assert isinstance(mapped, Points)
        assert len(mapped[3:1]) == 0
        assert mapped[::2].words.tobytes() == mapped.words[::2].tobytes()
        for index in (4, -5):
            with pytest.raises(IndexError):
                mapped.affine(index)


def test_mapped_points_copy_only_what_is_asked_for(curve: Curve, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(4) + files.points(curve, "g1", [1, 2, 3, 4]))
    mapped = MappedPoints(curve, "g1", Source.open(tmp_path / "x"), 4, 4)
    part = mapped[1:3]
    assert part.affine(0) == mapped.affine(1)
    assert part.words.nbytes == 2 * 8 * curve.point_words("g1")
    assert "words" not in mapped.__dict__
    assert mapped.words is mapped.words


def test_points_that_are_none(curve: Curve) -> None:
    size = files.sizes(curve)[0]
    good = files.points(curve, "g1", [1, 2])
    shifted = (int.from_bytes(good[-size:], "little") + 1).to_bytes(size, "little")
    too_big = curve.p.to_bytes(size, "little") + good[size:]
    for data, found in (
        (good[:-size] + shifted, "expected point 1 to lie on the curve, found otherwise"),
        (
            too_big,
            "expected point 0 to have coordinates below the base field's prime, found otherwise",
        ),
    ):
        points = MappedPoints(curve, "g1", Source.open(data), 0, 2)
        with pytest.raises(FormatError) as error:
            check_points(points, "x: section 3 (IC)")
        assert str(error.value) == f"x: section 3 (IC): {found}"
    check_points(MappedPoints(curve, "g1", Source.open(good), 0, 2), "x")


def test_the_corpus_is_what_the_writers_write() -> None:
    for kind in files.KINDS:
        for name in files.LIBRARY:
            curve = CURVES[name]
            assert files.corpus_file(kind, curve).read_bytes() == getattr(files, kind)(curve), kind
