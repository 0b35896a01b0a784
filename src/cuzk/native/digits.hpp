// The scalars of an MSM as signed digits. Host only.
//
// A scalar s below r becomes min(s, r - s) with a sign, and then digits d_w in [-2^(c-1), 2^(c-1)):
//
//   s = sum_w d_w 2^(c w),   d_w + 2^(c-1) = bits [c w, c w + c) of s + sum_w 2^(c w + c - 1),
//
// so that any digit can be read from the shifted sum without the carries of the digits below it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "curve.hpp"
#include "parallel.hpp"
#include "recode.hpp"

namespace cuzk::CUZK_PATH {

constexpr u32 sign_bit = 1u << 31;

// How many scalars have |s| of so many bits.
using BitHistogram = std::array<std::size_t, 257>;

// The scalars that are not zero, of bases that are not infinity. Word j of scalar k is planes[j][k]: a
// window reads one or two planes from end to end.
struct LiveScalars {
  std::vector<u32> entries;  // row of the base, sign_bit if the scalar is negative
  std::vector<u64> planes[4];
  BitHistogram bits{};
  int max_bits = 0;

  std::size_t size() const { return entries.size(); }
};

struct ScalarRows {
  const u64* words;
  std::size_t count;
  const u32* index;  // or null: row k itself

  std::size_t row(std::size_t k) const { return index ? index[k] : k; }
};

[[noreturn]] inline void bad_scalar(const ScalarRows& scalars, std::size_t k) {
  std::size_t row = scalars.row(k);
  if (row >= scalars.count)
    throw std::invalid_argument("index[" + std::to_string(k) + "]: expected below " +
                                std::to_string(scalars.count) + ", found " + std::to_string(row));
  throw std::invalid_argument("scalars[" + std::to_string(row) + "]: expected below r, found r or more");
}

// One pass that checks and counts, chunk by chunk, and one that fills.
template <class F, class Fr>
LiveScalars live_scalars(const Affine<F>* bases, std::size_t n, const ScalarRows& scalars, int threads) {
  constexpr std::size_t chunk = 1 << 14;
  struct Count {
    std::size_t live = 0, bad = ~std::size_t{0};
    BitHistogram bits{};
  };
  std::size_t chunks = (n + chunk - 1) / chunk;
  std::vector<Count> counts(chunks);
  auto is_live = [&](std::size_t k, const u64* s) {
    return (s[0] | s[1] | s[2] | s[3]) != 0 && !bases[k].is_infinity();
  };
  parallel(threads, chunks, [&](std::size_t i) {
    Count& count = counts[i];
    for (std::size_t k = i * chunk; k < std::min(n, (i + 1) * chunk); k++) {
      const u64* s = scalars.words + 4 * scalars.row(k);
      if (scalars.row(k) >= scalars.count || !Fr::is_canonical(s)) {
        count.bad = k;
        return;
      }
      if (!is_live(k, s)) continue;
      u64 folded[4];
      fold_scalar<Fr>(s, folded);
      count.live++;
      count.bits[bit_length(folded, 4)]++;
    }
  });
  LiveScalars live;
  std::vector<std::size_t> begin(chunks);
  std::size_t total = 0;
  for (std::size_t i = 0; i < chunks; i++) {
    if (counts[i].bad != ~std::size_t{0}) bad_scalar(scalars, counts[i].bad);
    begin[i] = total;
    total += counts[i].live;
    for (int b = 0; b < 257; b++) live.bits[b] += counts[i].bits[b];
  }
  live.entries.resize(total);
  for (auto& plane : live.planes) plane.resize(total);
  for (int b = 0; b < 257; b++)
    if (live.bits[b] > 0) live.max_bits = b;
  parallel(threads, chunks, [&](std::size_t i) {
    std::size_t at = begin[i];
    for (std::size_t k = i * chunk; k < std::min(n, (i + 1) * chunk); k++) {
      const u64* s = scalars.words + 4 * scalars.row(k);
      if (!is_live(k, s)) continue;
      if (at == begin[i] + counts[i].live) return;  // more than were counted: a mapped file that is being changed
      u64 folded[4];
      bool negative = fold_scalar<Fr>(s, folded);
      live.entries[at] = static_cast<u32>(k) | (negative ? sign_bit : 0);
      for (int j = 0; j < 4; j++) live.planes[j][at] = folded[j];
      at++;
    }
  });
  return live;
}

// Windows of c bits over scalars of max_bits bits. The top digit takes all bits that are left: it can be
// 2^(c-1) itself, and above bit 255 it needs no shift (|s| has 254 bits at most).
struct Windows {
  int c, count;

  Windows(int width, int max_bits) : c(width), count(max_bits / width + 1) {}

  std::size_t buckets() const { return std::size_t{1} << (c - 1); }

  // s + sum_w 2^(c w + c - 1), in place.
  void shift(LiveScalars& live, int threads) const {
    u64 offset[4] = {};
    for (int w = 0; w < count; w++) {
      int bit = c * w + c - 1;
      if (bit < 256) offset[bit / 64] |= 1ull << (bit % 64);
    }
    parallel_ranges(threads, live.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; k++) {
        u64 carry = 0;
        for (int j = 0; j < 4; j++) live.planes[j][k] = add_carry(live.planes[j][k], offset[j], carry);
      }
    });
  }

  // body(k, magnitude, negative) for every digit of window w that is not zero, k in [begin, end).
  template <class Body>
  void for_digits(const LiveScalars& live, int w, std::size_t begin, std::size_t end, Body body) const {
    int bit = c * w, word = bit / 64, shift = bit % 64;
    const u64* low = live.planes[word].data();
    bool top = w + 1 == count;  // one bit wider: its digit can be 2^(c-1)
    const u64* high = shift + c + (top ? 1 : 0) > 64 && word < 3 ? live.planes[word + 1].data() : nullptr;
    u64 mask = top ? ~u64{0} : (u64{1} << c) - 1;
    i64 half = bit + c - 1 < 256 ? i64{1} << (c - 1) : 0;
    for (std::size_t k = begin; k < end; k++) {
      u64 raw = low[k] >> shift;
      if (high) raw |= high[k] << (64 - shift);
      i64 digit = static_cast<i64>(raw & mask) - half;
      if (digit != 0) body(k, static_cast<std::size_t>(digit < 0 ? -digit : digit), digit < 0);
    }
  }
};

}  // namespace cuzk::CUZK_PATH
