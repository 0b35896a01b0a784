// Chains of one operation of a group or of its coordinates' field; see rates.cu.
#include "kernel.hpp"

constexpr int coordinate_words = Coordinate::N;  // 4, 6 in G1, 8, 12 in G2

// a = a b, then b = b a.
KERNEL(128, coordinate_words == 12 ? 2 : 4)
multiply_coordinate(const Coordinate* in, Coordinate* out, size steps) {
  size i = 2 * grid_rank();
  Coordinate a = load(in + i), b = load(in + i + 1);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = a * b, b = b * a;
  store(out + i, a), store(out + i + 1, b);
}
// a = a^4.
KERNEL(128, coordinate_words == 12 ? 2 : 4)
square_coordinate(const Coordinate* in, Coordinate* out, size steps) {
  size i = grid_rank();
  Coordinate a = load(in + i);
#pragma unroll 1
  for (size k = 0; k < steps; k++) a = a.squared().squared();
  store(out + i, a);
}

// Points 2 i and 2 i + 1: P = P + Q, the Q affine.
KERNEL(128, coordinate_words <= 6 ? 3 : 2) add_mixed(const Point* in, Sum* out, size steps) {
  size i = grid_rank();
  Sum sum = Sum::from_affine(load(in + 2 * i));
  Point point = load(in + 2 * i + 1);
#pragma unroll 1
  for (size k = 0; k < steps; k++) sum = sum + point;
  store(out + i, sum);
}
// The same with Q scaled.
KERNEL(128, coordinate_words <= 6 ? 2 : 1) add_full(const Sum* in, Sum* out, size steps) {
  size i = grid_rank();
  Sum sum = load(in + 2 * i), other = load(in + 2 * i + 1);
#pragma unroll 1
  for (size k = 0; k < steps; k++) sum = sum + other;
  store(out + i, sum);
}
KERNEL(128, coordinate_words <= 6 ? 3 : 2) double_sum(const Sum* in, Sum* out, size steps) {
  size i = grid_rank();
  Sum sum = load(in + i);
#pragma unroll 1
  for (size k = 0; k < steps; k++) sum = sum.doubled();
  store(out + i, sum);
}
