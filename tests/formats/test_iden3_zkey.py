import hashlib
import io
import random
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import iden3_files as files
import numpy as np
import pytest
from iden3_files import rows
from zkey_parts import counts, refused, section, sparse_file, vectors, with_bytes

from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.ceremony import contributor
from cuzk.formats.iden3.zkey import read_zkey, read_zkey_header
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import SNARKJS, ProvingKey


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
