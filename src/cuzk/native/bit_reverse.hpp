// The bit-reversal permutation of n = 2^k rows, in place: row i and row rev(i) change places.
//
// An index is read as (high q bits, middle, low q bits), its image as (rev low, rev middle, rev high). For one
// middle the 2^q x 2^q rows form a tile of contiguous runs; a tile and that of the reversed middle change
// places through two buffers, so that every cache line of a large array is read and written once. Host only.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "curve_constants.hpp"
#include "parallel.hpp"

namespace cuzk {

// The last `bits` bits of i in reverse order.
inline std::size_t reversed_bits(std::size_t i, int bits) {
  std::size_t out = 0;
  for (; bits > 0; bits--, i >>= 1) out = out << 1 | (i & 1);
  return out;
}

// `Width` words a row, or `width` where Width is 0.
template <std::size_t Width>
class BitReversal {
 public:
  BitReversal(u64* data, std::size_t width, int log_n)
      : data_(data), width_(Width ? Width : width), log_n_(log_n), log_middle_(log_n - 2 * kTile) {
    for (std::size_t i = 0; i < kSide; i++) reversed_[i] = reversed_bits(i, kTile);
  }

  void run(int threads) const {
    if (log_middle_ < 1) return small();
    parallel_ranges(threads, std::size_t{1} << log_middle_, [&](std::size_t begin, std::size_t end) {
      std::vector<u64> theirs(kSide * kSide * width()), ours(theirs.size());
      for (std::size_t middle = begin; middle < end; middle++) {
        std::size_t image = reversed_bits(middle, log_middle_);
        if (middle <= image) exchange(middle, image, theirs.data(), ours.data());
      }
    }, 16);
  }

 private:
  static constexpr int kTile = 4;  // q
  static constexpr std::size_t kSide = std::size_t{1} << kTile;

  std::size_t width() const { return Width ? Width : width_; }
  u64* run_at(std::size_t high, std::size_t middle) const {
    return data_ + (high << (log_n_ - kTile) | middle << kTile) * width();
  }
  void copy(const u64* from, u64* to, std::size_t rows) const {
    for (std::size_t i = 0; i < rows * width(); i++) to[i] = from[i];
  }

  void exchange(std::size_t middle, std::size_t image, u64* theirs, u64* ours) const {
    for (std::size_t high = 0; high < kSide; high++)
      copy(run_at(high, image), theirs + high * kSide * width(), kSide);
    for (std::size_t high = 0; high < kSide; high++) {
      u64* row = run_at(high, middle);
      for (std::size_t low = 0; low < kSide; low++, row += width()) {
        std::size_t place = (reversed_[low] * kSide + reversed_[high]) * width();
        copy(row, ours + place, 1);
        copy(theirs + place, row, 1);
      }
    }
    if (middle != image)
      for (std::size_t high = 0; high < kSide; high++)
        copy(ours + high * kSide * width(), run_at(high, image), kSide);
  }

  void small() const {
    for (std::size_t i = 0; i < std::size_t{1} << log_n_; i++) {
      std::size_t j = reversed_bits(i, log_n_);
      for (std::size_t k = 0; i < j && k < width(); k++)
        std::swap(data_[i * width() + k], data_[j * width() + k]);
    }
  }

  u64* data_;
  std::size_t width_;
  int log_n_, log_middle_;
  std::size_t reversed_[kSide];
};

inline void bit_reverse(u64* data, std::size_t width, int log_n, int threads) {
  if (width == 4)
    BitReversal<4>(data, width, log_n).run(threads);
  else
    BitReversal<0>(data, width, log_n).run(threads);
}

}  // namespace cuzk
