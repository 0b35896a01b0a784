// Additions to a running sum for long loops: one straight body, the case of equal points out of line.
// Formulas as in curve.hpp (madd-2008-s, add-2008-s); mixed 8M + 2S, full 12M + 2S.
#pragma once

#include "kernel.hpp"

namespace cuzk::CUZK_PATH {

// Blocks of 128 threads with a sum each that an SM holds: of its 65536 registers a thread gets 128 (BN254 G1),
// 168 (BLS12-381 G1, BN254 G2) or 255 (BLS12-381 G2).
constexpr int sum_blocks = sizeof(Sum) <= 128 ? 4 : sizeof(Sum) <= 256 ? 3 : 2;

// Rare: called once per bucket at most, so its speed does not matter and its registers should not count.
// (By value: a reference would keep the sum in memory.)
__noinline__ inline Sum twice(Sum sum) { return sum.doubled(); }

// sum += point; neither may be infinite. The result may be.
inline void add_finite(Sum& sum, const Point& point) {
  Coordinate p = point.x * sum.zz - sum.x, r = point.y * sum.zzz - sum.y;
  if (p.is_zero()) {
    sum = r.is_zero() ? twice(sum) : Sum::infinity();
    return;
  }
  sum.finish_sum(p, r);
}

// sum += *other, wherever that lies; both may be infinite.
inline void add_stored(Sum& sum, const Sum* other) {
  Coordinate zz = load(&other->zz);
  if (zz.is_zero()) return;
  if (sum.is_infinity()) {
    sum = load(other);
    return;
  }
  Coordinate zzz = load(&other->zzz);
  Coordinate u = sum.x * zz, s = sum.y * zzz;
  Coordinate p = load(&other->x) * sum.zz - u, r = load(&other->y) * sum.zzz - s;
  if (p.is_zero()) {
    sum = r.is_zero() ? twice(sum) : Sum::infinity();
    return;
  }
  sum = {u, s, sum.zz * zz, sum.zzz * zzz};
  sum.finish_sum(p, r);
}

// This thread's place among the workers of a round that not all threads of a block have work in. Warp i of
// every block runs on the same quarter of its SM, and one warp keeps that quarter's multiplier busy: blocks
// that share an SM, some 128 apart, begin with different warps.
inline u32 worker_rank() { return (threadIdx.x + 32 * (blockIdx.x >> 7)) % blockDim.x; }

}  // namespace cuzk::CUZK_PATH
