// Where element i of a vector stands, and which element stands at i: bit reversal is its own inverse.
#pragma once

#include "kernel.hpp"

namespace cuzk::CUZK_PATH {

// i itself where `log_n` is 0, else the last log_n - 1 bits of i in reverse order; 32 bits hold the largest domain's 28.
inline size place(size i, size log_n) {
  if (log_n < 2) return i;
  return __brev((u32)i) >> (33 - (u32)log_n);
}

}  // namespace cuzk::CUZK_PATH
