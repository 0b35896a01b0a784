// The inverse of one element by one warp: division steps as in inverse.hpp, on 30-bit limbs of 32-bit words.
//
// f, g and d, e stand in four lanes, a vector each (lanes 4 and up repeat them). Every lane takes the same
// 30 steps on the low words of f and g, which make a matrix (u v; q r); then one linear combination of its
// own vector and its neighbour's is all that any lane has to do:
//
//   f' = (u f + v g) / 2^30, g' = (q f + r g) / 2^30, and the same modulo p for d, e.
//
// About 27 rounds of some 370 instructions for 381 bits, a fifth of what one thread takes with 64-bit words
// (SASS, sm_90).
#pragma once

#include "kernel.hpp"

namespace cuzk::CUZK_PATH {

template <class P>
struct WarpInversion {
  using Int = int;  // a limb: below 2^30, the top one signed
  static constexpr int bits = 30, L = (64 * P::words + bits - 1) / bits;
  static constexpr u32 mask = (1u << bits) - 1;

  struct Vector {
    Int limb[L];
    bool is_negative() const { return limb[L - 1] < 0; }
  };

  // The factors of this lane's vector and of its neighbour's.
  struct Row {
    Int own, other;
  };

  static constexpr Int limb_of(const u64* words, int i) {
    int bit = i * bits, word = bit / 64, shift = bit % 64;
    u64 low = words[word] >> shift;
    if (shift > 64 - bits && word + 1 < P::words) low |= words[word + 1] << (64 - shift);
    return (Int)(low & mask);
  }

  static u32 trailing_zeros_of(u32 x) { return (u32)__clz((int)__brev(x)); }

  // divide_steps of inverse.hpp for 30 steps: f odd; afterwards f's row for even lanes, g's for odd ones.
  static Row steps(Int& delta, u32 f, u32 g, bool odd) {
    u32 u = 1, v = 0, q = 0, r = 1;
    for (int left = bits;;) {
      int even = (int)trailing_zeros_of(g | 1u << left);
      g >>= even, u <<= even, v <<= even;
      delta += even, left -= even;
      if (left == 0) return odd ? Row{(Int)r, (Int)q} : Row{(Int)u, (Int)v};
      if (delta > 0) {
        u32 old_f = f, old_u = u, old_v = v;
        f = g, u = q, v = r;
        g = 0 - old_f, q = 0 - old_u, r = 0 - old_v;
        delta = -delta;
      }
      int run = 1 - delta < left ? 1 - delta : left;
      if (run > 6) run = 6;
      u32 w = g * f * (f * f - 2) & ((1u << run) - 1);
      g += w * f, q += w * u, r += w * v;
    }
  }

  // own * x + other * y, plus what makes it divisible by 2^30 modulo p, over 2^30. d and e stay in (-2p, p).
  static void combine(Vector& x, const Vector& y, const Row& row, bool modular) {
    constexpr u32 inverse = 0 - (u32)P::inverse;  // of p
    i64 sum = (i64)row.own * x.limb[0] + (i64)row.other * y.limb[0];
    Int k = 0;
    if (modular) {
      k = (x.is_negative() ? row.own : 0) + (y.is_negative() ? row.other : 0);
      k -= (Int)(((u32)sum + (u32)k * (u32)limb_of(P::modulus, 0)) * inverse & mask);
    }
    sum += (i64)k * limb_of(P::modulus, 0);
#pragma unroll
    for (int i = 1; i < L; i++) {
      sum >>= bits;
      sum += (i64)row.own * x.limb[i] + (i64)row.other * y.limb[i] + (i64)k * limb_of(P::modulus, i);
      x.limb[i - 1] = (Int)((u32)sum & mask);
    }
    x.limb[L - 1] = (Int)(sum >> bits);
  }

  // +-x + (p or 0).
  static void adjust(Vector& x, bool negate, bool add_modulus) {
    Int carry = 0;
#pragma unroll
    for (int i = 0; i < L; i++) {
      carry += (negate ? -x.limb[i] : x.limb[i]) + (add_modulus ? limb_of(P::modulus, i) : 0);
      x.limb[i] = i + 1 < L ? (Int)((u32)carry & mask) : carry;
      carry >>= bits;
    }
  }

  // Words of x^-1 mod p in every lane, for the words of x in every lane; x is not zero.
  static void run(const u64* words, u64* out) {
    int role = threadIdx.x % 4;  // f, g, d, e
    Vector x;
#pragma unroll
    for (int i = 0; i < L; i++) {
      x.limb[i] = role == 0 ? limb_of(P::modulus, i) : role == 1 ? limb_of(words, i) : 0;
    }
    if (role == 3) x.limb[0] = 1;
    Int delta = 1;
    for (bool done = false; !done;) {
      u32 low = (u32)x.limb[0] | (u32)x.limb[1] << bits;
      Row row = steps(delta, __shfl_sync(~0u, low, 0), __shfl_sync(~0u, low, 1), role & 1);
      Vector y;
#pragma unroll
      for (int i = 0; i < L; i++) y.limb[i] = __shfl_xor_sync(~0u, x.limb[i], 1);
      combine(x, y, row, role >= 2);
      u32 any = 0;
#pragma unroll
      for (int i = 0; i < L; i++) any |= (u32)x.limb[i];
      done = __shfl_sync(~0u, any, 1) == 0;
    }
    bool minus = __shfl_sync(~0u, x.limb[L - 1], 0) < 0;  // f = -1
    adjust(x, false, x.is_negative());
    adjust(x, minus, false);
    adjust(x, false, x.is_negative());
    gather(x, out);
  }

  // Lane 2's limbs as words.
  static void gather(const Vector& x, u64* out) {
#pragma unroll
    for (int i = 0; i < P::words; i++) {
      u64 word = 0;
#pragma unroll
      for (int j = 0; j < L; j++) {
        int shift = j * bits - i * 64;
        if (shift > -bits && shift <= 0) word |= (u64)(u32)x.limb[j] >> -shift;
        if (shift > 0 && shift < 64) word |= (u64)(u32)x.limb[j] << shift;
      }
      out[i] = __shfl_sync(~0u, word, 2);
    }
  }
};

// 1 / value in every lane, where every lane of the warp gives the same value, not zero.
template <class P>
inline Field<P> inverted_in_warp(const Field<P>& value) {
  Field<P> plain;
  WarpInversion<P>::run(value.w, plain.w);  // x^-1 R^-1
  return plain * Field<P>::from_words(P::r3);
}

}  // namespace cuzk::CUZK_PATH
