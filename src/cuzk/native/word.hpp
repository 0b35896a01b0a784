// Multiword integer steps. This file alone knows which compiler runs: CUDA device code, x86-64 with
// mulx/adcx/adox (CUZK_ADX), or any other machine through unsigned __int128. CUZK_LIMBS is the device's
// arithmetic in plain C++: the tests' emulator runs it.
//
// Everything above it lives in cuzk::CUZK_PATH, so that one program can hold the same templates built
// for several paths and choose between them at run time.
#pragma once

#include "curve_constants.hpp"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define CUZK_DEVICE 1
#define CUZK_LIMBS 1  // the products of 32-bit limbs; a host may ask for them too
#elif defined(__x86_64__) && !defined(__clang__)
#define CUZK_ADC 1  // gcc needs intrinsics for a chain of adc; clang finds it, and loses it with them (20 ns -> 49)
#include <immintrin.h>
#endif

#ifndef CUZK_PATH
#define CUZK_PATH portable
#endif

// CUZK_OUT_OF_LINE: long arithmetic that is called from many places (on a device the products in Fp2: inlined,
// an addition in G2 is 200 KB of code, spills as much, and takes minutes to compile). CUZK_INLINE: short
// arithmetic. CUZK_RARE: what hardly ever happens, with its registers kept out of the way.
#ifdef CUZK_DEVICE
#define CUZK_OUT_OF_LINE __noinline__
#define CUZK_INLINE
#define CUZK_RARE __noinline__
#else
#define CUZK_OUT_OF_LINE [[gnu::noinline]]
#define CUZK_INLINE [[gnu::always_inline]]  // gcc takes inline assembly for long code
#define CUZK_RARE
#endif

namespace cuzk {
using u32 = unsigned int;
using i64 = long long;
using size = decltype(sizeof 0);  // std::size_t; device code has no <cstddef>
}  // namespace cuzk

namespace cuzk::CUZK_PATH {

#ifdef CUZK_DEVICE

// Comparisons instead of a 128-bit type: the compiler for the device makes carry chains of them.
constexpr u64 add_carry(u64 a, u64 b, u64& carry) {
  u64 sum = a + b, total = sum + carry;
  carry = (u64)(sum < a) | (u64)(total < sum);
  return total;
}
constexpr u64 sub_borrow(u64 a, u64 b, u64& borrow) {
  u64 difference = a - b, total = difference - borrow;
  borrow = (u64)(a < b) | (u64)(difference < borrow);
  return total;
}
constexpr u64 high_product(u64 a, u64 b) {
  if (!__builtin_is_constant_evaluated()) return __umul64hi(a, b);
  u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
  u64 cross = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (cross >> 32) + ((a0 * b1 + (u32)cross) >> 32);
}
constexpr u64 mul_add(u64 a, u64 b, u64 c, u64& carry) {
  u64 low = a * b, high = high_product(a, b);
  low += c, high += low < c;
  low += carry, high += low < carry;
  carry = high;
  return low;
}

constexpr int trailing_zeros(u64 x) { return __ffsll((i64)x) - 1; }  // x not zero
constexpr int leading_zeros(u64 x) { return __clzll((i64)x); }       // x not zero

// A signed sum of products, two words.
struct Wide {
  u64 low = 0;
  i64 high = 0;

  constexpr void add_product(i64 a, i64 b) {
    u64 product = (u64)a * (u64)b;
    low += product;
    u64 minus = (a < 0 ? (u64)b : 0) + (b < 0 ? (u64)a : 0);
    high += (i64)(high_product((u64)a, (u64)b) - minus) + (i64)(low < product);
  }
  constexpr u64 word() const { return low; }
  constexpr void shift(int bits) {  // down, 0 < bits < 64
    low = low >> bits | (u64)high << (64 - bits);
    high >>= bits;
  }
};

#else

using u128 = unsigned __int128;
using i128 = __int128;

// a + b + carry; carry (0 or 1) is replaced.
constexpr u64 add_carry(u64 a, u64 b, u64& carry) {
#ifdef CUZK_ADC
  if (!__builtin_is_constant_evaluated()) {  // a chain of adc; gcc 12 makes setc and add of the lines below
    u64 sum;
    carry = _addcarry_u64((unsigned char)carry, a, b, &sum);
    return sum;
  }
#endif
  u128 t = (u128)a + b + carry;
  carry = (u64)(t >> 64);
  return (u64)t;
}

// a - b - borrow; borrow (0 or 1) is replaced.
constexpr u64 sub_borrow(u64 a, u64 b, u64& borrow) {
#ifdef CUZK_ADC
  if (!__builtin_is_constant_evaluated()) {
    u64 difference;
    borrow = _subborrow_u64((unsigned char)borrow, a, b, &difference);
    return difference;
  }
#endif
  u128 t = (u128)a - b - borrow;
  borrow = (u64)(t >> 64) & 1;
  return (u64)t;
}

// a * b + c + carry never overflows two words; the high word replaces carry.
constexpr u64 mul_add(u64 a, u64 b, u64 c, u64& carry) {
  u128 t = (u128)a * b + c + carry;
  carry = (u64)(t >> 64);
  return (u64)t;
}

constexpr int trailing_zeros(u64 x) { return __builtin_ctzll(x); }  // x not zero
constexpr int leading_zeros(u64 x) { return __builtin_clzll(x); }   // x not zero

// A signed sum of products, two words.
struct Wide {
  i128 sum = 0;

  constexpr void add_product(i64 a, i64 b) { sum += (i128)a * b; }
  constexpr u64 word() const { return (u64)sum; }
  constexpr void shift(int bits) { sum >>= bits; }  // down, 0 < bits < 64
};

#endif

// Are branches around rare cases worth having early? The threads of a warp take all of them, and where paths
// join again registers are moved.
#ifdef CUZK_LIMBS
constexpr bool early_exits = false;
#else
constexpr bool early_exits = true;
#endif

}  // namespace cuzk::CUZK_PATH

#ifdef CUZK_ADX
#include "adx.hpp"
#endif
#ifdef CUZK_LIMBS
#include "limbs.hpp"
#endif
