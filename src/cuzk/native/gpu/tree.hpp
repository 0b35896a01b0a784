// Batched affine addition: pairs of points of one list, summed with one inversion per block.
//
// P1 + P2 = P3: l = (y2 - y1) / (x2 - x1), or 3 x1^2 / (2 y1) where P1 = P2; x3 = l^2 - x1 - x2,
// y3 = l (x1 - x3) - y1. A thread walks over its pairs and multiplies the divisors up, writing the product
// before each; the block's products are multiplied up a binary tree, the root is inverted, inverses go down;
// the threads walk back. 5 M + 1 S per addition; in G2 the divisors' norms are what is inverted, which makes
// 14.6 M of Fp instead of 17 M. No zero gets into the product: a pair without a slope (an infinite point,
// opposite points) counts as 1 there.
//
// Memory, per addition: x1, x2 on the way up, both points on the way back, the sum, and a product of Fp (G2:
// and a norm) written and read: 6.5 coordinates of G1, 5.5 of G2 plus 4 of Fp.
#pragma once

#include "warp_inverse.hpp"

namespace cuzk::CUZK_PATH {

constexpr int tree_threads = 128;
// Blocks that registers allow at once on a processor.
constexpr int tree_blocks = Coordinate::N <= 4 ? 6 : Coordinate::N <= 6 ? 4 : Coordinate::N <= 8 ? 3 : 2;

// The batch is inverted in Fp: a divisor goes in as its norm.
inline Fp norm(const Fp& d) { return d; }
inline Fp norm(const Fp2<Fp>& d) { return Fp::sum(d.c0, d.c0, d.c1, d.c1); }
inline Fp inverse_of(const Fp&, const Fp& norm_inverse) { return norm_inverse; }
inline Fp2<Fp> inverse_of(const Fp2<Fp>& d, const Fp& norm_inverse) {
  return d.conjugate() * norm_inverse;
}
constexpr bool keeps_norm = Coordinate::N > Fp::N;  // a load is cheaper than two squarings

// The list that is summed. A couple is an entry and the next one. `rows` names the entries' points, with their
// sign in bit 31; without it the points are the list itself (fewer than 2^31 of them).
struct List {
  const Point* points;
  const u32* rows;

  uint2 couple(u32 entry) const {
    if (rows) return make_uint2(rows[entry], rows[entry + 1]);
    return make_uint2(entry, entry + 1);
  }
  u32 row(size entry) const { return rows ? rows[entry] : (u32)entry; }
  const Point* at(u32 row) const { return points + (row & 0x7fffffffu); }
  Coordinate x(u32 row) const { return load(&at(row)->x); }
  Coordinate y(u32 row) const {
    Coordinate value = load(&at(row)->y);
    return row >> 31 ? -value : value;
  }
};

// What the sum of two points is.
enum class Way { chord, tangent, first, second, infinity };

inline Way way_of(const Coordinate& x1, const Coordinate& y1, const Coordinate& x2, const Coordinate& y2) {
  if (x1.is_zero() && y1.is_zero()) return Way::second;
  if (x2.is_zero() && y2.is_zero()) return Way::first;
  if (!(x1 == x2)) return Way::chord;
  return y1 == y2 && !y1.is_zero() ? Way::tangent : Way::infinity;
}

// The divisor of one pair. The y are looked at only where the x leave a doubt.
struct Divisor {
  Coordinate d;
  Way way = Way::chord;

  Divisor(const List& list, uint2 rows, const Coordinate& x1, const Coordinate& x2) : d(x2 - x1) {
    if (!d.is_zero() && !x1.is_zero() && !x2.is_zero()) return;
    Coordinate y1 = list.y(rows.x);
    way = way_of(x1, y1, x2, list.y(rows.y));
    if (way == Way::tangent) d = y1.doubled();
    if (way > Way::tangent) d = Coordinate::one();
  }
};

// The products of one thread of a block, `planes` of Fp per pair, in pieces that a warp writes side by side.
struct Products {
  static constexpr size planes = keeps_norm ? 2 : 1, pieces = sizeof(Fp) / 16;
  ulonglong2* mine;

  ulonglong2* place(size k, size plane) const {
    return mine + (k * planes + plane) * pieces * tree_threads;
  }
  void write(size k, size plane, const Fp& value) const {
    auto* from = reinterpret_cast<const ulonglong2*>(&value);
#pragma unroll
    for (size i = 0; i < pieces; i++) place(k, plane)[i * tree_threads] = from[i];
  }
  Fp read(size k, size plane) const {
    Fp value;
    auto* to = reinterpret_cast<ulonglong2*>(&value);
#pragma unroll
    for (size i = 0; i < pieces; i++) to[i] = place(k, plane)[i * tree_threads];
    return value;
  }
};

// The inverse of every thread's product, none of them zero. The narrow levels fall to another warp at each
// `turn`: warp 0 of every block is on the same quarter of a processor.
// Out of line: beside the loops over pairs its registers would be theirs.
__noinline__ inline Fp inverted_in_block(Fp product, size turn) {
  __shared__ Fp node[2 * tree_threads];  // the children of i are 2 i and 2 i + 1
  unsigned t = (threadIdx.x + 32 * (unsigned)turn) % tree_threads;
  __syncthreads();  // at the last turn this was another thread's leaf
  store(node + tree_threads + t, product);
#pragma unroll 1
  for (unsigned width = tree_threads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (t < width) {
      const Fp* children = node + 2 * (width + t);
      store(node + width + t, load(children) * load(children + 1));
    }
  }
  __syncthreads();
  if (t < 32) {
    Fp root = inverted_in_warp(load(node + 1));
    if (t == 0) store(node + 1, root);
  }
#pragma unroll 1
  for (unsigned width = 1; width < tree_threads; width *= 2) {
    __syncthreads();
    Fp value;
    if (t < 2 * width) value = load(node + width + t / 2) * load(node + ((2 * width + t) ^ 1));
    __syncthreads();
    if (t < 2 * width) store(node + 2 * width + t, value);
  }
  return load(node + tree_threads + t);
}

// One thread's pairs between two inversions: `count` of them, tree_threads apart.
struct Walk {
  List list;
  const u32* couples;  // the first pair's first entry
  Point* out;          // less the first pair's number
  Products products;
  int count;

  u32 couple_of(int k) const { return k >= 0 && k < count ? couples[k * tree_threads] : 0; }

  // The product of all divisors' norms. Indices are read two pairs ahead and rows one: each waits for the
  // one before.
  Fp up() const {
    Fp product = Fp::one();
    uint2 next = list.couple(couple_of(0));
    u32 couple = couple_of(1);
#pragma unroll 1
    for (int k = 0; k < count; k++) {
      uint2 rows = next;
      next = list.couple(couple), couple = couple_of(k + 2);
      Fp n = norm(Divisor(list, rows, list.x(rows.x), list.x(rows.y)).d);
      if constexpr (keeps_norm) products.write(k, 1, n);
      if (k > 0) products.write(k, 0, product);
      product = k > 0 ? product * n : n;
    }
    return product;
  }

  // Entry e becomes entry e - q: the q pairs before it are one entry each.
  void back(Fp inverse) const {
    u32 couple = couple_of(count - 1), after = couple_of(count - 2);
    uint2 next = list.couple(couple);
#pragma unroll 1
    for (int k = count - 1; k >= 0; k--) {
      uint2 rows = next;
      Point* to = out + ((i64)couple - k * tree_threads);
      couple = after, next = list.couple(couple), after = couple_of(k - 2);
      add(k, rows, inverse, to);
    }
  }

  void add(int k, uint2 rows, Fp& inverse, Point* to) const {
    Coordinate x1 = list.x(rows.x), x2 = list.x(rows.y);
    Divisor divisor(list, rows, x1, x2);
    Fp mine = inverse;
    if (k > 0) {
      mine = inverse * products.read(k, 0);
      inverse = inverse * (keeps_norm ? products.read(k, 1) : norm(divisor.d));
    }
    Coordinate y1 = list.y(rows.x), slope = list.y(rows.y) - y1;
    if (divisor.way == Way::tangent) {
      Coordinate square = x1.squared();
      slope = square.doubled() + square;
    }
    slope = slope * inverse_of(divisor.d, mine);
    Point sum;
    sum.x = slope.squared() - x1 - x2;
    sum.y = slope * (x1 - sum.x) - y1;
    if (divisor.way == Way::first) sum = {x1, y1};
    if (divisor.way == Way::second) sum = {x2, list.y(rows.y)};
    if (divisor.way == Way::infinity) sum = Point::infinity();
    store(to, sum);
  }
};

}  // namespace cuzk::CUZK_PATH
