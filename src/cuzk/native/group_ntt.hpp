// The NTT over points, natural order in and out: out_i = sum_j root^(ij) points_j, and its inverse
// (root^-1, divided by n). With powers of tau as input the inverse gives the Lagrange basis at tau.
// Decimation in time; a butterfly is one scaling and two additions. Host only.
#pragma once

#include "scale.hpp"

namespace cuzk::CUZK_PATH {

// 1, root, root^2, ...: plain words, ready to be scaled with.
template <class Fr>
std::vector<Fr> plain_powers(const Fr& root, std::size_t n) {
  std::vector<Fr> powers(n);
  Fr power = Fr::one();
  for (std::size_t i = 0; i < n; i++, power = power * root) powers[i] = power.to_plain();
  return powers;
}

template <class F, class Fr>
class GroupNtt {
 public:
  GroupNtt(Affine<F>* points, std::size_t n, const Fr& root)
      : points_(points), n_(n), twiddles_(plain_powers(root, n / 2)) {}

  void run(int threads) {
    bit_reverse();
    for (std::size_t half = 1; half < n_; half *= 2)
      parallel(threads, (n_ / 2 + block - 1) / block, [&](std::size_t b) {
        butterflies(half, b * block, std::min(n_ / 2, (b + 1) * block));
      });
  }

 private:
  static constexpr std::size_t block = Scaler<F, Fr>::block;

  void bit_reverse() {
    for (std::size_t i = 1, j = 0; i < n_; i++) {
      std::size_t bit = n_ / 2;
      for (; j & bit; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(points_[i], points_[j]);
    }
  }

  // Butterflies begin..end of the layer that joins transforms of `half` points.
  void butterflies(std::size_t half, std::size_t begin, std::size_t end) {
    std::size_t count = end - begin;
    Scaler<F, Fr> scaler;
    Lockstep<F> lockstep(count);
    std::vector<Affine<F>> low(count), high(count);
    std::vector<Fr> scalars(count);
    auto index = [half](std::size_t k) { return k / half * 2 * half + k % half; };
    for (std::size_t i = 0; i < count; i++) {
      std::size_t at = index(begin + i);
      low[i] = points_[at];
      high[i] = points_[at + half];
      scalars[i] = twiddles_[(begin + i) % half * (n_ / 2 / half)];
    }
    if (half > 1) scaler.scale(high.data(), scalars[0].w, Fr::N, count);
    std::vector<Affine<F>> sums = low;
    lockstep.add(sums.data(), high.data(), count);
    for (auto& point : high) point = -point;
    lockstep.add(low.data(), high.data(), count);
    for (std::size_t i = 0; i < count; i++) {
      std::size_t at = index(begin + i);
      points_[at] = sums[i];
      points_[at + half] = low[i];
    }
  }

  Affine<F>* points_;
  std::size_t n_;
  std::vector<Fr> twiddles_;
};

// In place; n a power of two, root of order n in Montgomery form.
template <class F, class Fr>
void group_ntt(Affine<F>* points, std::size_t n, const Fr& root, bool inverse, int threads) {
  GroupNtt<F, Fr>(points, n, inverse ? root.inverse() : root).run(threads);
  if (!inverse) return;
  Fr share = Fr::from_u64(n).inverse().to_plain();
  scale_points<F, Fr>(points, share.w, points, n, threads);
}

}  // namespace cuzk::CUZK_PATH
