"""What this build and this machine can do, and whether the arithmetic is right here.

The self-test has answers that this code did not make: k G for k = 2^200 + 12345678901234567890 in both groups of
both curves (py_ecc), and the statement x^3 + x + 5 = 35 proved with a key of known secrets: the proof must
verify, and must not verify for 36.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import cuzk
from cuzk import _core
from cuzk.backends.cuda import CudaBackend, kernels
from cuzk.backends.cuda.cache import default_folder
from cuzk.backends.cuda.card import Card
from cuzk.backends.cuda.device import device_count, open_card, open_machine
from cuzk.backends.cuda.selftest import fault_of
from cuzk.circuit import Circuit
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import BackendError, DeviceUnavailable
from cuzk.prover.devices import thread_count
from cuzk.setup import Secrets, insecure_setup

SCALAR = 2**200 + 12345678901234567890
MULTIPLES: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("bn254", "g1"): (
        0x1BCBCE6740D5400023B061BED769528203555082B422BB8959895B0A919404E8,
        0x1E66C1B0177FEFBB94028FAE4B1DBC173A25EE06852F7E79BDDCF4B630D6497B,
    ),
    ("bn254", "g2"): (
        0x167014CD0EC512DEA0318C8F644255435311B9A780D1B66924D562E7F282A6C5,
        0x16AE1EB7D5C2120C04DFB656BFC4E5FDC0B79B235D4F1A40569451775C53C994,
        0x8E1C2946BEB2ABB7824E206B4BCD2182B29F6A35A6DD2D26DA7BB817F4EB1CD,
        0x1B7046BD2E52C18F3243AB05F28748F72771CD7C92BDBF13E418FF87CBA20EF0,
    ),
    ("bls12_381", "g1"): (
        0x1E0982DF59D2D66AF07B07DBA433060A5930DF7995B7CB925002080D85E9182822B9D05E2BBAC9A85491D0264402A48,
        0x12145E9A35EF12B2BB931057ABF7DF4729C0C292C9BCC64B2CD7A4576FBFEA3CF89A257CBAA2B6246B170436A1F18F9A,
    ),
    ("bls12_381", "g2"): (
        0x12CFDF3B6E63C9AD448D971A13D163A0510FC7A14F999D290884223D5E100ABC03CE1DCDFDCB66CA41A32D51A2457187,
        0x8E062F23E725C2F79D6752631F9C9F317A68D030CCFF89BE5C5A01BA7112B81A8C87BF68989B78C7ED39B426BCB0CA7,
        0xA76B92BACBCE28C8EFDB81C4547C0AA8A25A25C877C58053671EB14958CFA159CF58BBDCD18264E4B75C91E09200C88,
        0x35436CC256CD7637297CFC770F4F5C4AFA1FF1F3AA0F1430290FD199AD7D32F6EFFA219949F11C084D690800716C454,
    ),
}
DRIVER = Path("/sys/module/nvidia/version")


@dataclass(frozen=True)
class Check:
    """One known answer; ``fault`` is empty where it was found."""

    name: str
    fault: str
    milliseconds: float


@dataclass(frozen=True)
class Diagnosis:
    """``facts`` by name, in the order to show them."""

    facts: dict[str, str]
    checks: list[Check]

    @property
    def healthy(self) -> bool:
        """Every known answer was found."""
        return not any(check.fault for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"healthy": self.healthy, **asdict(self)}


def diagnose(*, no_gpu: bool = False) -> Diagnosis:
    """Facts and self-test; takes about a second and leaves the arithmetic path as it was.

    Where there is a GPU, its kernels are compiled first if they are not in the cache, which takes longer.
    """
    cards, absent = ([], "CUZK_NO_GPU is set") if no_gpu else _cards()
    facts = _facts() | _gpu_facts(cards, absent)
    return Diagnosis(facts, _self_test() + _gpu_self_test(cards))


def _facts() -> dict[str, str]:
    return {
        "version": cuzk.__version__,
        "build": f"{_core.compiler()}, Python {platform.python_version()}, numpy {np.__version__}",
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        "arithmetic": f"{_core.path()} (this CPU can run: {', '.join(_core.paths())})",
        "threads": f"{thread_count(None)} of {os.cpu_count()} CPUs",
        "memory": _memory(),
    }


def _cards() -> tuple[list[Card], str]:
    """Every GPU that can be used; where none can, why."""
    try:
        return [open_card(ordinal) for ordinal in range(device_count())], ""
    except BackendError as error:
        return [], str(error)


def _gpu_facts(cards: list[Card], absent: str) -> dict[str, str]:
    facts = {}
    for card in cards:
        gpu, gib = card.facts, 1 << 30
        card.enter()
        facts[gpu.name] = (
            f"{gpu.title}, {gpu.uuid}, sm_{gpu.architecture}, {gpu.processors} processors, "
            f"{gpu.total_bytes / gib:.1f} GiB, {card.free_bytes() / gib:.1f} GiB free"
        )
    if not cards:
        facts["gpu"] = f"none that can be used, proofs are made on the CPU: {absent}"
    try:
        compiler = kernels.compiler()
        built = ", ".join(f"sm_{n}" for n in compiler.architectures)
        facts["nvrtc"] = f"{compiler.version[0]}.{compiler.version[1]}, builds kernels for {built}"
    except DeviceUnavailable as error:
        facts["nvrtc"] = str(error)
    if cards:
        major, minor = cards[0].facts.driver
        driver = DRIVER.read_text().strip() if DRIVER.exists() else "version not known"
        facts["driver"] = f"{driver}, runs code of CUDA {major}.{minor}"
        facts["kernels"] = f"kept in {default_folder() or 'no folder: this user has no home'}"
    return facts


def _memory() -> str:
    gib = 1 << 30
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    text = f"{total / gib:.1f} GiB"
    information = Path("/proc/meminfo")
    if sys.platform == "linux" and information.exists():
        fields = dict(
            line.split(":", 1) for line in information.read_text().splitlines() if ":" in line
        )
        available = int(fields["MemAvailable"].split()[0]) << 10
        text += f", {available / gib:.1f} GiB available"
    return text


def _self_test() -> list[Check]:
    before, checks = _core.path(), []
    try:
        for path in _core.paths():
            _core.use_path(path)
            for curve in (BN254, BLS12_381):
                name = f"{path}, {curve.title}, known"
                checks += [
                    _timed(f"{name} multiple in G1", partial(_multiple, curve, "g1")),
                    _timed(f"{name} multiple in G2", partial(_multiple, curve, "g2")),
                    _timed(f"{name} proof", partial(_proof, curve)),
                ]
    finally:
        _core.use_path(before)
    return checks


def _gpu_self_test(cards: list[Card]) -> list[Check]:
    return [
        _timed(f"{card.facts.name}, {curve.title}, known answers", partial(_gpu, card, curve))
        for card in cards
        for curve in (BN254, BLS12_381)
    ]


def _gpu(card: Card, curve: Curve) -> str:
    try:
        return fault_of(CudaBackend(curve, open_machine(card.ordinal, curve)))
    except BackendError as error:
        return str(error)


def _timed(name: str, check: Callable[[], str]) -> Check:
    start = perf_counter()
    fault = check()
    return Check(name, fault, 1000 * (perf_counter() - start))


def _multiple(curve: Curve, group: str) -> str:
    generator = curve.g1 if group == "g1" else curve.g2
    found = cuzk.msm(curve.name, group, [generator], [SCALAR], threads=1)
    return "" if found == MULTIPLES[curve.name, group] else f"k G is {found}"


def _proof(curve: Curve) -> str:
    circuit = Circuit(curve)
    out, x = circuit.public(35), circuit.private(3)
    square = circuit.product(x, x)
    circuit.enforce(square, x, out - x - 5)
    secrets = Secrets(tau=7, alpha=11, beta=13, gamma=17, delta=19)
    key = insecure_setup(circuit.matrices(), secrets)
    with cuzk.Prover(key, device="cpu", threads=1) as prover:
        result = prover.prove(circuit.witness())
    if not cuzk.verify(key.vk, [35], result.proof):
        return "a right proof does not verify"
    return "a wrong statement verifies" if cuzk.verify(key.vk, [36], result.proof) else ""
