// The tower over Fp2 that the pairing's values live in, the same for both curves:
//
//   Fp6 = Fp2[v] / (v^3 - xi),    Fp12 = Fp6[w] / (w^2 - v),    so w^6 = xi.
//
// An Fp12 is (a0 + a1 v + a2 v^2) + (b0 + b1 v + b2 v^2) w; coefficient of w^i: a0 b0 a1 b1 a2 b2.
#pragma once

#include "curve.hpp"

namespace cuzk::CUZK_PATH {

// a * xi with xi = 9 + u (BN254) or 1 + u (BLS12-381): additions only.
template <class Curve, class E>
constexpr E times_xi(const E& a) {
  static_assert((Curve::xi_plain[0] == 9 || Curve::xi_plain[0] == 1) && Curve::xi_plain[1] == 1);
  if constexpr (Curve::xi_plain[0] == 1) return {a.c0 - a.c1, a.c0 + a.c1};
  E nine = a.doubled().doubled().doubled() + a;
  return {nine.c0 - a.c1, nine.c1 + a.c0};
}

template <class Curve>
struct Fp6 {
  using E = typename CurveTypes<Curve>::Fp2;
  E c0, c1, c2;

  static constexpr Fp6 zero() { return Fp6{}; }
  static constexpr Fp6 one() { return {E::one(), E::zero(), E::zero()}; }
  constexpr bool operator==(const Fp6& o) const { return c0 == o.c0 && c1 == o.c1 && c2 == o.c2; }

  constexpr Fp6 operator+(const Fp6& o) const { return {c0 + o.c0, c1 + o.c1, c2 + o.c2}; }
  constexpr Fp6 operator-(const Fp6& o) const { return {c0 - o.c0, c1 - o.c1, c2 - o.c2}; }
  constexpr Fp6 operator-() const { return {-c0, -c1, -c2}; }
  constexpr Fp6 doubled() const { return {c0.doubled(), c1.doubled(), c2.doubled()}; }
  constexpr Fp6 times_v() const { return {times_xi<Curve>(c2), c0, c1}; }

  // Karatsuba on each pair of coefficients: six products in Fp2.
  constexpr Fp6 operator*(const Fp6& o) const {
    E t0 = c0 * o.c0, t1 = c1 * o.c1, t2 = c2 * o.c2;
    return {t0 + times_xi<Curve>((c1 + c2) * (o.c1 + o.c2) - t1 - t2),
            (c0 + c1) * (o.c0 + o.c1) - t0 - t1 + times_xi<Curve>(t2),
            (c0 + c2) * (o.c0 + o.c2) - t0 - t2 + t1};
  }
  // Times x + y v: five products.
  constexpr Fp6 times_sparse(const E& x, const E& y) const {
    E t0 = c0 * x, t1 = c1 * y;
    return {t0 + times_xi<Curve>(c2 * y), (c0 + c1) * (x + y) - t0 - t1, t1 + c2 * x};
  }
  constexpr Fp6 operator*(const E& k) const { return {c0 * k, c1 * k, c2 * k}; }

  // Adjugate over norm; 0 maps to 0.
  constexpr Fp6 inverse() const {
    E a = c0.squared() - times_xi<Curve>(c1 * c2);
    E b = times_xi<Curve>(c2.squared()) - c0 * c1;
    E c = c1.squared() - c0 * c2;
    E norm = c0 * a + times_xi<Curve>(c2 * b + c1 * c);
    return Fp6{a, b, c} * norm.inverse();
  }
};

template <class Curve>
struct Fp12 {
  using Half = Fp6<Curve>;
  using E = typename Half::E;
  Half a, b;  // a + b w

  static constexpr Fp12 one() { return {Half::one(), Half::zero()}; }
  constexpr bool operator==(const Fp12& o) const { return a == o.a && b == o.b; }
  constexpr bool is_one() const { return *this == one(); }

  constexpr Fp12 operator*(const Fp12& o) const {
    Half t0 = a * o.a, t1 = b * o.b;
    return {t0 + t1.times_v(), (a + b) * (o.a + o.b) - t0 - t1};
  }
  // (a + b)(a + v b) - (1 + v) a b: two products in Fp6.
  constexpr Fp12 squared() const {
    Half t = a * b;
    return {(a + b) * (a + b.times_v()) - t - t.times_v(), t.doubled()};
  }
  // The p^6-power Frobenius; the inverse in the cyclotomic subgroup.
  constexpr Fp12 conjugate() const { return {a, -b}; }
  constexpr Fp12 inverse() const {
    Half norm = (a * a - (b * b).times_v()).inverse();
    return {a * norm, -(b * norm)};
  }

  // A line as the Miller loop meets it (see pairing.hpp), 13 products:
  // D: x + (y + z v) w,   M: (x + y v) + z v w.
  constexpr Fp12 times_line(const E& x, const E& y, const E& z) const {
    if constexpr (Curve::twist_is_d) {
      Half t0 = a * x, t1 = b.times_sparse(y, z);
      return {t0 + t1.times_v(), (a + b).times_sparse(x + y, z) - t0 - t1};
    } else {
      Half t0 = a.times_sparse(x, y), t1 = (b * z).times_v();
      return {t0 + t1.times_v(), (a + b).times_sparse(x, y + z) - t0 - t1};
    }
  }

  // This ^ (p^power), power 1, 2 or 3.
  template <int power>
  constexpr Fp12 frobenius() const {
    static_assert(power >= 1 && power <= 3);
    const auto& table = power == 1   ? Curve::frobenius1
                        : power == 2 ? Curve::frobenius2
                                     : Curve::frobenius3;
    auto image = [&](const E& c, int i) {
      return (power % 2 ? c.conjugate() : c) * E{E::Base::from_words(table[i][0]), E::Base::from_words(table[i][1])};
    };
    return {{image(a.c0, 0), image(a.c1, 2), image(a.c2, 4)}, {image(b.c0, 1), image(b.c1, 3), image(b.c2, 5)}};
  }

  // Squaring where this^(p^4 - p^2 + 1) = 1 (Granger and Scott, "Faster squaring in the cyclotomic
  // subgroup of sixth degree extensions", 2010): three squarings in Fp4 = Fp2[s] / (s^2 - xi).
  constexpr Fp12 cyclotomic_squared() const {
    auto [s0, s1] = fp4_squared(a.c0, b.c1);
    auto [t0, t1] = fp4_squared(b.c0, a.c2);
    auto [u0, u1] = fp4_squared(a.c1, b.c2);
    auto minus = [](const E& s, const E& c) { return (s - c).doubled() + s; };  // 3 s - 2 c
    auto plus = [](const E& s, const E& c) { return (s + c).doubled() + s; };
    return {{minus(s0, a.c0), minus(t0, a.c1), minus(u0, a.c2)},
            {plus(times_xi<Curve>(u1), b.c0), plus(s1, b.c1), plus(t1, b.c2)}};
  }

  // This ^ |x| in the cyclotomic subgroup, x the parameter of the family.
  constexpr Fp12 cyclotomic_pow_x() const {
    Fp12 result = *this, inverse = conjugate();
    for (int i = Curve::x_digits_length - 2; i >= 0; i--) {
      result = result.cyclotomic_squared();
      if (Curve::x_digits[i] > 0) result = result * *this;
      if (Curve::x_digits[i] < 0) result = result * inverse;
    }
    return result;
  }

 private:
  struct Fp4 {
    E c0, c1;
  };
  // (x + y s)^2
  static constexpr Fp4 fp4_squared(const E& x, const E& y) {
    E x2 = x.squared(), y2 = y.squared();
    return {x2 + times_xi<Curve>(y2), (x + y).squared() - x2 - y2};
  }
};

}  // namespace cuzk::CUZK_PATH
