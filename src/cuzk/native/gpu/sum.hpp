// Additions to a running sum for long loops: mixed 8M + 2S, full 12M + 2S.
#pragma once

#include "kernel.hpp"

namespace cuzk::CUZK_PATH {

// Blocks of 128 threads with a sum each that an SM holds: of its 65536 registers a thread gets 128 (BN254 G1),
// 168 (BLS12-381 G1, BN254 G2) or 255 (BLS12-381 G2).
constexpr int sum_blocks = sizeof(Sum) <= 128 ? 4 : sizeof(Sum) <= 256 ? 3 : 2;

// Equal points are rare: out of line, from what need not be kept in registers for it.
CUZK_RARE inline Sum twice(Point point) { return Sum::twice(point); }
CUZK_RARE inline Sum twice(const Sum* stored) { return load(stored).doubled(); }

// sum += point; neither is infinite.
inline void add_point(Sum& sum, const Point& point) {
  Coordinate p = point.x * sum.zz - sum.x, r = point.y * sum.zzz - sum.y;
  if (p.is_zero()) sum = r.is_zero() ? twice(point) : Sum::infinity();
  else sum.finish_sum(p, r);
}

// sum += *other, wherever that lies; infinite ones, of which there may be many, cost no products.
inline void add_stored(Sum& sum, const Sum* other) {
  Coordinate zz = load(&other->zz);
  if (zz.is_zero()) return;
  if (sum.is_infinity()) {
    sum = load(other);
    return;
  }
  Coordinate p = load(&other->x) * sum.zz, r = load(&other->y) * sum.zzz, zzz = load(&other->zzz);
  sum = {sum.x * zz, sum.y * zzz, sum.zz * zz, sum.zzz * zzz};
  p = p - sum.x, r = r - sum.y;
  if (p.is_zero()) sum = r.is_zero() ? twice(other) : Sum::infinity();
  else sum.finish_sum(p, r);
}

// This thread's place among the workers of a round that not all threads of a block have work in. Warp i of
// every block runs on the same quarter of its SM, and one warp keeps that quarter's multiplier busy: blocks
// that share an SM, some 128 apart, begin with different warps.
inline u32 worker_rank() { return (threadIdx.x + 32 * (blockIdx.x >> 7)) % blockDim.x; }

}  // namespace cuzk::CUZK_PATH
