// Sparse matrix times witness: out_i = sum over row i of values[coefficients[t]] * w[wires[t]].
//
// The witness is plain, `values` is in Montgomery form, so each product is plain; entries 0 and 1 of
// `values` are +1 and -1 and cost an addition only. A row's sum enters Montgomery form by one more
// multiplication. Every index is checked before it is used. Host only.
#pragma once

#include <bit>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "bit_reverse.hpp"
#include "vector.hpp"

namespace cuzk {

// One matrix and the vector it multiplies, as the caller gave them.
struct ProductInput {
  const std::uint64_t* row_ptr;
  std::size_t rows;
  const std::uint32_t *wires, *coefficients;
  std::size_t terms;
  const u64* values;
  std::size_t values_rows;
  const u64* witness;
  std::size_t witness_rows;
};

}  // namespace cuzk

namespace cuzk::CUZK_PATH {

template <class F>
class Product {
 public:
  Product(const ProductInput& in, u64* out, std::size_t size, bool bit_reversed, int threads)
      : in_(in), out_(out), size_(size), bit_reversed_(bit_reversed), threads_(thread_count(threads)) {
    if (in.rows > size)
      throw std::invalid_argument("out: expected at least " + std::to_string(in.rows) + " rows, found " +
                                  std::to_string(size));
    if (bit_reversed && (size == 0 || (size & (size - 1))))
      throw std::invalid_argument("out: expected a power of two of rows for bit-reversed order");
    if (in.terms > 0 && (in.values_rows < 2 || !(load<F>(in.values, 0) == F::one()) ||
                         !(load<F>(in.values, 1) == -F::one())))
      throw std::invalid_argument("values: expected entries 0 and 1 to be 1 and -1 in Montgomery form");
    if (in.row_ptr[0] != 0 || in.row_ptr[in.rows] != in.terms)
      throw std::invalid_argument("row_ptr: expected to run from 0 to " + std::to_string(in.terms));
  }

  void run() {
    std::size_t pieces = threads_ == 1 ? 1 : static_cast<std::size_t>(threads_) * 8;
    parallel(threads_, pieces, [&](std::size_t p) {
      for (std::size_t row = cut(p, pieces), end = cut(p + 1, pieces); row < end; row++) some_row(row);
    });
    for (std::size_t row : long_rows_) long_row(row);
    parallel_ranges(threads_, size_ - in_.rows, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; i++) put(in_.rows + i, F::zero());
    });
    // Writing each row to its place at once takes twice as long (2^19 rows, EPYC, 2026-11): the writes scatter.
    if (bit_reversed_) bit_reverse(out_, F::N, static_cast<int>(std::bit_width(size_)) - 1, threads_);
  }

 private:
  static constexpr std::size_t kRowCost = 4;        // a row weighs as much as four terms
  static constexpr std::size_t kAhead = 16;         // terms whose witness elements are on their way
  static constexpr std::size_t kLongRow = 1 << 15;  // longer rows are shared by all threads

  // First row of piece p: rows are cut so that terms + kRowCost * rows is even among the pieces. A
  // row_ptr that is not ascending gives odd cuts, and is then found out row by row.
  std::size_t cut(std::size_t p, std::size_t pieces) const {
    if (p == 0) return 0;
    if (p == pieces) return in_.rows;
    unsigned __int128 work = in_.terms + (unsigned __int128)kRowCost * in_.rows;
    std::size_t goal = static_cast<std::size_t>(work * p / pieces), low = 0, high = in_.rows;
    while (low < high) {
      std::size_t middle = low + (high - low) / 2;
      if (in_.row_ptr[middle] + kRowCost * middle < goal)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  void some_row(std::size_t row) {
    std::size_t begin = in_.row_ptr[row], end = in_.row_ptr[row + 1];
    if (begin > end || end > in_.terms)
      throw std::invalid_argument("row_ptr: row " + std::to_string(row) + " runs from " +
                                  std::to_string(begin) + " to " + std::to_string(end) + " of " +
                                  std::to_string(in_.terms) + " terms");
    if (threads_ > 1 && end - begin > kLongRow) {
      std::lock_guard<std::mutex> hold(lock_);
      long_rows_.push_back(row);
      return;
    }
    put(row, sum(row, begin, end) * F::from_words(F::P::r2));
  }

  void long_row(std::size_t row) {
    F total = F::zero();
    std::size_t begin = in_.row_ptr[row], terms = in_.row_ptr[row + 1] - begin;
    parallel_ranges(threads_, terms, [&](std::size_t from, std::size_t to) {
      F part = sum(row, begin + from, begin + to);
      std::lock_guard<std::mutex> hold(lock_);
      total = total + part;
    });
    put(row, total * F::from_words(F::P::r2));
  }

  F sum(std::size_t row, std::size_t begin, std::size_t end) const {
    F total = F::zero();
    for (std::size_t t = begin; t < end; t++) {
      if (t + kAhead < in_.terms) __builtin_prefetch(in_.witness + F::N * std::size_t{in_.wires[t + kAhead]});
      std::size_t wire = in_.wires[t], c = in_.coefficients[t];
      if (wire >= in_.witness_rows) refuse(row, "wire", wire, in_.witness_rows);
      if (c >= in_.values_rows) refuse(row, "coefficient", c, in_.values_rows);
      F w = load<F>(in_.witness, wire);
      if (c == 0)
        total = total + w;
      else if (c == 1)
        total = total - w;
      else
        total = total + load<F>(in_.values, c) * w;
    }
    return total;
  }

  [[noreturn]] static void refuse(std::size_t row, const char* what, std::size_t index, std::size_t of) {
    throw std::invalid_argument("row " + std::to_string(row) + ": " + what + " " + std::to_string(index) +
                                " of " + std::to_string(of));
  }

  void put(std::size_t row, const F& value) const {
    store(out_, row, value);
  }

  const ProductInput in_;
  u64* out_;
  std::size_t size_;
  bool bit_reversed_;
  int threads_;
  std::mutex lock_;
  std::vector<std::size_t> long_rows_;
};

}  // namespace cuzk::CUZK_PATH
