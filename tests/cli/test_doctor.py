import json

import pytest
from command import cuzk
from py_ecc import optimized_bls12_381, optimized_bn128

import cuzk.doctor as doctor
from cuzk import _core
from cuzk.curves import CURVES

LIBRARIES = {"bn254": optimized_bn128, "bls12_381": optimized_bls12_381}


@pytest.mark.parametrize(("name", "group"), list(doctor.MULTIPLES))
def test_known_multiples_are_right(name: str, group: str) -> None:
    library = LIBRARIES[name]
    generator = library.G1 if group == "g1" else library.G2
    point = library.normalize(library.multiply(generator, doctor.SCALAR))
    if group == "g1":
        expected = tuple(int(c) for c in point)
    else:
        expected = tuple(int(c) for coordinate in point for c in coordinate.coeffs)
    assert doctor.MULTIPLES[name, group] == expected


def test_report() -> None:
    done = cuzk("doctor", "--json")
    assert done.status == 0
    found = json.loads(done.out)
    assert found["healthy"] is True
    assert {"version", "build", "arithmetic", "threads", "memory", "gpu"} <= found["facts"].keys()
    assert "no GPU support" in found["facts"]["gpu"]
    assert len(found["checks"]) == len(_core.paths()) * 2 * 3
    for path in _core.paths():
        for curve in ("BN254", "BLS12-381"):
            name = f"{path}, {curve}, known proof"
            assert any(check["name"] == name and not check["fault"] for check in found["checks"])


def test_for_a_person() -> None:
    done = cuzk("doctor", variables={"CUZK_NO_GPU": "true"})
    assert done.status == 0
    assert "CUZK_NO_GPU is set" in done.out
    assert "passed" in done.out


def test_wrong_arithmetic_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**doctor.MULTIPLES, ("bn254", "g2"): CURVES["bn254"].g2}
    monkeypatch.setattr(doctor, "MULTIPLES", wrong)
    found = doctor.diagnose()
    assert not found.healthy
    assert all("BN254, known multiple in G2" in check.name for check in found.checks if check.fault)


def test_leaves_the_path_as_it_was() -> None:
    before = _core.path()
    doctor.diagnose()
    assert _core.path() == before
