// Points of y^2 = x^3 + b over F = Fp (G1) or Fp2 (G2).
//
// Affine<F> is the layout of files and of vectors.py: x, y, infinity = all zero words (b is not zero, so
// (0, 0) is never a point). Xyzz<F> is the extended form of sums: x = X / ZZ, y = Y / ZZZ, ZZ^3 = ZZZ^2,
// infinity has ZZ = 0. The formulas are those of the Explicit-Formulas Database ("shortw/xyzz":
// add-2008-s, madd-2008-s, dbl-2008-s-1, a = 0); every operation here takes equal, opposite and infinite
// operands.
#pragma once

#include "fp2.hpp"

namespace cuzk::CUZK_PATH {

template <class F>
struct Affine {
  static constexpr int N = 2 * F::N;
  F x, y;

  static constexpr Affine infinity() { return Affine{}; }
  static constexpr Affine from_words(const u64* words) {
    return {F::from_words(words), F::from_words(words + F::N)};
  }
  constexpr bool is_infinity() const { return x.is_zero() && y.is_zero(); }
  constexpr bool operator==(const Affine& o) const { return x == o.x && y == o.y; }
  constexpr Affine operator-() const { return {x, -y}; }
  // Does y^2 = x^3 + b hold? Infinity counts as on the curve.
  constexpr bool is_on_curve(const F& b) const {
    return is_infinity() || y.squared() == x.squared() * x + b;
  }
};

template <class F>
struct Xyzz {
  F x, y, zz, zzz;

  static constexpr Xyzz infinity() { return Xyzz{}; }
  static constexpr Xyzz from_affine(const Affine<F>& p) {
    if (p.is_infinity()) return infinity();
    return {p.x, p.y, F::one(), F::one()};
  }
  constexpr bool is_infinity() const { return zz.is_zero(); }
  constexpr Xyzz operator-() const { return {x, -y, zz, zzz}; }

  // The same point, whatever the scaling.
  constexpr bool operator==(const Xyzz& o) const {
    if (is_infinity() || o.is_infinity()) return is_infinity() == o.is_infinity();
    return x * o.zz == o.x * zz && y * o.zzz == o.y * zzz;
  }

  constexpr Xyzz doubled() const {
    F u = y.doubled(), v = u.squared(), w = u * v, s = x * v;
    F x2 = x.squared(), m = x2.doubled() + x2;
    F x3 = m.squared() - s.doubled();
    return {x3, F::difference(m, s - x3, w, y), v * zz, w * zzz};
  }
  // 2 p by the same formulas with ZZ = ZZZ = 1; p is not infinity.
  static constexpr Xyzz twice(const Affine<F>& p) {
    F u = p.y.doubled(), v = u.squared(), w = u * v, s = p.x * v;
    F x2 = p.x.squared(), m = x2.doubled() + x2;
    F x3 = m.squared() - s.doubled();
    return {x3, F::difference(m, s - x3, w, p.y), v, w};
  }

  // 8 products and 2 squares, two products with one reduction.
  constexpr Xyzz operator+(const Affine<F>& o) const {
    if constexpr (early_exits)
      if (is_infinity() || o.is_infinity()) return special_sum(*this, o, false);
    F p = o.x * zz - x, r = o.y * zzz - y;
    if (p.is_zero() || is_infinity() || o.is_infinity()) return special_sum(*this, o, r.is_zero());
    Xyzz sum = *this;
    sum.finish_sum(p, r);
    return sum;
  }
  // 12 products and 2 squares, likewise.
  constexpr Xyzz operator+(const Xyzz& o) const {
    if constexpr (early_exits)
      if (is_infinity() || o.is_infinity()) return special_sum(*this, o, false);
    Xyzz sum{x * o.zz, y * o.zzz, zz * o.zz, zzz * o.zzz};
    F p = o.x * zz - sum.x, r = o.y * zzz - sum.y;
    if (p.is_zero() || is_infinity() || o.is_infinity()) return special_sum(*this, o, r.is_zero());
    sum.finish_sum(p, r);
    return sum;
  }
  // The rest of both: x, y over the common zz, zzz, and the differences p, r of the second point's to
  // them. In place, in an order that leaves few values alive.
  constexpr void finish_sum(F p, const F& r) {
    F pp = p.squared();
    zz = zz * pp;
    x = x * pp;
    F ppp = p * pp;
    zzz = zzz * ppp;
    p = r.squared() - ppp - x.doubled();
    y = F::difference(r, x - p, y, ppp);
    x = p;
  }
  // An operand is infinity, or the points are equal or opposite.
  CUZK_RARE static constexpr Xyzz special_sum(Xyzz a, Affine<F> b, bool equal) {
    if (b.is_infinity()) return a;
    if (a.is_infinity()) return from_affine(b);
    return equal ? twice(b) : infinity();
  }
  CUZK_RARE static constexpr Xyzz special_sum(Xyzz a, Xyzz b, bool equal) {
    if (b.is_infinity()) return a;
    if (a.is_infinity()) return b;
    return equal ? a.doubled() : infinity();
  }

  // Given 1 / ZZZ: 1 / ZZ = (ZZ / ZZZ)^2.
  constexpr Affine<F> scaled_by(const F& zzz_inverse) const {
    return {x * (zz * zzz_inverse).squared(), y * zzz_inverse};
  }
  constexpr Affine<F> to_affine() const {
    return is_infinity() ? Affine<F>::infinity() : scaled_by(zzz.inverse());
  }

  // this * scalar; the scalar is little-endian plain words, of any size.
  constexpr Xyzz times(const u64* scalar, int words) const {
    Xyzz sum = infinity();
    for (int i = words * 64 - 1; i >= 0; i--) {
      sum = sum.doubled();
      if (scalar[i / 64] >> (i % 64) & 1) sum = sum + *this;
    }
    return sum;
  }
};

// Replace values[i] by its inverse with one inversion and 3 (n - 1) products; zeros stay zero. `scratch`
// holds n elements.
template <class F>
constexpr void invert_all(F* values, F* scratch, size n) {
  F product = F::one();
  for (size i = 0; i < n; i++) {
    scratch[i] = product;
    if (!values[i].is_zero()) product = product * values[i];
  }
  F inverse = product.inverse();
  for (size i = n; i-- > 0;) {
    if (values[i].is_zero()) continue;
    F result = inverse * scratch[i];
    inverse = inverse * values[i];
    values[i] = result;
  }
}

// out[i] = points[i] in affine form, one inversion for all; `scratch` holds n elements.
template <class F>
constexpr void to_affine_all(const Xyzz<F>* points, Affine<F>* out, F* scratch, size n) {
  F product = F::one();
  for (size i = 0; i < n; i++) {
    scratch[i] = product;
    if (!points[i].is_infinity()) product = product * points[i].zzz;
  }
  F inverse = product.inverse();
  for (size i = n; i-- > 0;) {
    if (points[i].is_infinity()) {
      out[i] = Affine<F>::infinity();
      continue;
    }
    F zzz_inverse = inverse * scratch[i];
    inverse = inverse * points[i].zzz;
    out[i] = points[i].scaled_by(zzz_inverse);
  }
}

// The types of one curve (a struct of curve_constants.hpp) on this arithmetic path.
template <class Curve>
struct CurveTypes {
  using Fp = Field<typename Curve::FpParams>;
  using Fr = Field<typename Curve::FrParams>;
  using Fp2 = cuzk::CUZK_PATH::Fp2<Fp>;
  using G1 = Affine<Fp>;
  using G2 = Affine<Fp2>;
  // Constant evaluation takes the portable lines of every operation.
  static_assert(Fp::from_u64(6) * Fp::from_u64(7) - Fp::from_u64(2) == Fp::from_u64(40));
  static_assert(Fr::from_words(Curve::FrParams::r2).to_plain() == Fr::one());

  static constexpr Fp g1_b() { return Fp::from_words(Curve::b); }
  static constexpr Fp2 g2_b() {
    return {Fp::from_words(Curve::twist_b[0]), Fp::from_words(Curve::twist_b[1])};
  }
  static constexpr G1 g1_generator() {
    return {Fp::from_words(Curve::g1[0]), Fp::from_words(Curve::g1[1])};
  }
  static constexpr G2 g2_generator() {
    return {{Fp::from_words(Curve::g2[0]), Fp::from_words(Curve::g2[1])},
            {Fp::from_words(Curve::g2[2]), Fp::from_words(Curve::g2[3])}};
  }
};

}  // namespace cuzk::CUZK_PATH
