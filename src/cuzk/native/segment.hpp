// Sums of runs of affine points, by batched affine additions. Host only.
//
// A buffer of a few thousand points holds runs, each to be summed. Round after round, neighbours of a run
// are added pairwise: lambda = (y2 - y1) / (x2 - x1), x3 = lambda^2 - x1 - x2, y3 = lambda (x1 - x3) - y1.
// All divisions of a round share one inversion (Montgomery's trick), so an addition costs 5 products and a
// square; a mixed XYZZ addition costs 8 and 2. Equal points are doubled, opposite ones vanish, infinity is
// neutral: nothing is assumed about the points but that they lie on the curve.
#pragma once

#include <cstddef>
#include <vector>

#include "curve.hpp"

namespace cuzk::CUZK_PATH {

// Positions [begin, end) of the buffer; `key` is the caller's.
struct Run {
  std::size_t key;
  u32 begin, end;
};

// One thread's buffers. The additions of a round form two chains of products, even and odd ones, so that
// two products are always under way: a chain alone waits for each product to finish.
template <class F>
class RunAdder {
 public:
  std::vector<Affine<F>> points;
  std::vector<Run> runs;

  void reserve(std::size_t capacity) {
    if (points.size() >= capacity) return;
    points.resize(capacity);
    pairs.resize(capacity / 2 + 2);
    steps.resize(capacity / 2 + 2);
  }

  // The sum of each run goes to points[run.begin]; the rest of the buffer is consumed.
  void sum_runs() {
    std::size_t longest = 0;
    for (const Run& run : runs)
      if (run.end - run.begin > longest) longest = run.end - run.begin;
    for (u32 stride = 1; stride < longest; stride *= 2) {
      std::size_t count = 0;
      for (const Run& run : runs)
        for (u32 at = run.begin; run.end - at > stride;) {
          count = append_pair(count, at, at + stride);
          if (run.end - at <= 2 * stride) break;
          at += 2 * stride;
        }
      add_pairs(count);
    }
  }

 private:
  struct Pair {
    u32 left, right;
  };
  // divisor and the product of the divisors before it in the same chain
  struct Step {
    F divisor, before;
  };
  std::vector<Pair> pairs;
  std::vector<Step> steps;

  // Settles pairs that need no division; others are listed with their divisor (a doubling: left = right).
  std::size_t append_pair(std::size_t count, u32 left, u32 right) {
    Affine<F>&a = points[left], &b = points[right];
    F divisor = b.x - a.x;
    if (divisor.is_zero() || a.is_infinity() || b.is_infinity()) [[unlikely]] {
      if (b.is_infinity()) return count;
      if (a.is_infinity()) {
        a = b;
        return count;
      }
      if (!(a.y == b.y) || a.y.is_zero()) {
        a = Affine<F>::infinity();
        return count;
      }
      divisor = a.y.doubled();
      right = left;
    }
    pairs[count] = {left, right};
    steps[count].divisor = divisor;
    return count + 1;
  }

  [[gnu::noinline]] void add_pairs(std::size_t count) {
    if (count == 0) return;
    if (count % 2 == 1) steps[count].divisor = F::one();
    std::size_t even_count = count + count % 2;
    F product[2] = {F::one(), F::one()};
    for (std::size_t i = 0; i < even_count; i += 2) {
      steps[i].before = product[0];
      steps[i + 1].before = product[1];
      product[0] = product[0] * steps[i].divisor;
      product[1] = product[1] * steps[i + 1].divisor;
    }
    F inverse = (product[0] * product[1]).inverse();
    F chain[2] = {inverse * product[1], inverse * product[0]};
    std::size_t i = even_count;
    if (count % 2 == 1) {
      i -= 2;
      add_one(pairs[i], chain[0] * steps[i].before);
      chain[0] = chain[0] * steps[i].divisor;
    }
    while (i > 0) {
      i -= 2;
      F even = chain[0] * steps[i].before, odd = chain[1] * steps[i + 1].before;
      chain[0] = chain[0] * steps[i].divisor;
      chain[1] = chain[1] * steps[i + 1].divisor;
      add_two(pairs[i], even, pairs[i + 1], odd);
    }
  }

  F slope_numerator(const Pair& pair) const {
    const Affine<F>&a = points[pair.left], &b = points[pair.right];
    if (pair.left != pair.right) [[likely]] return b.y - a.y;
    F square = a.x.squared();
    return square.doubled() + square;
  }

  void add_two(const Pair& p, const F& p_inverse, const Pair& q, const F& q_inverse) {
    F pn = slope_numerator(p), qn = slope_numerator(q);
    Affine<F>&a = points[p.left], &b = points[q.left];
    F ps = pn * p_inverse, qs = qn * q_inverse;
    F px = ps.squared(), qx = qs.squared();
    px = px - a.x - points[p.right].x;
    qx = qx - b.x - points[q.right].x;
    F py = ps * (a.x - px), qy = qs * (b.x - qx);
    a = {px, py - a.y};
    b = {qx, qy - b.y};
  }

  void add_one(const Pair& p, const F& inverse) {
    F slope = slope_numerator(p) * inverse;
    Affine<F>& a = points[p.left];
    F x = slope.squared() - a.x - points[p.right].x;
    a = {x, slope * (a.x - x) - a.y};
  }
};

}  // namespace cuzk::CUZK_PATH
