// Prime fields in Montgomery form: an element x is held as x * R mod p, R = 2^(64 * words), always
// fully reduced (one encoding per value). Both curves' Fp and Fr have a spare top bit, so the "no-carry"
// multiplication applies (words + 1 words of accumulator; gnark-crypto's field documentation).
#pragma once

#include "inverse.hpp"
#include "word.hpp"

namespace cuzk::CUZK_PATH {

// t += a * b, N + 1 words: the low and the high halves on a carry chain each.
template <int N>
CUZK_INLINE constexpr void add_row(u64* t, const u64* a, u64 b) {
  u64 low[N] = {}, high[N] = {}, carry = 0;
  for (int j = 0; j < N; j++) low[j] = mul_add(a[j], b, 0, high[j]);
  for (int j = 0; j < N; j++) t[j] = add_carry(t[j], low[j], carry);
  t[N] += carry;
  carry = 0;
  for (int j = 0; j < N; j++) t[j + 1] = add_carry(t[j + 1], high[j], carry);
}

template <class Params>
struct Field {
  using P = Params;
  static constexpr int N = P::words;
  u64 w[N];

  static constexpr Field zero() { return Field{}; }
  static constexpr Field one() { return from_words(P::one); }
  static constexpr Field from_words(const u64* words) {
    Field f{};
    for (int i = 0; i < N; i++) f.w[i] = words[i];
    return f;
  }

  constexpr bool is_zero() const {
    u64 any = 0;
    for (int i = 0; i < N; i++) any |= w[i];
    return any == 0;
  }
  constexpr bool operator==(const Field& o) const {
    u64 any = 0;
    for (int i = 0; i < N; i++) any |= w[i] ^ o.w[i];
    return any == 0;
  }

  // Is this word vector below the modulus, that is, a legal element?
  static constexpr bool is_canonical(const u64* words) {
    u64 borrow = 0;
    for (int i = 0; i < N; i++) sub_borrow(words[i], P::modulus[i], borrow);
    return borrow != 0;
  }

  CUZK_INLINE constexpr Field operator+(const Field& o) const {
    Field s{};
#ifdef CUZK_ADX
    if (!__builtin_is_constant_evaluated()) {
      adx_add<P>(s.w, w, o.w);
      return s;
    }
#endif
#ifdef CUZK_LIMBS
    if (!__builtin_is_constant_evaluated()) {
      Limbs<P>::add(s.w, w, o.w);
      return s;
    }
#endif
    u64 carry = 0;
    for (int i = 0; i < N; i++) s.w[i] = add_carry(w[i], o.w[i], carry);
    return s.reduced_once();  // the spare bit keeps the sum within N words
  }
  CUZK_INLINE constexpr Field operator-(const Field& o) const {
    Field d{};
#ifdef CUZK_ADX
    if (!__builtin_is_constant_evaluated()) {
      adx_sub<P>(d.w, w, o.w);
      return d;
    }
#endif
#ifdef CUZK_LIMBS
    if (!__builtin_is_constant_evaluated()) {
      Limbs<P>::sub(d.w, w, o.w);
      return d;
    }
#endif
    u64 borrow = 0, carry = 0, mask;
    for (int i = 0; i < N; i++) d.w[i] = sub_borrow(w[i], o.w[i], borrow);
    mask = 0 - borrow;
    for (int i = 0; i < N; i++) d.w[i] = add_carry(d.w[i], P::modulus[i] & mask, carry);
    return d;
  }
  constexpr Field operator-() const { return zero() - *this; }
  constexpr Field doubled() const { return *this + *this; }

  // Inline: a result returned through memory is copied in 16-byte pieces, which wait for the 8-byte
  // stores (batched additions: 2 % in G1, 5 % in G2; Zen 4, gcc 12, 2026-11).
  CUZK_INLINE constexpr Field operator*(const Field& o) const {
#ifdef CUZK_ADX
    if (!__builtin_is_constant_evaluated()) {
      Field product;
      adx_mul<P>(product.w, w, o.w);
      return product;
    }
#endif
#ifdef CUZK_LIMBS
    if (!__builtin_is_constant_evaluated()) {
      Field product;
      Limbs<P>::multiply(product.w, w, o.w);
      return product;
    }
#endif
    u64 t[N + 1] = {};
#ifdef CUZK_ADC
    if (!__builtin_is_constant_evaluated()) {  // 28 -> 23 and 60 -> 48 ns; aarch64 would lose by it
      for (int i = 0; i < N; i++) {
        add_row<N>(t, w, o.w[i]);
        add_row<N>(t, P::modulus, t[0] * P::inverse);  // t[0] is 0 now
        for (int j = 0; j < N; j++) t[j] = t[j + 1];
        t[N] = 0;
      }
      return from_words(t).reduced_once();
    }
#endif
    for (int i = 0; i < N; i++) {
      u64 carry = 0;
      for (int j = 0; j < N; j++) t[j] = mul_add(w[j], o.w[i], t[j], carry);
      t[N] = carry;
      u64 q = t[0] * P::inverse;
      carry = 0;
      mul_add(q, P::modulus[0], t[0], carry);
      for (int j = 1; j < N; j++) t[j - 1] = mul_add(q, P::modulus[j], t[j], carry);
      t[N - 1] = t[N] + carry;
    }
    return from_words(t).reduced_once();
  }
  CUZK_INLINE constexpr Field squared() const {
#ifdef CUZK_LIMBS
    if constexpr (Limbs<P>::merges) {
      if (!__builtin_is_constant_evaluated()) {
        Field square;
        Limbs<P>::square(square.w, w);
        return square;
      }
    }
#endif
    return *this * *this;
  }

  // a * b + c * d and a * b - c * d.
  CUZK_INLINE static constexpr Field sum(const Field& a, const Field& b, const Field& c, const Field& d) {
#ifdef CUZK_LIMBS
    if constexpr (Limbs<P>::merges) {  // one reduction
      if (!__builtin_is_constant_evaluated()) {
        Field value;
        Limbs<P>::sum(value.w, a.w, b.w, c.w, d.w);
        return value;
      }
    }
#endif
    return a * b + c * d;
  }
  CUZK_INLINE static constexpr Field difference(const Field& a, const Field& b, const Field& c,
                                                const Field& d) {
#ifdef CUZK_LIMBS
    if constexpr (Limbs<P>::merges) {
      if (!__builtin_is_constant_evaluated()) {
        Field value;
        Limbs<P>::difference(value.w, a.w, b.w, c.w, d.w);
        return value;
      }
    }
#endif
    return a * b - c * d;
  }

  // Plain integer words -> Montgomery and back.
  static constexpr Field from_plain(const u64* plain) { return from_words(plain) * from_words(P::r2); }
  constexpr Field to_plain() const {
    Field unit{};
    unit.w[0] = 1;
    return *this * unit;
  }
  static constexpr Field from_u64(u64 value) {
    u64 plain[N] = {value};
    return from_plain(plain);
  }

  // Exponent: little-endian words, plain.
  constexpr Field pow(const u64* exponent, int words) const {
    Field result = one();
    for (int i = words * 64 - 1; i >= 0; i--) {
      result = result.squared();
      if (exponent[i / 64] >> (i % 64) & 1) result = result * *this;
    }
    return result;
  }

  // 0 maps to 0.
  constexpr Field inverse() const {
    Field inverted{};
    Inversion<P>::run(w, inverted.w);  // x^-1 R^-1
    return inverted * from_words(P::r3);
  }

  constexpr Field reduced_once() const {
    Field d{};
    u64 borrow = 0;
    for (int i = 0; i < N; i++) d.w[i] = sub_borrow(w[i], P::modulus[i], borrow);
    // A choice, not masks: gcc takes those through vector registers (a product in Fp6 of BN254 took 1.32 us
    // instead of 0.79, of BLS12-381 1.92 instead of 1.60; Zen 4, gcc 12, 2026-11).
    for (int i = 0; i < N; i++) d.w[i] = borrow ? w[i] : d.w[i];
    return d;
  }
};

}  // namespace cuzk::CUZK_PATH
