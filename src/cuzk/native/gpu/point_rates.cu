// Chains of one operation of a group or of its coordinates' field; see rates.cu.
#include "kernel.hpp"

// Blocks of 128 threads on an SM with the registers that an addition wants: 128 a thread (4 words a coordinate),
// 168 (6 and 8), 255 (12, where four products of 12 limbs are alive at once). `crowded` is one more, with spills.
constexpr int N = Coordinate::N, roomy = N == 4 ? 4 : N == 12 ? 2 : 3, crowded = roomy + 1;

// a = a b, then b = b a.
KERNEL(128, roomy) multiply_coordinate(const Coordinate* in, Coordinate* out, size steps) {
  size i = 2 * grid_rank();
  Coordinate a = load(in + i), b = load(in + i + 1);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = a * b, b = b * a;
  store(out + i, a), store(out + i + 1, b);
}
// a = a^4.
KERNEL(128, roomy) square_coordinate(const Coordinate* in, Coordinate* out, size steps) {
  size i = grid_rank();
  Coordinate a = load(in + i);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = a.squared().squared();
  store(out + i, a);
}

// Points 2 i and 2 i + 1: P = P + Q, the Q affine.
inline void add_points(const Point* in, Sum* out, size steps) {
  size i = grid_rank();
  Sum sum = Sum::from_affine(load(in + 2 * i));
  Point point = load(in + 2 * i + 1);
#pragma unroll 1
  for (size k = 0; k < steps; k++) sum = sum + point;
  store(out + i, sum);
}
KERNEL(128, roomy) add_mixed(const Point* in, Sum* out, size steps) { add_points(in, out, steps); }
KERNEL(128, crowded) add_mixed_crowded(const Point* in, Sum* out, size steps) { add_points(in, out, steps); }
// The same with Q scaled.
KERNEL(128, N == 4 ? 3 : 2) add_full(const Sum* in, Sum* out, size steps) {
  size i = grid_rank();
  Sum sum = load(in + 2 * i), other = load(in + 2 * i + 1);
#pragma unroll 1
  for (size k = 0; k < steps; k++) sum = sum + other;
  store(out + i, sum);
}
KERNEL(128, roomy) double_sum(const Sum* in, Sum* out, size steps) {
  size i = grid_rank();
  Sum sum = load(in + i);
#pragma unroll 1
  for (size k = 0; k < steps; k++) sum = sum.doubled();
  store(out + i, sum);
}
