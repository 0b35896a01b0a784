"""A device that errs or fails during a proof: what is done again, where, and what the report says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from circuits import cubic
from cuzk.backends import Buffer, Workload
from cuzk.backends.cpu import CpuBackend
from cuzk.curves import BN254, Curve
from cuzk.errors import (
    BackendError,
    CircuitError,
    DeviceUnavailable,
    KernelError,
    OutOfMemory,
    UnsatisfiedError,
)
from cuzk.groth16 import ProvingKey
from cuzk.prover import placement
from cuzk.prover.session import Prover, Result
from cuzk.r1cs import Matrix
from cuzk.vectors import Points, Scalars
from cuzk.verifier import verify
from reference_setup import key_from


class Failing(CpuBackend):
    """``fail`` says, when asked with a verb's name, whether that call fails and how."""

    name = "cuda:0"
    calls: list[str]
    fail: Callable[[str], BackendError | None]

    def _say(self, verb: str) -> None:
        self.calls.append(verb)
        if (error := Failing.fail(verb)) is not None:
            raise error

    def plan(self, work: Workload) -> int:
        self._say("plan")
        return super().plan(work)

    def put(self, value: Scalars | Points | Matrix) -> Buffer:
        self._say("put")
        return super().put(value)

    def msm(self, bases: Buffer, scalars: Buffer, wires: object = None) -> Points:
        self._say("msm")
        return super().msm(bases, scalars, wires)

    def first_nonzero(self, values: Buffer) -> int | None:
        self._say("first_nonzero")
        return 0 if "lie" in self.calls else super().first_nonzero(values)


@pytest.fixture(autouse=True)
def _device(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_device(device: str, curve: Curve, threads: int, _: object = None) -> object:
        kind = CpuBackend if device == "cpu" else Failing
        return kind(curve, threads), "a GPU can be used"

    monkeypatch.setattr(placement, "open_device", open_device)
    Failing.calls = []
    Failing.fail = staticmethod(lambda _: None)


def failing(verb: str, error: BackendError, times: int = 10**9) -> None:
    left = [times]

    def fail(called: str) -> BackendError | None:
        if called != verb or not left[0]:
            return None
        left[0] -= 1
        return error

    Failing.fail = staticmethod(fail)


def key() -> ProvingKey:
    return key_from(cubic(BN254).matrices())


def proved(prover: Prover) -> Result:
    result = prover.prove(cubic(BN254).witness())
    assert verify(prover.key.vk, [35], result.proof)
    return result


@pytest.mark.parametrize("error", [OutOfMemory("cuda:0: full"), KernelError("cuda:0: lost"), DeviceUnavailable("cuda:0: gone")])  # fmt: skip
@pytest.mark.parametrize("verb", ["msm", "first_nonzero"])
def test_failure_with_auto_is_made_good_on_the_cpu(error: BackendError, verb: str) -> None:
    with Prover(key(), circuit=cubic(BN254).matrices(), threads=1) as prover:
        failing(verb, error)
        Failing.calls.clear()
        report = proved(prover).report
    if verb == "msm" or not isinstance(error, OutOfMemory):
        assert report.device == "cpu"
        assert report.reason == f"cuda:0 failed: {error}"
    assert Failing.calls.count(verb) == 1  # not one try per step


@pytest.mark.parametrize("error", [OutOfMemory("cuda:0: full"), KernelError("cuda:0: lost")])
def test_failure_of_a_device_asked_for_is_an_error(error: BackendError) -> None:
    with Prover(key(), device="cuda", threads=1) as prover:
        failing("msm", error)
        with pytest.raises(type(error), match=str(error)):
            proved(prover)
        failing("msm", error, times=0)
        assert proved(prover).report.device == "cuda:0"


def test_short_memory_is_asked_for_again_at_the_next_proof() -> None:
    with Prover(key(), threads=1) as prover:
        failing("msm", OutOfMemory("cuda:0: full"), times=1)
        first, second = proved(prover).report, proved(prover).report
    assert (first.device, first.retries) == ("cpu", 1)
    assert (second.device, second.retries) == ("cuda:0", 0)


def test_failed_device_is_left_for_good() -> None:
    with Prover(key(), threads=1) as prover:
        failing("msm", KernelError("cuda:0: lost"), times=1)
        first = proved(prover).report
        Failing.calls.clear()
        second = proved(prover).report
    assert (first.device, first.retries) == ("cpu", 1)
    assert (second.device, second.retries) == ("cpu", 0)
    assert second.reason == "cuda:0 failed: cuda:0: lost"
    assert Failing.calls == []


@pytest.mark.parametrize("verb", ["plan", "put"])
def test_key_that_does_not_fit(verb: str) -> None:
    failing(verb, OutOfMemory("cuda:0: full"))
    with Prover(key(), threads=1) as prover:
        report = proved(prover).report
    assert (report.device, report.reason) == ("cpu", "cuda:0 cannot hold the key: cuda:0: full")
    with pytest.raises(OutOfMemory, match="cuda:0: full"):
        Prover(key(), device="cuda", threads=1)


def test_device_that_calls_a_right_witness_wrong() -> None:
    with Prover(key(), circuit=cubic(BN254).matrices(), threads=1) as prover:
        Failing.calls.append("lie")
        assert proved(prover).report.device == "cuda:0"
        with pytest.raises(UnsatisfiedError, match="constraint 0 of 2"):
            prover.prove(Scalars.from_ints(BN254, [1, 35, 3, 10]))


def test_device_that_calls_a_right_circuit_wrong() -> None:
    Failing.calls.append("lie")
    with Prover(key(), circuit=cubic(BN254).matrices(), threads=1) as prover:
        assert proved(prover).report.device == "cuda:0"
    other = cubic(BN254).matrices()
    swapped = type(other)(**{**vars(other), "a": other.b, "b": other.a})
    with pytest.raises(CircuitError):
        Prover(key(), circuit=swapped, threads=1)
