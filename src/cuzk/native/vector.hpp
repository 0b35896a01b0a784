// Loops over vectors of field elements: conversion, pointwise products, linear combinations, powers.
// Pointers are to arrays of words; `out` may be one of the inputs where one element follows from the
// elements at the same place. Host only.
#pragma once

#include <atomic>
#include <cstddef>

#include "field.hpp"
#include "parallel.hpp"

namespace cuzk::CUZK_PATH {

template <class F>
long long first_not_canonical(const u64* values, std::size_t n, int threads) {
  std::atomic<long long> first{-1};
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i++) {
      if (F::is_canonical(values + i * F::N)) continue;
      long long found = static_cast<long long>(i), seen = first;
      while ((seen < 0 || found < seen) && !first.compare_exchange_weak(seen, found)) {
      }
      return;
    }
  });
  return first;
}

template <class F>
F load(const u64* values, std::size_t i) {
  return F::from_words(values + i * F::N);
}
template <class F>
void store(u64* values, std::size_t i, const F& value) {
  for (int k = 0; k < F::N; k++) values[i * F::N + k] = value.w[k];
}

template <class F>
void store_plain(const F& value, u64* out) {
  F plain = value.to_plain();
  for (int k = 0; k < F::N; k++) out[k] = plain.w[k];
}

template <class F>
void to_montgomery(const u64* values, u64* out, std::size_t n, int threads) {
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    F r2 = F::from_words(F::P::r2);
    for (std::size_t i = begin; i < end; i++) store(out, i, load<F>(values, i) * r2);
  });
}

template <class F>
void from_montgomery(const u64* values, u64* out, std::size_t n, int threads) {
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i++) store(out, i, load<F>(values, i).to_plain());
  });
}

// out = (a * b - minus) * scale; no `b` is all ones, no `minus` all zeros.
template <class F>
void pointwise(const u64* a, const u64* b, const u64* minus, const u64* scale, u64* out, std::size_t n,
               int threads) {
  F factor = load<F>(scale, 0);
  bool scaled = !(factor == F::one());
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i++) {
      F value = load<F>(a, i);
      if (b) value = value * load<F>(b, i);
      if (minus) value = value - load<F>(minus, i);
      store(out, i, scaled ? value * factor : value);
    }
  });
}

// out = sum_k factors[k] * vectors[k].
template <class F>
void combine(const u64* const* vectors, std::size_t count, const u64* factors, u64* out, std::size_t n,
             int threads) {
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i++) {
      F sum = F::zero();
      for (std::size_t k = 0; k < count; k++) sum = sum + load<F>(vectors[k], i) * load<F>(factors, k);
      store(out, i, sum);
    }
  });
}

template <class F>
F power(const F& base, std::size_t exponent) {
  u64 words[1] = {static_cast<u64>(exponent)};
  return base.pow(words, 1);
}

// out_i = first * base^i.
template <class F>
void powers(const F& base, const F& first, u64* out, std::size_t n, int threads) {
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    F value = first * power(base, begin);
    for (std::size_t i = begin; i < end; i++, value = value * base) store(out, i, value);
  });
}

}  // namespace cuzk::CUZK_PATH
