// Is a point what it should be: coordinates below p, on the curve, in the subgroup of order r? And the
// compressed encodings of BLS12-381, which hold x and the sign of y. Host only.
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

// A square root in Fp, p = 3 mod 4; false where there is none.
template <class P>
bool square_root(const Field<P>& a, Field<P>& root) {
  root = a * a.pow(P::inverse_sqrt_exponent_plain, P::words);
  return root.squared() == a;
}

// In Fp2: with s^2 = norm(a) and t = (a0 + s) / 2, a root is sqrt(t) + a1 / (2 sqrt(t)) u where t is a
// square; else t' = (a0 - s) / 2 = -a1^2 / 4t is one. Both cases follow from g = t^((p - 3) / 4), as
// (g t)^2 = t and 1 / (g t) = g, or (g t)^2 = -t and 1 / (g t) = -g.
template <class P>
bool square_root(const Fp2<Field<P>>& a, Fp2<Field<P>>& root) {
  using F = Field<P>;
  if (a.c1.is_zero()) {
    F s;
    if (square_root(a.c0, s)) root = {s, F::zero()};
    else root = {F::zero(), s};  // -1 is no square: then s^2 = -a0
    return root.squared() == a;
  }
  F s, half = F::from_words(P::half);
  if (!square_root(a.c0.squared() + a.c1.squared(), s)) return false;
  F t = (a.c0 + s) * half;
  F g = t.pow(P::inverse_sqrt_exponent_plain, P::words), x = g * t;
  F other = a.c1 * g * half;
  if (x.squared() == t) root = {x, other};
  else root = {-other, x};
  return root.squared() == a;
}

// Is y above (p - 1) / 2; in Fp2 the u part decides unless it is zero. The zcash encoding's "sign".
template <class P>
bool is_larger_root(const Field<P>& y) {
  Field<P> plain = y.to_plain();
  u64 borrow = 0;
  for (int i = 0; i < P::words; i++) sub_borrow(P::half_plain[i], plain.w[i], borrow);
  return borrow != 0;
}
template <class P>
bool is_larger_root(const Fp2<Field<P>>& y) {
  return y.c1.is_zero() ? is_larger_root(y.c0) : is_larger_root(y.c1);
}

// Big-endian bytes with the top three bits taken off, below p, into Montgomery form.
template <class P>
bool read_coordinate(const unsigned char* bytes, Field<P>& out) {
  u64 plain[P::words] = {};
  for (int i = 0; i < P::words * 8; i++) {
    plain[P::words - 1 - i / 8] = plain[P::words - 1 - i / 8] << 8 | bytes[i];
  }
  out = Field<P>::from_plain(plain);
  return Field<P>::is_canonical(plain);
}
template <class P>
bool read_coordinate(const unsigned char* bytes, Fp2<Field<P>>& out) {
  return read_coordinate(bytes, out.c1) && read_coordinate(bytes + P::words * 8, out.c0);
}

// One compressed point: bit 7 compressed, bit 6 infinity, bit 5 the larger root, then x (in G2 x.c1, x.c0).
template <class F>
const char* decompress_one(const unsigned char* data, const F& b, Affine<F>& out) {
  constexpr int size = F::N * 8;
  unsigned char bytes[size];
  for (int i = 0; i < size; i++) bytes[i] = data[i];
  unsigned flags = bytes[0] >> 5;
  bytes[0] &= 0x1f;
  if (!(flags & 4)) return "the flag of a compressed point is not set";
  if (flags & 2) {
    unsigned any = flags & 1;
    for (unsigned char byte : bytes) any |= byte;
    out = Affine<F>::infinity();
    return any ? "infinity with further bits set" : nullptr;
  }
  if (!read_coordinate(bytes, out.x)) return "a coordinate is not below p";
  if (!square_root(out.x.squared() * out.x + b, out.y)) return "x is not on the curve";
  if (is_larger_root(out.y) != static_cast<bool>(flags & 1)) out.y = -out.y;
  return nullptr;
}

// out[i] for every good encoding; what lies at and after the first bad one is unspecified.
template <class F>
BadPoint decompress(const unsigned char* data, std::size_t n, u64* out, const F& b, int threads) {
  return first_failure(n, threads, 16, [=](std::size_t i) {
    Affine<F> point;
    const char* reason = decompress_one<F>(data + i * F::N * 8, b, point);
    if (reason != nullptr) return reason;
    u64* words = out + i * Affine<F>::N;
    auto put = [&](const auto& c) {
      for (u64 word : c.w) *words++ = word;
    };
    if constexpr (requires { point.x.c0; }) {
      put(point.x.c0), put(point.x.c1), put(point.y.c0), put(point.y.c1);
    } else {
      put(point.x), put(point.y);
    }
    return reason;
  });
}

}  // namespace cuzk::CUZK_PATH
