"""bellman's .vk, .params and proof bytes: zcash's real parameters, Filecoin's real keys, and keys made here."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from py_ecc.bls.point_compression import decompress_G1, decompress_G2
from py_ecc.bls.typing import G1Compressed, G2Compressed
from py_ecc.optimized_bls12_381.optimized_curve import normalize

from circuits import cubic
from cuzk.curves import BLS12_381, BN254
from cuzk.errors import CircuitError, FormatError
from cuzk.formats import bellman
from cuzk.formats.source import Source
from cuzk.groth16 import BELLMAN, SNARKJS, Proof, ProvingKey, VerifyingKey
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.vectors import Points, Scalars
from reference_setup import key_from

SAPLING = {"ic": 6, "h": 8191, "l": 7821, "a": 6298, "b_g1": 4850, "b_g2": 4850}
CEREMONY_BYTES = 52_836
V27_SEAL_VK_DIGEST = "7a139d82b8a02e35279d657e197f5c1f"  # Filecoin's published parameters list, v27


@pytest.fixture(scope="module")
def key() -> ProvingKey:
    return key_from(cubic(BLS12_381).matrices(), recipe=BELLMAN)


@pytest.fixture(scope="module")
def params(key: ProvingKey) -> bytes:
    return b"".join(bellman.params_chunks(key))


@pytest.fixture
def sapling(fixtures: Path) -> Source:
    return Source.open(fixtures / "zcash/sapling-output.params")


def refusal(data: bytes) -> str:
    """The one line that both the layout and the vk reader give."""
    with pytest.raises(FormatError) as caught:
        bellman.read_params_layout(Source.open(data))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def diagonal(wires: list[int], rows: int) -> SparseMatrix:
    """One term 1 * w[wires[i]] in row i, empty rows after."""
    ends = np.minimum(np.arange(rows + 1), len(wires)).astype(np.uint64)
    ones = np.zeros(len(wires), dtype=np.uint32)
    values = Scalars.from_ints(BLS12_381, [1, -1], montgomery=True)
    return SparseMatrix(ends, np.array(wires, dtype=np.uint32), ones, values)


def shaped_like_sapling() -> Matrices:
    """No circuit of zcash's, but one with its counts: which columns of A and B hold a term."""
    constraints, public, wires = 7827, 5, 7827
    a = diagonal(list(range(SAPLING["a"])), constraints + public + 1)
    b = diagonal([0, *range(wires - SAPLING["b_g1"] + 1, wires)], constraints)
    return Matrices(BLS12_381, wires, public, constraints, a, b, None, digest="ab" * 32)


# Real keys


def test_l3_sapling_layout_and_trailing_bytes(sapling: Source) -> None:
    layout = bellman.read_params_layout(sapling)
    counts = {"ic": layout.ic.count, **{n: s.count for n, s in layout.vectors.items()}}
    assert counts == SAPLING
    assert layout.trailing_bytes == CEREMONY_BYTES
    assert layout.warnings() == [
        "sapling-output.params: 52836 bytes follow the last point (a ceremony record?): not read"
    ]


def test_l3_sapling_params_load_and_round_trip(sapling: Source) -> None:
    key = bellman.read_params(sapling, shaped_like_sapling())
    assert b"".join(bellman.params_chunks(key)) == sapling.data[:-CEREMONY_BYTES].tobytes()
    assert (key.recipe, key.log_domain, key.generator) == (BELLMAN, 13, 7)
    assert key.l.wires == range(6, 7827)
    assert not isinstance(key.b_g2.wires, range)
    assert key.b_g2.wires.tolist() == [0, *range(2978, 7827)]
    assert key.file_bytes == 3_592_860


def test_sapling_key_points_equal_py_eccs_reading(sapling: Source) -> None:
    vk = bellman.read_vk(sapling)
    raw = sapling.data.tobytes()

    def number(offset: int) -> int:
        return int.from_bytes(raw[offset : offset + 48], "big")

    assert vk.alpha_g1.affine() == (number(0), number(48))
    assert vk.beta_g2.affine() == (number(240), number(192), number(336), number(288))  # c1 first
    assert vk.ic.affine(5) == (number(868 + 5 * 96), number(868 + 5 * 96 + 48))
    assert vk.public == 5


def test_full_check_of_real_points(sapling: Source) -> None:
    bellman.read_params(sapling, shaped_like_sapling(), full=True)


def test_points_are_converted_in_pieces_whose_pages_are_given_back(
    sapling: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same points; every byte of the vectors is let go of; a wrong point has its number in the vector."""
    whole = bellman.read_params(sapling, shaped_like_sapling())
    forgotten: list[tuple[int, int]] = []
    monkeypatch.setattr(bellman, "CONVERTED_AT_ONCE", 1000)
    monkeypatch.setattr(Source, "forget", lambda _, offset, size: forgotten.append((offset, size)))
    pieces = bellman.read_params(sapling, shaped_like_sapling())
    for name in ("a", "b_g1", "b_g2", "l"):
        ours, theirs = getattr(pieces, name).points, getattr(whole, name).points
        assert (ours.group, ours.words.tobytes()) == (theirs.group, theirs.words.tobytes())
        assert not ours.words.flags.writeable
    assert pieces.h.words.tobytes() == whole.h.words.tobytes()
    layout = bellman.read_params_layout(sapling)
    for section in layout.vectors.values():
        found = [each for each in forgotten if section.offset <= each[0] < section.end]
        assert [begin for begin, _ in found] == [section.offset, *map(sum, found[:-1])]
        assert sum(found[-1]) == section.end
        assert len(found) == -(-section.count // 1000)
    at = layout.vectors["a"].offset + 96 * 2345
    damaged = changed(sapling.data.tobytes(), at, b"\x1f" + b"\xff" * 47)
    with pytest.raises(FormatError, match=r"a: g1 point 2345: "):
        bellman.read_params(damaged, shaped_like_sapling())


def test_filecoin_digest_rule(fixtures: Path) -> None:
    data = (fixtures / "filecoin/seal32_x10.prf").read_bytes()
    vk = data[16 : 16 + 864 + 4 + 96 * 328]
    assert bellman.key_digest(vk) == V27_SEAL_VK_DIGEST
    assert bellman.read_vk(vk).public == 327
    published = json.loads((fixtures / "filecoin/parameters.json").read_bytes())
    assert {len(entry["digest"]) for entry in published.values()} == {len(V27_SEAL_VK_DIGEST)}


def test_l2_one_flipped_byte_changes_the_digest(fixtures: Path, params: bytes) -> None:
    sapling = (fixtures / "zcash/sapling-output.params").read_bytes()
    for data in (params, sapling):
        digests = {bellman.key_digest(data)}
        for at in (0, len(data) // 2, len(data) - 1):
            flipped = bytearray(data)
            flipped[at] ^= 1
            digests.add(bellman.key_digest(bytes(flipped)))
        assert len(digests) == 4


def test_digest_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 5
    whole = bellman.key_digest(data)
    monkeypatch.setattr(bellman, "HASHED_AT_ONCE", 7)
    assert bellman.key_digest(data) == whole
    assert bellman.key_digest(np.frombuffer(data, dtype=np.uint8)) == whole


# Keys made here


def test_key_round_trip(key: ProvingKey, params: bytes) -> None:
    assert key.matrices is not None
    again = bellman.read_params(Source.open(params), key.matrices, full=True)
    for name in ("a", "b_g1", "b_g2", "l"):
        before, after = getattr(key, name), getattr(again, name)
        assert np.array_equal(before.points.words, after.points.words)
        assert list(before.wires) == list(after.wires)
    for name in ("h", "beta_g1", "delta_g1"):
        assert np.array_equal(getattr(key, name).words, getattr(again, name).words)
    for name in ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2", "ic"):
        assert np.array_equal(getattr(key.vk, name).words, getattr(again.vk, name).words)
    assert (again.log_domain, again.generator) == (key.log_domain, 7)
    assert len(again.digest) == 64


def test_vk_file_is_the_head_of_the_params_file(
    key: ProvingKey, params: bytes, tmp_path: Path
) -> None:
    bellman.write_vk(tmp_path / "key.vk", key)
    bellman.write_params(tmp_path / "key.params", key)
    head = (tmp_path / "key.vk").read_bytes()
    assert (tmp_path / "key.params").read_bytes() == params
    assert params.startswith(head)
    from_vk, from_params = bellman.read_vk(tmp_path / "key.vk"), bellman.read_vk(params)
    assert np.array_equal(from_vk.ic.words, from_params.ic.words)
    assert np.array_equal(from_vk.ic.words, key.vk.ic.words)


def test_only_bellman_keys_on_bls12_381_can_be_written(key: ProvingKey) -> None:
    with pytest.raises(FormatError, match="made for snarkjs"):
        list(bellman.params_chunks(dataclasses.replace(key, recipe=SNARKJS)))
    g1 = Points.from_affine(BN254, "g1", [BN254.g1])
    g2 = Points.from_affine(BN254, "g2", [BN254.g2])
    vk = VerifyingKey(BN254, g1, g2, g2, g2, g1)
    with pytest.raises(FormatError, match="expected a key on BLS12-381, found one on BN254"):
        bellman.vk_bytes(vk, g1, g1)
    with pytest.raises(FormatError, match="expected a proof on BLS12-381"):
        bellman.write_proof_bytes(Proof(g1, g2, g1))


def test_infinity_is_not_written(key: ProvingKey) -> None:
    words = key.h.words.copy()
    words[1] = 0
    holed = dataclasses.replace(key, h=Points(BLS12_381, "g1", words))
    with pytest.raises(FormatError, match="h: point 1: expected a point other than infinity"):
        list(bellman.params_chunks(holed))


# Damage


def test_l1_cut_files(params: bytes) -> None:
    assert "no bytes" in refusal(b"")
    assert "expected the 864 bytes from alpha_g1 to delta_g2, found 863" in refusal(params[:863])
    assert "ic: expected a count of four bytes at offset 864" in refusal(params[:866])
    assert "the file is cut short or the count is wrong" in refusal(params[: len(params) // 2])
    assert "b_g2" in refusal(params[:-1])
    head = 868 + 96 * 2
    assert "h: expected a count of four bytes" in refusal(params[:head])  # a .vk is no .params
    assert bellman.read_vk(params[:head]).public == 1
    for length in range(1, len(params), 61):
        refusal(params[:length])


def test_l1_cut_sapling_file(sapling: Source) -> None:
    half = sapling.data[: sapling.size // 2].tobytes()
    assert "a: expected 6298 points (604608 bytes), found" in refusal(half)
    with pytest.raises(FormatError, match="a: expected 6298 points"):
        bellman.read_vk(half)
    with pytest.raises(FormatError, match="a: expected 6298 points"):
        bellman.read_params(Source.open(half), shaped_like_sapling())


@pytest.mark.parametrize("section", ["ic", "h", "l", "a", "b_g1", "b_g2"])
@pytest.mark.parametrize("count", [0xFFFFFFFF, 0x80000000, 0x02AAAAAB, 10_000])
def test_l5_counts_beyond_the_file(params: bytes, section: str, count: int) -> None:
    layout = bellman.read_params_layout(Source.open(params))
    found = layout.ic if section == "ic" else layout.vectors[section]
    broken = bytearray(params)
    broken[found.offset - 4 : found.offset] = count.to_bytes(4, "big")
    assert f"{section}: expected {count} points" in refusal(bytes(broken))


def test_no_ic_point(params: bytes) -> None:
    assert "ic: expected at least one point" in refusal(params[:864] + bytes(4) + params[868:])


def test_b_vectors_of_different_length(params: bytes) -> None:
    layout = bellman.read_params_layout(Source.open(params))
    b_g2 = layout.vectors["b_g2"]
    short = params[: b_g2.offset - 4] + (b_g2.count - 1).to_bytes(4, "big") + params[b_g2.offset :]
    assert f"b_g2: expected {b_g2.count} points as in b_g1, found {b_g2.count - 1}" in refusal(
        short
    )


@pytest.mark.parametrize(
    ("change", "section", "counts"),
    [
        ({"public": 0, "wires": 4}, "ic", "expected 1 .* found 2"),
        ({"wires": 6}, "l", "expected 4 .* found 2"),
        ({"constraints": 30}, "h", "expected 31 .* found"),
    ],
)
def test_circuit_of_another_shape(
    key: ProvingKey, params: bytes, change: dict[str, Any], section: str, counts: str
) -> None:
    assert key.matrices is not None
    other = dataclasses.replace(key.matrices, **change)
    with pytest.raises(CircuitError, match=f"{section}: {counts}.*do not belong together"):
        bellman.read_params(Source.open(params), other)


@pytest.mark.parametrize(("matrix", "section"), [("a", "a"), ("b", "b_g1")])
def test_density_must_equal_the_vectors_length(
    key: ProvingKey, params: bytes, matrix: str, section: str
) -> None:
    assert key.matrices is not None
    wires = sorted(set(getattr(key.matrices, matrix).wires.tolist()))
    thinner = diagonal(wires[:-1], getattr(key.matrices, matrix).rows)
    change: dict[str, Any] = {matrix: thinner}
    other = dataclasses.replace(key.matrices, **change)
    counts = f"expected {len(wires) - 1} points .*found {len(wires)}"
    with pytest.raises(CircuitError, match=f"{section}: {counts}"):
        bellman.read_params(Source.open(params), other)


def test_circuit_over_another_field(params: bytes) -> None:
    with pytest.raises(
        CircuitError, match="expected a circuit over BLS12-381, found one over BN254"
    ):
        bellman.read_params(Source.open(params), cubic(BN254).matrices())


def changed(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def test_points_of_the_key_are_always_checked(key: ProvingKey, params: bytes) -> None:
    two = (2).to_bytes(48, "big")
    order_three = bytes(48) + two  # (0, 2): on y^2 = x^3 + 4, of order 3
    p = BLS12_381.p.to_bytes(48, "big")
    infinity = b"\x40" + bytes(95)
    for offset, name in ((0, "alpha_g1"), (96, "beta_g1"), (576, "delta_g1"), (868, "ic")):
        for point, reason in (
            (two + two, "not on the curve"),
            (order_three, "subgroup"),
            (p + two, "not below p"),
            (infinity, "infinity"),
            (b"\x80" + bytes(95), "compressed"),
        ):
            with pytest.raises(FormatError, match=f"{name}.*{reason}"):
                bellman.read_vk(changed(params, offset, point))
    assert key.matrices is not None
    with pytest.raises(FormatError, match=r"gamma_g2.*not on the curve"):
        bellman.read_params(Source.open(changed(params, 384, bytes(144) + two)), key.matrices)


@pytest.mark.parametrize("section", ["h", "l", "a", "b_g1", "b_g2"])
def test_points_of_the_vectors_are_checked_in_full_on_request(
    key: ProvingKey, params: bytes, section: str
) -> None:
    assert key.matrices is not None
    found = bellman.read_params_layout(Source.open(params)).vectors[section]
    size = bellman.POINT_BYTES[found.group]
    last = found.offset + (found.count - 1) * size
    flipped = bytes([params[last + size - 1] ^ 1])
    off_curve = Source.open(changed(params, last + size - 1, flipped))
    bellman.read_params(off_curve, key.matrices)  # documented: trust rests on the digest
    with pytest.raises(
        FormatError, match=rf"{section}: g. point {found.count - 1}: not on the curve"
    ):
        bellman.read_params(off_curve, key.matrices, full=True)
    too_large = Source.open(changed(params, last, b"\x1f" + b"\xff" * 47))
    with pytest.raises(FormatError, match=rf"{section}: g. point {found.count - 1}: .*below p"):
        bellman.read_params(too_large, key.matrices)
    infinity = Source.open(changed(params, last, b"\x40" + bytes(size - 1)))
    with pytest.raises(FormatError, match=rf"{section}.*infinity"):
        bellman.read_params(infinity, key.matrices, full=True)


# Proof bytes


def some_proofs(fixtures: Path) -> NDArray[np.uint8]:
    data = np.fromfile(fixtures / "filecoin/seal32_x10.prf", dtype=np.uint8)
    start, step = 16 + 868 + 96 * 328, 192 + 32 * 327
    return np.stack([data[start + k * step : start + k * step + 192] for k in range(10)])


def test_proof_bytes_round_trip_and_equal_py_ecc(fixtures: Path) -> None:
    for row in some_proofs(fixtures):
        data = row.tobytes()
        proof = bellman.read_proof_bytes(data)
        assert bellman.write_proof_bytes(proof) == data
        a = normalize(decompress_G1(G1Compressed(int.from_bytes(data[:48], "big"))))
        assert proof.a.affine() == (int(a[0]), int(a[1]))
        halves = int.from_bytes(data[48:96], "big"), int.from_bytes(data[96:144], "big")
        b = normalize(decompress_G2(G2Compressed(halves)))
        assert proof.b.affine() == tuple(int(c) for f in b for c in f.coeffs)


def test_l10_proof_lengths(fixtures: Path) -> None:
    ten = some_proofs(fixtures).tobytes()
    assert len(bellman.read_partition_proofs(ten, 10)) == 10
    one = ten[:192]
    for data, partitions in (
        *((one[:191], 1), (one + b"\0", 1), (b"", 1), (ten, 1), (one, 10)),
        *((ten[:1919], 10), (ten + b"\0", 10), (ten, 11)),
    ):
        with pytest.raises(FormatError) as caught:
            bellman.read_partition_proofs(data, partitions, "proof")
        expected = (
            f"proof: expected {192 * partitions} bytes ({partitions} of 192), found {len(data)}"
        )
        assert str(caught.value) == expected
    with pytest.raises(FormatError, match="expected 192 bytes"):
        bellman.read_proof_bytes(ten)


def test_proof_points_are_checked(fixtures: Path) -> None:
    ten = some_proofs(fixtures).tobytes()
    infinity = {"a": (0, 48), "b": (48, 96), "c": (144, 48)}
    for name, (offset, size) in infinity.items():
        data = changed(ten, 3 * 192 + offset, b"\xc0" + bytes(size - 1))
        with pytest.raises(FormatError, match=f"partition 3: {name}.*infinity"):
            bellman.read_partition_proofs(data, 10)
    # x = 0: the points (0, 2) and (0, -2) have order 3
    with pytest.raises(FormatError, match=r"proof: a.*subgroup"):
        bellman.read_proof_bytes(changed(ten[:192], 0, b"\x80" + bytes(47)))
    with pytest.raises(FormatError, match=r"proof: c"):
        bellman.read_proof_bytes(changed(ten[:192], 144, b"\x00"))  # not compressed
    swapped = ten[96:144] + ten[48:96]
    with pytest.raises(FormatError, match=r"proof: b"):  # V15: c0 first
        bellman.read_proof_bytes(changed(ten[:192], 48, swapped))


def test_infinity_is_not_written_into_a_proof(fixtures: Path) -> None:
    proof = bellman.read_proof_bytes(some_proofs(fixtures)[0].tobytes())
    none = Points.from_affine(BLS12_381, "g1", [None])
    with pytest.raises(FormatError, match="proof: c: expected a point other than infinity"):
        bellman.write_proof_bytes(dataclasses.replace(proof, c=none))
