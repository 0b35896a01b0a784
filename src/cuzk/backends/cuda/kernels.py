"""From kernel sources to code for one architecture: NVRTC, and the cache of what it made.

A unit is compiled as a program of one line that includes its source; ``curve_constants.hpp`` is handed
over from memory. Cost: 1 to 20 s of one core for each unit, once per state of sources, NVRTC and
architecture.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cuzk import constants
from cuzk.backends.cuda.cache import Cache
from cuzk.backends.cuda.machine import Unit
from cuzk.curves import Curve
from cuzk.errors import DeviceUnavailable, KernelError

NATIVE = Path(constants.__file__).parent / "native"
GPU = NATIVE / "gpu"
OLDEST = 80  # compute capability 8.0: what the kernels are written and compiled for in the tests
INSTALL = "pip install 'cuzk[cuda]'"
PER_GROUP = re.compile(
    r"\b(CUZK_GROUP|Point|Coordinate|Sum)\b"
)  # names that kernel.hpp makes of it
MEASURING = "*rates.cu"  # for benchmarks: no proof uses them, they are compiled when asked for
PREPARING = "group_ntt.cu"  # for keys, before any proof: likewise
MOST_THREADS = 16  # compiling at once: each takes about 0.3 GB of memory


@dataclass(frozen=True)
class Compiler:
    """The NVRTC library of this process."""

    nvrtc: Any  # the module cuda.bindings.nvrtc
    version: tuple[int, int]
    architectures: tuple[int, ...]  # 80, 90, ...

    def compile(self, unit: Unit, architecture: int, *more: bytes) -> tuple[bytes, str]:
        """The cubin, and what the compiler said; KernelError with its first complaint.

        ``more`` are further options, for tests and reports.
        """
        nvrtc, given = self.nvrtc, [*options(unit, architecture), *more]
        header = constants.header().encode()
        program = self._value(
            nvrtc.nvrtcCreateProgram(
                program_text(unit), b"unit.cu", 1, [header], [b"curve_constants.hpp"]
            )
        )
        try:
            (status,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
            log = self._log(program)
            if int(status):
                reason = next((line for line in log.splitlines() if "error" in line), log)
                raise KernelError(
                    f"{unit.file} for {unit.curve.title}, sm_{architecture}: {reason or 'NVRTC gave no reason'}"
                )
            size = int(self._value(nvrtc.nvrtcGetCUBINSize(program)))
            code = room(size)
            self._value(nvrtc.nvrtcGetCUBIN(program, code))
        finally:
            nvrtc.nvrtcDestroyProgram(program)
        return code[:size], log

    def _value(self, answer: tuple[Any, ...]) -> Any:
        status, *values = answer
        if int(status):
            raise KernelError(f"NVRTC: {self.nvrtc.nvrtcGetErrorString(status)[1].decode()}")
        return values[0] if values else None

    def _log(self, program: Any) -> str:
        log = room(int(self._value(self.nvrtc.nvrtcGetProgramLogSize(program))))
        self._value(self.nvrtc.nvrtcGetProgramLog(program, log))
        return log.decode(errors="replace").strip("\0 \n")


def room(size: int) -> bytes:
    """``size`` bytes and two more, for NVRTC to write to, as its binding wants them: in a bytes object.

    Nobody else may have that object. Python shares those of one byte, of which an empty log is one: writing
    to it would change every byte of that value that is cut out of any data in the process.
    """
    return bytes(size + 2)


@cache
def compiler() -> Compiler:
    """NVRTC, loaded when first asked for; DeviceUnavailable where it is not installed."""
    try:
        from cuda.bindings import nvrtc

        status, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise DeviceUnavailable(
            f"NVRTC is not installed ({_first_line(error)}): {INSTALL}"
        ) from error
    known = nvrtc.nvrtcGetSupportedArchs()
    if int(status) or int(known[0]):
        raise DeviceUnavailable(
            "NVRTC: it does not tell its version and architectures; reinstall it"
        )
    return Compiler(nvrtc, (major, minor), tuple(n for n in known[1] if n >= OLDEST))


def options(unit: Unit, architecture: int) -> list[bytes]:
    """What NVRTC is told."""
    symbols = {**unit.defines, "CUZK_PATH": "device"}
    return [
        b"--std=c++20",
        f"--gpu-architecture=sm_{architecture}".encode(),
        b"--device-as-default-execution-space",
        *(f"--include-path={folder}".encode() for folder in (NATIVE, GPU)),
        *(f"--define-macro={name}={value}".encode() for name, value in sorted(symbols.items())),
    ]


def program_text(unit: Unit) -> bytes:
    """The program that NVRTC reads."""
    return f'#include "gpu/{unit.file}"\n'.encode()


def units(curve: Curve) -> list[Unit]:
    """Every unit that a proof on the curve uses."""
    apart = (MEASURING, PREPARING)
    files = sorted(path for path in GPU.glob("*.cu") if not any(map(path.match, apart)))
    return [unit for path in files for unit in units_of(path.name, curve)]


def units_of(file: str, curve: Curve) -> list[Unit]:
    """A source file's unit, or one for each group where it computes in one."""
    code = re.sub(r"//.*", "", (GPU / file).read_text())
    return [
        Unit(file, curve, group) for group in (("g1", "g2") if PER_GROUP.search(code) else ("",))
    ]


def kernel_names(unit: Unit) -> list[str]:
    """The kernels that a unit's source defines."""
    return re.findall(r"^KERNEL\([^)]*\)\s*(\w+)\(", (GPU / unit.file).read_text(), re.MULTILINE)


def build(unit: Unit, architecture: int, cache: Cache) -> bytes:
    """The unit's cubin, from the cache or compiled now."""
    name = entry_name(unit, architecture)
    code = cache.get(name)
    if code is None:
        code, _ = compiler().compile(unit, architecture)
        cache.put(name, code)
    return code


def build_all(wanted: Iterable[Unit], architecture: int, cache: Cache) -> dict[Unit, bytes]:
    """Cubins of several units, compiled beside one another; the threads end with the call."""
    compiler()
    wanted = list(wanted)
    make: Callable[[Unit], bytes] = lambda unit: build(unit, architecture, cache)  # noqa: E731
    with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as threads:
        return dict(zip(wanted, threads.map(make, wanted), strict=True))


def entry_name(unit: Unit, architecture: int) -> str:
    """The cache's name for what these sources, options and this NVRTC give."""
    state = hashlib.blake2b(_headers_digest(), digest_size=16)
    major, minor = compiler().version
    source = (GPU / unit.file).read_bytes()
    for part in (
        source,
        program_text(unit),
        f"{major}.{minor}".encode(),
        *options(unit, architecture),
    ):
        state.update(len(part).to_bytes(8, "little") + part)
    kind = unit.group or "scalars"
    return f"{Path(unit.file).stem}-{unit.curve.name}-{kind}-sm_{architecture}-{state.hexdigest()}.cubin"


@cache
def _headers_digest() -> bytes:
    """Of every header that a kernel may include and of the curves' constants."""
    state = hashlib.blake2b(constants.header().encode())
    for path in sorted([*NATIVE.glob("*.hpp"), *GPU.glob("*.hpp")]):
        state.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return state.digest()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
