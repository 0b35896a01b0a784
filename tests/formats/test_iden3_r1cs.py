import hashlib
import struct
from itertools import product
from pathlib import Path

import iden3_files as files
import pytest
from iden3_files import rows

from cuzk.curves import BN254, CURVES, Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.r1cs import read_r1cs, read_r1cs_header, write_r1cs
from cuzk.formats.iden3.wtns import read_wtns
from cuzk.r1cs import Matrices

Row = list[tuple[int, int]]


def satisfied(matrices: Matrices, w: list[int]) -> bool:
    """(A w)(B w) = C w in Python integers."""
    assert matrices.c is not None
    r = matrices.curve.r
    sums = [[sum(c * w[i] for i, c in row.items()) % r for row in rows(m)] for m in (matrices.a, matrices.b, matrices.c)]  # fmt: skip
    return all(
        a * b % r == c for a, b, c in zip(*(s[: matrices.constraints] for s in sums), strict=True)
    )


def refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        read_r1cs(data)
    assert str(error.value).startswith(f"<bytes>: section {message}")
    assert "\n" not in str(error.value)


def test_f15_terms_are_read_as_written_and_public_rows_added(curve: Curve) -> None:
    matrices = read_r1cs(files.r1cs(curve))
    assert (matrices.curve, matrices.wires, matrices.public, matrices.constraints) == (
        curve,
        5,
        2,
        3,
    )
    wanted = [{w: c % curve.r for w, c in row} for row in files.A]
    assert rows(matrices.a) == [*wanted, {0: 1}, {1: 1}, {2: 1}]
    assert rows(matrices.b) == [{w: c for w, c in row} for row in files.B]
    assert matrices.c is not None
    assert rows(matrices.c) == [{w: c for w, c in row} for row in files.C]
    assert [wire for _, wire in matrices.a.row(1)] == [4, 3, 0]
    assert matrices.log_domain == 3
    assert satisfied(matrices, files.WITNESS)
    assert not satisfied(matrices, [1, 140, 7, 4, 9])
    content = dict(files.take_apart(files.r1cs(curve)))[2]
    assert matrices.digest == hashlib.blake2b(content, digest_size=32).hexdigest()


def test_f15_a_wire_twice_and_wires_unsorted_are_summed(curve: Curve) -> None:
    r = curve.r
    terms = [(3, 2), (0, 1), (3, 3), (1, r - 1), (3, r - 4)]
    content = struct.pack("<I", 5) + b"".join(
        struct.pack("<I", w) + c.to_bytes(32, "little") for w, c in terms
    )
    header = files.prime(r, 32) + struct.pack("<IIIIQI", 5, 1, 1, 1, 5, 1)
    data = files.assemble("r1cs", [(1, header), (2, content + bytes(8)), (3, bytes(40))])
    assert rows(read_r1cs(data).a)[0] == {3: 1, 0: 1, 1: r - 1}


def test_header(curve: Curve) -> None:
    header = read_r1cs_header(files.r1cs(curve) + b"tail")
    assert (header.curve, header.wires, header.constraints) == (curve, 5, 3)
    assert (header.outputs, header.public_inputs, header.private_inputs) == (1, 1, 1)
    assert (header.public, header.labels, header.custom_gates) == (2, 5, ())
    assert header.warnings == ("4 bytes after the last section",)
    assert header.digest == read_r1cs(files.r1cs(curve)).digest


FIXTURES = {
    "circom-compat/complex-circuit-10000-10000.r1cs": (10002, 1, 10000),
    "co-snarks/bls12_381/kyc/kyc.r1cs": (17, 4, 11),
    "co-snarks/bls12_381/multiplier2/circuit.r1cs": (4, 1, 1),
    "co-snarks/bls12_381/poseidon/circuit.r1cs": (215, 1, 213),
    "co-snarks/bn254/kyc/kyc.r1cs": (17, 4, 11),
    "co-snarks/bn254/multiplier2/circuit.r1cs": (4, 1, 1),
    "co-snarks/bn254/poseidon/circuit.r1cs": (215, 1, 213),
    "co-snarks/bn254/sum_arrays/sum_arrays.r1cs": (7, 6, 0),
    "snarkjs/groth16_circuit.r1cs": (1003, 2, 1000),
}


@pytest.mark.parametrize("name", FIXTURES)
def test_real_circuits_read_and_written(fixtures: Path, tmp_path: Path, name: str) -> None:
    path = fixtures / name
    sections = dict(files.take_apart(path.read_bytes()))
    counts = struct.unpack_from("<IIIIQI", sections[1], 36)
    matrices, header = read_r1cs(path), read_r1cs_header(path)
    assert (matrices.wires, matrices.public, matrices.constraints) == FIXTURES[name]
    assert (counts[0], counts[1] + counts[2], counts[5]) == FIXTURES[name]
    assert (header.outputs, header.public_inputs, header.private_inputs, header.labels) == counts[
        1:5
    ]
    assert matrices.curve.name == ("bls12_381" if "bls12_381" in name else "bn254")
    assert (matrices.a.rows, matrices.b.rows) == (matrices.rows, matrices.constraints)
    write_r1cs(tmp_path / "x", matrices, outputs=counts[1], private_inputs=counts[3])
    again = dict(files.take_apart((tmp_path / "x").read_bytes()))
    assert again[2] == sections[2]
    assert again[1][:52] == sections[1][:52]  # all but the number of labels


@pytest.mark.parametrize(
    "folder",
    ["co-snarks/bls12_381/multiplier2", "co-snarks/bn254/multiplier2", "co-snarks/bls12_381/poseidon",
     "co-snarks/bn254/poseidon", "co-snarks/bls12_381/kyc", "snarkjs"],
)  # fmt: skip
def test_real_witnesses_satisfy_real_circuits(fixtures: Path, folder: str) -> None:
    (circuit,) = (fixtures / folder).glob("*.r1cs")
    (witness,) = (fixtures / folder).glob("*.wtns")
    w = read_wtns(witness).ints()
    assert satisfied(read_r1cs(circuit), w)
    w[-1] += 1
    assert not satisfied(read_r1cs(circuit), w)


def test_every_cut_is_refused(curve: Curve) -> None:
    data = files.r1cs(curve)
    for end in range(1, len(data)):
        with pytest.raises(FormatError):
            read_r1cs(data[:end])


def test_f1_sections_in_any_order(curve: Curve) -> None:
    sections = files.take_apart(files.r1cs(curve))
    digest = read_r1cs(files.r1cs(curve)).digest
    for order in product(range(3), repeat=3):
        if len(set(order)) == 3:
            data = files.assemble("r1cs", [sections[i] for i in order])
            assert read_r1cs(data).digest == digest


def test_f18_f19_duplicates_and_versions() -> None:
    data = files.r1cs(BN254)
    sections = files.take_apart(data)
    for number in (1, 2, 3):
        twice = [*sections, (number, dict(sections)[number])]
        with pytest.raises(FormatError, match=f"duplicate section {number}$"):
            read_r1cs(files.assemble("r1cs", twice))
        refused(files.with_section(data, number, None), f"{number} (")
    with pytest.raises(FormatError, match=r"expected version 1 of \.r1cs, found 2"):
        read_r1cs(files.assemble("r1cs", sections, 2))


def test_f24_the_header_is_exactly_as_long_as_its_content(curve: Curve) -> None:
    data = files.r1cs(curve)
    header = dict(files.take_apart(data))[1]
    refused(files.with_section(data, 1, header + b"\0"), "1 (header): expected 64 bytes, found 65")
    refused(files.with_section(data, 1, header[:-1]), "1 (header): expected 4 bytes of constraints at offset 60, found 3")  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((2, 1, 1, 1, 5, 3), "1 (header): expected at least 3 wires for 1 outputs and 1 public inputs, found 2"),
        ((0, 0, 0, 0, 5, 3), "1 (header): expected at least 1 wires"),
        ((6, 1, 1, 1, 5, 3), "3 (wire labels): expected 6 labels of 8 bytes = 48 bytes, found 40"),
        ((2**32 - 1, 1, 1, 1, 5, 3), "3 (wire labels): expected 4294967295 labels of 8 bytes = 34359738360"),
        ((5, 2**32 - 1, 2**32 - 1, 1, 5, 3), "1 (header): expected at least 8589934591 wires"),
        ((5, 1, 1, 1, 5, 2**32 - 1), "2 (constraints): expected at least 51539607540 bytes for 4294967295 constraints"),
        ((5, 1, 1, 1, 5, 4), "2 (constraints): constraint 3, A: "),
        ((5, 1, 1, 1, 5, 2), "2 (constraints): 2 constraints end at byte"),
    ],
)  # fmt: skip
def test_counts_that_do_not_fit(counts: tuple[int, ...], message: str) -> None:
    data = files.r1cs(BN254)
    header = files.prime(BN254.r, 32) + struct.pack("<IIIIQI", *counts)
    refused(files.with_section(data, 1, header), message)


def test_terms_that_do_not_fit(curve: Curve) -> None:
    data = files.r1cs(curve)
    content = dict(files.take_apart(data))[2]
    many = struct.pack("<I", 2**32 - 1) + content[4:]
    refused(files.with_section(data, 2, many), "2 (constraints): constraint 0, A: 4294967295 terms")
    wire = content[:4] + struct.pack("<I", 5) + content[8:]
    refused(files.with_section(data, 2, wire), "2 (constraints): constraint 0, A: wire 5 of 5")
    big = content[:8] + curve.r.to_bytes(32, "little") + content[40:]
    refused(files.with_section(data, 2, big), "2 (constraints): constraint 0, A: coefficient of wire 3 is not below the prime")  # fmt: skip


GATES = struct.pack("<I", 2) + b"CMul\0" + struct.pack("<I", 1) + bytes(32) + b"EdDSA\0" + bytes(4)
USES = struct.pack("<III", 1, 0, 0)


def test_f12_custom_gates_are_listed_and_refused(curve: Curve) -> None:
    sections = files.take_apart(files.r1cs(curve))
    header = read_r1cs_header(files.assemble("r1cs", [*sections, (4, GATES), (5, USES)]))
    assert (header.custom_gates, header.custom_gate_uses) == (("CMul", "EdDSA"), 1)
    for extra in ([(4, GATES), (5, USES)], [(4, GATES)], [(5, USES)]):
        with pytest.raises(
            FormatError, match=r"section 4 \(custom gates\): expected none, found"
        ) as error:
            read_r1cs(files.assemble("r1cs", [*sections, *extra]))
        assert "groth16 has none" in str(error.value)


@pytest.mark.parametrize("empty", [b"", bytes(4)])
def test_f12_empty_custom_gate_sections_are_fine(curve: Curve, empty: bytes) -> None:
    sections = files.take_apart(files.r1cs(curve))
    data = files.assemble("r1cs", [*sections, (4, empty), (5, empty)])
    assert read_r1cs(data).constraints == 3
    assert read_r1cs_header(data).custom_gates == ()


@pytest.mark.parametrize("cut", range(1, len(GATES)))
def test_f12_cut_gate_lists_are_refused(cut: int) -> None:
    data = files.assemble("r1cs", [*files.take_apart(files.r1cs(BN254)), (4, GATES[:cut])])
    refused(data, "4 (custom gates): expected ")


def test_c3_no_constraints_at_all(curve: Curve) -> None:
    header = files.prime(curve.r, 32) + struct.pack("<IIIIQI", 1, 0, 0, 0, 1, 0)
    matrices = read_r1cs(files.assemble("r1cs", [(1, header), (2, b""), (3, bytes(8))]))
    assert (matrices.constraints, matrices.rows, matrices.log_domain) == (0, 1, 0)
    assert rows(matrices.a) == [{0: 1}]


def test_c7_many_public_signals(curve: Curve) -> None:
    wires = 100_001
    header = files.prime(curve.r, 32) + struct.pack("<IIIIQI", wires, wires - 1, 0, 0, wires, 0)
    data = files.assemble("r1cs", [(1, header), (2, b""), (3, bytes(8 * wires))])
    a = read_r1cs(data).a
    assert a.row_ptr.tolist() == list(range(wires + 1))
    assert a.wires.tolist() == list(range(wires))


def test_a_circuit_without_c_is_not_written(tmp_path: Path) -> None:
    from dataclasses import replace

    matrices = replace(read_r1cs(files.r1cs(BN254)), c=None)
    with pytest.raises(FormatError, match="expected a circuit with its matrix C"):
        write_r1cs(tmp_path / "x", matrices)


def test_written_circuits_read_the_same(tmp_path: Path) -> None:
    for name in files.LIBRARY:
        curve = CURVES[name]
        write_r1cs(tmp_path / "x", read_r1cs(files.r1cs(curve)), outputs=1, private_inputs=1)
        assert (tmp_path / "x").read_bytes() == files.r1cs(curve)
