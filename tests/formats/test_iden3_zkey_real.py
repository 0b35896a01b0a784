import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import iden3_files as files
import numpy as np
import pytest
from iden3_files import rows
from zkey_parts import section, vectors

from cuzk.constants import from_montgomery
from cuzk.curves import BLS12_381, BN254, CURVES, Curve
from cuzk.errors import FormatError, InsecureKeyError
from cuzk.formats.iden3.r1cs import read_r1cs
from cuzk.formats.iden3.zkey import check_zkey_points, read_zkey
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import BELLMAN, Query

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
