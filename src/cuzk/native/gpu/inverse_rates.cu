// Chains of inversions, one for each warp or each thread: x = 1 / x, `steps` times; see rates.cu.
#include "warp_inverse.hpp"

KERNEL(128, 4) invert_in_warp(const Fp* in, Fp* out, size steps) {
  size i = grid_rank() / 32;
  Fp value = load(in + i);
#pragma unroll 1
  for (size k = 0; k < steps; k++) value = inverted_in_warp(value);
  if (threadIdx.x % 32 == 0) store(out + i, value);
}
KERNEL(128, 4) invert_in_thread(const Fp* in, Fp* out, size steps) {
  size i = grid_rank();
  Fp value = load(in + i);
#pragma unroll 1
  for (size k = 0; k < steps; k++) value = value.inverse();
  store(out + i, value);
}
