"""The arithmetic headers are read by NVRTC too: compiled here for one architecture, no GPU needed."""

from pathlib import Path

import pytest

from cuzk import constants
from cuzk.backends.cuda import kernels
from cuzk.backends.cuda.machine import Unit
from cuzk.curves import Curve

NATIVE = Path(constants.__file__).parent / "native"
ARCHITECTURE = "sm_90"

# Per header: what a kernel does with it. FP and CURVE are replaced by structs of curve_constants.hpp.
KERNELS = {
    "field": """
        auto a = Field<FP>::from_words(in), b = Field<FP>::from_words(in + FP::words);
        store(out, a * b + a - -b);""",
    "inverse": "Inversion<FP>::run(in, out);",
    "fp2": """
        using F = Field<FP>;
        auto a = Fp2<F>::from_words(in);
        a = a.squared() * a + a.conjugate();
        store(out, a.c0 + a.c1);""",
    "curve": """
        using Types = CurveTypes<CURVE>;
        auto sum = Xyzz<typename Types::Fp>::from_affine(Types::g1_generator()) + Types::g1_generator();
        store(out, sum.x);""",
    "tower": """
        auto f = Fp12<CURVE>::one().cyclotomic_squared();
        store(out, f.a.c0.c0);""",
}
SOURCE = """
#include "{header}.hpp"
using namespace cuzk;
using namespace cuzk::CUZK_PATH;
template <class F> void store(u64* out, const F& value) {{
  for (int i = 0; i < F::N; i++) out[i] = value.w[i];
}}
extern "C" __global__ void kernel(u64* out, const u64* in) {{ {body} }}
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    (folder / "curve_constants.hpp").write_text(constants.header())
    return folder


@pytest.mark.parametrize("header", KERNELS)
@pytest.mark.parametrize("name", ["Bn254", "Bls12381"])
def test_header_compiles(header: str, name: str, generated: Path) -> None:
    nvrtc = kernels.compiler().nvrtc
    body = KERNELS[header].replace("FP", f"{name}Fp").replace("CURVE", name)
    source = SOURCE.format(header=header, body=body).encode()
    options = [
        b"--std=c++20",
        f"--gpu-architecture={ARCHITECTURE}".encode(),
        b"--device-as-default-execution-space",
        f"--include-path={NATIVE}".encode(),
        f"--include-path={generated}".encode(),
    ]
    status, program = nvrtc.nvrtcCreateProgram(source, b"kernel.cu", 0, [], [])
    assert not int(status)
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = kernels.room(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert not int(status), log.decode()
    _, cubin_bytes = nvrtc.nvrtcGetCUBINSize(program)
    assert cubin_bytes > 0


def test_nothing_that_is_shared_was_written_to(curve: Curve) -> None:
    """NVRTC writes an empty log of one byte; Python has one object for all equal bytes of length one."""
    code, log = kernels.compiler().compile(Unit("vector.cu", curve), 90)
    assert (code[:4], log) == (b"\x7fELF", "")
    assert [bytes([value])[0] for value in range(256)] == list(range(256))
