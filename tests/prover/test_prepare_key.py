"""Keys prepared by a device: point for point those that the native core makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cuzk
from circuits import chain, cubic, tangle
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.curves import BN254, Curve
from cuzk.errors import CircuitError, DeviceUnavailable, KernelError
from cuzk.groth16 import BELLMAN, PREPARED, SNARKJS, Query
from cuzk.prover import prepare as module
from cuzk.prover import prove, reside
from cuzk.prover.prepare import check_prepared, prepare_key
from cuzk.r1cs import Matrices
from cuzk.setup import Secrets, insecure_setup, prepare
from cuzk.vectors import Points
from emulator import EmulatedMachine

SECRETS = Secrets(tau=0xACE, alpha=0xBEE, beta=0xCAFE, delta=0xD00D, gamma=0xFADE)


@pytest.mark.parametrize("make", [cubic, lambda c: chain(c, 13), lambda c: tangle(c, 4)])
def test_a_device_makes_the_same_key(curve: Curve, make: object) -> None:
    circuit = make(curve)  # type: ignore[operator]
    matrices, witness = circuit.matrices(), circuit.witness()
    key = insecure_setup(matrices, SECRETS, BELLMAN)
    machine = EmulatedMachine()
    found = prepare_key(key, matrices, device=CudaBackend(curve, machine))
    assert "scale_sums" in {kernel for kernel, _, _ in machine.launches}
    expected = prepare(key, matrices)
    assert found.recipe == PREPARED
    assert np.array_equal(found.h.words, expected.h.words)
    assert np.array_equal(found.l.points.words, expected.l.points.words)
    assert found.l.wires == range(key.wires)
    cpu = CpuBackend(curve, 1)
    one, other = (prove(reside(k, matrices, cpu), witness, cpu, r=17, s=19) for k in (key, found))
    for part in ("a", "b", "c"):
        assert np.array_equal(getattr(one, part).words, getattr(other, part).words)


def prepared_by_hand() -> tuple[cuzk.ProvingKey, cuzk.ProvingKey, Matrices]:
    matrices = tangle(BN254, 4).matrices()
    key = insecure_setup(matrices, SECRETS, BELLMAN)
    return key, prepare(key, matrices), matrices


@pytest.mark.parametrize("query", ["h", "l"])
@pytest.mark.parametrize("index", [0, 3, -1])
def test_a_wrong_point_is_found(query: str, index: int) -> None:
    key, prepared, matrices = prepared_by_hand()
    cpu = CpuBackend(BN254, 1)
    check_prepared(key, prepared, matrices, cpu, 1)
    points = prepared.h if query == "h" else prepared.l.points
    words = points.words.copy()
    words[index] = 0 if words[index].any() else words[(index + 1) % len(words)]
    wrong = Points(BN254, "g1", words)
    changed = {"h": wrong} if query == "h" else {"l": Query(wrong, prepared.l.wires)}
    with pytest.raises(KernelError, match="not those of the key"):
        check_prepared(key, replace(prepared, **changed), matrices, cpu, 1)


def test_what_a_device_made_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    matrices = cubic(BN254).matrices()
    key = insecure_setup(matrices, SECRETS, BELLMAN)

    def wrong(*args: object, **options: object) -> cuzk.ProvingKey:
        made = prepare(*args, **options)  # type: ignore[arg-type]
        return replace(made, h=Points(BN254, "g1", made.h.words[::-1].copy()))

    monkeypatch.setattr("cuzk.prover.prepare.prepare", wrong)
    with pytest.raises(KernelError, match="take device cpu"):
        prepare_key(key, matrices, device=CudaBackend(BN254, EmulatedMachine()))


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small key is not worth a GPU; one asked for by name is needed; other backends cannot."""
    matrices = cubic(BN254).matrices()
    key = insecure_setup(matrices, SECRETS, BELLMAN)
    asked = []

    def no_gpu(device: object, curve: Curve, threads: int) -> tuple[CpuBackend, str]:
        asked.append(device)
        return CpuBackend(curve, threads), ""

    monkeypatch.setattr(module, "open_device", no_gpu)
    expected = prepare(key, matrices).h.words
    for device in ("auto", "cpu"):
        made = cuzk.prepare_key(key, matrices, device=device, threads=2)
        assert np.array_equal(made.h.words, expected)
    monkeypatch.setattr(module, "GPU_FROM_LOG_DOMAIN", 0)
    cuzk.prepare_key(key, matrices)
    assert asked == ["cpu", "cpu", "auto"]

    class Other:
        name = "other"

    with pytest.raises(DeviceUnavailable, match="other: expected cpu or a CUDA device"):
        module.point_work(Other(), 1)  # type: ignore[arg-type]
    monkeypatch.undo()
    with pytest.raises(CircuitError, match="expected a key with powers of tau"):
        cuzk.prepare_key(insecure_setup(matrices, SECRETS, SNARKJS), matrices)
