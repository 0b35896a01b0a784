// One thread scales one point of order r by a scalar in halves: 31 rounds of four doublings and two additions
// of multiples 1 to 8 from a table, about 1,670 products and squares (the time of 1,350 products).
//
// The running sum is Jacobian (x = X / Z^2, y = Y / Z^3): a doubling takes 2M + 3S and two products with one
// reduction, where the extended form takes two more products. Multiples are affine without an inversion: brought to
// one common denominator c they are affine points of the curve y^2 = x^3 + b c^6, and no formula here knows b;
// likewise a point in extended form is (X, Y) with c^2 = ZZ, c^3 = ZZZ. The result's denominator takes c in at the end.
#pragma once

#include "endomorphism.hpp"

namespace cuzk::CUZK_PATH {

// Infinity: Z = 0.
struct Jacobian {
  Coordinate x, y, z;

  bool is_infinity() const { return z.is_zero(); }

  // 2M + 3S and a difference of two products.
  void twice() {
    z = (y * z).doubled();
    double_affine_part();
  }
  static Jacobian twice(const Point& p) {
    Jacobian sum{p.x, p.y, p.y.doubled()};
    sum.double_affine_part();
    return sum;
  }

  // += p: 6M + 3S and a difference of two products; neither is infinite. Returns by what Z was multiplied.
  Coordinate add(const Point& p) {
    Coordinate zz = z.squared(), r = p.y * (z * zz) - y, h = p.x * zz - x;
    if (h.is_zero()) {
      *this = r.is_zero() ? rare_twice(p) : Jacobian{};
      return h;
    }
    z = z * h;
    zz = h.squared();
    x = x * zz;
    zz = zz * h;
    Coordinate sum_x = r.squared() - zz - x.doubled();
    y = Coordinate::difference(r, x - sum_x, y, zz);
    x = sum_x;
    return h;
  }

 private:
  CUZK_RARE static Jacobian rare_twice(Point p) { return twice(p); }

  void double_affine_part() {
    Coordinate m = x.squared(), yy = y.squared(), d = (x * yy).doubled().doubled();
    m = m.doubled() + m;
    x = m.squared() - d.doubled();
    y = Coordinate::difference(m, d - x, yy.doubled().doubled().doubled(), yy);
  }
};

// (i + 1) P and, for lambda's multiples, beta x.
struct Multiple {
  Coordinate x, y, turned_x;
};
constexpr int multiples = 8;

inline Coordinate turned(const Coordinate& x, const Fp& beta) { return x * beta; }

// Fills the thread's table; returns its common denominator.
inline Coordinate make_multiples(const Point& point, Multiple* table, const Fp& beta) {
  store(&table[0].x, point.x), store(&table[0].y, point.y);
  Jacobian sum = Jacobian::twice(point);
  Coordinate ratio = sum.z;  // of this multiple's denominator to the last one's: in the slot of beta x until the second loop
#pragma unroll 1
  for (int i = 1;; i++) {
    store(&table[i].x, sum.x), store(&table[i].y, sum.y), store(&table[i].turned_x, ratio);
    if (i == multiples - 1) break;
    ratio = sum.add(point);
  }
  Coordinate c = Coordinate::one();
#pragma unroll 1
  for (int i = multiples - 1;; i--) {
    Coordinate cc = c.squared(), x = load(&table[i].x) * cc;
    store(&table[i].x, x), store(&table[i].y, load(&table[i].y) * (cc * c));
    if (i != 0) c = c * load(&table[i].turned_x);
    store(&table[i].turned_x, turned(x, beta));
    if (i == 0) return c;
  }
}

// The table's point times the scalar.
inline Jacobian sum_of_multiples(const Multiple* table, const u64* halves) {
  Jacobian sum{};
#pragma unroll 1
  for (int window = Halves::windows - 1; window >= 0; window--) {
    if (!sum.is_infinity())
#pragma unroll 1
      for (int i = 0; i < Halves::bits; i++) sum.twice();
#pragma unroll 1
    for (int h = 0; h < 2; h++) {
      int digit = Halves::digit(halves, h, window);
      if (digit == 0) continue;
      const Multiple* multiple = table + (digit < 0 ? -digit : digit) - 1;
      Point point{load(h == 0 ? &multiple->x : &multiple->turned_x), load(&multiple->y)};
      if (digit < 0 != Halves::is_negative(halves, h)) point.y = -point.y;
      if (sum.is_infinity()) sum = {point.x, point.y, Coordinate::one()};
      else sum.add(point);
    }
  }
  return sum;
}

// *sum *= the scalar; it is not infinite.
inline void scale(Sum* sum, const u64* halves, Multiple* table, const Fp& beta) {
  Coordinate c = make_multiples({load(&sum->x), load(&sum->y)}, table, beta);
  Jacobian product = sum_of_multiples(table, halves);
  c = c * product.z;
  Coordinate cc = c.squared();
  store(&sum->x, product.x), store(&sum->y, product.y);
  store(&sum->zz, cc * load(&sum->zz)), store(&sum->zzz, c * cc * load(&sum->zzz));
}

}  // namespace cuzk::CUZK_PATH
