"""Every kernel compiles for every architecture, and takes no more registers and stack than is known (no GPU needed).

kernel_limits.txt says, for sm_90 and each variant of a unit, how many registers a thread may take and, behind a +,
how many bytes of stack: what the compiler spilled, and arrays that are indexed at run time. Both cost speed
that nothing else would tell. For the other architectures the compiler is told to be quick: what is tested
there is that they have all that the code asks for.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from cuzk.backends.cuda import kernels
from cuzk.backends.cuda.machine import Unit
from cuzk.curves import BLS12_381, BN254
from cuzk.errors import KernelError

LIMITS = Path(__file__).with_name("kernel_limits.txt")
VERBOSE, QUICK = b"--ptxas-options=-v", b"--Ofast-compile=max"
PROOF = [
    unit
    for curve in (BN254, BLS12_381)
    for unit in [*kernels.units(curve), *kernels.units_of(kernels.PREPARING, curve)]
]
MEASURING = [
    unit
    for curve in (BN254, BLS12_381)
    for path in sorted(kernels.GPU.glob(kernels.MEASURING))
    for unit in kernels.units_of(path.name, curve)
]
RESOURCES = re.compile(
    r"entry function '(?P<kernel>\w+)'.*?(?P<stack>\d+) bytes stack frame.*?Used (?P<registers>\d+) registers",
    re.DOTALL,
)


def variant(unit: Unit) -> str:
    return f"{unit.curve.name}{'/' if unit.group else ''}{unit.group}"


def name(unit: Unit) -> str:
    return f"{unit.file}-{variant(unit)}"


@cache
def limits() -> dict[tuple[str, str], tuple[int, int]]:
    """(kernel, variant) to registers and bytes of stack."""
    found = {}
    variants: list[str] = []
    for line in LIMITS.read_text().splitlines():
        words = line.split()
        if not words or words[0] == "#":
            continue
        if words[0] == "kernel":
            variants = words[1:]
            continue
        assert len(words) == len(variants) + 1, line
        for where, cell in zip(variants, words[1:], strict=True):
            registers, _, stack = cell.partition("+")
            assert (words[0], where) not in found, line
            found[words[0], where] = (int(registers), int(stack or 0))
    return found


@pytest.mark.parametrize("unit", PROOF, ids=name)
def test_resources(unit: Unit) -> None:
    _, log = kernels.compiler().compile(unit, 90, VERBOSE)
    found = {
        match["kernel"]: (int(match["registers"]), int(match["stack"]))
        for match in RESOURCES.finditer(log)
    }
    assert sorted(found) == sorted(kernels.kernel_names(unit))
    beyond = []
    for kernel, (registers, stack) in found.items():
        most = limits().get((kernel, variant(unit)))
        if most is None or registers > most[0] or stack > most[1]:
            beyond.append(f"{kernel} {variant(unit)} {registers}+{stack} (limit {most})")
    assert not beyond, f"{LIMITS.name}: {beyond}"


@pytest.mark.parametrize("architecture", [80, 100, 120])
@pytest.mark.parametrize("unit", PROOF, ids=name)
def test_other_architectures(unit: Unit, architecture: int) -> None:
    code, _ = kernels.compiler().compile(unit, architecture, QUICK)
    assert code[:4] == b"\x7fELF"


@pytest.mark.parametrize("unit", MEASURING, ids=name)
def test_kernels_of_benchmarks(unit: Unit) -> None:
    code, _ = kernels.compiler().compile(unit, 90, QUICK)
    assert code[:4] == b"\x7fELF"


def test_limits_are_of_kernels_that_are_there() -> None:
    known = {(kernel, variant(unit)) for unit in PROOF for kernel in kernels.kernel_names(unit)}
    assert limits().keys() <= known


def test_a_fault_in_a_source_is_told_in_one_line() -> None:
    unit = Unit("vector.cu", BN254)
    with pytest.raises(KernelError, match=r"^vector.cu for BN254, sm_90: .*error: ") as failure:
        kernels.compiler().compile(unit, 90, b"--define-macro=Curve=0")
    assert "\n" not in str(failure.value)
