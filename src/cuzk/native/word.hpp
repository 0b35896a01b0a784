// Multiword integer steps. This file alone knows which compiler runs: CUDA device code, x86-64 with
// mulx/adcx/adox (CUZK_ADX), or any other machine through unsigned __int128.
//
// Everything above it lives in cuzk::CUZK_PATH, so that one program can hold the same templates built
// for several paths and choose between them at run time.
#pragma once

#include "curve_constants.hpp"

#ifndef CUZK_PATH
#define CUZK_PATH portable
#endif

namespace cuzk {
using u32 = unsigned int;
using i64 = long long;
}  // namespace cuzk

namespace cuzk::CUZK_PATH {

using u128 = unsigned __int128;

// a + b + carry; carry (0 or 1) is replaced.
constexpr u64 add_carry(u64 a, u64 b, u64& carry) {
  u128 t = (u128)a + b + carry;
  carry = (u64)(t >> 64);
  return (u64)t;
}

// a - b - borrow; borrow (0 or 1) is replaced.
constexpr u64 sub_borrow(u64 a, u64 b, u64& borrow) {
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
