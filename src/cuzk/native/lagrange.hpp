// The Lagrange basis of the domain of an n-th root w at a point tau outside it:
//
//   L_i(tau) = (tau^n - 1) / n * w^i / (tau - w^i)
//
// Host only.
#pragma once

#include "ntt.hpp"

namespace cuzk::CUZK_PATH {

template <class F>
void lagrange(const u64* root_words, const u64* tau_words, u64* out, std::size_t n, int threads) {
  constexpr std::size_t kBatch = 1024;  // denominators inverted together: one inversion costs about 400 products
  expect_power_of_two(n, "rows of out");
  const F root = checked_root<F>(root_words, n), tau = load<F>(tau_words, 0);
  if (!F::is_canonical(tau_words)) throw std::invalid_argument("tau: expected a value below the prime");
  F zero_at_tau = power(tau, n) - F::one();
  if (zero_at_tau.is_zero()) throw std::invalid_argument("tau: lies in the domain");
  const F factor = zero_at_tau * F::from_u64(n).inverse();
  parallel_ranges(threads, (n + kBatch - 1) / kBatch, [&](std::size_t from, std::size_t to) {
    std::vector<F> prefix(kBatch);  // products of the denominators before each
    F w = power(root, from * kBatch);
    for (std::size_t begin = from * kBatch; begin < to * kBatch && begin < n; begin += kBatch) {
      std::size_t count = n - begin < kBatch ? n - begin : kBatch;
      F product = F::one();
      for (std::size_t i = 0; i < count; i++, w = w * root) {
        prefix[i] = product;
        product = product * (tau - w);
        store(out, begin + i, w);
      }
      F inverse = product.inverse();
      for (std::size_t i = count; i-- > 0;) {
        F wi = load<F>(out, begin + i);
        store(out, begin + i, wi * factor * (inverse * prefix[i]));
        inverse = inverse * (tau - wi);
      }
    }
  }, 1);
}

}  // namespace cuzk::CUZK_PATH
