// Is a point what it should be: coordinates below p, on the curve, in the subgroup of order r? Host only.
#pragma once

#include <atomic>
#include <cstddef>

#include "pairing.hpp"
#include "pairing_ops.hpp"
#include "parallel.hpp"

namespace cuzk::CUZK_PATH {

// q * |x|, x the parameter of the family.
template <class Curve, class F>
constexpr Xyzz<F> times_x(const Xyzz<F>& q) {
  Xyzz<F> sum = q;
  for (int i = Curve::x_digits_length - 2; i >= 0; i--) {
    sum = sum.doubled();
    if (Curve::x_digits[i] > 0) sum = sum + q;
    if (Curve::x_digits[i] < 0) sum = sum + -q;
  }
  return sum;
}

// G1 of BLS12-381: (beta x, y) = -x^2 (x, y), beta a cube root of unity (Scott, "A note on group membership
// tests", 2021). Sound: phi = (beta x, y) has phi^2 + phi + 1 = 0, so phi(q) = -x^2 q gives
// (x^4 - x^2 + 1) q = r q = 0. BN254 has cofactor 1: every point of the curve is in G1.
template <class Curve>
constexpr bool in_subgroup(const typename CurveTypes<Curve>::G1& q) {
  if constexpr (Curve::is_bn) {
    return true;
  } else {
    using Fp = typename CurveTypes<Curve>::Fp;
    auto beta = Fp::from_words(Curve::frobenius2[2][0]);  // xi^((p^2 - 1) / 3); the other root fails on G1
    auto x2q = times_x<Curve>(times_x<Curve>(Xyzz<Fp>::from_affine(q)));
    return Xyzz<Fp>::from_affine({q.x * beta, q.y}) == -x2q;
  }
}

// G2, psi the Frobenius of E on the twist, psi^2 - t psi + p = 0. Where some g(psi) q = 0, also N q = 0 with
// N the resultant of g and that polynomial, and gcd(N, #E'(Fp2)) = r makes the test sound:
//   BLS12-381:  psi(q) = x q                                             (Scott 2021)
//   BN254:      (x + 1) q + psi(x q) + psi^2(x q) = psi^3(2 x q)         (Dai, Lin, Zhao, Zhou 2022)
// tests/test_check.py computes both gcds.
template <class Curve>
constexpr bool in_subgroup(const typename CurveTypes<Curve>::G2& q) {
  using Fp2 = typename CurveTypes<Curve>::Fp2;
  using Point = Xyzz<Fp2>;
  auto point = Point::from_affine(q);
  auto xq = times_x<Curve>(point);
  if constexpr (!Curve::is_bn) {
    static_assert(Curve::x_negative);
    return Point::from_affine(twist_frobenius<Curve>(q)) == -xq;
  } else {
    static_assert(!Curve::x_negative);
    auto psi1 = twist_frobenius<Curve>(xq.to_affine());
    auto psi2 = twist_frobenius<Curve>(psi1);
    auto psi3 = twist_frobenius<Curve>(psi2);
    return (xq + q) + psi1 + psi2 == Point::from_affine(psi3).doubled();
  }
}

// Keeps the smallest failing index over all threads.
class FirstBad {
  std::atomic<std::size_t> index_{static_cast<std::size_t>(-1)};

 public:
  void report(std::size_t index) {
    std::size_t seen = index_;
    while (index < seen && !index_.compare_exchange_weak(seen, index)) {
    }
  }
  bool none() const { return index_ == static_cast<std::size_t>(-1); }
  std::size_t index() const { return index_; }
};

// Run fails(i) -> reason or nullptr over all indices; the first failing one and its reason.
template <class Test>
BadPoint first_failure(std::size_t n, int threads, std::size_t at_least, Test fails) {
  FirstBad first;
  parallel_ranges(threads, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && i < first.index(); i++) {
      if (fails(i) != nullptr) return first.report(i);
    }
  }, at_least);
  if (first.none()) return {0, nullptr};
  return {first.index(), fails(first.index())};
}

template <class Curve, class Point>
const char* fault_of(const u64* words, bool subgroup) {
  using F = decltype(Point::x);
  if (!F::is_canonical(words) || !F::is_canonical(words + F::N)) return "range";
  auto point = Point::from_words(words);
  if (point.is_infinity()) return nullptr;
  F b;
  if constexpr (F::N == Curve::FpParams::words) b = CurveTypes<Curve>::g1_b();
  else b = CurveTypes<Curve>::g2_b();
  if (!point.is_on_curve(b)) return "curve";
  return subgroup && !in_subgroup<Curve>(point) ? "subgroup" : nullptr;
}

template <class Curve, class Point>
BadPoint first_bad_point(const u64* points, std::size_t n, bool subgroup, int threads) {
  return first_failure(n, threads, subgroup ? 16 : 1024, [=](std::size_t i) {
    return fault_of<Curve, Point>(points + i * Point::N, subgroup);
  });
}

}  // namespace cuzk::CUZK_PATH
