"""The headers of hashes and of programs' operations are read by the compiler for GPUs too: for making witnesses there."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from cuzk import constants
from cuzk.backends.cuda import kernels
from cuzk.backends.cuda.machine import Unit
from cuzk.curves import BLS12_381

PROGRAM = b"""
#include "poseidon.hpp"
#include "sha256.hpp"
using namespace cuzk;
using namespace cuzk::CUZK_PATH;
using Fr = Field<Bls12381::FrParams>;

// keeps what a witness holds of a compression
struct Kept {
  u32* out;
  __device__ void operator()(int round, u32 a, u32 e) const { out[2 * round] = a, out[2 * round + 1] = e; }
};

extern "C" __global__ void hashes(const u64* table, int partial, const u64* nodes, u64* out, u32* rounds) {
  Fr children[2] = {Fr::from_plain(nodes), Fr::from_plain(nodes + 4)};
  Fr digest = Poseidon<Fr, 3>{table, partial}.hash(merkle_tag<Fr>(2), children).to_plain();
  for (int i = 0; i < 4; i++) out[i] = digest.w[i];
  tree_d_node(nodes, nodes + 4, out + 4);
  sdr_label(nodes, 1, 5, nodes, out + 8);
  u32 w[64] = {}, h[8] = {};
  node_to_message(nodes, w);
  sha256_schedule(w);
  sha256_compress(h, w, Kept{rounds});
}
"""


OPERATIONS = b"""
#include "program.hpp"
using namespace cuzk;
using namespace cuzk::CUZK_PATH;
using Fr = Field<Bls12381::FrParams>;

extern "C" __global__ void operations(u64* bits, const u32* operands, u64* out, const u64* table, Fr* fields) {
  int lane = threadIdx.x;
  sum_words(bits, operands, 7, out, 35);
  out[35] = chosen(literal(bits, operands[0]), literal(bits, operands[1]), literal(bits, operands[2]));
  out[36] = at_least_two(bits[0], bits[1], bits[2]);
  fields[lane] = combination(Instance<Fr>{fields, bits, lane}, table, operands, operands + 20);
  Fr plain = fields[lane].to_plain();
  if (!has_bit_from(plain.w, 200)) scatter_bits(plain.w, 200, lane, bits);
}
"""


@pytest.mark.parametrize("text", [PROGRAM, OPERATIONS], ids=["hashes", "operations"])
def test_nvrtc_reads_the_headers(text: bytes) -> None:
    nvrtc = kernels.compiler().nvrtc
    header = constants.header().encode()
    status, program = nvrtc.nvrtcCreateProgram(
        text, b"hashes.cu", 1, [header], [b"curve_constants.hpp"]
    )
    assert int(status) == 0
    options = kernels.options(Unit("none.cu", BLS12_381), kernels.OLDEST)
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    (_, size) = nvrtc.nvrtcGetProgramLogSize(program)
    log = kernels.room(size)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert int(status) == 0, log.decode()
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    assert size > 1000
    nvrtc.nvrtcDestroyProgram(program)


ROUNDS = """
#include <cstdio>
#include "sha256.hpp"
using namespace cuzk;
using namespace cuzk::CUZK_PATH;
int main() {
  u32 w[64] = {0x61626380}, h[8];
  w[15] = 24;
  for (int i = 0; i < 8; i++) h[i] = sha256_iv[i];
  sha256_schedule(w);
  sha256_compress(h, w, [](int, u32 a, u32 e) { std::printf("%08x %08x\\n", a, e); });
  for (u32 word : h) std::printf("%08x", word);
}
"""


def test_a_and_e_of_every_round(tmp_path: Path) -> None:
    """NIST's example of one block, "abc": a and e after rounds 0, 1, 2 and 63."""
    (tmp_path / "curve_constants.hpp").write_text(constants.header())
    (tmp_path / "rounds.cpp").write_text(ROUNDS)
    built = tmp_path / "rounds"
    command = ["c++", "-std=c++20", f"-I{tmp_path}", f"-I{kernels.NATIVE}", "-o", str(built)]
    subprocess.run([*command, str(tmp_path / "rounds.cpp")], check=True)
    run = subprocess.run([str(built)], check=True, capture_output=True, text=True)
    *rounds, digest = run.stdout.split("\n")
    assert len(rounds) == 64
    assert rounds[:3] == ["5d6aebcd fa2a4622", "5a6ad9ad 78ce7989", "c8c347a7 f92939eb"]
    assert rounds[63] == "506e3058 5ef50f24"
    assert digest == hashlib.sha256(b"abc").hexdigest()
