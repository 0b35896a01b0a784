// Montgomery arithmetic on 32-bit limbs: the form whose partial products a GPU adds at its full rate.
//
// The product of limbs i and j has weight 2^(32 (i + j)). It is added as one 64-bit word to a column of
// `even` (i + j even) or of `odd`: a number is even + 2^32 odd. A row, one limb times every second limb of
// a number, is then a single chain of carries over whole columns: each product one IMAD.WIDE, each column
// an aligned pair of registers. Operands are N = 2 K limbs, K = P::words. Instructions that multiply:
//
//   product         2 N^2 wide + N quotients           381 bits: 288 + 12, 254 bits: 128 + 8
//   square          N (N + 1) / 2 + N^2 wide + N       222 + 12, 100 + 8
//   a b + c d       3 N^2 wide + N                     432 + 12, 192 + 8
//   modulo r = 1 - 2^32 mod 2^64 (BLS12-381's Fr)      112: the quotient is the negated limb
//
// The carry flag lives within one asm statement; between statements a carry is a word. The host's version
// of each row computes the same columns.
#pragma once

#ifdef CUZK_DEVICE
#include "limbs_ptx.hpp"
#endif

namespace cuzk::CUZK_PATH {

constexpr u32 low_half(u64 x) { return (u32)x; }
constexpr u32 high_half(u64 x) { return (u32)(x >> 32); }
constexpr u64 join(u32 low, u32 high) { return (u64)high << 32 | low; }

#ifndef CUZK_DEVICE
// columns[j] += a[2 j] * b, top += the carry.
template <int K>
inline void add_products(u64* columns, const u32* a, u32 b, u32& top) {
  u64 carry = 0;
  for (int j = 0; j < K; j++) columns[j] = add_carry(columns[j], (u64)a[2 * j] * b, carry);
  top += (u32)carry;
}
// The same after low += x, whose carry is one of column 0.
template <int K>
inline void add_products_after(u32& low, u32 x, u64* columns, const u32* a, u32 b) {
  u64 sum = (u64)low + x, carry = sum >> 32;
  low = (u32)sum;
  for (int j = 0; j < K; j++) columns[j] = add_carry(columns[j], (u64)a[2 * j] * b, carry);
}
// low += x, quotient = low * inverse, and the row of the quotient.
template <int K>
inline void add_quotient_after(u32& low, u32 x, u32& quotient, u32 inverse, u64* columns, const u32* p) {
  quotient = (low + x) * inverse;
  add_products_after<K>(low, x, columns, p, quotient);
}
// columns[0] += x; columns[j + 1] += a[2 j] * b, top += the carry.
template <int K>
inline void add_word_and_products(u64* columns, u64 x, const u32* a, u32 b, u32& top) {
  u64 carry = 0;
  columns[0] = add_carry(columns[0], x, carry);
  for (int j = 0; j < K; j++) columns[j + 1] = add_carry(columns[j + 1], (u64)a[2 * j] * b, carry);
  top += (u32)carry;
}
// The high word of (above, below) * 2.
inline u32 shift_in(u32 below, u32 above) { return above << 1 | below >> 31; }
// -t, and `less` = that - [t != 0].
inline u32 negated(u32 t, u32& less) {
  less = 0 - t - (t != 0);
  return 0 - t;
}
// a += b; the sum fits.
template <int W>
inline void add_words(u64* a, const u64* b) {
  u64 carry = 0;
  for (int i = 0; i < W; i++) a[i] = add_carry(a[i], b[i], carry);
}
// a -= b; the borrow, 0 or all ones.
template <int W>
inline u32 sub_words(u64* a, const u64* b) {
  u64 borrow = 0;
  for (int i = 0; i < W; i++) a[i] = sub_borrow(a[i], b[i], borrow);
  return 0 - (u32)borrow;
}
// a += b if `condition` is not zero; a carry out is dropped.
template <int W>
inline void add_words_if(u32 condition, u64* a, const u64* b) {
  u64 carry = 0;
  for (int i = 0; i < W; i++) a[i] = add_carry(a[i], condition ? b[i] : 0, carry);
}
#endif

// columns[j] = a[2 j] * b.
template <int K>
inline void set_products(u64* columns, const u32* a, u32 b) {
#pragma unroll
  for (int j = 0; j < K; j++) columns[j] = (u64)a[2 * j] * b;
}

// top += the carry of a row, in the high half of a column.
template <int K>
inline void add_products(u64* columns, const u32* a, u32 b, u64& top_column) {
  u32 top = high_half(top_column);
  add_products<K>(columns, a, b, top);
  top_column = join(low_half(top_column), top);
}
// A row whose carry is known to be zero.
template <int K>
inline void add_products(u64* columns, const u32* a, u32 b) {
  u32 none = 0;
  add_products<K>(columns, a, b, none);
}

template <class P>
struct Limbs {
  static constexpr int K = P::words, N = 2 * K;
  static constexpr u32 inverse = (u32)P::inverse;
  // The modulus is 1 - 2^32 modulo 2^64.
  static constexpr bool special = P::modulus[0] == 0xffffffff00000001ull;
  // Sums of two products may share a reduction: the accumulator stays below 3 p.
  static constexpr bool merges = P::spare_bits >= 2 && !special;

  static void split(u32* limbs, const u64* words) {
#pragma unroll
    for (int i = 0; i < K; i++) limbs[2 * i] = low_half(words[i]), limbs[2 * i + 1] = high_half(words[i]);
  }

  // t - p if that is not negative, else t.
  static void reduce_once(u64* t) {
    u64 d[K];
#pragma unroll
    for (int i = 0; i < K; i++) d[i] = t[i];
    u32 borrow = sub_words<K>(d, P::modulus);
#pragma unroll
    for (int i = 0; i < K; i++) t[i] = borrow ? t[i] : d[i];
  }
  static void add(u64* sum, const u64* a, const u64* b) {
#pragma unroll
    for (int i = 0; i < K; i++) sum[i] = a[i];
    add_words<K>(sum, b);
    reduce_once(sum);
  }
  static void sub(u64* difference, const u64* a, const u64* b) {
#pragma unroll
    for (int i = 0; i < K; i++) difference[i] = a[i];
    u32 borrow = sub_words<K>(difference, b);
    add_words_if<K>(borrow, difference, P::modulus);
  }

  // even + 2^32 odd += m p with m such that the lowest limb becomes zero.
  static void add_quotient(u64* even, u64* odd, const u32* p) {
    if constexpr (special) {
      // m = -t, t the lowest limb. The two low limbs of p, 1 and 2^32 - 1, times m: m, and for t != 0
      // 2^32 m - m = 2^32 (m - 1) + t.
      u32 t = low_half(even[0]), none = 0, top = 0, less, m = negated(t, less);
      add_word_and_products<K - 1>(odd, join(t, less), p + 3, m, none);
      top = high_half(odd[K - 1]);
      add_word_and_products<K - 1>(even, m, p + 2, m, top);
      odd[K - 1] = join(low_half(odd[K - 1]), top);
    } else {
      u32 m = low_half(even[0]) * inverse;
      add_products<K>(odd, p + 1, m);
      add_products<K>(even, p, m, odd[K - 1]);
    }
  }

  // One limb down: `odd`, whose lowest limb is zero, becomes the new even columns. Its other limb of
  // column 0 joins the lowest of what is even now; the row a_1 b, a_3 b, ... takes the carry.
  static void shift_and_add(u64* even, u64* odd, const u32* a, u32 b) {
    u32 low = low_half(even[0]), x = high_half(odd[0]);
    drop_column(odd);
    add_products_after<K>(low, x, odd, a + 1, b);
    even[0] = join(low, high_half(even[0]));
    add_products<K>(even, a, b, odd[K - 1]);
  }
  static void drop_column(u64* columns) {
#pragma unroll
    for (int j = 0; j + 1 < K; j++) columns[j] = columns[j + 1];
    columns[K - 1] = 0;
  }
  // out = even + 2^32 odd after the last shift.
  static void join_columns(u64* out, const u64* even, const u64* odd) {
    u64 shifted[K];
#pragma unroll
    for (int j = 0; j < K; j++) {
      out[j] = even[j];
      shifted[j] = join(high_half(odd[j]), j + 1 < K ? low_half(odd[j + 1]) : 0);
    }
    add_words<K>(out, shifted);
  }

  // a b / 2^(32 N), below 2 p for a <= p and any b.
  static void multiply_lazy(u64* out, const u64* a_words, const u64* b_words) {
    u32 a[N], b[N], p[N];
    split(a, a_words), split(b, b_words), split(p, P::modulus);
    u64 x[K], y[K];
    set_products<K>(x, a, b[0]);
    set_products<K>(y, a + 1, b[0]);
    add_quotient(x, y, p);
#pragma unroll
    for (int i = 1; i < N; i++) {
      u64 *even = i % 2 ? y : x, *odd = i % 2 ? x : y;
      shift_and_add(even, odd, a, b[i]);
      add_quotient(even, odd, p);
    }
    join_columns(out, x, y);
  }
  static void multiply(u64* out, const u64* a, const u64* b) {
    multiply_lazy(out, a, b);
    reduce_once(out);
  }

  // a^2 / 2^(32 N). Row i is a_i (a_i + 2 a_(i+1) 2^32 + ...): the limbs of 2 a above i, the first of them
  // without the bit that a_i shifts into it. It begins at limb 2 i, which is i of the shifted accumulator.
  static void square(u64* out, const u64* a_words) {
    static_assert(merges);
    u32 a[N], twice[N], p[N];
    split(a, a_words), split(p, P::modulus);
#pragma unroll
    for (int i = 1; i < N; i++) twice[i] = shift_in(a[i - 1], a[i]);
    u64 x[K], y[K];
    u32 row[N];
    row_of_square<0>(row, a, twice);
    set_products<K>(x, row, a[0]);
    set_products<K>(y, row + 1, a[0]);
    add_quotient(x, y, p);
    square_from<1>(x, y, a, twice, p);
    join_columns(out, x, y);
    reduce_once(out);
  }
  template <int I>
  static void row_of_square(u32* row, const u32* a, const u32* twice) {
    row[0] = a[I];
    if constexpr (I + 1 < N) row[1] = a[I + 1] << 1;
#pragma unroll
    for (int j = I + 2; j < N; j++) row[j - I] = twice[j];
  }
  template <int I>
  static void square_from(u64* x, u64* y, const u32* a, const u32* twice, const u32* p) {
    u64 *even = I % 2 ? y : x, *odd = I % 2 ? x : y;
    shift_and_add_quotient(even, odd, p);
    u32 row[N];
    row_of_square<I>(row, a, twice);
    constexpr int evens = (N - I) / 2, odds = (N + 1 - I) / 2, first = I % 2;  // columns left of each
    if constexpr (evens > 0) add_products<evens>(even + K - evens, row + first, a[I], odd[K - 1]);
    add_products<odds>(odd + K - odds, row + 1 - first, a[I]);
    if constexpr (I + 1 < N) square_from<I + 1>(x, y, a, twice, p);
  }

  // The quotient of the next limb, after one limb down: as shift_and_add and add_quotient.
  static void shift_and_add_quotient(u64* even, u64* odd, const u32* p) {
    u32 low = low_half(even[0]), x = high_half(odd[0]), m;
    drop_column(odd);
    add_quotient_after<K>(low, x, m, inverse, odd, p + 1);
    even[0] = join(low, high_half(even[0]));
    add_products<K>(even, p, m, odd[K - 1]);
  }

  // (a b + c d) / 2^(32 N) for a, c <= p and b, d < p; at most 3 p all the way, below 2 p at the end.
  static void sum(u64* out, const u64* a_words, const u64* b_words, const u64* c_words, const u64* d_words) {
    static_assert(merges);
    u32 a[N], b[N], c[N], d[N], p[N];
    split(a, a_words), split(b, b_words), split(c, c_words), split(d, d_words), split(p, P::modulus);
    u64 x[K], y[K];
    set_products<K>(x, a, b[0]);
    set_products<K>(y, a + 1, b[0]);
    add_products<K>(y, c + 1, d[0]);
    add_products<K>(x, c, d[0], y[K - 1]);
    add_quotient(x, y, p);
#pragma unroll
    for (int i = 1; i < N; i++) {
      u64 *even = i % 2 ? y : x, *odd = i % 2 ? x : y;
      shift_and_add(even, odd, a, b[i]);
      add_products<K>(odd, c + 1, d[i]);
      add_products<K>(even, c, d[i], odd[K - 1]);
      add_quotient(even, odd, p);
    }
    join_columns(out, x, y);
    reduce_once(out);
  }
  // (a b - c d) / 2^(32 N).
  static void difference(u64* out, const u64* a, const u64* b, const u64* c, const u64* d) {
    u64 minus[K];
#pragma unroll
    for (int i = 0; i < K; i++) minus[i] = P::modulus[i];
    sub_words<K>(minus, c);
    sum(out, a, b, minus, d);
  }

  // The whole product, 2 K words.
  static void product(u64* out, const u64* a_words, const u64* b_words) {
    u32 a[N], b[N];
    split(a, a_words), split(b, b_words);
    u64 odd[N] = {}, *even = out;
    set_products<K>(even, a, b[0]);
    set_products<K>(odd, a + 1, b[0]);
#pragma unroll
    for (int i = 1; i < N; i++) {  // the row of a_1 b_i, ... reaches one new column
      u64* upper = i % 2 ? even + (i + 1) / 2 : odd + i / 2;
      u64* lower = i % 2 ? odd + i / 2 : even + i / 2;
      upper[K - 1] = 0;
      add_products<K>(upper, a + 1, b[i]);
      add_products<K>(lower, a, b[i], upper[K - 1]);
    }
    add_odd_columns(out, odd);
  }
  // out += 2^32 odd: N words, the last of odd is zero.
  static void add_odd_columns(u64* out, const u64* odd) {
    u64 shifted[N];
    shifted[0] = join(0, low_half(odd[0]));
#pragma unroll
    for (int j = 1; j < N; j++) shifted[j] = join(high_half(odd[j - 1]), j + 1 < N ? low_half(odd[j]) : 0);
    add_words<N>(out, shifted);
  }

  // t / 2^(32 N) for t < 2^(32 N) p, 2 K words, which are used up; below 2 p.
  static void reduce_wide_lazy(u64* out, u64* t) {
    static_assert(!special);
    u32 p[N];
    split(p, P::modulus);
    u64 *x = t, y[K];
    u32 m = low_half(x[0]) * inverse;
    set_products<K>(y, p + 1, m);
    add_products<K>(x, p, m, y[K - 1]);
#pragma unroll
    for (int i = 1; i < N; i++) {
      u64 *even = i % 2 ? y : x, *odd = i % 2 ? x : y;
      shift_and_add_quotient(even, odd, p);
    }
    join_columns(out, x, y);
    add_words<K>(out, t + K);
  }
  static void reduce_wide(u64* out, u64* t) {
    reduce_wide_lazy(out, t);
    reduce_once(out);
  }

  // (a0 + a1 u)(b0 + b1 u), u^2 = -1, is a0 b0 - a1 b1 + ((a0 + a1)(b0 + b1) - a0 b0 - a1 b1) u: Karatsuba's
  // three products, two reductions.
  static void multiply_complex(u64* c0, u64* c1, const u64* a0, const u64* a1, const u64* b0, const u64* b1) {
    u64 low[N], high[N], cross[N];
    product(low, a0, b0);
    product(high, a1, b1);
    product_of_sums(cross, a0, a1, b0, b1);
    sub_words<N>(cross, low), sub_words<N>(cross, high);
    subtract_wide(low, high);
    reduce_wide(c0, low);
    reduce_wide(c1, cross);
  }
  // The same minus (c0 + c1 u)(d0 + d1 u), still with two reductions: every sum is below 4 p^2 < 2^(32 N) p.
  static void difference_complex(u64* e0, u64* e1, const u64* a0, const u64* a1, const u64* b0, const u64* b1,
                                 const u64* c0, const u64* c1, const u64* d0, const u64* d1) {
    u64 low[N], high[N], cross[N], t[N];
    product(low, a0, b0);
    product(high, a1, b1);
    product_of_sums(cross, a0, a1, b0, b1);
    sub_words<N>(cross, low), sub_words<N>(cross, high);
    product(t, c0, d0);
    add_words<N>(high, t), add_words<N>(cross, t);
    product(t, c1, d1);
    add_words<N>(low, t), add_words<N>(cross, t);
    product_of_sums(t, c0, c1, d0, d1);
    subtract_wide(cross, t);
    reduce_wide(e1, cross);
    subtract_wide(low, high);
    reduce_wide(e0, low);
  }
  // (a0 + a1)(b0 + b1), the sums below 2 p.
  static void product_of_sums(u64* out, const u64* a0, const u64* a1, const u64* b0, const u64* b1) {
    static_assert(merges);
    u64 a[K], b[K];
#pragma unroll
    for (int i = 0; i < K; i++) a[i] = a0[i], b[i] = b0[i];
    add_words<K>(a, a1), add_words<K>(b, b1);
    product(out, a, b);
  }
  // a -= b modulo 2^(32 N) p.
  static void subtract_wide(u64* a, const u64* b) {
    u32 borrow = sub_words<N>(a, b);
    add_words_if<K>(borrow, a + K, P::modulus);
  }
  // (a0 + a1 u)^2 = (a0 - a1)(a0 + a1) + 2 a0 a1 u.
  static void square_complex(u64* c0, u64* c1, const u64* a0, const u64* a1) {
    static_assert(merges);
    u64 difference[K], sum[K], twice[K];
    sub(difference, a0, a1);
#pragma unroll
    for (int i = 0; i < K; i++) sum[i] = a0[i], twice[i] = a1[i];
    add_words<K>(sum, a1), add_words<K>(twice, a1);
    multiply(c0, difference, sum);  // the first one is the row: below p
    multiply(c1, a0, twice);
  }
};

}  // namespace cuzk::CUZK_PATH
