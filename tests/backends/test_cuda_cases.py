"""What others' GPU provers got wrong (CASES, group G), over an emulated GPU: the whole way from Prover to driver.

The GPU is the emulator behind a stand-in for the driver (tests/emulator/driver.py); test_gpu_cases.py has the
cases that need a real one.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from functools import cache

import pytest

from circuits import chain
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend, device, selftest
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import BackendError, DeviceUnavailable, FormatError, KernelError, OutOfMemory
from cuzk.groth16 import SNARKJS, ProvingKey
from cuzk.prover import devices
from cuzk.prover.placement import DOUBTED
from cuzk.prover.report import Report
from cuzk.prover.session import Prover
from cuzk.vectors import Points, Scalars
from cuzk.verifier import verify
from emulator.driver import FakeDriver, install
from reference_setup import key_from

CONSTRAINTS = 20


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(FakeDriver(), monkeypatch)


@pytest.fixture
def worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any proof is large enough for a GPU."""
    monkeypatch.setattr(devices, "OPENING_SECONDS", 0)


@cache
def key_of(curve: Curve) -> ProvingKey:
    return key_from(chain(curve, CONSTRAINTS).matrices(), recipe=SNARKJS)


def witness_of(curve: Curve) -> Scalars:
    return chain(curve, CONSTRAINTS).witness()


def proved(prover: Prover) -> Report:
    """Of a proof that an independent call verifies."""
    result = prover.prove(witness_of(prover.key.curve))
    assert verify(prover.key.vk, result.public, result.proof)
    return result.report


def test_proof_over_the_driver(curve: Curve, driver: FakeDriver) -> None:
    with Prover(key_of(curve), device="cuda", threads=1) as prover:
        report = proved(prover)
        insecure = prover.prove_insecure(witness_of(curve), 0, 0).proof
    assert (report.device, report.reason, report.retries) == ("cuda:0", "asked for", 0)
    with Prover(key_of(curve), device="cpu", threads=1) as prover:
        expected = prover.prove_insecure(witness_of(curve), 0, 0).proof
    for ours, theirs in zip(vars(insecure).values(), vars(expected).values(), strict=True):
        assert ours.words.tobytes() == theirs.words.tobytes()
    assert "cuLaunchKernel" in driver.calls


def test_g1_one_flipped_bit(driver: FakeDriver) -> None:
    """In every copy to the host that a proof makes, one after the other."""
    with Prover(key_of(BN254), device="cuda", threads=1) as prover:
        before = driver.downloads
        assert proved(prover).retries == 0
        copies = driver.downloads - before
        assert copies >= 5  # one for each sum
        retried = 0
        for n in range(copies):
            driver.flips = {driver.downloads + n}
            report = proved(prover)
            assert report.device == "cuda:0"
            retried += report.retries
    assert retried >= 5


def test_g1_every_proof_wrong(driver: FakeDriver) -> None:
    with Prover(key_of(BN254), device="cuda", threads=1) as prover:
        assert proved(prover).retries == 0
        driver.flips = set(range(10**4))
        report = proved(prover)
    assert (report.device, report.reason, report.retries) == ("cpu", DOUBTED, 2)


@pytest.mark.usefixtures("worthwhile")
def test_g1_every_copy_wrong_from_the_first_proof_on(driver: FakeDriver) -> None:
    """Counts, too, that only the first proof with a key asks for."""
    with Prover(key_of(BN254), threads=1) as prover:
        driver.flips = set(range(10**4))
        report = proved(prover)
    assert report.device == "cpu"
    assert report.reason.startswith("cuda:0 failed: cuda:0: ")


def test_g2_identical_bytes(curve: Curve, driver: FakeDriver) -> None:
    with Prover(key_of(curve), device="cuda", threads=1) as prover:
        proofs = {
            b"".join(p.words.tobytes() for p in vars(proof).values())
            for proof in (prover.prove_insecure(witness_of(curve), 0, 0).proof for _ in range(4))
        }
    assert len(proofs) == 1
    assert driver.calls


@pytest.mark.usefixtures("worthwhile")
def test_g4_another_process_holds_the_memory(driver: FakeDriver) -> None:
    with Prover(key_of(BN254), threads=1) as prover:
        assert proved(prover).device == "cuda:0"
    gc.collect()
    driver.others = driver.memory - (1 << 13)
    with Prover(key_of(BN254), threads=1) as prover:
        report = proved(prover)
        calls = len(driver.calls)
        proved(prover)
        assert (
            len(driver.calls) == calls
        )  # the CPU has it now, the device is not tried step by step
    assert report.device == "cpu"
    assert "cuda:0" in report.reason
    with pytest.raises(OutOfMemory, match="cuda:0"):
        Prover(key_of(BN254), device="cuda", threads=1)


@pytest.mark.usefixtures("worthwhile")
def test_g4_memory_goes_while_a_key_is_resident(driver: FakeDriver) -> None:
    with Prover(key_of(BN254), threads=1) as prover:
        held = driver.used
        driver.others = driver.memory - held - (1 << 12)
        report = proved(prover)
        assert (report.device, report.retries) == ("cpu", 1)
        assert report.reason.startswith("cuda:0 failed: cuda:0")
        driver.others = 0
        assert proved(prover).device == "cuda:0"


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33])
def test_g6_sums_of_few(curve: Curve, group: str, n: int, driver: FakeDriver) -> None:
    backend = CudaBackend(curve, device.open_machine(0, curve))
    assert_equal_sums(backend, group, n)
    assert "cuLaunchKernel" in driver.calls


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("group", ["g1", "g2"])
def test_g7_sums_over_the_limit(group: str) -> None:
    backend = CudaBackend(BN254, device.open_machine(0, BN254), longest_sum=10)
    for n in (9, 10, 11, 20, 33):
        assert_equal_sums(backend, group, n)


def assert_equal_sums(backend: CudaBackend, group: str, n: int) -> None:
    curve = backend.curve
    cpu = CpuBackend(curve, 1)
    scalars = Scalars.from_ints(curve, [pow(5, 77 * i + 1, curve.r) for i in range(n)])
    bases = multiples(curve, group)[:n]
    found = backend.msm(backend.put(bases), backend.put(scalars))
    expected = cpu.msm(cpu.put(bases), cpu.put(scalars))
    assert found.affine() == expected.affine()


@cache
def multiples(curve: Curve, group: str) -> Points:
    """2 G to 34 G, by the CPU."""
    cpu = CpuBackend(curve, 1)
    base = cpu.put(Points.from_affine(curve, group, [getattr(curve, group)]))
    return Points.concatenate(
        [cpu.msm(base, cpu.put(Scalars.from_ints(curve, [k]))) for k in range(2, 35)]
    )


Absence = Callable[[pytest.MonkeyPatch], None]


def no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def bindings() -> object:
        raise DeviceUnavailable("CUDA support is not installed: pip install 'cuzk[cuda]'")

    monkeypatch.setattr(device, "_bindings", bindings)


def no_driver(words: str) -> Absence:
    def give(monkeypatch: pytest.MonkeyPatch) -> None:
        def init(_: int) -> object:
            raise RuntimeError(words)

        driver = install(FakeDriver(), monkeypatch)
        monkeypatch.setattr(driver, "cuInit", init, raising=False)

    return give


def with_driver(**options: int) -> Absence:
    def give(monkeypatch: pytest.MonkeyPatch) -> None:
        install(FakeDriver(**options), monkeypatch)

    return give


ABSENT: dict[str, tuple[Absence, str]] = {
    "no extra": (no_extra, r"CUDA support is not installed: pip install 'cuzk\[cuda\]'"),
    "no driver 13.3": (no_driver("Failed to dlopen libcuda.so.1"), "no NVIDIA driver is installed"),
    "no driver 13.5": (no_driver('"cuda" is an NVIDIA driver library'), "no NVIDIA driver is installed"),
    "hidden": (with_driver(devices=0), "no NVIDIA GPU is visible .*CUDA_VISIBLE_DEVICES"),
    "old driver": (with_driver(cuda=12080), "driver is too old: it runs code of CUDA 12.8, .*update"),
    "old card": (with_driver(architecture=70), "Emulated GPU is sm_70, kernels can be built for sm_80,"),
}  # fmt: skip


@pytest.mark.usefixtures("worthwhile")
@pytest.mark.parametrize("case", ABSENT)
def test_g9_g13_no_gpu_that_can_be_used(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    absent, reason = ABSENT[case]
    absent(monkeypatch)
    with Prover(key_of(BN254), threads=1) as prover:
        report = proved(prover)
    assert report.device == "cpu"
    with pytest.raises(DeviceUnavailable, match=f"^device cuda:0: .*{reason}") as failure:
        Prover(key_of(BN254), device="cuda:0", threads=1)
    assert "\n" not in str(failure.value)
    text = str(failure.value).removeprefix("device cuda:0: ").removesuffix("; or take auto or cpu")
    assert report.reason == f"no GPU: {text}"


def test_auto_by_size(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(BN254)
    queries = (key.a.points, key.b_g1.points, key.l.points, key.h)
    points = sum(map(len, queries)) + devices.G2_WEIGHT * len(key.b_g2.points)
    with Prover(key, threads=1) as prover:
        report = proved(prover)
    expected = "small: about 0.0004 s on 1 threads, opening a GPU takes 1.7 s"
    assert (report.device, report.reason) == ("cpu", expected)
    assert driver.calls == []  # it is not even looked for
    with Prover(key, threads=1, repeated=True) as prover:
        assert proved(prover).device == "cuda:0"
    seconds = points * 2.5e-6
    for opening, chosen in ((1.01 * seconds, "cpu"), (0.99 * seconds, "cuda:0")):
        monkeypatch.setattr(devices, "OPENING_SECONDS", opening)
        with Prover(key, threads=1) as prover:
            assert proved(prover).device == chosen
    assert proved_reason(key) == "a GPU can be used: Emulated GPU"


def proved_reason(key: ProvingKey) -> str:
    with Prover(key, threads=1) as prover:
        return proved(prover).reason


@pytest.mark.parametrize(("there", "asked", "range_"), [(1, 1, "cuda:0$"), (3, 99, "cuda:0 to cuda:2$")])  # fmt: skip
def test_g9_number_of_a_device(there: int, asked: int, range_: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    install(FakeDriver(devices=there), monkeypatch)
    with pytest.raises(
        DeviceUnavailable, match=f"cuda:{asked}: {there} device.* visible; take {range_}"
    ):
        device.open_machine(asked, BN254)
    assert device.open_machine(there - 1, BN254).name == f"cuda:{there - 1}"


def test_a_device_by_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its number; the beginning is enough where no other begins so."""
    install(FakeDriver(devices=3), monkeypatch)
    whole = "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
    for uuid in (whole, "GPU-1011"):
        with Prover(key_of(BN254), device=f"cuda:{uuid}", threads=1) as prover:
            assert proved(prover).device == "cuda:1"
    for uuid, count in (("GPU-abcd", 0), (whole[:-1] + "0", 0)):
        with pytest.raises(DeviceUnavailable, match=f"device cuda:{uuid}: {uuid}: expected .* found {count} such among GPU-0001") as failure:  # fmt: skip
            Prover(key_of(BN254), device=f"cuda:{uuid}", threads=1)
        assert "\n" not in str(failure.value)
    with pytest.raises(FormatError, match="found 'cuda:GPU-xyz'"):
        Prover(key_of(BN254), device="cuda:GPU-xyz", threads=1)


def test_25_a_uuid_that_two_devices_begin_with_names_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fault 25: of several that could be meant one was taken, without a check."""
    install(FakeDriver(devices=2), monkeypatch)
    monkeypatch.setattr(device, "uuid_of", lambda _, handle: f"GPU-da34318{int(handle)}-0000")
    assert device.ordinal_of("GPU-da343181") == 1
    with pytest.raises(DeviceUnavailable, match="found 2 such among GPU-da343180-0000, GPU-da343181-0000"):  # fmt: skip
        device.ordinal_of("GPU-da34")


@pytest.mark.usefixtures("worthwhile", "driver")
@pytest.mark.parametrize("verb", ["product", "ntt", "msm", "pointwise"])
def test_g12_wrong_in_the_self_test(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, right_scale = getattr(CudaBackend, verb), CudaBackend.pointwise

    def wrong(self: CudaBackend, *args: object, **options: object) -> object:
        result = right(self, *args, **options)
        if isinstance(result, Points):
            return result[:0]
        return right_scale(self, result, scale=2)

    monkeypatch.setattr(CudaBackend, verb, wrong)
    with pytest.raises(
        DeviceUnavailable, match=r"cuda:0 \(Emulated GPU\) failed its self-test: wrong "
    ):
        Prover(key_of(BN254), device="cuda", threads=1)
    with Prover(key_of(BN254), threads=1) as prover:
        report = proved(prover)
    assert report.device == "cpu"
    assert "failed its self-test" in report.reason


@pytest.mark.usefixtures("worthwhile")
def test_g12_failure_in_the_self_test(driver: FakeDriver) -> None:
    driver.fail["cuLaunchKernel"] = "LAUNCH_FAILED"
    with Prover(key_of(BN254), threads=1) as prover:
        assert "LAUNCH_FAILED" in proved(prover).reason
    with pytest.raises(
        DeviceUnavailable, match="lost to this process after an error, start a new one"
    ):
        Prover(key_of(BN254), device="cuda", threads=1)


def test_self_test_knows_a_right_device(curve: Curve, driver: FakeDriver) -> None:
    assert selftest.fault_of(CudaBackend(curve, device.open_machine(0, curve))) == ""
    assert driver.downloads


def test_g15_four_threads_two_circuits(driver: FakeDriver) -> None:
    failures: list[BaseException] = []
    with (
        Prover(key_of(BN254), device="cuda", threads=1) as one,
        Prover(key_of(BLS12_381), device="cuda", threads=1) as other,
    ):

        def work(prover: Prover) -> None:
            try:
                for _ in range(2):
                    report = proved(prover)
                    assert (report.device, report.retries) == ("cuda:0", 0)
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(p,)) for p in (one, other, one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert driver.reserved < driver.memory // 2


def test_g17_memory_goes_back(driver: FakeDriver) -> None:
    with Prover(key_of(BN254), device="cuda", threads=1) as prover:
        proved(prover)
        gc.collect()
        resident = [driver.used]
        for _ in range(3):
            proved(prover)
            gc.collect()
            resident.append(driver.used)
    assert len(set(resident)) == 1
    del prover
    gc.collect()
    assert (driver.used, driver.reserved, driver.streams, driver.pinned) == (0, 0, [], {})


def test_kernel_failure_of_a_device_asked_for(driver: FakeDriver) -> None:
    with Prover(key_of(BN254), device="cuda", threads=1) as prover:
        driver.fail["cuStreamSynchronize"] = driver.fail["cuEventSynchronize"] = "ILLEGAL_ADDRESS"
        with pytest.raises(
            KernelError, match=r"ILLEGAL_ADDRESS .*the device is lost to this process"
        ):
            proved(prover)
        with pytest.raises(BackendError):
            proved(prover)
