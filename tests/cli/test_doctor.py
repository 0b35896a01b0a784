import json
import re

import pytest
from py_ecc import optimized_bls12_381, optimized_bn128

import cuzk.doctor as doctor
from command import cuzk
from cuzk import _core
from cuzk.curves import CURVES
from emulator.driver import FakeDriver, install

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
    facts = found["facts"]
    assert {"version", "build", "arithmetic", "threads", "memory", "nvrtc"} <= facts.keys()
    assert ("gpu" in facts) != ("cuda:0" in facts)
    cards = sum(name.startswith("cuda:") for name in facts)
    assert len(found["checks"]) == len(_core.paths()) * 2 * 3 + 2 * cards
    for path in _core.paths():
        for curve in ("BN254", "BLS12-381"):
            name = f"{path}, {curve}, known proof"
            assert any(check["name"] == name and not check["fault"] for check in found["checks"])


def test_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(FakeDriver(devices=2), monkeypatch)
    driver.others = 1 << 29
    found = doctor.diagnose()
    assert found.facts["cuda:1"] == (
        "Emulated GPU, GPU-10111213-1415-1617-1819-1a1b1c1d1e1f, sm_90, 2 processors, 1.0 GiB, 0.5 GiB free"
    )
    assert found.facts["driver"].endswith("runs code of CUDA 13.0")
    assert re.match(r"13\.\d+, builds kernels for sm_80, .*sm_90, .*sm_120", found.facts["nvrtc"])
    assert "cuzk/kernels" in found.facts["kernels"]
    assert "gpu" not in found.facts
    gpu = [check for check in found.checks if check.name.startswith("cuda:")]
    assert [check.name for check in gpu] == [
        f"cuda:{n}, {curve}, known answers" for n in (0, 1) for curve in ("BN254", "BLS12-381")
    ]
    assert found.healthy


def test_gpu_that_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(FakeDriver(), monkeypatch)
    driver.flips = set(range(10**4))
    found = doctor.diagnose()
    faults = [check.fault for check in found.checks if check.name.startswith("cuda:")]
    assert len(faults) == 2
    assert all(faults)
    assert not found.healthy


@pytest.mark.parametrize(("devices", "no_gpu", "reason"), [(0, False, "CUDA_VISIBLE_DEVICES hides them"), (1, True, "CUZK_NO_GPU is set")])  # fmt: skip
def test_no_gpu(devices: int, no_gpu: bool, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(FakeDriver(devices=devices), monkeypatch)
    found = doctor.diagnose(no_gpu=no_gpu)
    assert "none that can be used, proofs are made on the CPU" in found.facts["gpu"]
    assert reason in found.facts["gpu"]
    assert found.healthy


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
