// Many multiples of one point: out_i = scalars_i * base.
//
// The scalar is cut into signed windows; a table holds k * 2^(width * w) * base for every window w and
// k = 1..2^(width-1), so that a multiple is one addition per window. Blocks of scalars walk the windows in
// lockstep. Host only.
#pragma once

#include <cstdint>

#include "lockstep.hpp"
#include "parallel.hpp"
#include "recode.hpp"

namespace cuzk::CUZK_PATH {

template <class F>
struct FixedBaseTable {
  int width, windows;
  std::size_t multiples;  // per window: 2^(width-1)
  std::vector<Affine<F>> rows;

  FixedBaseTable(const Affine<F>& base, int bits, std::size_t uses, int threads)
      : width(best_width(bits, uses)),
        windows(signed_windows(bits, width)),
        multiples(std::size_t{1} << (width - 1)),
        rows(multiples * windows) {
    Xyzz<F> power = Xyzz<F>::from_affine(base);
    std::vector<Xyzz<F>> starts;
    for (int w = 0; w < windows; w++) {
      starts.push_back(power);
      for (int i = 0; i < width; i++) power = power.doubled();
    }
    std::vector<Affine<F>> affine(windows);
    std::vector<F> scratch(windows);
    to_affine_all(starts.data(), affine.data(), scratch.data(), starts.size());
    parallel(threads, windows, [&](std::size_t w) { fill(&rows[w * multiples], affine[w]); });
  }

  // 0 for digit 0, else digit * 2^(width * window) * base.
  Affine<F> term(int window, int digit) const {
    if (digit == 0) return Affine<F>::infinity();
    const Affine<F>& row = rows[window * multiples + (digit < 0 ? -digit : digit) - 1];
    return digit < 0 ? -row : row;
  }

 private:
  // Additions for the table and for `uses` scalars; 13 keeps the table within 16 MB in G2 of BLS12-381.
  static int best_width(int bits, std::size_t uses) {
    int best = 2;
    std::size_t least = SIZE_MAX;
    for (int width = 2; width <= 13; width++) {
      std::size_t per_window = uses + (std::size_t{1} << (width - 1));
      std::size_t additions = per_window * signed_windows(bits, width);
      if (additions < least) least = additions, best = width;
    }
    return best;
  }

  // row[k] = (k + 1) * start, doubling the known part: multiples m+1..2m are m * start plus 1..m.
  void fill(Affine<F>* row, const Affine<F>& start) {
    Lockstep<F> lockstep(multiples);
    row[0] = start;
    for (std::size_t known = 1; known < multiples; known *= 2) {
      std::vector<Affine<F>> last(known, row[known - 1]);
      for (std::size_t i = 0; i < known; i++) row[known + i] = row[i];
      lockstep.add(row + known, last.data(), known);
    }
  }
};

template <class F, class Fr>
void fixed_base(const Affine<F>& base, const u64* scalars, Affine<F>* out, std::size_t n, int threads) {
  FixedBaseTable<F> table(base, Fr::P::bits, n, threads);
  constexpr std::size_t block = 1024;  // an inversion is about 400 products: 0.4 per addition
  parallel(threads, (n + block - 1) / block, [&](std::size_t b) {
    std::size_t first = b * block, count = n - first < block ? n - first : block;
    std::vector<std::int16_t> digits(count * table.windows);
    std::vector<Affine<F>> terms(count);
    Lockstep<F> lockstep(count);
    for (std::size_t i = 0; i < count; i++)
      signed_digits(scalars + (first + i) * Fr::N, Fr::N, table.width, table.windows,
                    &digits[i * table.windows]);
    for (int w = 0; w < table.windows; w++) {
      Affine<F>* sums = w == 0 ? out + first : terms.data();
      for (std::size_t i = 0; i < count; i++) sums[i] = table.term(w, digits[i * table.windows + w]);
      if (w > 0) lockstep.add(out + first, terms.data(), count);
    }
  });
}

}  // namespace cuzk::CUZK_PATH
