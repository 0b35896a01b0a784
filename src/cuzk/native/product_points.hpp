// A sparse matrix times a vector of points: out_i = sum over row i of coefficient * points[wire].
//
// Circuits have mostly +-1 (plain additions), powers of two and other short numbers, and the negatives of
// those; a coefficient above r / 2 is taken as the negative of r - c. The other terms of a row share their
// doublings (Straus), digits in non-adjacent form. Host only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "curve.hpp"
#include "parallel.hpp"
#include "recode.hpp"

namespace cuzk::CUZK_PATH {

struct Rows {
  const u64* row_ptr;
  const std::uint32_t* wires;
  const std::uint32_t* coefficients;
};

// |c| in plain words, with its sign.
template <class Fr>
struct Magnitude {
  Fr plain;
  int weight;  // digits of its non-adjacent form that are not zero: additions it costs without a table
  bool negative;

  // From Montgomery form.
  static Magnitude of(const Fr& value) {
    Fr plain = value.to_plain(), minus = (-value).to_plain();
    int bits = bit_length(plain.w, Fr::N), minus_bits = bit_length(minus.w, Fr::N);
    if (minus_bits < bits) return {minus, weight_of(minus), true};
    return {plain, weight_of(plain), false};
  }
  bool is_unit() const { return plain.w[0] == 1 && bit_length(plain.w, Fr::N) == 1; }

 private:
  static int weight_of(const Fr& plain) {
    signed char digits[64 * Fr::N + 1];
    int length = non_adjacent_form<Fr::N>(plain.w, 2, digits), weight = 0;
    for (int i = 0; i < length; i++) weight += digits[i] != 0;
    return weight;
  }
};

template <class F, class Fr>
class PointProduct {
 public:
  PointProduct(Rows rows, const Fr* values, std::size_t values_count, const Affine<F>* points, int threads)
      : rows_(rows), points_(points), magnitudes_(values_count) {
    parallel_ranges(threads, values_count, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; i++) magnitudes_[i] = Magnitude<Fr>::of(values[i]);
    });
  }

  void run(Affine<F>* out, std::size_t n, int threads) const {
    for (std::size_t row = 0; row < n; row++)
      if (rows_.row_ptr[row + 1] - rows_.row_ptr[row] > long_row) out[row] = long_sum(row, threads);
    parallel_ranges(
        threads, n, [&](std::size_t begin, std::size_t end) { short_sums(out, begin, end); }, 16);
  }

 private:
  static constexpr std::size_t long_row = 4096;  // terms: such rows are cut, or one thread would hold up the rest
  static constexpr std::size_t together = 64;    // terms that share doublings
  // A table of odd multiples costs about 100 products a term and saves 4 of 10 additions (10 products).
  static constexpr std::size_t heavy = 24;

  Affine<F> long_sum(std::size_t row, int threads) const {
    std::size_t begin = rows_.row_ptr[row], end = rows_.row_ptr[row + 1];
    std::size_t pieces = (end - begin + long_row - 1) / long_row;
    std::vector<Xyzz<F>> parts(pieces);
    parallel(threads, pieces, [&](std::size_t i) {
      std::size_t from = begin + i * long_row;
      parts[i] = sum(from, std::min(end, from + long_row));
    });
    Xyzz<F> total = Xyzz<F>::infinity();
    for (const auto& part : parts) total = total + part;
    return total.to_affine();
  }

  void short_sums(Affine<F>* out, std::size_t begin, std::size_t end) const {
    constexpr std::size_t block = 256;
    std::vector<Xyzz<F>> sums(block);
    std::vector<Affine<F>> affine(block);
    std::vector<F> scratch(block);
    for (std::size_t first = begin; first < end; first += block) {
      std::size_t count = std::min(block, end - first);
      for (std::size_t i = 0; i < count; i++) {
        std::size_t from = rows_.row_ptr[first + i], to = rows_.row_ptr[first + i + 1];
        sums[i] = to - from > long_row ? Xyzz<F>::infinity() : sum(from, to);
      }
      to_affine_all(sums.data(), affine.data(), scratch.data(), count);
      for (std::size_t i = 0; i < count; i++) {
        std::size_t row = first + i;
        if (rows_.row_ptr[row + 1] - rows_.row_ptr[row] <= long_row) out[row] = affine[i];
      }
    }
  }

  // Terms begin..end of the matrix.
  Xyzz<F> sum(std::size_t begin, std::size_t end) const {
    Xyzz<F> total = Xyzz<F>::infinity();
    std::vector<std::size_t> others;
    for (std::size_t t = begin; t < end; t++) {
      const Magnitude<Fr>& c = magnitudes_[rows_.coefficients[t]];
      const Affine<F>& point = points_[rows_.wires[t]];
      if (c.weight == 0 || point.is_infinity()) continue;
      if (c.is_unit()) {
        total = total + (c.negative ? -point : point);
        continue;
      }
      others.push_back(t);
      if (others.size() == together) {
        total = total + straus(others);
        others.clear();
      }
    }
    return others.empty() ? total : total + straus(others);
  }

  // One accumulator runs down the bits; each term adds its digit's multiple on the way.
  Xyzz<F> straus(const std::vector<std::size_t>& terms) const {
    constexpr int most = 64 * Fr::N + 1;
    std::vector<signed char> digits(terms.size() * most);
    std::size_t weight = 0;
    for (std::size_t t : terms) weight += magnitudes_[rows_.coefficients[t]].weight;
    int width = weight > heavy * terms.size() ? 4 : 2, table = 1 << (width - 2), length = 0;
    std::vector<Affine<F>> odd = odd_multiples(terms, table);
    for (std::size_t i = 0; i < terms.size(); i++) {
      const u64* number = magnitudes_[rows_.coefficients[terms[i]]].plain.w;
      length = std::max(length, non_adjacent_form<Fr::N>(number, width, &digits[i * most]));
    }
    Xyzz<F> total = Xyzz<F>::infinity();
    for (int bit = length - 1; bit >= 0; bit--) {
      total = total.doubled();
      for (std::size_t i = 0; i < terms.size(); i++) {
        int digit = digits[i * most + bit];
        if (digit > 0) total = total + odd[i * table + digit / 2];
        if (digit < 0) total = total + -odd[i * table + -digit / 2];
      }
    }
    return total;
  }

  // P, 3P, 5P, ... of every term, the coefficient's sign taken in.
  std::vector<Affine<F>> odd_multiples(const std::vector<std::size_t>& terms, int table) const {
    std::vector<Affine<F>> affine(terms.size() * table);
    std::vector<Xyzz<F>> multiples;
    for (std::size_t i = 0; i < terms.size(); i++) {
      Affine<F> point = points_[rows_.wires[terms[i]]];
      if (magnitudes_[rows_.coefficients[terms[i]]].negative) point = -point;
      affine[i] = point;
      if (table == 1) continue;
      Xyzz<F> multiple = Xyzz<F>::from_affine(point), twice = multiple.doubled();
      for (int k = 0; k < table; k++, multiple = multiple + twice) multiples.push_back(multiple);
    }
    if (table == 1) return affine;
    std::vector<F> scratch(multiples.size());
    to_affine_all(multiples.data(), affine.data(), scratch.data(), multiples.size());
    return affine;
  }

  Rows rows_;
  const Affine<F>* points_;
  std::vector<Magnitude<Fr>> magnitudes_;
};

}  // namespace cuzk::CUZK_PATH
