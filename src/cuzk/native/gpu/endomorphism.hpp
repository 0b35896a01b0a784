// Scalars cut in two halves by a curve's endomorphism (x, y) -> (beta x, y), which is multiplication by lambda,
// a cube root of 1, on points of order r: k P = k1 P + k2 (lambda P), |k1|, |k2| < 2^127.
//
// With a short basis v1 = (a1, b1), v2 = (a2, b2) of the lattice a + b lambda = 0 mod r (`endomorphism.py` makes
// it and takes care of the signs) the nearest lattice point to (k, 0) is c1 v1 + c2 v2, c1 = [k |b2| / r],
// c2 = [k |b1| / r]; with g = [2^320 |b| / r] the quotient is off by less than 2^-65.
#pragma once

#include "kernel.hpp"

namespace cuzk::CUZK_PATH {

// What the host hands over, little-endian words; the coordinates modulo 2^192.
struct Lattice {
  u64 g[2][4];           // of c1, c2
  u64 v[2][2][3];        // v1, v2
};

// Magnitudes below 2^127 with their signs on top.
struct Halves {
  static constexpr int words = 4, bits = 4, windows = 32;
  u64 w[words];

  // Digit `window` (base 16) of half `h` from the numbers in memory: -8 to 8.
  static int digit(const u64* halves, int h, int window) {
    const u64* half = halves + 2 * h;
    int shift = window % 16 * bits;
    u64 word = half[window / 16];
    int nibble = (int)(word >> shift & 15), below = 0;
    if (shift != 0) below = (int)(word >> (shift - 1) & 1);
    else if (window != 0) below = (int)(half[0] >> 63);
    if (window == windows - 1) return (nibble & 7) + below;
    return nibble + below - (nibble >> 3) * 16;
  }
  static bool is_negative(const u64* halves, int h) { return halves[2 * h + 1] >> 63 != 0; }
};

// out = a b modulo 2^(64 length); a zero-filled `out` is added to.
template <int n, int m, int length>
inline void multiply_add(u64* out, const u64* a, const u64* b) {
#pragma unroll
  for (int i = 0; i < n; i++) {
    u64 carry = 0;
#pragma unroll
    for (int j = 0; j < m; j++)
      if (i + j < length) out[i + j] = mul_add(a[i], b[j], out[i + j], carry);
#pragma unroll
    for (int j = i + m; j < length; j++) {
      u64 more = 0;
      out[j] = add_carry(out[j], carry, more);
      carry = more;
    }
  }
}

// [k g / 2^320]: below 2^128.
inline void nearest_quotient(const u64* k, const u64* g, u64* quotient) {
  u64 product[8] = {0, 0, 0, 0, 1ull << 63, 0, 0, 0};
  multiply_add<4, 4, 8>(product, k, g);
  quotient[0] = product[5], quotient[1] = product[6];
}

inline void negate(u64* value) {
  u64 borrow = 0;
#pragma unroll
  for (int i = 0; i < 3; i++) value[i] = sub_borrow(0, value[i], borrow);
}

// k is plain.
inline Halves halves_of(const u64* k, const Lattice& lattice) {
  u64 c[2][2];
  nearest_quotient(k, lattice.g[0], c[0]);
  nearest_quotient(k, lattice.g[1], c[1]);
  Halves out{};
#pragma unroll
  for (int h = 0; h < 2; h++) {
    u64 near[3] = {}, rest[3];  // coordinate h of the lattice point
    multiply_add<2, 3, 3>(near, c[0], lattice.v[0][h]);
    multiply_add<2, 3, 3>(near, c[1], lattice.v[1][h]);
    u64 borrow = 0;
#pragma unroll
    for (int i = 0; i < 3; i++) rest[i] = sub_borrow(h == 0 ? k[i] : 0, near[i], borrow);
    bool negative = rest[2] >> 63 != 0;
    if (negative) negate(rest);
    out.w[2 * h] = rest[0];
    out.w[2 * h + 1] = rest[1] | (u64)negative << 63;
  }
  return out;
}

}  // namespace cuzk::CUZK_PATH
