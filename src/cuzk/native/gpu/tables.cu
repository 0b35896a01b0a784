// Multiples of a key's points: out_i = 2^k P_i, affine. With such tables all windows of an MSM share sets of
// buckets, so that windows can be wide and there is next to nothing to reduce.
//
// A thread doubles its points one after the other (k doublings of 6M + 3S) and inverts once for all of them:
// out holds X and Y meanwhile, zz and zzz the scaling, products the running product before each point; 9M + 1S
// a point and one inversion a thread. Points at infinity stay out of the product.
#include "sum.hpp"

KERNEL(128, sum_blocks)
multiply_points(const Point* points, Point* out, Coordinate* zz, Coordinate* zzz, Coordinate* products, size n,
                size doublings) {
  Coordinate product = Coordinate::one();
  size end = grid_rank();
  for (; end < n; end += grid_size()) {
    Sum sum = Sum::from_affine(load(points + end));
#pragma unroll 1
    for (size k = 0; k < doublings; k++) sum = sum.doubled();
    store(out + end, Point{sum.x, sum.y});
    store(zz + end, sum.zz);
    store(zzz + end, sum.zzz);
    store(products + end, product);
    if (!sum.is_infinity()) product = product * sum.zzz;
  }
  Coordinate inverse = product.inverse();
  for (size i = end; i > grid_rank();) {
    i -= grid_size();
    Coordinate scale = load(zzz + i);
    if (scale.is_zero()) {
      store(out + i, Point::infinity());
      continue;
    }
    Point rest = load(out + i);
    Sum sum{rest.x, rest.y, load(zz + i), scale};
    store(out + i, sum.scaled_by(inverse * load(products + i)));
    inverse = inverse * scale;
  }
}
