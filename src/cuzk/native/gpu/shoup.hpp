// Products of scalars by constants after Shoup, in loose form: values in [0, 2r), which 256 bits hold.
//
// A constant w < r comes with v = floor(2^256 w / r). For x < 2r and q = floor(v x / 2^256), short by at most
// 2^-29 of a unit of v x / 2^256 because limb products below weight 6 are left out,
//
//   0 <= w x - q r < r (1 + 2^-29) + r x / 2^256 < 2r
//
// so that the lower halves of w x and of q r are enough: 43 + 28 + 28 wide multiplications of limbs and 16
// narrow ones instead of Montgomery's 128 + 8; modulo r = 1 - 2^32 mod 2^64 43 + 28 + 15 and 14 instead of
// 112. Columns and rows are those of limbs.hpp.
#pragma once

#include "kernel.hpp"
#include "limbs.hpp"

namespace cuzk::CUZK_PATH {

// A constant in plain form, times any form: the product has the other factor's.
struct Constant {
  Fr value, quotient;
};

namespace shoup {

using P = Fr::P;
using L = Limbs<P>;
constexpr int words = 4, limbs = 8;
static_assert(P::words == words && P::spare_bits >= 1);

// 2^256 - r and 2 r.
struct Derived {
  u64 negative[words], twice[words];
  constexpr Derived() : negative(), twice() {
    for (int i = 0; i < words; i++) {
      negative[i] = ~P::modulus[i] + (i == 0);  // r is odd
      twice[i] = P::modulus[i] << 1 | (i ? P::modulus[i - 1] >> 63 : 0);
    }
  }
};
constexpr Derived derived;

#ifdef CUZK_DEVICE
// e[1..4] += the words of o from weight 1 on, and the carry of weight 0 (high half of e[0], low half of o[0]).
inline void add_upper(u64* e, const u64* o) {
  asm("{.reg .u32 t; add.cc.u32 t, %4, %5;}\n\t"
      "addc.cc.u64 %0, %0, %6; addc.cc.u64 %1, %1, %7; addc.cc.u64 %2, %2, %8; addc.u64 %3, %3, %9;"
      : "+&l"(e[1]), "+&l"(e[2]), "+&l"(e[3]), "+&l"(e[4])
      : "r"(high_half(e[0])), "r"(low_half(o[0])), "l"(join(high_half(o[0]), low_half(o[1]))),
        "l"(join(high_half(o[1]), low_half(o[2]))), "l"(join(high_half(o[2]), low_half(o[3]))),
        "l"(join(high_half(o[3]), 0)));
}
// a += b; the carry.
inline u32 add_with_carry(u64* a, const u64* b) {
  u32 carry;
  asm("add.cc.u64 %0, %0, %5; addc.cc.u64 %1, %1, %6; addc.cc.u64 %2, %2, %7; addc.cc.u64 %3, %3, %8;\n\t"
      "addc.u32 %4, 0, 0;"
      : "+&l"(a[0]), "+&l"(a[1]), "+&l"(a[2]), "+&l"(a[3]), "=&r"(carry)
      : "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]));
  return carry;
}
// a -= b; carry - the borrow.
inline u32 sub_from_carry(u64* a, const u64* b, u32 carry) {
  u32 rest;
  asm("sub.cc.u64 %0, %0, %5; subc.cc.u64 %1, %1, %6; subc.cc.u64 %2, %2, %7; subc.cc.u64 %3, %3, %8;\n\t"
      "subc.u32 %4, %9, 0;"
      : "+&l"(a[0]), "+&l"(a[1]), "+&l"(a[2]), "+&l"(a[3]), "=&r"(rest)
      : "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), "r"(carry));
  return rest;
}
#else
inline void add_upper(u64* e, const u64* o) {
  u64 carry = ((u64)high_half(e[0]) + low_half(o[0])) >> 32;
  for (int i = 0; i < words; i++)
    e[i + 1] = add_carry(e[i + 1], join(high_half(o[i]), i + 1 < words ? low_half(o[i + 1]) : 0), carry);
}
inline u32 add_with_carry(u64* a, const u64* b) {
  u64 carry = 0;
  for (int i = 0; i < words; i++) a[i] = add_carry(a[i], b[i], carry);
  return (u32)carry;
}
inline u32 sub_from_carry(u64* a, const u64* b, u32 carry) {
  u64 borrow = 0;
  for (int i = 0; i < words; i++) a[i] = sub_borrow(a[i], b[i], borrow);
  return carry - (u32)borrow;
}
#endif

// Row I of the upper half: e has the columns of weights 6, 8, .. 14, o those of 7, 9, .. 13. One of its two
// chains reaches a new column, the carry of the other is one of that column's upper half.
template <int I>
inline void add_upper_row(u64* e, u64* o, const u32* v, const u32* x) {
  constexpr int first = I < 7 ? 0 : 1, evens = I < 7 ? (I + 3) / 2 : 4, odds = I / 2 + 1;
  if constexpr (I % 2) {
    e[(I + 1) / 2] = 0;
    add_products<evens>(e + first, v + (I < 7 ? 6 - I : 1), x[I]);
    add_products<odds>(o, v + 7 - I, x[I], e[(I + 1) / 2]);
  } else {
    o[I / 2] = 0;
    add_products<odds>(o, v + 7 - I, x[I]);
    add_products<evens>(e, v + 6 - I, x[I], o[I / 2]);
  }
  if constexpr (I < 7) add_upper_row<I + 1>(e, o, v, x);
}

// Row I of the lower half, of which the limbs a[0 .. from) count as zero: columns e of weights 0, 2, 4, 6, o
// of 1, 3, 5, and the limb of weight 7.
template <int from, int I>
inline void add_lower_row(u64* e, u64* o, u32& top, const u32* a, const u32* x) {
  constexpr int even = (I + 1 + from) / 2, odd = (I + from) / 2;
  if constexpr (even < 4) add_products<4 - even>(e + even, a + from + I % 2, x[I]);
  if constexpr (odd < 3) add_products<3 - odd>(o + odd, a + from + 1 - I % 2, x[I], top);
  if constexpr (7 - I >= from) top += a[7 - I] * x[I];
  if constexpr (I < 7) add_lower_row<from, I + 1>(e, o, top, a, x);
}

inline void multiply(u64* out, const u64* x_words, const Constant& c) {
  u32 x[limbs], a[limbs], q[limbs];
  u64 e[words + 1], o[words];
  L::split(x, x_words), L::split(a, c.quotient.w);
  set_products<1>(e, a + 6, x[0]);
  set_products<1>(o, a + 7, x[0]);
  add_upper_row<1>(e, o, a, x);
  add_upper(e, o);

  L::split(q, e + 1), L::split(a, c.value.w);
  u32 n[limbs], top;
  L::split(n, derived.negative);
  u64 low[words];
  set_products<4>(low, a, x[0]);
  if constexpr (L::special) {  // - r = 2^32 - 1 + the limbs from the third on
    for (int j = 0; j < 3; j++) o[j] = e[j + 1];
    top = q[6];
    add_products<3>(o, a + 1, x[0], top);
    top += a[7] * x[0];
  } else {
    set_products<3>(o, a + 1, x[0]);
    top = a[7] * x[0];
  }
  add_lower_row<0, 1>(low, o, top, a, x);
  add_lower_row<L::special ? 2 : 0, 0>(low, o, top, n, q);
  u64 odd[words] = {join(0, low_half(o[0])), join(high_half(o[0]), low_half(o[1])),
                    join(high_half(o[1]), low_half(o[2])), join(high_half(o[2]), top)};
  add_words<words>(low, odd);
  if constexpr (L::special) sub_words<words>(low, e + 1);
  for (int j = 0; j < words; j++) out[j] = low[j];
}

}  // namespace shoup

// A scalar in [0, 2r), in the form (Montgomery or plain) that it had.
struct Loose {
  Fr value;

  Loose operator*(const Constant& c) const {
    Loose product;
    shoup::multiply(product.value.w, value.w, c);
    return product;
  }
  Loose operator+(const Loose& o) const {
    Loose sum = *this;
    u32 carry = shoup::add_with_carry(sum.value.w, o.value.w);
    u64 d[Fr::N];
    for (int i = 0; i < Fr::N; i++) d[i] = sum.value.w[i];
    u32 below = shoup::sub_from_carry(d, shoup::derived.twice, carry);
    for (int i = 0; i < Fr::N; i++) sum.value.w[i] = below ? sum.value.w[i] : d[i];
    return sum;
  }
  Loose operator-(const Loose& o) const {
    Loose difference = *this;
    u32 borrow = sub_words<Fr::N>(difference.value.w, o.value.w);
    add_words_if<Fr::N>(borrow, difference.value.w, shoup::derived.twice);
    return difference;
  }
  Fr reduced() const { return value.reduced_once(); }
};

// x / 2^log by one step of Montgomery's reduction; 0 < log < 32, x < 2r.
inline Fr divided(const Fr& x, u32 log) {
  using P = Fr::P;
  using L = Limbs<P>;
  u32 modulus[L::N], up = 32 - log;
  L::split(modulus, P::modulus);
  u64 even[Fr::N], odd[Fr::N] = {}, shifted[Fr::N];
  for (int i = 0; i < Fr::N; i++) even[i] = x.w[i] << up | (i ? x.w[i - 1] >> (64 - up) : 0);
  L::add_quotient(even, odd, modulus);
  for (int i = 0; i + 1 < Fr::N; i++) shifted[i] = join(high_half(even[i]), low_half(even[i + 1]));
  shifted[Fr::N - 1] = join(high_half(even[Fr::N - 1]), (u32)(x.w[Fr::N - 1] >> (64 - up)));
  add_words<Fr::N>(odd, shifted);
  L::reduce_once(odd);
  return Fr::from_words(odd);
}

// The constant of a scalar in Montgomery form: reducing 2^256 w mod r to w takes the quotient on the way.
inline Constant constant(const Fr& w) {
  Constant c;
  u64 t[Fr::N + 1] = {};
  for (int i = 0; i < Fr::N; i++) t[i] = w.w[i];
  for (int i = 0; i < Fr::N; i++) {
    u64 q = t[0] * Fr::P::inverse, carry = 0;
    c.quotient.w[i] = q;
    mul_add(q, Fr::P::modulus[0], t[0], carry);
    for (int j = 1; j < Fr::N; j++) t[j - 1] = mul_add(q, Fr::P::modulus[j], t[j], carry);
    t[Fr::N - 1] = carry;
  }
  c.value = Fr::from_words(t).reduced_once();
  return c;
}

}  // namespace cuzk::CUZK_PATH
