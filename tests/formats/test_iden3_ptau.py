import struct
from dataclasses import replace
from pathlib import Path

import iden3_files as files
import pytest

from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.ptau import (
    check_ptau_points,
    read_ptau,
    read_ptau_header,
    write_ptau,
)
from cuzk.vectors import Points

PREPARED = (12, 13, 14, 15)


def refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        read_ptau(data)
    assert str(error.value).startswith(f"<bytes>: {message}")
    assert "\n" not in str(error.value)


def unprepared(data: bytes) -> bytes:
    for number in PREPARED:
        data = files.with_section(data, number, None)
    return data


def contribution(curve: Curve, name: bytes = b"x") -> bytes:
    """G1: 3 powers and 6 of the public key; G2: 2 powers and 3 of the public key."""
    size = files.sizes(curve)[0]
    points = files.points(curve, "g1", [2] * 3) + files.points(curve, "g2", [2] * 2)
    key = files.points(curve, "g1", [2] * 6) + files.points(curve, "g2", [2] * 3)
    assert len(points) + len(key) == 38 * size
    parameters = b"\x01" + bytes([len(name)]) + name
    return points + key + bytes(216 + 64) + struct.pack("<II", 0, len(parameters)) + parameters


@pytest.mark.parametrize("prepared", [True, False])
def test_powers_are_the_sections(curve: Curve, prepared: bool) -> None:
    data = files.ptau(curve) if prepared else unprepared(files.ptau(curve))
    sections, powers = dict(files.take_apart(data)), read_ptau(data)
    assert (powers.curve, powers.power, powers.ceremony_power) == (curve, 2, 3)
    assert (powers.contributions, powers.source) == (0, "<bytes>")
    vectors = [
        powers.tau_g1,
        powers.tau_g2,
        powers.alpha_tau_g1,
        powers.beta_tau_g1,
        powers.beta_g2,
    ]
    assert [len(points) for points in vectors] == [7, 4, 4, 4, 1]
    for number, points in enumerate(vectors, start=2):
        assert points.words.tobytes() == sections[number]
        assert points.group == ("g2" if number in (3, 6) else "g1")
    assert len(powers.levels) == (3 if prepared else 0)
    assert len(powers.top_tau_g1) == (8 if prepared else 0)


def test_header(curve: Curve) -> None:
    header = read_ptau_header(files.ptau(curve) + b"tail")
    assert (header.curve, header.power, header.ceremony_power) == (curve, 2, 3)
    assert (header.contributions, header.prepared) == (0, True)
    assert header.warnings == ("4 bytes after the last section",)
    assert not read_ptau_header(unprepared(files.ptau(curve))).prepared


@pytest.mark.parametrize("number", [*range(2, 6), *PREPARED])
def test_f22_all_points_are_checked_on_request(curve: Curve, number: int) -> None:
    data, size = files.ptau(curve), files.sizes(curve)[0]
    assert check_ptau_points(read_ptau(data)) is None
    assert check_ptau_points(read_ptau(unprepared(data))) is None
    content = dict(files.take_apart(data))[number]
    width = size * (4 if number in (3, 13) else 2)
    last = len(content) // width - 1
    for index in (2, last):
        bad = bytearray(content)
        bad[index * width] ^= 1
        changed = files.with_section(data, number, bytes(bad))
        assert check_ptau_points(read_ptau(changed)) == (number, index, "curve")


def test_levels_begin_at_the_powers_of_two(curve: Curve) -> None:
    powers = read_ptau(files.ptau(curve))

    def expect(points: Points, section: int, level: int, group: str) -> None:
        scalars = [files.lagrange_scalar(section, level, i) for i in range(2**level)]
        assert points.words.tobytes() == files.points(curve, group, scalars), (section, level)

    for k, level in enumerate(powers.levels):
        expect(level.tau_g1, 12, k, "g1")
        expect(level.tau_g2, 13, k, "g2")
        expect(level.alpha_tau_g1, 14, k, "g1")
        expect(level.beta_tau_g1, 15, k, "g1")
    expect(powers.top_tau_g1, 12, 3, "g1")


def test_f1_sections_in_any_order(curve: Curve) -> None:
    data = files.assemble("ptau", files.take_apart(files.ptau(curve))[::-1])
    assert read_ptau(data).levels[2].tau_g2.words.tobytes() == read_ptau(files.ptau(curve)).levels[2].tau_g2.words.tobytes()  # fmt: skip


def test_f4_cut_at_every_edge(curve: Curve) -> None:
    data = files.ptau(curve)
    sections = dict(files.take_apart(data))
    ends = {data.index(sections[2]) + 100, data.index(sections[12]) + 100, len(data) - 1}
    ends |= {edge + step for edge in files.edges(data) for step in (-1, 0, 1)} | set(range(5, len(data), 173))  # fmt: skip
    for end in sorted(end for end in ends if 0 < end < len(data)):
        with pytest.raises(FormatError) as error:
            read_ptau(data[:end])
        assert str(error.value).startswith("<bytes>: "), end


@pytest.mark.parametrize("number", [1, *range(2, 8), *PREPARED])
def test_f24_every_section_is_as_long_as_its_content_needs(curve: Curve, number: int) -> None:
    data = files.ptau(curve)
    content = dict(files.take_apart(data))[number]
    refused(files.with_section(data, number, content + b"\0"), f"section {number} (")
    refused(files.with_section(data, number, content[:-1]), f"section {number} (")
    refused(files.with_section(data, number, None), f"section {number} (")


@pytest.mark.parametrize(
    ("power", "message"),
    [
        (1, "section 2 (tauG1): expected 3 points of"),
        (3, "section 2 (tauG1): expected 15 points of"),
        (2**32 - 1, "section 1 (header): expected a power up to "),
        (64, "section 1 (header): expected a power up to "),
        (28, "section 2 (tauG1): expected 536870911 points of"),
    ],
)
def test_power_is_bounded_by_the_file(curve: Curve, power: int, message: str) -> None:
    header = files.prime(curve.p, files.sizes(curve)[0]) + struct.pack("<II", power, 28)
    for data in (files.ptau(curve), unprepared(files.ptau(curve))):
        changed = files.with_section(data, 1, header)
        with pytest.raises(FormatError) as error:
            read_ptau(changed)
        assert str(error.value).startswith(f"<bytes>: {message}") or "Lagrange" in str(error.value)


def test_f11_the_prime_names_the_curve() -> None:
    assert read_ptau(files.ptau(BN254)).curve is BN254
    assert read_ptau(files.ptau(BLS12_381)).curve is BLS12_381
    header = files.prime(BN254.r, 32) + struct.pack("<II", 2, 2)
    refused(
        files.with_section(files.ptau(BN254), 1, header),
        "section 1 (header): expected the base field of BN254 or BLS12-381, found the prime 0x30644e72",
    )


def test_f18_f19_duplicates_and_versions(curve: Curve) -> None:
    sections = files.take_apart(files.ptau(curve))
    refused(files.assemble("ptau", [*sections, sections[1]]), "expected each section once, found duplicate section 2")  # fmt: skip
    refused(files.assemble("ptau", sections, 2), "expected version 1 of .ptau, found 2")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_contributions_are_counted(curve: Curve, count: int) -> None:
    records = b"".join(contribution(curve, b"n" * i) for i in range(count))
    data = files.with_section(files.ptau(curve), 7, struct.pack("<I", count) + records)
    assert read_ptau(data).contributions == count
    for wrong in (count + 1, 2**32 - 1):
        refused(files.with_section(data, 7, struct.pack("<I", wrong) + records), "section 7 (contributions): expected ")  # fmt: skip
    refused(files.with_section(data, 7, struct.pack("<I", count) + records + b"\0"), "section 7 (contributions): expected ")  # fmt: skip


def test_one_contribution_with_a_one_letter_name_is_1511_bytes() -> None:
    assert 4 + len(contribution(BN254)) == 1511


def test_first_points_are_checked(curve: Curve) -> None:
    data, size = files.ptau(curve), files.sizes(curve)[0]
    for number in range(2, 7):
        content = dict(files.take_apart(data))[number]
        for at, point in ((0, 0), (size * (4 if number in (3, 6) else 2), 1)):
            if at >= len(content):
                continue
            bad = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            which = "the point" if number == 6 else f"point {point}"
            with pytest.raises(FormatError, match=rf"section {number} \(.*\): expected {which} to lie on the curve"):  # fmt: skip
                read_ptau(files.with_section(data, number, bad))
        width = size * (4 if number in (3, 6) else 2)
        zero = bytes(width) + content[width:]
        refused(files.with_section(data, number, zero), f"section {number} (")


def test_powers_begin_with_the_generators(curve: Curve) -> None:
    data = files.ptau(curve)
    for number, group in ((2, "g1"), (3, "g2")):
        content = dict(files.take_apart(data))[number]
        other = files.point(curve, group, 2)
        with pytest.raises(FormatError, match=r"expected point 0 to be .*'s generator"):
            read_ptau(files.with_section(data, number, other + content[len(other) :]))


@pytest.mark.parametrize("prepared", [True, False])
def test_written_powers_read_the_same(curve: Curve, tmp_path: Path, prepared: bool) -> None:
    data = files.ptau(curve) if prepared else unprepared(files.ptau(curve))
    write_ptau(tmp_path / "x", read_ptau(data))
    assert (tmp_path / "x").read_bytes() == data


def test_contribution_records_are_not_dropped_in_silence(tmp_path: Path) -> None:
    powers = replace(read_ptau(files.ptau(BN254)), contributions=2)
    with pytest.raises(FormatError, match="expected powers without contribution records, found 2"):
        write_ptau(tmp_path / "x", powers)
    assert not list(tmp_path.iterdir())


def test_a_large_file_costs_what_is_used(curve: Curve, tmp_path: Path) -> None:
    """A hole in place of 2^20 prepared powers: reading takes no time and no memory worth the name."""
    power, size = 20, files.sizes(curve)[0]
    n = 2**power
    heads = dict(files.take_apart(files.ptau(curve)))
    lengths = {2: 2 * (2 * n - 1), 3: 4 * n, 4: 2 * n, 5: 2 * n, 12: 2 * (4 * n - 1)}
    lengths |= {13: 4 * (2 * n - 1), 14: 2 * (2 * n - 1), 15: 2 * (2 * n - 1)}
    heads[1] = files.prime(curve.p, size) + struct.pack("<II", power, power)
    with (tmp_path / "x").open("wb") as file:
        file.write(b"ptau" + struct.pack("<II", 1, len(heads)))
        for number, content in heads.items():
            length = lengths.get(number, 0) * size or len(content)
            file.write(struct.pack("<IQ", number, length) + content[:length])
            file.seek(length - len(content[:length]), 1)
        file.truncate(file.tell())
    powers = read_ptau(tmp_path / "x")
    assert (powers.power, len(powers.levels), len(powers.top_tau_g1)) == (20, 21, 2 * n)
    assert powers.levels[20].tau_g2.affine(n - 1) is None
    assert powers.levels[1].tau_g1.words.tobytes() == files.points(curve, "g1", [files.lagrange_scalar(12, 1, i) for i in (0, 1)])  # fmt: skip
