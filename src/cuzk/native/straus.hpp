// Multi-scalar multiplication of few points: one table of multiples for each, doublings shared (Straus).
// Host only.
#pragma once

#include "digits.hpp"

namespace cuzk::CUZK_PATH {

// Digits of 4 bits: 8 multiples a point. 5 bits cost 6 % more (products counted, 254-bit scalars).
constexpr int straus_width = 4;

// The points [begin, end) of the list.
template <class F>
Xyzz<F> straus_part(const LiveScalars& live, const Windows& windows, const Affine<F>* bases, std::size_t begin,
                    std::size_t end) {
  std::size_t n = end - begin, multiples = windows.buckets();
  std::vector<Xyzz<F>> extended(n * multiples);
  std::vector<Affine<F>> table(n * multiples);
  std::vector<F> scratch(n * multiples);
  for (std::size_t k = 0; k < n; k++) {
    u32 entry = live.entries[begin + k];
    Affine<F> base = bases[entry & ~sign_bit];
    if (entry & sign_bit) base = -base;
    Xyzz<F>* row = &extended[k * multiples];
    row[0] = Xyzz<F>::from_affine(base);
    for (std::size_t m = 1; m < multiples; m++) row[m] = row[m - 1] + base;
  }
  to_affine_all(extended.data(), table.data(), scratch.data(), table.size());
  Xyzz<F> sum = Xyzz<F>::infinity();
  for (int w = windows.count - 1; w >= 0; w--) {
    for (int i = 0; i < windows.c && !sum.is_infinity(); i++) sum = sum.doubled();
    windows.for_digits(live, w, begin, end, [&](std::size_t k, std::size_t magnitude, bool negative) {
      const Affine<F>& multiple = table[(k - begin) * multiples + magnitude - 1];
      sum = sum + (negative ? -multiple : multiple);
    });
  }
  return sum;
}

template <class F>
Xyzz<F> straus(LiveScalars& live, const Affine<F>* bases, int threads) {
  constexpr std::size_t worth_a_thread = 16;
  Windows windows(straus_width, live.max_bits);
  windows.shift(live, 1);
  std::size_t n = live.size();
  std::size_t most = std::max<std::size_t>(1, n / worth_a_thread);
  std::size_t parts = std::min<std::size_t>(thread_count(threads), most);
  std::vector<Xyzz<F>> sums(parts);
  parallel(threads, parts, [&](std::size_t i) {
    sums[i] = straus_part(live, windows, bases, n * i / parts, n * (i + 1) / parts);
  });
  for (std::size_t i = 1; i < parts; i++) sums[0] = sums[0] + sums[i];
  return sums[0];
}

}  // namespace cuzk::CUZK_PATH
