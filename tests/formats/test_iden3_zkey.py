import hashlib
import io
import json
import random
import struct
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import iden3_files as files
import numpy as np
import pytest

from cuzk.constants import from_montgomery
from cuzk.curves import BLS12_381, BN254, CURVES, Curve
from cuzk.errors import FormatError, InsecureKeyError
from cuzk.formats.iden3.ceremony import contributor
from cuzk.formats.iden3.r1cs import read_r1cs
from cuzk.formats.iden3.zkey import check_zkey_points, read_zkey, read_zkey_header
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import BELLMAN, SNARKJS, ProvingKey, Query
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Points


def rows(matrix: SparseMatrix) -> list[dict[int, int]]:
    """Per row: wire -> sum of its coefficients."""
    found = []
    for i in range(matrix.rows):
        total: dict[int, int] = {}
        for c, wire in matrix.row(i):
            total[wire] = (total.get(wire, 0) + c) % matrix.values.curve.r
        found.append(total)
    return found


def vectors(key: ProvingKey) -> dict[int, Points]:
    return {3: key.vk.ic, 5: key.a.points, 6: key.b_g1.points, 7: key.b_g2.points, 8: key.l.points, 9: key.h}  # fmt: skip


def section(data: bytes, number: int) -> bytes:
    return dict(files.take_apart(data))[number]


def with_bytes(data: bytes, number: int, at: int, new: bytes) -> bytes:
    content = section(data, number)
    return files.with_section(data, number, content[:at] + new + content[at + len(new) :])


def refused(data: bytes, message: str, error: type[FormatError] = FormatError) -> None:
    for read in (read_zkey,) if error is InsecureKeyError else (read_zkey, read_zkey_header):
        with pytest.raises(error) as caught:
            read(data)
        assert str(caught.value).startswith(f"<bytes>: {message}")
        assert "\n" not in str(caught.value)


def expect_small_key(key: ProvingKey, data: bytes, curve: Curve) -> None:
    assert (key.curve, key.recipe, key.log_domain) == (curve, SNARKJS, 3)
    assert (key.generator, key.source, key.file_bytes) == (5, "<bytes>", len(data))
    for number, points in vectors(key).items():
        assert points.words.tobytes() == section(data, number), number
    assert [key.a.wires, key.b_g1.wires, key.b_g2.wires] == [range(5)] * 3
    assert key.l.wires == range(3, 5)
    vk = key.vk
    six = (vk.alpha_g1, key.beta_g1, vk.beta_g2, vk.gamma_g2, key.delta_g1, vk.delta_g2)
    header = b"".join(point.words.tobytes() for point in six)
    assert section(data, 2)[files.sizes(curve)[0] + 52 :] == header
    matrices = key.matrices
    assert matrices is not None
    assert (matrices.wires, matrices.public, matrices.constraints, matrices.c) == (5, 2, 3, None)
    wanted = [{w: c % curve.r for w, c in row} for row in files.A]
    assert rows(matrices.a) == [*wanted, {0: 1}, {1: 1}, {2: 1}]
    assert rows(matrices.b) == [dict(row) for row in files.B]


def test_a_key_is_its_sections(curve: Curve) -> None:
    data = files.zkey(curve)
    key = read_zkey(data)
    expect_small_key(key, data, curve)
    bound = section(data, 2) + section(data, 3)
    assert key.digest == hashlib.blake2b(bound, digest_size=32).hexdigest()
    coefficients = hashlib.blake2b(section(data, 4), digest_size=32).hexdigest()
    assert key.matrices is not None
    assert key.matrices.digest == coefficients


def test_e10_any_kind_of_input(curve: Curve, tmp_path: Path) -> None:
    data = files.zkey(curve)
    (tmp_path / "x.zkey").write_bytes(data)
    for what in (
        bytearray(data),
        memoryview(data),
        io.BytesIO(data),
        np.frombuffer(data, np.uint8),
    ):
        expect_small_key(read_zkey(what), data, curve)
    with (tmp_path / "x.zkey").open("rb") as file:
        key = read_zkey(file)
    assert key.source == "x.zkey"
    expect_small_key(replace(key, source="<bytes>"), data, curve)


def test_m11_no_second_copy_of_the_file(curve: Curve, tmp_path: Path) -> None:
    """Aligned sections are views, the others are copied once: far less than the file is allocated."""
    wires, size = 2**14, files.sizes(curve)[0]
    lengths = {
        5: 2 * wires * size,
        6: 2 * wires * size,
        7: 4 * wires * size,
        8: 2 * (wires - 3) * size,
    }
    contents = files.take_apart(counts(files.zkey(curve), curve, wires, 2, 8))
    sparse_file(tmp_path / "x", [(n, lengths.get(n, content)) for n, content in contents])
    tracemalloc.start()
    key = read_zkey(tmp_path / "x")
    for points in vectors(key).values():
        assert points.words.nbytes == len(points) * 8 * curve.point_words(points.group)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.75 * key.file_bytes


def test_coefficient_dictionary_begins_with_plus_and_minus_one(curve: Curve) -> None:
    key = read_zkey(files.zkey(curve))
    assert key.matrices is not None
    assert key.matrices.a.values.ints() == [1, curve.r - 1, 2, 5]
    assert key.matrices.a.values is key.matrices.b.values


def test_ceremony(curve: Curve) -> None:
    header = read_zkey_header(files.zkey(curve))
    assert header.ceremony is not None
    assert header.ceremony.circuit_hash == bytes(range(64, 128))
    (step,) = header.ceremony.contributions
    assert step.delta_after.affine() == header.delta_g1.affine()
    assert step.g2_spx.words.tobytes() == files.point(curve, "g2", 41)
    assert (step.transcript, step.kind, step.parameters) == (bytes(range(64)), 0, b"\x01\x03abc")
    assert contributor(step) == "abc"
    assert contributor(replace(step, parameters=b"\x02\x0a")) == ""
    assert header.warnings == ()
    assert (header.wires, header.public, header.log_domain, header.coefficients) == (5, 2, 3, 9)


@pytest.mark.parametrize("seed", range(4))
def test_f1_sections_in_any_order(curve: Curve, seed: int) -> None:
    sections = files.take_apart(files.zkey(curve))
    random.Random(seed).shuffle(sections)
    data = files.assemble("zkey", sections)
    expect_small_key(read_zkey(data), data, curve)


@pytest.mark.parametrize("seed", range(4))
def test_records_in_any_order(curve: Curve, seed: int) -> None:
    data = files.zkey(curve)
    content = section(data, 4)
    records = [content[i : i + 44] for i in range(4, len(content), 44)]
    random.Random(seed).shuffle(records)
    shuffled = files.with_section(data, 4, content[:4] + b"".join(records))
    expect_small_key(read_zkey(shuffled), shuffled, curve)


def test_f15_a_wire_twice_in_a_row_is_summed(curve: Curve) -> None:
    a = [[(3, 1)], [(4, 7), (0, 5), (3, -1), (4, -5)], []]
    data = files.with_section(files.zkey(curve), 4, files.coefficients(curve, a))
    key = read_zkey(data)
    assert key.matrices is not None
    assert key.matrices.a.terms == 8
    expect_small_key(key, data, curve)


def test_f2_without_a_ceremony_record(curve: Curve, tmp_path: Path) -> None:
    data = files.with_section(files.zkey(curve), 10, None)
    key = read_zkey(data)
    assert key.ceremony is None
    expect_small_key(key, data, curve)
    assert read_zkey_header(data).warnings == ("no record of contributions (section 10)",)
    write_zkey(tmp_path / "x", key)
    assert (tmp_path / "x").read_bytes() == data


def test_f3_cut_at_every_edge(curve: Curve) -> None:
    data = files.zkey(curve)
    middle = data.index(section(data, 9)) + 100
    ends = {3, middle, len(data) - 1, *range(7, len(data), 211)}
    ends |= {edge + step for edge in files.edges(data) for step in (-1, 0, 1)}
    for end in sorted(end for end in ends if 0 < end < len(data)):
        for read in (read_zkey, read_zkey_header):
            with pytest.raises(FormatError) as error:
                read(data[:end])
            assert str(error.value).startswith("<bytes>: "), end


@pytest.mark.parametrize(("protocol", "name"), [(2, "plonk"), (10, "fflonk"), (7, "number 7")])
def test_f6_other_protocols_are_refused_by_name(protocol: int, name: str) -> None:
    data = files.with_section(files.zkey(BN254), 1, struct.pack("<I", protocol))
    refused(data, f"section 1 (protocol): protocol is {name}, only groth16 is supported")


@pytest.mark.parametrize("name", ["plonk", "fflonk"])
def test_f6_real_keys_of_other_protocols(fixtures: Path, name: str) -> None:
    with pytest.raises(FormatError, match=f"protocol is {name}, only groth16 is supported$"):
        read_zkey(fixtures / "snarkjs" / f"{name}_circuit.zkey")


def test_f18_duplicate_and_missing_sections(curve: Curve) -> None:
    data = files.zkey(curve)
    sections = files.take_apart(data)
    for number in range(1, 11):
        twice = files.assemble("zkey", [*sections, (number, section(data, number))])
        refused(twice, f"expected each section once, found duplicate section {number}")
        if number < 10:
            refused(files.with_section(data, number, None), f"section {number} (")


def test_f19_version_2_is_refused() -> None:
    sections = files.take_apart(files.zkey(BN254))
    refused(files.assemble("zkey", sections, 2), "expected version 1 of .zkey, found 2")


@pytest.mark.parametrize("number", range(1, 11))
@pytest.mark.parametrize("change", [-1, 1])
def test_f24_every_section_is_as_long_as_its_content_needs(curve: Curve, number: int, change: int) -> None:  # fmt: skip
    data = files.zkey(curve)
    content = section(data, number)
    altered = content[:-1] if change < 0 else content + b"\0"
    with pytest.raises(FormatError, match=rf"^<bytes>: section {number} \(.*\): expected .* bytes") as error:  # fmt: skip
        read_zkey(files.with_section(data, number, altered))
    assert str(len(altered)) in str(error.value) or "bytes of" in str(error.value)


def test_f24_header_one_byte_longer(curve: Curve) -> None:
    data = files.zkey(curve)
    size = {"bn254": 660, "bls12_381": 964}[curve.name]
    refused(
        files.with_section(data, 2, section(data, 2) + b"\0"),
        f"section 2 (header): expected {size} bytes, found {size + 1}",
    )


def counts(data: bytes, curve: Curve, *numbers: int) -> bytes:
    return with_bytes(data, 2, files.sizes(curve)[0] + 40, struct.pack("<III", *numbers))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((2, 2, 8), "section 2 (header): expected more than 2 wires for 2 public signals, found 2"),
        ((2**32 - 1, 2, 8), "section 5 (A): expected 4294967295 points"),
        ((6, 2, 8), "section 5 (A): expected 6 points"),
        ((5, 1, 8), "section 3 (IC): expected 2 points"),
        ((5, 2, 0), "section 2 (header): expected a domain of a power of two, at most 2^"),
        ((5, 2, 12), "section 2 (header): expected a domain of a power of two, at most 2^"),
        ((5, 2, 16), "section 9 (H): expected 16 points"),
        ((5, 2, 4), "section 9 (H): expected 4 points"),
        ((5, 2, 2**28), "section 9 (H): expected 268435456 points"),
    ],
)
def test_counts_that_do_not_fit(curve: Curve, numbers: tuple[int, ...], message: str) -> None:
    refused(counts(files.zkey(curve), curve, *numbers), message)


def test_domains_end_at_the_two_adicity() -> None:
    refused(counts(files.zkey(BN254), BN254, 5, 2, 2**29), "section 2 (header): expected a domain of a power of two, at most 2^28, found 536870912")  # fmt: skip


def test_primes_of_two_curves_are_refused() -> None:
    header = files.prime(BN254.p, 32) + files.prime(BLS12_381.r, 32)
    refused(
        with_bytes(files.zkey(BN254), 2, 0, header),
        "section 2 (header): expected the scalar field of BN254, found that of BLS12-381",
    )


# coefficients


def with_records(curve: Curve, records: list[tuple[int, int, int, int]]) -> bytes:
    return files.with_section(files.zkey(curve), 4, files.pack_records(curve, records))


PUBLIC_ROWS = [(0, 3, 0, 1), (0, 4, 1, 1), (0, 5, 2, 1)]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ((2, 0, 0, 1), "record 0 to have a matrix below 2, found 2"),
        ((0, 8, 0, 1), "record 0 to have a row below 8, found 8"),
        ((1, 2**32 - 1, 0, 1), "record 0 to have a row below 8, found 4294967295"),
        ((1, 0, 5, 1), "record 0 to have a wire below 5, found 5"),
        ((1, 3, 0, 1), "rows of B below 3, the first of A's 3 public rows, found 3"),
        ((0, 6, 0, 1), "A's last 3 rows to hold wires 0 to 2"),
        ((0, 4, 0, 1), "A's last 3 rows to hold wires 0 to 2"),
    ],
)
def test_records_that_do_not_fit(curve: Curve, record: Any, message: str) -> None:
    data = with_records(curve, [record, *PUBLIC_ROWS])
    with pytest.raises(FormatError) as error:
        read_zkey(data)
    assert str(error.value).startswith(f"<bytes>: section 4 (coefficients): expected {message}")


@pytest.mark.parametrize(
    "records",
    [[], PUBLIC_ROWS[:2], [(0, 3, 0, 1), (0, 4, 1, 1), (0, 5, 3, 1)],
     [(0, 3, 0, 1), (0, 4, 1, 2), (0, 5, 2, 1)], [(0, 0, 0, 1), (0, 1, 1, 1)]],
)  # fmt: skip
def test_public_rows_must_bind_the_public_signals(curve: Curve, records: Any) -> None:
    with pytest.raises(FormatError, match=r"section 4 \(coefficients\): expected"):
        read_zkey(with_records(curve, records))


def test_c3_no_constraints_but_the_public_rows(curve: Curve) -> None:
    key = read_zkey(with_records(curve, [(0, 0, 0, 1), (0, 1, 1, 1), (0, 2, 2, 1)]))
    assert key.matrices is not None
    assert (key.matrices.constraints, key.matrices.b.rows, key.matrices.b.terms) == (0, 0, 0)


def test_coefficients_are_below_r(curve: Curve) -> None:
    data = with_bytes(files.zkey(curve), 4, 4 + 12, curve.r.to_bytes(32, "little"))
    with pytest.raises(FormatError) as error:
        read_zkey(data)
    assert str(error.value).startswith("<bytes>: section 4 (coefficients): coefficient ")
    assert f"found {curve.r:#x}" in str(error.value)


@pytest.mark.parametrize("count", [0, 8, 10, 2**32 - 1])
def test_record_counts_are_those_of_the_section(curve: Curve, count: int) -> None:
    data = with_bytes(files.zkey(curve), 4, 0, struct.pack("<I", count))
    with pytest.raises(FormatError, match=rf"expected a count and {count} records of 44 bytes"):
        read_zkey(data)


# keys that prove nothing


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


def sparse_file(path: Path, sections: list[tuple[int, bytes | int]]) -> None:
    """A file with holes: an integer in place of content is so many zero bytes."""
    with path.open("wb") as file:
        file.write(b"zkey" + struct.pack("<II", 1, len(sections)))
        for number, content in sections:
            length = content if isinstance(content, int) else len(content)
            file.write(struct.pack("<IQ", number, length))
            if isinstance(content, int):
                file.seek(content, 1)
            else:
                file.write(content)
        file.truncate(file.tell())


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

REAL = {
    "co-snarks/bls12_381/kyc/kyc.zkey": (17, 4, 11, 16, 1),
    "co-snarks/bls12_381/multiplier2/circuit.zkey": (4, 1, 1, 4, 1),
    "co-snarks/bls12_381/poseidon/circuit.zkey": (215, 1, 213, 256, 1),
    "co-snarks/bn254/kyc/kyc.zkey": (17, 4, 11, 16, 1),
    "co-snarks/bn254/multiplier2/circuit.zkey": (4, 1, 1, 4, 1),
    "co-snarks/bn254/poseidon/circuit.zkey": (215, 1, 213, 256, 0),
    "co-snarks/bn254/sum_arrays/sum_arrays.zkey": (7, 6, 0, 8, 1),
    "groth16-zorch/multiplier_3.zkey": (6, 1, 2, 4, 1),
    "mopro/multiplier2_bls_final.zkey": (4, 1, 1, 4, 0),
    "rapidsnark/circuit_final.zkey": (1003, 1, 1000, 1024, 3),
}
INSECURE = ("co-snarks/bn254/poseidon/circuit.zkey", "mopro/multiplier2_bls_final.zkey")


@pytest.mark.parametrize("name", REAL)
def test_real_keys(fixtures: Path, tmp_path: Path, name: str) -> None:
    data = (fixtures / name).read_bytes()
    key = read_zkey(fixtures / name, insecure_key=name in INSECURE)
    matrices, ceremony = key.matrices, key.ceremony
    assert matrices is not None
    assert ceremony is not None
    assert (matrices.wires, matrices.public, matrices.constraints, 1 << key.log_domain, len(ceremony.contributions)) == REAL[name]  # fmt: skip
    size = files.sizes(key.curve)[0]
    assert struct.unpack_from("<III", section(data, 2), size + 40) == (REAL[name][0], REAL[name][1], REAL[name][3])  # fmt: skip
    assert matrices.log_domain == key.log_domain
    assert check_zkey_points(key) is None
    for number, points in vectors(key).items():
        assert points.words.tobytes() == section(data, number)
    write_zkey(tmp_path / "x", key)
    written = files.take_apart((tmp_path / "x").read_bytes())
    assert written == sorted(files.take_apart(data))
    if name not in INSECURE:  # those two have their sections in another order
        assert (tmp_path / "x").read_bytes() == data


@pytest.mark.parametrize("name", INSECURE)
def test_v9_real_keys_without_contribution(fixtures: Path, name: str) -> None:
    with pytest.raises(
        InsecureKeyError, match="expected secrets that nobody knows, found delta = gamma"
    ):
        read_zkey(fixtures / name)


@pytest.mark.parametrize("name", [n for n in REAL if n.startswith("co-snarks")])
def test_real_keys_hold_the_matrices_of_their_circuits(fixtures: Path, name: str) -> None:
    key = read_zkey(fixtures / name, insecure_key=True)
    (circuit,) = (fixtures / name).parent.glob("*.r1cs")
    wanted, found = read_r1cs(circuit), key.matrices
    assert found is not None
    assert (found.wires, found.public, found.constraints) == (wanted.wires, wanted.public, wanted.constraints)  # fmt: skip
    assert rows(found.a) == rows(wanted.a)
    assert rows(found.b) == rows(wanted.b)


@pytest.mark.parametrize("name", [n for n in REAL if n.startswith(("co-snarks", "rapidsnark"))])
def test_real_keys_hold_their_verification_keys(fixtures: Path, name: str) -> None:
    vk = read_zkey(fixtures / name, insecure_key=True).vk
    (path,) = (fixtures / name).parent.glob("verification_key.json")
    published = json.loads(path.read_text())

    def coordinates(point: list[Any]) -> tuple[int, ...]:
        flat = [c for pair in point[:2] for c in (pair if isinstance(pair, list) else [pair])]
        return tuple(int(c) for c in flat)

    wanted = {"vk_alpha_1": vk.alpha_g1, "vk_beta_2": vk.beta_g2, "vk_gamma_2": vk.gamma_g2, "vk_delta_2": vk.delta_g2}  # fmt: skip
    for field, points in wanted.items():
        assert points.affine() == coordinates(published[field]), field
    assert [vk.ic.affine(i) for i in range(len(vk.ic))] == [coordinates(p) for p in published["IC"]]
    assert vk.public == published["nPublic"]


def test_c2_real_key_with_every_b_at_infinity(fixtures: Path) -> None:
    key = read_zkey(fixtures / "co-snarks/bn254/sum_arrays/sum_arrays.zkey")
    assert key.b_g1.points.is_infinity().all()
    assert key.b_g2.points.is_infinity().all()
    assert len(key.l.points) == 0
    assert key.l.wires == range(7, 7)


# writing


def test_written_keys_read_the_same(tmp_path: Path) -> None:
    for name in files.LIBRARY:
        data = files.zkey(CURVES[name])
        write_zkey(tmp_path / "x", read_zkey(data))
        assert (tmp_path / "x").read_bytes() == data


def test_a_key_may_be_written_over_itself(curve: Curve, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(files.zkey(curve))
    write_zkey(tmp_path / "x", read_zkey(tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == files.zkey(curve)


def test_points_left_out_are_written_as_infinity(curve: Curve, tmp_path: Path) -> None:
    data = files.zkey(curve)
    key = read_zkey(data)
    wires = np.array([1, 2, 3, 4], dtype=np.uint32)
    sparse = replace(
        key, b_g1=Query(key.b_g1.points[1:], wires), b_g2=Query(key.b_g2.points[1:], wires)
    )
    write_zkey(tmp_path / "x", sparse)
    assert (tmp_path / "x").read_bytes() == data


def test_keys_of_another_kind_are_not_written(tmp_path: Path) -> None:
    key = read_zkey(files.zkey(BLS12_381))
    for other in (
        replace(key, recipe=BELLMAN),
        replace(key, matrices=None),
        replace(key, generator=7),
    ):
        with pytest.raises(FormatError, match="expected a key with snarkjs' H and its matrices"):
            write_zkey(tmp_path / "x", other)
    assert not list(tmp_path.iterdir())


def test_alpha_is_the_number_the_file_says() -> None:
    vk = read_zkey(files.zkey(BN254)).vk
    x = int.from_bytes(files.point(BN254, "g1", 17)[:32], "little")
    assert vk.alpha_g1.affine()[0] == from_montgomery(x, BN254.p, 4)  # type: ignore[index]
