// Multiword integer steps. This file alone knows which compiler runs: CUDA device code, x86-64 with
// mulx/adcx/adox (CUZK_ADX), or any other machine through unsigned __int128.
//
// Everything above it lives in cuzk::CUZK_PATH, so that one program can hold the same templates built
// for several paths and choose between them at run time.
#pragma once

#include "curve_constants.hpp"

#if defined(__x86_64__) && !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#define CUZK_X86 1
#include <immintrin.h>
#endif

#ifndef CUZK_PATH
#define CUZK_PATH portable
#endif

// Long arithmetic that is called from many places, and short arithmetic; a kernel inlines both.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define CUZK_OUT_OF_LINE
#define CUZK_INLINE
#else
#define CUZK_OUT_OF_LINE [[gnu::noinline]]
#define CUZK_INLINE [[gnu::always_inline]]  // gcc takes inline assembly for long code
#endif

namespace cuzk {
using u32 = unsigned int;
using i64 = long long;
}  // namespace cuzk

namespace cuzk::CUZK_PATH {

using u128 = unsigned __int128;

// a + b + carry; carry (0 or 1) is replaced.
constexpr u64 add_carry(u64 a, u64 b, u64& carry) {
#ifdef CUZK_X86
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
#ifdef CUZK_X86
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

}  // namespace cuzk::CUZK_PATH

#ifdef CUZK_ADX
#include "adx.hpp"
#endif
