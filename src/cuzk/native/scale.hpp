// Many points, each times a scalar: all walk the same doublings in lockstep, a few signed bits of their
// scalars per step. Host only.
#pragma once

#include <algorithm>

#include "lockstep.hpp"
#include "parallel.hpp"
#include "recode.hpp"

namespace cuzk::CUZK_PATH {

template <class F, class Fr>
class Scaler {
 public:
  static constexpr std::size_t block = 512;

  Scaler() : lockstep_(block), multiples_(block * table), terms_(block), digits_(block * windows) {}

  // points[i] *= scalars[i]: plain words, `stride` words from one to the next (0: one for all);
  // n <= block.
  void scale(Affine<F>* points, const u64* scalars, std::size_t stride, std::size_t n) {
    for (std::size_t i = 0; i < n; i++)
      signed_digits(scalars + i * stride, Fr::N, width, windows, &digits_[i * windows]);
    std::copy(points, points + n, multiples_.begin());
    for (int k = 1; k < table; k++) {  // row k holds (k + 1) * points
      Affine<F>* row = &multiples_[k * block];
      std::copy(&multiples_[(k - 1) * block], &multiples_[(k - 1) * block] + n, row);
      lockstep_.add(row, multiples_.data(), n);
    }
    for (int w = windows - 1; w >= 0; w--) {
      for (int d = 0; d < width && w < windows - 1; d++) lockstep_.twice(points, n);
      Affine<F>* sums = w == windows - 1 ? points : terms_.data();
      for (std::size_t i = 0; i < n; i++) sums[i] = term(i, digits_[i * windows + w]);
      if (w < windows - 1) lockstep_.add(points, terms_.data(), n);
    }
  }

 private:
  static constexpr int width = 4, table = 1 << (width - 1);
  static constexpr int windows = signed_windows(Fr::P::bits, width);

  Affine<F> term(std::size_t i, int digit) const {
    if (digit == 0) return Affine<F>::infinity();
    const Affine<F>& multiple = multiples_[((digit < 0 ? -digit : digit) - 1) * block + i];
    return digit < 0 ? -multiple : multiple;
  }

  Lockstep<F> lockstep_;
  std::vector<Affine<F>> multiples_, terms_;
  std::vector<signed char> digits_;
};

// out_i = scalar * points_i; out may be points.
template <class F, class Fr>
void scale_points(const Affine<F>* points, const u64* scalar, Affine<F>* out, std::size_t n, int threads) {
  using Work = Scaler<F, Fr>;
  parallel(threads, (n + Work::block - 1) / Work::block, [&](std::size_t b) {
    std::size_t first = b * Work::block, count = std::min(n - first, Work::block);
    Work work;
    std::copy(points + first, points + first + count, out + first);
    work.scale(out + first, scalar, 0, count);
  });
}

}  // namespace cuzk::CUZK_PATH
