import struct
import time
from pathlib import Path
from typing import Any

import iden3_files as files
import pytest
from zkey_parts import counts, refused, section, sparse_file, with_bytes

from cuzk.curves import Curve
from cuzk.errors import InsecureKeyError
from cuzk.formats.iden3.zkey import check_zkey_points, read_zkey, read_zkey_header


def with_delta(curve: Curve, delta: int, gamma: int = 1, record: bytes | None = None) -> bytes:
    data = files.with_section(files.zkey(curve), 2, files.zkey_header(curve, delta, gamma))
    return data if record is None else files.with_section(data, 10, record)


EMPTY_RECORD = bytes(68)


def test_v9_delta_equal_to_gamma_is_refused_unless_meant(curve: Curve) -> None:
    for delta, gamma, why in (
        (1, 1, "delta = gamma"),
        (7, 7, "delta = gamma"),
        (1, 7, "delta = 1"),
    ):
        data = with_delta(curve, delta, gamma, EMPTY_RECORD)
        refused(
            data,
            f"section 2 (header): expected secrets that nobody knows, found {why}",
            InsecureKeyError,
        )
        assert read_zkey(data, insecure_key=True).vk.delta_g2.words.tobytes() == files.point(curve, "g2", delta)  # fmt: skip
        warnings = read_zkey_header(data).warnings
        assert warnings[0].startswith(f"insecure: {why}")
        assert warnings[1] == "no contribution is recorded"


def test_a_key_without_recorded_contributions_is_flagged(curve: Curve) -> None:
    data = files.with_section(files.zkey(curve), 10, EMPTY_RECORD)
    assert read_zkey(data).ceremony is not None
    assert read_zkey_header(data).warnings == ("no contribution is recorded",)


def test_a_record_that_is_not_of_this_delta_is_flagged(curve: Curve) -> None:
    record = bytes(64) + struct.pack("<I", 1) + files.contribution(curve, 24)
    data = files.with_section(files.zkey(curve), 10, record)
    assert read_zkey_header(data).warnings == ("the last recorded contribution's delta is not the header's",)  # fmt: skip


def test_v11_ic_points_at_infinity_are_flagged(curve: Curve) -> None:
    data = files.with_section(files.zkey(curve), 3, files.points(curve, "g1", [0, 3, 0]))
    assert read_zkey_header(data).warnings == (
        "IC[0] is the point at infinity: anyone can forge a proof for public inputs that are all 0",
        "public input 2 is not bound: IC[2] is the point at infinity",
    )


@pytest.mark.parametrize("count", [2, 2**32 - 1])
def test_contributions_are_those_of_the_section(curve: Curve, count: int) -> None:
    data = with_bytes(files.zkey(curve), 10, 64, struct.pack("<I", count))
    refused(data, "section 10 (contributions): expected at most 1 contributions in ")


# points


def header_offsets(curve: Curve) -> dict[str, int]:
    size = files.sizes(curve)[0]
    start = size + 4 + 4 + 32 + 12
    widths = {"alpha1": 2, "beta1": 2, "beta2": 4, "gamma2": 4, "delta1": 2, "delta2": 4}
    found = {}
    for name, width in widths.items():
        found[name] = start
        start += width * size
    return found


def off_curve(data: bytes, number: int, at: int) -> bytes:
    """The low byte of a coordinate changed."""
    return with_bytes(data, number, at, bytes([section(data, number)[at] ^ 1]))


def test_f22_header_points_are_always_checked(curve: Curve) -> None:
    data, size = files.zkey(curve), files.sizes(curve)[0]
    for name, at in header_offsets(curve).items():
        refused(off_curve(data, 2, at), f"section 2 (header): {name}: expected the point to lie on the curve")  # fmt: skip
        beyond = with_bytes(data, 2, at, curve.p.to_bytes(size, "little"))
        refused(beyond, f"section 2 (header): {name}: expected the point to have coordinates below")
        width = 2 if name.endswith("1") else 4
        zero = with_bytes(data, 2, at, bytes(width * size))
        refused(zero, f"section 2 (header): expected {name} to be a point, found infinity")


def test_f22_ic_points_are_always_checked(curve: Curve) -> None:
    data = off_curve(files.zkey(curve), 3, 2 * files.sizes(curve)[0])
    refused(data, "section 3 (IC): expected point 1 to lie on the curve")


@pytest.mark.parametrize("number", range(5, 10))
def test_f22_other_points_are_checked_on_request(curve: Curve, number: int) -> None:
    data, size = files.zkey(curve), files.sizes(curve)[0]
    assert check_zkey_points(read_zkey(data)) is None
    at = size * (4 if number == 7 else 2)  # point 1
    assert check_zkey_points(read_zkey(off_curve(data, number, at))) == (number, 1, "curve")
    beyond = with_bytes(data, number, at, b"\xff" * size)
    assert check_zkey_points(read_zkey(beyond)) == (number, 1, "range")


def g2_outside_the_subgroup(curve: Curve) -> bytes:
    """A point of the twist whose order is not r: x = 1, 2, ... until x^3 + b is a square."""
    library, p = files.LIBRARY[curve.name], curve.p
    for x in range(1, 100):
        fx = library.FQ2([x, 0])
        square = fx * fx * fx + library.b2
        root = fp2_root(square, library, p)
        if root is not None:
            y = [int(c) for c in root.coeffs]
            values, size = [x, 0, *y], files.sizes(curve)[0]
            return b"".join((v * 2 ** (8 * size) % p).to_bytes(size, "little") for v in values)
    raise AssertionError


def fp2_root(a: Any, library: Any, p: int) -> Any:
    """Adj and Rodriguez-Henriquez, p = 3 mod 4."""
    a1 = a ** ((p - 3) // 4)
    alpha, x0 = a1 * a1 * a, a1 * a
    minus_one = library.FQ2([p - 1, 0])
    root = (
        library.FQ2([0, 1]) * x0
        if alpha == minus_one
        else (alpha + library.FQ2([1, 0])) ** ((p - 1) // 2) * x0
    )
    return root if root * root == a else None


def test_f22_points_outside_the_subgroup(curve: Curve) -> None:
    stray, data, size = g2_outside_the_subgroup(curve), files.zkey(curve), files.sizes(curve)[0]
    assert check_zkey_points(read_zkey(with_bytes(data, 7, 8 * size, stray))) == (7, 2, "subgroup")
    at = header_offsets(curve)["beta2"]
    refused(with_bytes(data, 2, at, stray), "section 2 (header): beta2: expected the point to lie in the subgroup of order r")  # fmt: skip


# far offsets


def test_f20_a_section_past_4_gib(curve: Curve, tmp_path: Path) -> None:
    data = files.zkey(curve)
    sections: list[tuple[int, bytes | int]] = list(files.take_apart(data))
    sections.insert(8, (99, 2**32 + 12345))
    sparse_file(tmp_path / "x", sections)
    start = time.perf_counter()
    key = read_zkey(tmp_path / "x")
    assert read_zkey_header(tmp_path / "x").warnings == ()
    assert key.h.words.tobytes() == section(data, 9)
    assert key.file_bytes > 2**32
    assert time.perf_counter() - start < 1


def test_f20_a_key_whose_points_fill_5_gib(curve: Curve, tmp_path: Path) -> None:
    wires, data, size = 2**24, files.zkey(curve), files.sizes(curve)[0]
    sections: list[tuple[int, bytes | int]] = []
    lengths = {5: 2 * wires * size, 6: 2 * wires * size, 7: 4 * wires * size, 8: 2 * (wires - 3) * size}  # fmt: skip
    for number, content in files.take_apart(counts(data, curve, wires, 2, 8)):
        sections.append((number, lengths.get(number, content)))
    sparse_file(tmp_path / "x", sections)
    start = time.perf_counter()
    key = read_zkey(tmp_path / "x")
    assert (len(key.a.points), len(key.l.points), read_zkey_header(tmp_path / "x").wires) == (wires, wires - 3, wires)  # fmt: skip
    assert key.b_g2.points.affine(wires - 1) is None
    assert key.h.words.tobytes() == section(data, 9)
    assert time.perf_counter() - start < 1


# real keys
