// Sums of products with one reduction for all of them: sum a_k b_k, a word of every b_k at a time, then one step of
// Montgomery's reduction. Half of a product's work is left (a node of arity 8: 37 us -> 27 with mulx, 67 -> 45
// without; Zen 4, gcc 12, 2026-11).
#pragma once

#include "field.hpp"

namespace cuzk::CUZK_PATH {

#ifndef CUZK_LIMBS

// t += a * b.
CUZK_INLINE inline void add_product_row(u64 (&t)[6], const u64 (&a)[4], u64 b) {
#ifdef CUZK_ADX
  adx_add_row(t, a, b);
#else
  u64 carry = 0;
  for (int j = 0; j < 4; j++) t[j] = mul_add(a[j], b, t[j], carry);
  u64 top = 0;
  t[4] = add_carry(t[4], carry, top);
  t[5] += top;
#endif
}

// t <- (t + q p) / 2^64, q such that nothing is lost.
template <class P>
CUZK_INLINE inline void reduce_row(u64 (&t)[6]) {
#ifdef CUZK_ADX
  adx_reduce_row<P>(t);
#else
  u64 q = t[0] * P::inverse, carry = 0;
  mul_add(q, P::modulus[0], t[0], carry);
  for (int j = 1; j < 4; j++) t[j - 1] = mul_add(q, P::modulus[j], t[j], carry);
  u64 top = 0;
  t[3] = add_carry(t[4], carry, top);
  t[4] = t[5] + top;
  t[5] = 0;
#endif
}

// t - (p << bits) where that is not negative; five words.
template <class P>
CUZK_INLINE inline void subtract_shifted(u64 (&t)[6], int bits) {
  u64 d[5], borrow = 0, below = 0;
  for (int j = 0; j < 5; j++) {
    u64 word = j < 4 ? P::modulus[j] : 0, shifted = bits ? word << bits | below >> (64 - bits) : word;
    d[j] = sub_borrow(t[j], shifted, borrow);
    below = word;
  }
  for (int j = 0; j < 5; j++) t[j] = borrow ? t[j] : d[j];
}

template <int n, class F>
CUZK_INLINE inline F merged_dot(const F* a, const u64* b, int stride) {
  // with p < 2^255 the sum, reduced, is below n p / 2 + p
  static_assert(n < 15 && F::P::modulus[3] >> 63 == 0);
  u64 t[6] = {};
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < n; k++) add_product_row(t, a[k].w, b[k * stride * 4 + i]);
    reduce_row<typename F::P>(t);
  }
  for (int bits = 2; bits >= 0; bits--) subtract_shifted<typename F::P>(t, bits);
  return F::from_words(t);
}

#endif

// sum a[k] * b[k * stride] over n elements; b as words. A device's products are its own (limbs.hpp).
template <int n, class F>
constexpr F dot(const F* a, const u64* b, int stride) {
#ifndef CUZK_LIMBS
  if constexpr (F::N == 4) {
    if (!__builtin_is_constant_evaluated()) return merged_dot<n>(a, b, stride);
  }
#endif
  F sum = a[0] * F::from_words(b);
  for (int k = 1; k < n; k++) sum = sum + a[k] * F::from_words(b + k * stride * F::N);
  return sum;
}

}  // namespace cuzk::CUZK_PATH
