// Additions to a running sum for long loops: one straight body, the case of equal points out of line.
// Formulas as in curve.hpp (madd-2008-s, add-2008-s); mixed 8M + 2S, full 12M + 2S.
#pragma once

#include "word.hpp"

// Products in Fp2 are called: inlined, an addition in G2 of BLS12-381 has 240 KB of code and takes a minute to
// compile; with calls it has 60 KB, and a call costs 3 % of a product in moves.
#undef CUZK_OUT_OF_LINE
#define CUZK_OUT_OF_LINE __noinline__
#include "kernel.hpp"

namespace cuzk::CUZK_PATH {

// Blocks of 128 threads with a sum each that an SM holds: of its 65536 registers a thread gets 128 (BN254 G1),
// 168 (BLS12-381 G1, BN254 G2) or 255 (BLS12-381 G2).
constexpr int sum_blocks = sizeof(Sum) <= 128 ? 4 : sizeof(Sum) <= 256 ? 3 : 2;

// Rare: called once per bucket at most, so its speed does not matter and its registers should not count.
__noinline__ inline Sum twice(const Sum& sum) { return sum.doubled(); }

// sum += point; neither may be infinite. The result may be.
inline void add_finite(Sum& sum, const Point& point) {
  Coordinate p = point.x * sum.zz - sum.x, r = point.y * sum.zzz - sum.y;
  if (p.is_zero()) {
    sum = r.is_zero() ? twice(sum) : Sum::infinity();
    return;
  }
  Coordinate pp = p.squared(), ppp = p * pp, q = sum.x * pp;
  sum.zz = sum.zz * pp, sum.zzz = sum.zzz * ppp;
  sum.x = r.squared() - ppp - q.doubled();
  sum.y = r * (q - sum.x) - sum.y * ppp;
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
  Coordinate pp = p.squared(), ppp = p * pp, q = u * pp;
  sum.zz = sum.zz * zz * pp, sum.zzz = sum.zzz * zzz * ppp;
  sum.x = r.squared() - ppp - q.doubled();
  sum.y = r * (q - sum.x) - s * ppp;
}

}  // namespace cuzk::CUZK_PATH
