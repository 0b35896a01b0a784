// The optimal ate pairing e(P, Q), P in G1, Q in G2: the product over the digits of 6x + 2 (BN254, with
// two more lines through the Frobenius images of Q) or x (BLS12-381), raised to a multiple of
// (p^12 - 1) / r. Vercauteren, "Optimal pairings" (2010); Costello, Lange and Naehrig, "Faster pairing
// computations on curves with high-degree twists" (2010) for homogeneous coordinates. Host only.
//
// A line through points (x, y) of the twist, slope t, at P, up to factors that the last power removes:
//   D:  yP - t xP w + (t x - y) w^3          untwist (x w^2, y w^3)
//   M:  (t x - y) - t xP w^2 + yP w^3        untwist (x / w^2, y / w^3), times w^3
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "parallel.hpp"
#include "tower.hpp"

namespace cuzk::CUZK_PATH {

// The p-power Frobenius of E as the twist sees it; on G2 it multiplies by p.
template <class Curve>
constexpr typename CurveTypes<Curve>::G2 twist_frobenius(const typename CurveTypes<Curve>::G2& q) {
  using Fp = typename CurveTypes<Curve>::Fp;
  using Fp2 = typename CurveTypes<Curve>::Fp2;
  auto factor = [](int i) {
    return Fp2{Fp::from_words(Curve::twist_frobenius[i][0]), Fp::from_words(Curve::twist_frobenius[i][1])};
  };
  return {q.x.conjugate() * factor(0), q.y.conjugate() * factor(1)};
}

template <class Curve>
class MillerLoop {
  using Fp = typename CurveTypes<Curve>::Fp;
  using Fp2 = typename CurveTypes<Curve>::Fp2;
  using G1 = typename CurveTypes<Curve>::G1;
  using G2 = typename CurveTypes<Curve>::G2;
  using Value = Fp12<Curve>;

  struct Pair {
    G1 p;
    G2 q;
    Fp2 x, y, z;  // the running multiple of q is (x / z, y / z)
  };

  std::vector<Pair> pairs_;
  Value f_ = Value::one();

 public:
  // The product over `count` pairs, before the final exponentiation; the squarings are shared.
  static Value product(const G1* g1, const G2* g2, std::size_t count) {
    MillerLoop loop;
    for (std::size_t i = 0; i < count; i++) {
      if (g1[i].is_infinity() || g2[i].is_infinity()) continue;
      loop.pairs_.push_back({g1[i], g2[i], g2[i].x, g2[i].y, Fp2::one()});
    }
    if (!loop.pairs_.empty()) loop.run();
    return loop.f_;
  }

 private:
  void run() {
    for (int i = Curve::ate_digits_length - 2; i >= 0; i--) {
      if (i != Curve::ate_digits_length - 2) f_ = f_.squared();
      for (Pair& pair : pairs_) double_step(pair);
      int digit = Curve::ate_digits[i];
      if (digit == 0) continue;
      for (Pair& pair : pairs_) add_step(pair, digit > 0 ? pair.q : -pair.q);
    }
    if constexpr (Curve::x_negative) f_ = f_.conjugate();
    if constexpr (Curve::is_bn) {
      for (Pair& pair : pairs_) {
        G2 image = twist_frobenius<Curve>(pair.q);
        add_step(pair, image);
        add_step(pair, -twist_frobenius<Curve>(image));
      }
    }
  }

  // f *= line with value at_y * yP + at_x * xP + rest (times the powers of w above).
  void multiply_line(const G1& p, const Fp2& at_y, const Fp2& at_x, const Fp2& rest) {
    if constexpr (Curve::twist_is_d) {
      f_ = f_.times_line(at_y * p.y, at_x * p.x, rest);
    } else {
      f_ = f_.times_line(rest, at_x * p.x, at_y * p.y);
    }
  }

  // The tangent, slope 3 x^2 / 2 y z, scaled by 2 y z; t = x^3 is eliminated by the curve's equation.
  void double_step(Pair& pair) {
    Fp2 &x = pair.x, &y = pair.y, &z = pair.z;
    Fp2 xy = x * y, yy = y.squared(), zz = z.squared(), xx = x.squared();
    Fp2 yz2 = (y + z).squared() - yy - zz;
    Fp2 bzz = CurveTypes<Curve>::g2_b() * zz;
    Fp2 e = bzz.doubled() + bzz, ee = e.squared(), f = e.doubled() + e;
    multiply_line(pair.p, yz2, -(xx.doubled() + xx), yy - e);
    x = (xy * (yy - f)).doubled();
    y = (yy + f).squared() - (ee.doubled() + ee).doubled().doubled();
    z = (yy * yz2).doubled().doubled();
  }

  // The chord through the running point and the affine q, slope s / l, scaled by l.
  void add_step(Pair& pair, const G2& q) {
    Fp2 &x = pair.x, &y = pair.y, &z = pair.z;
    Fp2 s = y - q.y * z, l = x - q.x * z;
    multiply_line(pair.p, l, -s, s * q.x - l * q.y);
    Fp2 ll = l.squared(), lll = l * ll, xll = x * ll;
    Fp2 h = lll + z * s.squared() - xll.doubled();
    x = l * h;
    y = s * (xll - h) - y * lll;
    z = z * lll;
  }
};

// The hard part on BN curves: 2x (6x^2 + 3x + 1) (p^4 - p^2 + 1) / r in base p (Fuentes-Castaneda, Knapp
// and Rodriguez-Henriquez, "Faster hashing to G2", 2011), x > 0.
template <class Curve>
Fp12<Curve> hard_part_bn(const Fp12<Curve>& f) {
  static_assert(!Curve::x_negative);
  auto x2 = f.cyclotomic_pow_x().cyclotomic_squared();
  auto x6 = x2.cyclotomic_squared() * x2;
  auto x6_2 = x6.cyclotomic_pow_x();
  auto x12_3 = x6_2.cyclotomic_squared().cyclotomic_pow_x();
  auto a = x12_3 * x6_2 * x6;       // 12 x^3 + 6 x^2 + 6 x
  auto b = a * x2.conjugate();      // 12 x^3 + 6 x^2 + 4 x
  return (a * x6_2 * f) * b.template frobenius<1>() * a.template frobenius<2>() *
         (b * f.conjugate()).template frobenius<3>();
}

// The hard part on BLS12 curves: 3 (p^4 - p^2 + 1) / r = (x - 1)^2 (x + p) (x^2 + p^2 - 1) + 3 (Hayashida,
// Hayasaka and Teruya, "Efficient final exponentiation via cyclotomic structure", 2020), x < 0.
template <class Curve>
Fp12<Curve> hard_part_bls(const Fp12<Curve>& f) {
  static_assert(Curve::x_negative);
  auto pow_x = [](const Fp12<Curve>& g) { return g.cyclotomic_pow_x().conjugate(); };
  auto t = pow_x(f) * f.conjugate();
  t = pow_x(t) * t.conjugate();
  t = pow_x(t) * t.template frobenius<1>();
  t = pow_x(pow_x(t)) * t.template frobenius<2>() * t.conjugate();
  return t * f.cyclotomic_squared() * f;
}

// f^((p^12 - 1) / r) to the multiple that the hard part gives; 0 maps to 0.
template <class Curve>
Fp12<Curve> final_exponentiation(const Fp12<Curve>& f) {
  auto easy = f.conjugate() * f.inverse();           // p^6 - 1
  easy = easy.template frobenius<2>() * easy;        // p^2 + 1
  if constexpr (Curve::is_bn) return hard_part_bn<Curve>(easy);
  else return hard_part_bls<Curve>(easy);
}

// The product of the Miller values of n pairs given as words, in chunks that threads share out.
template <class Curve>
Fp12<Curve> miller_product(const u64* g1, const u64* g2, std::size_t n, int threads) {
  using G1 = typename CurveTypes<Curve>::G1;
  using G2 = typename CurveTypes<Curve>::G2;
  constexpr std::size_t most = 64;  // shares one squaring among 64 pairs: less than 1 % of a chunk's work
  std::size_t workers = static_cast<std::size_t>(thread_count(threads)), per_thread = (n + workers - 1) / workers;
  std::size_t chunk = std::clamp<std::size_t>(per_thread, 1, most), count = (n + chunk - 1) / chunk;
  std::vector<Fp12<Curve>> values(count);
  parallel(threads, count, [&](std::size_t i) {
    std::size_t begin = i * chunk, end = std::min(begin + chunk, n);
    std::vector<G1> left;
    std::vector<G2> right;
    for (std::size_t k = begin; k < end; k++) {
      left.push_back(G1::from_words(g1 + k * G1::N));
      right.push_back(G2::from_words(g2 + k * G2::N));
    }
    values[i] = MillerLoop<Curve>::product(left.data(), right.data(), end - begin);
  });
  auto result = Fp12<Curve>::one();
  for (const auto& value : values) result = result * value;
  return result;
}

}  // namespace cuzk::CUZK_PATH
