// Number-theoretic transform over Fr, in place, n = 2^k points, by repeated division with remainder:
//
//   mod x^m - c^2  ->  mod x^(m/2) - c,  mod x^(m/2) + c
//
// From x^n - 1 down to x - w^j this takes natural order to bit-reversed order. Block k of every level has
// one constant T[k]; T = 1, w_4, w_8, w_8^3, ... is w's powers in bit-reversed order, so that one table
// serves all levels, all smaller transforms and the inverse: 1 / T[k] = -T[3 * 2^j - 1 - k] for
// 2^j <= k < 2^(j+1). On the coset of g the constant of a block of m is T[k] * g^(m/2); blocks that fit
// the first-level cache ("leaves") are multiplied by g^i instead and go on with T alone.
// Two levels are done per pass, depth first. Host only.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "vector.hpp"

namespace cuzk::CUZK_PATH {

inline int log_of(std::size_t n) {
  int log = 0;
  while (std::size_t{1} << log < n) log++;
  return log;
}

// T[0..n/2) of a primitive n-th root (n >= 2).
template <class F>
void twiddles(const F& root, F* table, std::size_t n, int threads) {
  int log_n = log_of(n);
  std::vector<F> squares{root};  // squares[i] = root^(2^i)
  for (int i = 1; i < log_n; i++) squares.push_back(squares.back().squared());
  table[0] = F::one();
  for (int j = 0; j + 2 <= log_n; j++) {
    std::size_t half = std::size_t{1} << j;
    const F step = squares[log_n - j - 2];  // a primitive 2^(j+2)-th root
    parallel_ranges(half < 4096 ? 1 : threads, half, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; i++) table[half + i] = table[i] * step;
    });
  }
}

template <class F>
class Ntt {
 public:
  // `table` holds at least n/2 twiddles of the root.
  Ntt(F* data, std::size_t n, const F* table, const F& shift, bool inverse, int threads)
      : data_(data), log_n_(log_of(n)), table_(table), inverse_(inverse),
        threads_(n < kParallel ? 1 : thread_count(threads)), shifted_(!(shift == F::one())) {
    leaf_ = log_n_ <= kLeaf ? log_n_ : log_n_ - (log_n_ - kLeaf + 1) / 2 * 2;
    F step = inverse ? shift.inverse() : shift, first = F::one();
    if (inverse) first = F::from_u64(n).inverse();
    scale_.resize(std::size_t{1} << leaf_);
    for (F& factor : scale_) factor = first, first = first * step;
    step_.push_back(step);
    for (int i = 1; i < log_n_; i++) step_.push_back(step_.back().squared());
  }

  void run() {
    int top = log_n_;  // blocks of 2^top are left to one thread each
    if (threads_ > 1)
      while (top > leaf_ && (std::size_t{1} << (log_n_ - top)) < 8 * static_cast<std::size_t>(threads_))
        top -= 2;
    if (!inverse_)
      for (int log_m = log_n_; log_m > top; log_m -= 2) level(log_m);
    parallel(threads_, std::size_t{1} << (log_n_ - top), [&](std::size_t k) {
      F* at = data_ + (k << top);
      inverse_ ? inverse_block(at, top, k) : forward_block(at, top, k);
    });
    if (inverse_)
      for (int log_m = top + 2; log_m <= log_n_; log_m += 2) level(log_m);
  }

 private:
  static constexpr int kLeaf = 9;  // 2^9 elements are 16 KiB: half of a first-level cache
  static constexpr std::size_t kParallel = 1 << 12;

  // The constants of one block for two levels: t for itself, u and v for its halves.
  struct Constants {
    F t, u, v;
  };

  Constants forward_constants(std::size_t k) const {
    return {table_[k], table_[2 * k], table_[2 * k + 1]};
  }
  // Negated inverses, for k > 0.
  Constants inverse_constants(std::size_t k) const {
    std::size_t octave = std::size_t{1} << (63 - leading_zeros(k));
    std::size_t mirrored = 3 * octave - 1 - k, doubled = 6 * octave - 1 - 2 * k;
    return {table_[mirrored], table_[doubled], table_[doubled - 1]};
  }
  Constants constants(std::size_t k) const {
    if (!inverse_) return forward_constants(k);
    if (k > 0) return inverse_constants(k);
    return {-F::one(), -F::one(), table_[1]};  // 1 / w_4 = -w_4
  }
  Constants shifted(Constants c, int log_m) const {
    const F& outer = step_[log_m - 1];
    const F& inner = step_[log_m - 2];
    return {c.t * outer, c.u * inner, c.v * inner};
  }

  // Columns begin..end of one pass over a block of 4 * quarter.
  static void forward_pass(F* a, std::size_t quarter, std::size_t begin, std::size_t end,
                           const Constants& c) {
    const Constants k = c;
    F *a1 = a + quarter, *a2 = a1 + quarter, *a3 = a2 + quarter;
    for (std::size_t j = begin; j < end; j++) {
      F x2 = a2[j] * k.t, x3 = a3[j] * k.t;
      F x1 = (a1[j] + x3) * k.u;
      x3 = (a1[j] - x3) * k.v;
      F y0 = a[j] + x2, y2 = a[j] - x2;
      a[j] = y0 + x1;
      a1[j] = y0 - x1;
      a2[j] = y2 + x3;
      a3[j] = y2 - x3;
    }
  }
  // The same for t = u = 1.
  static void forward_unit(F* a, std::size_t quarter, std::size_t begin, std::size_t end, const F& v) {
    F *a1 = a + quarter, *a2 = a1 + quarter, *a3 = a2 + quarter;
    for (std::size_t j = begin; j < end; j++) {
      F x1 = a1[j] + a3[j], x3 = (a1[j] - a3[j]) * v;
      F y0 = a[j] + a2[j], y2 = a[j] - a2[j];
      a[j] = y0 + x1;
      a1[j] = y0 - x1;
      a2[j] = y2 + x3;
      a3[j] = y2 - x3;
    }
  }
  // Undoes four times forward_pass; the constants are negated inverses. `scale` multiplies all results:
  // the constants take it along for three of four elements.
  template <bool scaled = false>
  static void inverse_pass(F* a, std::size_t quarter, std::size_t begin, std::size_t end,
                           const Constants& c, const F& scale = F::one()) {
    const F factor = scale;
    const Constants k = scaled ? Constants{c.t, c.u * factor, c.v * factor} : c;
    const F t = scaled ? k.t * factor : k.t;
    F *a1 = a + quarter, *a2 = a1 + quarter, *a3 = a2 + quarter;
    for (std::size_t j = begin; j < end; j++) {
      F x1 = (a1[j] - a[j]) * k.u, x3 = (a3[j] - a2[j]) * k.v;
      F y0 = a[j] + a1[j], y2 = a2[j] + a3[j];
      a[j] = scaled ? (y0 + y2) * factor : y0 + y2;
      a1[j] = x1 + x3;
      a2[j] = (y2 - y0) * t;
      a3[j] = (x3 - x1) * k.t;
    }
  }
  static void inverse_unit(F* a, std::size_t quarter, std::size_t begin, std::size_t end, const F& v) {
    F *a1 = a + quarter, *a2 = a1 + quarter, *a3 = a2 + quarter;
    for (std::size_t j = begin; j < end; j++) {
      F x1 = a[j] - a1[j], x3 = (a3[j] - a2[j]) * v;
      F y0 = a[j] + a1[j], y2 = a2[j] + a3[j];
      a[j] = y0 + y2;
      a1[j] = x1 + x3;
      a2[j] = y0 - y2;
      a3[j] = x1 - x3;
    }
  }

  // One pass over part of block k of 2^log_m, above the leaves.
  void pass(F* a, int log_m, std::size_t k, std::size_t begin, std::size_t end) const {
    std::size_t quarter = std::size_t{1} << (log_m - 2);
    if (k == 0 && !shifted_)
      return inverse_ ? inverse_unit(a, quarter, begin, end, table_[1])
                      : forward_unit(a, quarter, begin, end, table_[1]);
    Constants c = constants(k);
    if (shifted_) c = shifted(c, log_m);
    inverse_ ? inverse_pass(a, quarter, begin, end, c) : forward_pass(a, quarter, begin, end, c);
  }

  // One pass over all blocks of 2^log_m, all threads together.
  void level(int log_m) const {
    int log_quarter = log_m - 2, log_step = log_quarter < 10 ? log_quarter : 10;
    std::size_t step = std::size_t{1} << log_step;
    parallel_ranges(threads_, std::size_t{1} << (log_n_ - 2 - log_step), [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; i++) {
        std::size_t k = i >> (log_quarter - log_step);
        std::size_t begin = (i << log_step) & ((std::size_t{1} << log_quarter) - 1);
        pass(data_ + (k << log_m), log_m, k, begin, begin + step);
      }
    }, 1);
  }

  void forward_block(F* a, int log_m, std::size_t k) const {
    if (log_m == leaf_) return forward_leaf(a, k);
    std::size_t quarter = std::size_t{1} << (log_m - 2);
    pass(a, log_m, k, 0, quarter);
    for (std::size_t c = 0; c < 4; c++) forward_block(a + c * quarter, log_m - 2, 4 * k + c);
  }
  void inverse_block(F* a, int log_m, std::size_t k) const {
    if (log_m == leaf_) return inverse_leaf(a, k);
    std::size_t quarter = std::size_t{1} << (log_m - 2);
    for (std::size_t c = 0; c < 4; c++) inverse_block(a + c * quarter, log_m - 2, 4 * k + c);
    pass(a, log_m, k, 0, quarter);
  }

  void forward_leaf(F* a, std::size_t k) const {
    std::size_t m = scale_.size();
    if (shifted_)
      for (std::size_t i = 1; i < m; i++) a[i] = a[i] * scale_[i];
    int log_b = leaf_;
    if (log_b % 2 == 1) {
      const F t = table_[k];
      for (std::size_t i = 0; i < m / 2; i++) {
        F x = a[i + m / 2] * t, y = a[i];
        a[i] = y + x;
        a[i + m / 2] = y - x;
      }
      log_b--;
    }
    for (; log_b > 0; log_b -= 2) {
      std::size_t blocks = m >> log_b, quarter = std::size_t{1} << (log_b - 2), first = k * blocks;
      for (std::size_t b = 0; b < blocks; b++) {
        F* at = a + (b << log_b);
        if (first + b == 0)
          forward_unit(at, quarter, 0, quarter, table_[1]);
        else
          forward_pass(at, quarter, 0, quarter, forward_constants(first + b));
      }
    }
  }
  // On the coset every element has a factor of its own; 1/n alone goes along with the last pass.
  void inverse_leaf(F* a, std::size_t k) const {
    std::size_t m = scale_.size();
    bool odd = leaf_ % 2 == 1;
    for (int log_b = 2; log_b <= leaf_; log_b += 2) {
      std::size_t blocks = m >> log_b, quarter = std::size_t{1} << (log_b - 2), first = k * blocks;
      for (std::size_t b = 0; b < blocks; b++) {
        F* at = a + (b << log_b);
        if (log_b == leaf_ && !shifted_)
          inverse_pass<true>(at, quarter, 0, quarter, constants(first + b), scale_[0]);
        else if (first + b == 0)
          inverse_unit(at, quarter, 0, quarter, table_[1]);
        else
          inverse_pass(at, quarter, 0, quarter, inverse_constants(first + b));
      }
    }
    if (odd) inverse_half(a, m / 2, k == 0 ? -F::one() : inverse_constants(k).t);
    if (shifted_)
      for (std::size_t i = 0; i < m; i++) a[i] = a[i] * scale_[i];
  }
  void inverse_half(F* a, std::size_t half, const F& constant) const {
    const F factor = shifted_ ? F::one() : scale_[0], t = constant * factor;
    for (std::size_t i = 0; i < half; i++) {
      F x = a[i], y = a[i + half];
      a[i] = shifted_ ? x + y : (x + y) * factor;
      a[i + half] = (y - x) * t;
    }
  }

  F* data_;
  int log_n_;
  const F* table_;
  bool inverse_;
  int threads_;
  bool shifted_;
  int leaf_;              // log2 of a leaf
  std::vector<F> scale_;  // a leaf's factors: g^i; inverse g^-i / n
  std::vector<F> step_;   // g^(2^i), inverse g^-(2^i)
};

// A primitive n-th root, n = 2^k?
template <class F>
bool is_primitive_root(F root, std::size_t n) {
  for (std::size_t order = n; order > 2; order /= 2) root = root.squared();
  return n == 1 ? root == F::one() : root == -F::one();
}

template <class F>
F checked_root(const u64* words, std::size_t n) {
  F root = load<F>(words, 0);
  if (!F::is_canonical(words) || !is_primitive_root(root, n))
    throw std::invalid_argument("root: expected a primitive root of unity of order " + std::to_string(n) +
                                " in Montgomery form");
  return root;
}

inline void expect_power_of_two(std::size_t n, const char* what) {
  if (n == 0 || (n & (n - 1)))
    throw std::invalid_argument(std::string(what) + ": expected a power of two, found " + std::to_string(n));
}

// n/2 twiddles of an n-th root.
template <class F>
void make_twiddles(const u64* root, u64* out, std::size_t n, int threads) {
  expect_power_of_two(n, "twice the rows of out");
  twiddles(checked_root<F>(root, n), reinterpret_cast<F*>(out), n, threads);
}

// `table` may be null: then the twiddles are made for this call.
template <class F>
void ntt(u64* values, std::size_t n, const u64* root_words, const u64* shift_words, bool inverse,
         const u64* table, std::size_t table_rows, int threads) {
  expect_power_of_two(n, "rows of values");
  F root = checked_root<F>(root_words, n), shift = load<F>(shift_words, 0);
  if (!F::is_canonical(shift_words) || shift.is_zero())
    throw std::invalid_argument("shift: expected an element other than zero");
  if (n == 1) return;
  std::vector<F> own;
  auto made = reinterpret_cast<const F*>(table);
  if (table == nullptr) {
    own.resize(n / 2);
    twiddles(root, own.data(), n, threads);
    made = own.data();
  } else if (table_rows < n / 2 || !(made[n / 4] == (n > 2 ? root : F::one()))) {
    throw std::invalid_argument("twiddles: expected at least " + std::to_string(n / 2) + " of this root");
  }
  Ntt<F>(reinterpret_cast<F*>(values), n, made, shift, inverse, threads).run();
}

}  // namespace cuzk::CUZK_PATH
