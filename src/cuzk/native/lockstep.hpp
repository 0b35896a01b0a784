// Many affine additions at once: sums[i] += terms[i] for all i with one field inversion, so that an
// addition costs 5M + 1S plus its share of the inversion (Montgomery's trick), against 8M + 2S for an
// XYZZ sum. Equal, opposite and infinite operands are all taken. Host only.
#pragma once

#include <vector>

#include "curve.hpp"

namespace cuzk::CUZK_PATH {

template <class F>
class Lockstep {
 public:
  using Point = Affine<F>;

  // Batches of at most `most` points.
  explicit Lockstep(std::size_t most) : slopes_(most), scratch_(most) {}

  // sums[i] += terms[i]
  void add(Point* sums, const Point* terms, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) slopes_[i] = denominator(sums[i], terms[i]);
    invert_all(slopes_.data(), scratch_.data(), n);
    for (std::size_t i = 0; i < n; i++) {
      Point& s = sums[i];
      const Point& t = terms[i];
      if (t.is_infinity()) continue;
      if (s.is_infinity()) {
        s = t;
      } else if (slopes_[i].is_zero()) {
        s = Point::infinity();  // opposite points
      } else {
        F rise = s.x == t.x ? thrice_square(s.x) : t.y - s.y;
        s = chord(s, t.x, rise * slopes_[i]);
      }
    }
  }

  // points[i] += points[i]
  void twice(Point* points, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) slopes_[i] = points[i].y.doubled();
    invert_all(slopes_.data(), scratch_.data(), n);
    for (std::size_t i = 0; i < n; i++) {
      Point& p = points[i];
      // y = 0 is infinity or a point of order two.
      p = slopes_[i].is_zero() ? Point::infinity() : chord(p, p.x, thrice_square(p.x) * slopes_[i]);
    }
  }

 private:
  static F thrice_square(const F& x) {
    F square = x.squared();
    return square.doubled() + square;
  }

  // What the slope divides by; 0 where no slope is needed.
  static F denominator(const Point& s, const Point& t) {
    if (s.is_infinity() || t.is_infinity()) return F::zero();
    F run = t.x - s.x;
    if (!run.is_zero()) return run;
    return s.y == t.y ? s.y.doubled() : F::zero();
  }

  // The third point on the line through s with this slope, reflected.
  static Point chord(const Point& s, const F& other_x, const F& slope) {
    F x = slope.squared() - s.x - other_x;
    return {x, slope * (s.x - x) - s.y};
  }

  std::vector<F> slopes_, scratch_;
};

}  // namespace cuzk::CUZK_PATH
