// The quadratic extension Fp2 = Fp[u] / (u^2 + 1) of both curves: c0 + c1 u, c0 first as in every file
// format that is read here.
#pragma once

#include "field.hpp"

namespace cuzk::CUZK_PATH {

template <class F>
struct Fp2 {
  using Base = F;
  static constexpr int N = 2 * F::N;
  F c0, c1;

  static constexpr Fp2 zero() { return Fp2{}; }
  static constexpr Fp2 one() { return {F::one(), F::zero()}; }
  static constexpr Fp2 from_words(const u64* words) {
    return {F::from_words(words), F::from_words(words + F::N)};
  }
  static constexpr bool is_canonical(const u64* words) {
    return F::is_canonical(words) && F::is_canonical(words + F::N);
  }

  constexpr bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
  constexpr bool operator==(const Fp2& o) const { return c0 == o.c0 && c1 == o.c1; }

  constexpr Fp2 operator+(const Fp2& o) const { return {c0 + o.c0, c1 + o.c1}; }
  constexpr Fp2 operator-(const Fp2& o) const { return {c0 - o.c0, c1 - o.c1}; }
  constexpr Fp2 operator-() const { return {-c0, -c1}; }
  constexpr Fp2 doubled() const { return {c0.doubled(), c1.doubled()}; }
  constexpr Fp2 conjugate() const { return {c0, -c1}; }

  constexpr Fp2 operator*(const F& k) const { return {c0 * k, c1 * k}; }

  // Karatsuba: three products.
  CUZK_OUT_OF_LINE constexpr Fp2 operator*(const Fp2& o) const {
#ifdef CUZK_LIMBS
    if (!__builtin_is_constant_evaluated()) {
      Fp2 product;
      Limbs<typename F::P>::multiply_complex(product.c0.w, product.c1.w, c0.w, c1.w, o.c0.w, o.c1.w);
      return product;
    }
#endif
    F low = c0 * o.c0, high = c1 * o.c1;
    F cross = (c0 + c1) * (o.c0 + o.c1);
    return {low - high, cross - low - high};
  }
  // (c0 + c1)(c0 - c1) + 2 c0 c1 u: two products.
  CUZK_OUT_OF_LINE constexpr Fp2 squared() const {
#ifdef CUZK_LIMBS
    if (!__builtin_is_constant_evaluated()) {
      Fp2 square;
      Limbs<typename F::P>::square_complex(square.c0.w, square.c1.w, c0.w, c1.w);
      return square;
    }
#endif
    return {(c0 + c1) * (c0 - c1), (c0 * c1).doubled()};
  }

  // a * b - c * d.
  CUZK_OUT_OF_LINE static constexpr Fp2 difference(const Fp2& a, const Fp2& b, const Fp2& c, const Fp2& d) {
#ifdef CUZK_LIMBS
    if (!__builtin_is_constant_evaluated()) {  // six products, two reductions
      Fp2 e;
      Limbs<typename F::P>::difference_complex(e.c0.w, e.c1.w, a.c0.w, a.c1.w, b.c0.w, b.c1.w, c.c0.w, c.c1.w,
                                               d.c0.w, d.c1.w);
      return e;
    }
#endif
    return a * b - c * d;
  }

  // Conjugate over norm; 0 maps to 0.
  constexpr Fp2 inverse() const {
    F scale = (c0.squared() + c1.squared()).inverse();
    return {c0 * scale, -(c1 * scale)};
  }

  // Exponent: little-endian words, plain.
  constexpr Fp2 pow(const u64* exponent, int words) const {
    Fp2 result = one();
    for (int i = words * 64 - 1; i >= 0; i--) {
      result = result.squared();
      if (exponent[i / 64] >> (i % 64) & 1) result = result * *this;
    }
    return result;
  }
};

}  // namespace cuzk::CUZK_PATH
