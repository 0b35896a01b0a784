// Transforms over points: out_j = sum_i root^(ij) f_i P_i, decimation in time, in place between layers.
//
// The first scaling, by f_i, leaves bit-reversed order; then log n layers of n/2 butterflies (A, B) -> (A + t B,
// A - t B) on sums in extended form. n/2 log n - n + 1 twiddles are not 1: a scaling each, 1,670 products,
// beside which the two additions (28) and all of memory (some 10 KB a scaling, tables of multiples included) are
// next to nothing. One inversion a thread makes all points affine at the end.
#include "place.hpp"
#include "scaling.hpp"
#include "sum.hpp"

// halves[i's place] = scalars[i] (Montgomery) in halves.
KERNEL(256, 4)
split_scalars(const Fr* scalars, const Lattice* lattice, Halves* halves, size n, size log_n) {
  for (size i = grid_rank(); i < n; i += grid_size()) {
    Fr plain = load(scalars + i).to_plain();
    store(halves + place(i, log_n), halves_of(plain.w, *lattice));
  }
}

// sums[i's place] = points[point_of[i]], or points[i] where there is no list.
KERNEL(256, 4) gather_points(const Point* points, const u32* point_of, Sum* sums, size n, size log_n) {
  for (size i = grid_rank(); i < n; i += grid_size())
    store(sums + place(i, log_n), Sum::from_affine(load(points + (point_of != nullptr ? point_of[i] : i))));
}

// half = 0: sums[i] *= scalar scalar_of[i], or i `step` where there is no list, i < n.
// Else, in the layer that joins transforms of `half` sums, 1 < half: B *= root^(i step) for all butterflies but those
// of twiddle 1. Butterflies of one twiddle are neighbours: their threads take the same steps.
// `tables`: eight multiples for every thread of the grid.
KERNEL(128, sum_blocks)
scale_sums(Sum* sums, const Halves* scalars, const u32* scalar_of, size step, const Fp* beta, Multiple* tables,
           size n, size half) {
  Multiple* table = tables + grid_rank() * multiples;
  const size blocks = half != 0 ? n / (2 * half) : 0, end = half != 0 ? n / 2 : n;
  for (size i = blocks + grid_rank(); i < end; i += grid_size()) {
    size number = half != 0 ? i / blocks : i;
    Sum* sum = half != 0 ? sums + i % blocks * 2 * half + half + number : sums + i;
    if (load(&sum->zz).is_zero()) continue;
    scale(sum, scalars[scalar_of != nullptr ? scalar_of[i] : number * step].w, table, load(beta));
  }
}

// (A, B) -> (A + B, A - B): two neighbouring threads take one each.
KERNEL(128, sum_blocks) add_layer(Sum* sums, size n, size half) {
  const size i = grid_rank();
  const bool minus = i % 2 != 0, there = i < n;
  Sum *a = nullptr, *b = nullptr;
  Sum sum = Sum::infinity();
  if (there) {
    a = sums + i / 2 / half * 2 * half + i / 2 % half, b = a + half;
    sum = load(b);
    if (minus) sum.y = -sum.y;
    add_stored(sum, a);
  }
  __syncwarp();
  if (there) store(minus ? b : a, sum);
}

// out[i] = sums[i], affine; `products` holds n elements.
KERNEL(128, sum_blocks) to_affine(const Sum* sums, Point* out, Coordinate* products, size n) {
  Coordinate product = Coordinate::one();
  size end = grid_rank();
  for (; end < n; end += grid_size()) {
    store(products + end, product);
    Coordinate zzz = load(&sums[end].zzz);
    if (!zzz.is_zero()) product = product * zzz;
  }
  Coordinate inverse = product.inverse();
  for (size i = end; i > grid_rank();) {
    i -= grid_size();
    Sum sum = load(sums + i);
    if (sum.is_infinity()) {
      store(out + i, Point::infinity());
      continue;
    }
    store(out + i, sum.scaled_by(inverse * load(products + i)));
    inverse = inverse * sum.zzz;
  }
}
