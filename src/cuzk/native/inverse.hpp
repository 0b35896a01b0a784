// Modular inversion by division steps, after Bernstein and Yang, "Fast constant-time gcd computation and
// modular inversion" (2019), here in variable time. Plain integers, no Montgomery form.
//
// Beginning with (delta, f, g) = (1, p, x), a step maps odd g with delta > 0 to (1 - delta, g, (g - f) / 2),
// any other g to (1 + delta, f, (g + (g mod 2) f) / 2), until g = 0 and f = +-1. A block of 62 steps depends
// on the low words only and is one 2 x 2 matrix, which is then applied to the long f, g and, modulo p, to
// d, e with d x = f, e x = g. Runs of even g, and runs with delta <= 0, are taken in one go.
#pragma once

#include "word.hpp"

namespace cuzk::CUZK_PATH {

constexpr int step_bits = 62;
constexpr u64 step_mask = ~0ull >> 2;

// f' = (u f + v g) / 2^62, g' = (q f + r g) / 2^62.
struct StepMatrix {
  i64 u, v, q, r;
};

constexpr StepMatrix divide_steps(i64& delta, u64 f, u64 g) {
  u64 u = 1, v = 0, q = 0, r = 1;
  for (int left = step_bits;;) {
    int even = g == 0 ? left : trailing_zeros(g);
    if (even > left) even = left;
    g >>= even, u <<= even, v <<= even;
    delta += even, left -= even;
    if (left == 0) return {(i64)u, (i64)v, (i64)q, (i64)r};
    if (delta > 0) {
      u64 old_f = f, old_u = u, old_v = v;
      f = g, u = q, v = r;
      g = 0 - old_f, q = 0 - old_u, r = 0 - old_v;
      delta = -delta;
    }
    // The next 1 - delta steps leave f alone: w f clears as many low bits of g (up to 6: the inverse
    // of f modulo 64 takes one Newton step).
    int run = 1 - delta < left ? (int)(1 - delta) : left;
    if (run > 6) run = 6;
    u64 w = (g * f * (f * f - 2)) & (~0ull >> (64 - run));
    g += w * f, q += w * u, r += w * v;
  }
}

template <class P>
struct Inversion {
  // Little-endian words of 62 bits; the top one is signed. |values| stay below 2p.
  static constexpr int L = (64 * P::words + step_bits - 1) / step_bits;
  struct Signed {
    i64 w[L];
  };

  static constexpr Signed split(const u64* words) {
    Signed s{};
    for (int i = 0; i < L; i++) {
      int bit = i * step_bits, word = bit / 64, shift = bit % 64;
      u64 low = word < P::words ? words[word] >> shift : 0;
      if (shift > 0 && word + 1 < P::words) low |= words[word + 1] << (64 - shift);
      s.w[i] = (i64)(low & step_mask);
    }
    return s;
  }
  static constexpr Signed modulus = split(P::modulus);

  static constexpr bool is_zero(const Signed& s, int used) {
    i64 any = 0;
    for (int i = 0; i < used; i++) any |= s.w[i];
    return any == 0;
  }

  static constexpr void apply(const StepMatrix& m, Signed& f, Signed& g, int used) {
    Wide cf, cg;
    for (int i = 0; i < used; i++) {
      cf.add_product(m.u, f.w[i]), cf.add_product(m.v, g.w[i]);
      cg.add_product(m.q, f.w[i]), cg.add_product(m.r, g.w[i]);
      if (i > 0) f.w[i - 1] = (i64)(cf.word() & step_mask), g.w[i - 1] = (i64)(cg.word() & step_mask);
      cf.shift(step_bits), cg.shift(step_bits);
    }
    f.w[used - 1] = (i64)cf.word(), g.w[used - 1] = (i64)cg.word();
  }

  // The same modulo p: d, e in (-2p, p) get p added where negative, then at most 2^62 p is subtracted to
  // make the sum divisible by 2^62, so the results are in (-2p, p) again.
  static constexpr void apply_mod(const StepMatrix& m, Signed& d, Signed& e) {
    constexpr u64 inverse = 0 - P::inverse;  // p^-1
    i64 d_sign = d.w[L - 1] >> 63, e_sign = e.w[L - 1] >> 63;
    i64 kd = (m.u & d_sign) + (m.v & e_sign), ke = (m.q & d_sign) + (m.r & e_sign);
    Wide cd, ce;
    for (int i = 0; i < L; i++) {
      cd.add_product(m.u, d.w[i]), cd.add_product(m.v, e.w[i]);
      ce.add_product(m.q, d.w[i]), ce.add_product(m.r, e.w[i]);
      if (i == 0) {
        kd -= (i64)(((cd.word() + (u64)kd * (u64)modulus.w[0]) * inverse) & step_mask);
        ke -= (i64)(((ce.word() + (u64)ke * (u64)modulus.w[0]) * inverse) & step_mask);
      }
      cd.add_product(modulus.w[i], kd);
      ce.add_product(modulus.w[i], ke);
      if (i > 0) d.w[i - 1] = (i64)(cd.word() & step_mask), e.w[i - 1] = (i64)(ce.word() & step_mask);
      cd.shift(step_bits), ce.shift(step_bits);
    }
    d.w[L - 1] = (i64)cd.word(), e.w[L - 1] = (i64)ce.word();
  }

  static constexpr bool is_negative(const Signed& s) { return s.w[L - 1] < 0; }

  // sign * s + (p or 0), sign 1 or -1.
  static constexpr void scale_and_add(Signed& s, i64 sign, bool add_modulus) {
    i64 carry = 0;
    for (int i = 0; i < L; i++) {
      carry += sign * s.w[i] + (add_modulus ? modulus.w[i] : 0);
      s.w[i] = i + 1 < L ? (i64)((u64)carry & step_mask) : carry;
      carry >>= step_bits;
    }
  }

  // out = x^-1 mod p, below p; 0 for 0.
  static constexpr void run(const u64* x, u64* out) {
    Signed f = modulus, g = split(x), d{}, e{};
    e.w[0] = 1;
    i64 delta = 1;
    for (int used = L; !is_zero(g, used);) {
      StepMatrix m = divide_steps(delta, (u64)f.w[0], (u64)g.w[0]);
      apply_mod(m, d, e);
      apply(m, f, g, used);
      while (used > 1 && is_sign(f.w[used - 1]) && is_sign(g.w[used - 1])) {
        used--;
        f.w[used - 1] |= (i64)((u64)f.w[used] << step_bits);
        g.w[used - 1] |= (i64)((u64)g.w[used] << step_bits);
        f.w[used] = g.w[used] = 0;
      }
    }
    bool minus = f.w[0] < 0;  // f = -1: one word is left of it
    scale_and_add(d, 1, is_negative(d));
    if (minus) scale_and_add(d, -1, false);
    if (is_negative(d)) scale_and_add(d, 1, true);
    for (int i = 0; i < P::words; i++) {
      int bit = i * 64, limb = bit / step_bits, shift = bit % step_bits;
      out[i] = (u64)d.w[limb] >> shift;
      if (limb + 1 < L) out[i] |= (u64)d.w[limb + 1] << (step_bits - shift);
    }
  }

  static constexpr bool is_sign(i64 word) { return word == 0 || word == -1; }
};

}  // namespace cuzk::CUZK_PATH
