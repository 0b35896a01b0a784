"""The hashes' headers are read by the compiler for GPUs too: what makes a witness there will include them."""

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


def test_nvrtc_reads_the_headers() -> None:
    nvrtc = kernels.compiler().nvrtc
    header = constants.header().encode()
    status, program = nvrtc.nvrtcCreateProgram(
        PROGRAM, b"hashes.cu", 1, [header], [b"curve_constants.hpp"]
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
